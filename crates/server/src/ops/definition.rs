//! Tasks, stages and workflows: setting, deleting and reading. What one names need not exist until a run starts.

mod content;
mod view;

use bellwether_api::shape::{ShapeError, reason};
use bellwether_core::decide::reactions::that_try_again;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::definition::{Definition, DefinitionId, MAX_CONTENT_BYTES};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace};

pub(super) use self::content::content_of;
pub use self::content::{DefinitionContent, grantable, stage, task, workflow};
pub use self::view::{Users, missing, stage_view, task_view, users, workflow_view};
use super::{OpError, cause, event};
use crate::secret;
use crate::transactor::Transactor;

/// Most tasks, stages and workflows of a namespace together.
const MAX_DEFINITIONS: usize = 5_000;

/// A definition, for a change.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// What it is, and its name.
    pub id: &'a DefinitionId,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
}

/// Creates a definition, or replaces one; answers whether it is new. The same content again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Refused`] when there are too many.
pub async fn set(
    transactor: &Transactor,
    scope: DefinitionScope<'_>,
    content: &DefinitionContent,
    why: &str,
) -> Result<bool, OpError> {
    let DefinitionScope { namespace, id, actor } = scope;
    let why = reason(why)?;
    let text = content.canonical();
    if text.len() > MAX_CONTENT_BYTES {
        let reason = format!("{} bytes as JSON; at most {MAX_CONTENT_BYTES} are allowed", text.len());
        return Err(ShapeError::at(id.kind(), reason).into());
    }
    let digest = secret::hash(text.as_bytes());
    transactor
        .compare(namespace, actor, &Key::Definition(id.clone()).into(), |_, fleet, now| {
            let before = fleet.definitions.get(id).map(|kept| &*kept.value);
            if before.is_some_and(|before| before.digest == digest) {
                return Ok((None, false));
            }
            if before.is_none() && fleet.definitions.size() >= MAX_DEFINITIONS {
                let reason = format!(
                    "create {id}: the namespace has {MAX_DEFINITIONS} tasks, stages and workflows, which is the most"
                );
                let hint = Some("delete those that nothing uses".to_owned());
                return Err(OpError::Refused { reason, hint });
            }
            let after = Definition {
                id: id.clone(),
                content: text.clone(),
                digest: digest.clone(),
                labels: before.map_or_else(Labels::default, |before| before.labels.clone()),
                annotation: Annotation { by: actor.clone(), reason: why.clone(), at: now },
            };
            let mut event = event(changed(id), subject(id), cause(&why));
            event.before = before.map(|before| short(&before.digest));
            event.after = Some(short(&digest));
            let mut writes = vec![Write::put(Record::Definition(after))];
            if let DefinitionId::Workflow(workflow) = id {
                let reactions = that_try_again(fleet, workflow);
                writes.extend(reactions.map(|reaction| Write::put(Record::Reaction(reaction))));
            }
            Ok((Some(Changeset { writes, events: vec![event] }), before.is_none()))
        })
        .await
}

/// Deletes a definition. Those that name it stay, and do not start until it exists again.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn delete(transactor: &Transactor, scope: DefinitionScope<'_>) -> Result<(), OpError> {
    let DefinitionScope { namespace, id, actor } = scope;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let before = fleet.definitions.get(id).ok_or_else(|| OpError::NotFound(id.to_string()))?;
            let users = users(fleet)?;
            let cause = match users.get(id).map(Vec::as_slice).unwrap_or_default() {
                [] => String::new(),
                [first] => format!("{first} names it"),
                [first, rest @ ..] => format!("{first} and {} more name it", rest.len()),
            };
            let mut event = event(deleted(id), subject(id), cause);
            event.before = Some(short(&before.value.digest));
            let writes = vec![Write::delete(Key::Definition(id.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

const fn changed(id: &DefinitionId) -> &'static str {
    match id {
        DefinitionId::Task(_) => "task.changed",
        DefinitionId::Stage(_) => "stage.changed",
        DefinitionId::Workflow(_) => "workflow.changed",
    }
}

const fn deleted(id: &DefinitionId) -> &'static str {
    match id {
        DefinitionId::Task(_) => "task.deleted",
        DefinitionId::Stage(_) => "stage.deleted",
        DefinitionId::Workflow(_) => "workflow.deleted",
    }
}

fn subject(id: &DefinitionId) -> String {
    format!("{}/{}", id.kind(), id.name())
}

/// The part of a digest that people tell definitions apart by.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}
