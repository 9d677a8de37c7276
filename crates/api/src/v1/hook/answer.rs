//! Reads what a hook answers.

use bellwether_core::rollout::hook_answer::{HookAnswer, TargetJudgement};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::TargetName;
use serde::de::DeserializeOwned;

use super::{HookApproved, HookJudged, HookMonitored, HookRemoved, HookSelected};

/// Reads the body of the answer to a question.
///
/// # Errors
/// What is not valid, for people.
pub fn read_answer(question: &HookQuestion, body: &[u8]) -> Result<HookAnswer, String> {
    Ok(match question {
        HookQuestion::Selection { .. } => HookAnswer::Selected(names(read::<HookSelected>(body)?.targets)?),
        HookQuestion::Approval { .. } => {
            let HookApproved { approved, reason } = read(body)?;
            HookAnswer::Approved { approved, reason }
        }
        HookQuestion::Monitoring { .. } => {
            let judged = read::<HookJudged>(body)?.targets.into_iter().map(|judged| {
                let target = name(&judged.name)?;
                Ok(TargetJudgement { target, well: judged.healthy, reason: judged.reason })
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
            // Without what was found there: the answer may be of a program that is no hook.
            None => {
                let expected =
                    text.rsplit_once(", expected ").map_or("another form", |(_, expected)| expected);
                format!("the answer is not valid: expected {expected}")
            }
        }
    })
}

fn names(texts: Vec<String>) -> Result<Vec<TargetName>, String> {
    texts.iter().map(|text| name(text)).collect()
}

fn name(text: &str) -> Result<TargetName, String> {
    TargetName::parse(text).map_err(|_| format!("named {text:?}, which is not a valid target name"))
}
