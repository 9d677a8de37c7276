//! Questions as the JSON that is sent, and answers from the JSON that comes back.

use bellwether_api::v1::hook::{
    Approve, Approved, Judge, JudgeTarget, Judged, Remove, Removed, Select, Selected, Watch, Watched,
};
use bellwether_core::rollout::answer::{self, Answer};
use bellwether_core::rollout::question::Question;
use bellwether_core::words::name::TargetName;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Asking;

/// The question with what every question says.
macro_rules! asked {
    ($asking:expr, $shape:ident { $($field:ident: $value:expr),* $(,)? }) => {
        written(&$shape {
            namespace: $asking.place.namespace.to_string(),
            entity: $asking.place.entity.to_string(),
            rollout: $asking.rollout.get(),
            version: $asking.about.version.to_string(),
            from: $asking.about.from.as_ref().map(ToString::to_string),
            hook: $asking.place.asked.to_string(),
            $($field: $value,)*
        })
    };
}

/// The body of the call.
pub(super) fn question(asking: &Asking) -> Result<String, String> {
    match &asking.question {
        Question::Selection { turned, room, candidates } => {
            asked!(asking, Select { turned: *turned, room: *room, candidates: texts(candidates) })
        }
        Question::Approval { turned, targets } => {
            asked!(asking, Approve { turned: *turned, targets: texts(targets) })
        }
        Question::Monitoring { targets } => {
            let target = |(name, assignment): &(TargetName, _)| {
                let assignment: &bellwether_core::words::counter::AssignmentNumber = assignment;
                JudgeTarget { name: name.to_string(), assignment: assignment.get() }
            };
            asked!(asking, Judge { targets: targets.iter().map(target).collect() })
        }
        Question::Removal { targets } => asked!(asking, Remove { targets: texts(targets) }),
        Question::Monitor { figures } => asked!(asking, Watch { figures: (*figures).into() }),
    }
}

/// The answer in a body.
pub(super) fn answer(question: &Question, body: &[u8]) -> Result<Answer, String> {
    Ok(match question {
        Question::Selection { .. } => Answer::Selected(names(read::<Selected>(body)?.targets)?),
        Question::Approval { .. } => {
            let Approved { approved, reason } = read(body)?;
            Answer::Approved { approved, reason }
        }
        Question::Monitoring { .. } => {
            let judged = read::<Judged>(body)?.targets.into_iter().map(|judged| {
                let target = name(&judged.name)?;
                Ok(answer::Judged { target, well: judged.well, reason: judged.reason })
            });
            Answer::Judged(judged.collect::<Result<_, String>>()?)
        }
        Question::Removal { .. } => Answer::Removed(names(read::<Removed>(body)?.removed)?),
        Question::Monitor { .. } => {
            let Watched { well, reason } = read(body)?;
            Answer::Watched { well, reason }
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
