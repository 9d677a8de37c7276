//! JSON of questions and answers.

use bellwether_api::v1::hook::{
    Approve, HookApproved, HookJudged, HookMonitored, HookRemoved, HookSelected, Judge, Remove, Select,
    SoakedTarget, Watch,
};
use bellwether_core::rollout::hook_answer::{self, HookAnswer};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::TargetName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call_spec::HookCallSpec;

/// Writes a question with the fields that all questions have.
macro_rules! asked {
    ($spec:expr, $shape:ident { $($field:ident: $value:expr),* $(,)? }) => {
        written(&$shape {
            namespace: $spec.key.namespace.to_string(),
            entity: $spec.key.entity.to_string(),
            rollout: $spec.rollout.get(),
            version: $spec.versions.version.to_string(),
            from: $spec.versions.from.as_ref().map(ToString::to_string),
            hook: $spec.key.asked.into(),
            $($field: $value,)*
        })
    };
}

/// The body of a call.
pub(super) fn question(spec: &HookCallSpec) -> Result<String, String> {
    match &spec.question {
        HookQuestion::Selection { turned, room, candidates } => {
            asked!(spec, Select { dispatched: *turned, limit: *room, candidates: texts(candidates) })
        }
        HookQuestion::Approval { turned, targets } => {
            asked!(spec, Approve { dispatched: *turned, targets: texts(targets) })
        }
        HookQuestion::Monitoring { targets } => {
            let target = |(name, assignment): &(TargetName, _)| {
                let assignment: &bellwether_core::words::counter::AssignmentNumber = assignment;
                SoakedTarget { name: name.to_string(), assignment: assignment.get() }
            };
            asked!(spec, Judge { targets: targets.iter().map(target).collect() })
        }
        HookQuestion::Removal { targets } => asked!(spec, Remove { targets: texts(targets) }),
        HookQuestion::Monitor { counts } => asked!(spec, Watch { counts: (*counts).into() }),
    }
}

/// Parses the answer to a question.
pub(super) fn answer(question: &HookQuestion, body: &[u8]) -> Result<HookAnswer, String> {
    Ok(match question {
        HookQuestion::Selection { .. } => HookAnswer::Selected(names(read::<HookSelected>(body)?.targets)?),
        HookQuestion::Approval { .. } => {
            let HookApproved { approved, reason } = read(body)?;
            HookAnswer::Approved { approved, reason }
        }
        HookQuestion::Monitoring { .. } => {
            let judged = read::<HookJudged>(body)?.targets.into_iter().map(|judged| {
                let target = name(&judged.name)?;
                Ok(hook_answer::TargetJudgement { target, well: judged.healthy, reason: judged.reason })
            });
            HookAnswer::Judged(judged.collect::<Result<_, String>>()?)
        }
        HookQuestion::Removal { .. } => HookAnswer::Removed(names(read::<HookRemoved>(body)?.removed)?),
        HookQuestion::Monitor { .. } => {
            let HookMonitored { healthy, reason } = read(body)?;
            HookAnswer::Watched { well: healthy, reason }
        }
    })
}

/// Parses a body; a missing field is named.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| format!("the answer is not JSON: {error}"))?;
    serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
            Some(field) => format!("the answer has no {field:?}"),
            None => format!("the answer is not valid: {text}"),
        }
    })
}

fn written(shape: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(shape).map_err(|error| format!("cannot encode the question: {error}"))
}

fn texts(names: &[TargetName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn names(texts: Vec<String>) -> Result<Vec<TargetName>, String> {
    texts.iter().map(|text| name(text)).collect()
}

fn name(text: &str) -> Result<TargetName, String> {
    TargetName::parse(text).map_err(|_| format!("named {text:?}, which is not a valid target name"))
}
