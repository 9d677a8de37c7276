//! `apply` and `diff`: reads documents from files and sends them to the server in one call, which does the rest.

mod document;
mod ensembles;
mod files;
mod hint;
mod locate;
mod numbers;

use bellwether_api::v1::apply::{Applied, AppliedObject, ApplyOutcome, ApplyRequest, Document, FieldChange};

use self::document::Located;
use crate::args::{Apply, Consent, FileFlags};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::tell;

pub(super) async fn apply(context: &Context, flags: &Apply) -> CommandResult {
    let Apply { from, dry_run, consent } = flags;
    let documents = document::read(from)?;
    let may_lose = from.prune || documents.iter().any(|of| matches!(of.document, Document::Ensemble(_)));
    if may_lose && !dry_run {
        let planned = send(context, from, &documents, true).await?;
        ask(context, &planned, *consent)?;
        let namespace = document::namespace(&documents, &context.namespace, context.namespace_is_said)?;
        ensembles::ask((context, namespace), &documents, &planned, *consent).await?;
    }
    let applied = send(context, from, &documents, *dry_run).await?;
    show(context, &applied.objects, line)?;
    note(&applied.objects);
    if applied.transactions > 1 {
        let word = if *dry_run { "it takes" } else { "changed in" };
        tell(&format!("{word} {} transactions, because one does not hold all changes", applied.transactions));
    }
    if *dry_run {
        tell("nothing was written");
    }
    Ok(Exit::Yes)
}

pub(super) async fn diff(context: &Context, from: &FileFlags) -> CommandResult {
    let documents = document::read(from)?;
    let mut objects = send(context, from, &documents, true).await?.objects;
    note(&objects);
    objects.retain(|object| object.outcome != ApplyOutcome::Unchanged);
    show(context, &objects, |object| {
        let word = match object.outcome {
            ApplyOutcome::Created => " (new)",
            ApplyOutcome::Pruned => " (pruned)",
            ApplyOutcome::Changed | ApplyOutcome::Unchanged => "",
        };
        let mut lines = vec![format!("{}{word}", object.object)];
        lines.extend(object.fields.iter().map(field));
        lines.join("\n")
    })?;
    Ok(if objects.is_empty() { Exit::Yes } else { Exit::No })
}

/// Tells what objects lack, what keeps them from having an effect, and what is not done for them any more.
fn note(objects: &[AppliedObject]) {
    for object in objects {
        if let Some(note) = &object.note {
            tell(&format!("{}: {note}", object.object));
        }
        if let Some(note) = ensembles::unscheduled(object) {
            tell(&format!("{}: {note}", object.object));
        }
    }
}

/// Sends all documents in one call. An error that names an object is told with the place of its document.
async fn send(
    context: &Context,
    from: &FileFlags,
    documents: &[Located],
    dry_run: bool,
) -> Result<Applied, Failure> {
    let namespace = document::namespace(documents, &context.namespace, context.namespace_is_said)?;
    let labels =
        || from.labels.iter().map(|label| (label.key.to_string(), label.value.to_string())).collect();
    let request = ApplyRequest {
        documents: documents.iter().map(|located| located.document.clone()).collect(),
        dry_run,
        prune: from.prune.then(labels),
    };
    let answer = context.client.apply(namespace, &request).await;
    answer.map_err(|error| {
        let mut failure = Failure::from(error);
        if let Some(place) = documents.iter().find_map(|located| located.place_of(&failure.message)) {
            failure.message = format!("{} ({place})", failure.message);
        }
        failure
    })
}

/// Asks before anything is deleted that cannot be brought back.
fn ask(context: &Context, planned: &Applied, consent: Consent) -> Result<(), Failure> {
    let pruned = planned.objects.iter().filter(|object| object.outcome == ApplyOutcome::Pruned);
    let lost = |object: &&AppliedObject| {
        object.object.starts_with("entity/") || object.object.starts_with("profile/")
    };
    let lost: Vec<&str> = pruned.filter(lost).map(|object| object.object.as_str()).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let history = if lost.len() == 1 { "its history" } else { "their history" };
    let list = lost.join(", ");
    confirm(&format!("delete {list} in namespace {} and {history}?", context.namespace), consent)
        .map_err(|failure| failure.hint(format!("this would delete {list}; pass --yes to confirm")))
}

fn show(
    context: &Context,
    objects: &[AppliedObject],
    line: impl Fn(&AppliedObject) -> String,
) -> Result<(), Failure> {
    let names = || objects.iter().map(|object| object.object.clone()).collect();
    context.show.data(&objects, names, |_| objects.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(object: &AppliedObject) -> String {
    let word = match object.outcome {
        ApplyOutcome::Created => "created",
        ApplyOutcome::Changed => "changed",
        ApplyOutcome::Unchanged => "unchanged",
        ApplyOutcome::Pruned => "pruned",
    };
    let rollout = object
        .rollout
        .as_ref()
        .map_or_else(String::new, |version| format!(", rollout to {version} requested"));
    format!("{} {word}{rollout}", object.object)
}

fn field(change: &FieldChange) -> String {
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    format!("  {}: {} → {}", change.field, dash(&change.old), dash(&change.new))
}
