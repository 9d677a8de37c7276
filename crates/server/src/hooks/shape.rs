//! JSON of questions.

use bellwether_api::v1::hook::{Approve, Judge, Remove, Select, SoakedTarget, Watch};
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::name::TargetName;
use serde::Serialize;

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

fn written(shape: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(shape).map_err(|error| format!("cannot encode the question: {error}"))
}

fn texts(names: &[TargetName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
