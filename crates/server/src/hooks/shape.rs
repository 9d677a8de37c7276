//! Questions as the JSON that is sent, and answers from the JSON that comes back.

use bellwether_api::v1::hook::{
    Approve, HookApproved, HookJudged, HookMonitored, HookRemoved, HookSelected, Judge, Remove, Select,
    SoakedTarget, Watch,
};
use bellwether_core::rollout::hook_answer::{self, HookAnswer};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::TargetName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::HookCallSpec;

/// The question with what every question says.
macro_rules! asked {
    ($asking:expr, $shape:ident { $($field:ident: $value:expr),* $(,)? }) => {
        written(&$shape {
            namespace: $asking.place.namespace.to_string(),
            entity: $asking.place.entity.to_string(),
            rollout: $asking.rollout.get(),
            version: $asking.about.version.to_string(),
            from: $asking.about.from.as_ref().map(ToString::to_string),
            hook: $asking.place.asked.into(),
            $($field: $value,)*
        })
    };
}

/// The body of the call.
pub(super) fn question(asking: &HookCallSpec) -> Result<String, String> {
    match &asking.question {
        HookQuestion::Selection { turned, room, candidates } => {
            asked!(asking, Select { dispatched: *turned, limit: *room, candidates: texts(candidates) })
        }
        HookQuestion::Approval { turned, targets } => {
            asked!(asking, Approve { dispatched: *turned, targets: texts(targets) })
        }
        HookQuestion::Monitoring { targets } => {
            let target = |(name, assignment): &(TargetName, _)| {
                let assignment: &bellwether_core::words::counter::AssignmentNumber = assignment;
                SoakedTarget { name: name.to_string(), assignment: assignment.get() }
            };
            asked!(asking, Judge { targets: targets.iter().map(target).collect() })
        }
        HookQuestion::Removal { targets } => asked!(asking, Remove { targets: texts(targets) }),
        HookQuestion::Monitor { counts } => asked!(asking, Watch { counts: (*counts).into() }),
    }
}

/// The answer in a body.
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

/// Reads a body; what is missing is named.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| format!("answer is no JSON: {error}"))?;
    serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
            Some(field) => format!("answer lacks {field:?}"),
            None => format!("answer does not fit: {text}"),
        }
    })
}

fn written(shape: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(shape).map_err(|error| format!("could not write the question: {error}"))
}

fn texts(names: &[TargetName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn names(texts: Vec<String>) -> Result<Vec<TargetName>, String> {
    texts.iter().map(|text| name(text)).collect()
}

fn name(text: &str) -> Result<TargetName, String> {
    TargetName::parse(text).map_err(|_| format!("it named {text:?}, which is no target's name"))
}
