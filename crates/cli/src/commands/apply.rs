//! `apply` and `diff`: objects in a file, compared with what is there, and made so.

mod change;
mod document;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use serde::Serialize;

use self::change::Field;
use self::document::{Object, Spec};
use crate::args::FileFlags;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::tell;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Created,
    Changed,
    Unchanged,
}

/// An object of the file, compared with what is there.
#[derive(Debug, Serialize)]
struct Compared {
    /// `kind/name`.
    object: String,
    namespace: String,
    outcome: Outcome,
    fields: Vec<Field>,
}

pub(super) async fn apply(context: &Context, from: &FileFlags, dry_run: bool) -> CommandResult {
    let (objects, compared) = compare_all(context, from).await?;
    if !dry_run {
        for (object, compared) in objects.iter().zip(&compared) {
            if compared.outcome != Outcome::Unchanged {
                write(context, object).await?;
            }
        }
    }
    show(context, &compared, |compared| {
        let word = match compared.outcome {
            Outcome::Created => "created",
            Outcome::Changed => "changed",
            Outcome::Unchanged => "unchanged",
        };
        format!("{} {word}", compared.object)
    })?;
    if dry_run {
        tell("nothing was written");
    }
    Ok(Exit::Yes)
}

pub(super) async fn diff(context: &Context, from: &FileFlags) -> CommandResult {
    let (_, mut compared) = compare_all(context, from).await?;
    compared.retain(|compared| compared.outcome != Outcome::Unchanged);
    show(context, &compared, |compared| {
        let new = if compared.outcome == Outcome::Created { " (new)" } else { "" };
        let mut lines = vec![format!("{}{new}", compared.object)];
        lines.extend(compared.fields.iter().map(|field| format!("  {field}")));
        lines.join("\n")
    })?;
    Ok(if compared.is_empty() { Exit::Yes } else { Exit::No })
}

fn show(context: &Context, compared: &[Compared], line: impl Fn(&Compared) -> String) -> Result<(), Failure> {
    let names = || compared.iter().map(|compared| compared.object.clone()).collect();
    context.show.data(&compared, names, |_| compared.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Reads the whole file, then looks at everything in it, before anything is written.
async fn compare_all(context: &Context, from: &FileFlags) -> Result<(Vec<Object>, Vec<Compared>), Failure> {
    let objects = document::read(&from.file, &context.namespace)?;
    let mut all = Vec::new();
    for object in &objects {
        all.push(compare(context, object).await?);
    }
    Ok((objects, all))
}

async fn compare(context: &Context, object: &Object) -> Result<Compared, Failure> {
    let (client, namespace, name) = (&context.client, &object.namespace, &object.name);
    let (is_new, fields) = match &object.spec {
        Spec::Entity(spec) => {
            let old = there(client.entity(namespace, name).await)?;
            (old.is_none(), change::entity(old.as_ref(), spec).map_err(|error| object.refused(&error))?)
        }
        Spec::Freeze(spec) => {
            let old = there(client.freeze(object.freezes_in(), name).await)?;
            (old.is_none(), change::freeze(old.as_ref(), spec).map_err(|error| object.refused(&error))?)
        }
        Spec::Pause(spec) => {
            let old = there(client.pause(namespace, name).await)?;
            (old.is_none(), change::pause(old.as_ref(), spec).map_err(|error| object.refused(&error))?)
        }
    };
    let outcome = match (is_new, fields.is_empty()) {
        (true, _) => Outcome::Created,
        (false, false) => Outcome::Changed,
        (false, true) => Outcome::Unchanged,
    };
    Ok(Compared { object: object.to_string(), namespace: namespace.clone(), outcome, fields })
}

/// What is there, if anything is.
fn there<T>(answer: Result<T, CallError>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn write(context: &Context, object: &Object) -> Result<(), Failure> {
    let (client, namespace, name) = (&context.client, &object.namespace, &object.name);
    match &object.spec {
        Spec::Entity(spec) => client.set_entity(namespace, name, spec).await?,
        Spec::Freeze(spec) => {
            let set = client.set_freeze(object.freezes_in(), name, spec).await?;
            if let Some(hint) = set.hint {
                tell(&format!("{object}: {hint}"));
            }
        }
        Spec::Pause(spec) => {
            let set = client.set_pause(namespace, name, spec).await?;
            tell(&format!(
                "{object} holds {} node(s) now, and whichever {} picks later",
                set.held, spec.nodes
            ));
        }
    }
    Ok(())
}
