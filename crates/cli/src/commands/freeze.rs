//! `freeze` and `stop-everything`: keep targets from updating.

use super::lists;
use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::freeze::{FreezeKind, FreezeSpec, FreezeView};
use bellwether_api::v1::page::Page;

use crate::args::{FreezeScopeFlags, FreezeVerb, ListFlags, StopEverything};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

/// The name of the freeze that `stop-everything` sets.
const STOP: &str = "stop-everything";

pub(super) async fn run(context: &Context, verb: FreezeVerb) -> CommandResult {
    match verb {
        FreezeVerb::On { name, what, lasts, stop } => {
            let namespace = place(context, what.all_namespaces);
            let kind = stop.then_some(FreezeKind::Stop);
            let lasts = lasts.map(|lasts| lasts.to_string());
            let spec = FreezeSpec { kind, lasts, ..spec(what) };
            let before = found(context, namespace, &name).await?;
            let set = context.client.set_freeze(namespace, &name, &spec).await?;
            let flag = if set.global { " --all-namespaces" } else { "" };
            report(context, before.as_ref(), &set);
            context.show.note(&format!("end it with: bellwether freeze off {name}{flag}"));
        }
        FreezeVerb::Off { name, all_namespaces } => {
            context.client.delete_freeze(place(context, all_namespaces), &name).await?;
            context.show.changed(&format!("freeze {name}: ended"));
        }
        FreezeVerb::List(flags) => return list(context, &flags).await,
    }
    Ok(Exit::Yes)
}

/// The namespace of a freeze; `None` for one that covers every namespace.
fn place(context: &Context, all: bool) -> Option<&str> {
    (!all).then_some(context.namespace.as_str())
}

fn spec(what: FreezeScopeFlags) -> FreezeSpec {
    let FreezeScopeFlags { entity, selector, reason, all_namespaces: _ } = what;
    FreezeSpec { entity, targets: selector, reason, ..FreezeSpec::default() }
}

/// The freeze of a name, if there is one.
async fn found(
    context: &Context,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<FreezeView>, Failure> {
    match context.client.freeze(namespace, name).await {
        Ok(found) => Ok(Some(found)),
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reports a freeze that was set, and whether that changed anything.
fn report(context: &Context, before: Option<&FreezeView>, set: &FreezeView) {
    let unchanged = before.is_some_and(|before| before.freeze == set.freeze);
    let unchanged = if unchanged { "unchanged, " } else { "" };
    let until = set.freeze.until_ms.map_or_else(String::new, |until| format!(" until {}", date(until)));
    context.show.changed(&format!("freeze {}: {unchanged}covers {}{until}", set.freeze.name, scope(set)));
    if let Some(hint) = &set.hint {
        context.show.note(&format!("  note: {hint}"));
    }
}

/// What a freeze covers, in a few words.
pub(super) fn scope(view: &FreezeView) -> String {
    let what = match (&view.freeze.entity, &view.freeze.targets) {
        (Some(entity), _) => format!("entity {entity}"),
        (None, Some(targets)) => format!("targets {targets}"),
        (None, None) if view.global => "everything".to_owned(),
        (None, None) => "everything in this namespace".to_owned(),
    };
    if view.global { format!("{what} in every namespace") } else { what }
}

/// When a freeze ends by itself, or that it has ended.
fn end(view: &FreezeView) -> String {
    match (view.expired, view.freeze.until_ms) {
        (true, _) => "ended".to_owned(),
        (false, Some(until)) => date(until),
        (false, None) => "-".to_owned(),
    }
}

/// A freeze with all its fields, one a line.
pub(super) fn sheet(view: &FreezeView) -> String {
    let freeze = &view.freeze;
    let mut lines = vec![
        format!("name    {}", freeze.name),
        format!("scope   {}", scope(view)),
        format!("kind    {}", freeze.kind),
        set_by(&freeze.by, freeze.at_ms, &freeze.reason),
        format!("ends    {}", end(view)),
    ];
    lines.extend(view.hint.iter().map(|hint| format!("note    {hint}")));
    lines.join("\n")
}

/// Who set a freeze or a pause, when and why.
pub(super) fn set_by(by: &str, at_ms: u64, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("set     by {by} at {}{reason}", date(at_ms))
}

async fn list(context: &Context, flags: &ListFlags) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.freezes(Some(namespace)).await;
    lists::show(context, flags, &fill(paths::FREEZES, &[namespace]), read, async |page| {
        shown(context, &page).await
    })
    .await
}

async fn shown(context: &Context, page: &Page<FreezeView>) -> Result<(), Failure> {
    if super::documents::yaml(context, "freeze", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|view| view.freeze.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "nothing is frozen".to_owned();
        }
        let rows = page.items.iter().map(|view| {
            let ends = end(view);
            let freeze = &view.freeze;
            let (kind, by) = (freeze.kind.to_string(), freeze.by.clone());
            vec![freeze.name.clone(), scope(view), kind, by, date(freeze.at_ms), ends, freeze.reason.clone()]
        });
        table(&["name", "scope", "kind", "by", "since", "ends", "reason"], rows)
    })
}

pub(super) async fn stop_everything(context: &Context, stop: StopEverything) -> CommandResult {
    let all = stop.what.all_namespaces;
    let flag = if all { " --all-namespaces" } else { "" };
    let namespace = place(context, all);
    if stop.off {
        context.client.delete_freeze(namespace, STOP).await?;
        let place = place_name(context, all);
        context
            .show
            .changed(&format!("stop-everything: lifted; everything in {place} continues where it stopped"));
        return Ok(Exit::Yes);
    }
    let spec = FreezeSpec { kind: Some(FreezeKind::Stop), ..spec(stop.what) };
    let before = found(context, namespace, STOP).await?;
    narrows(before.as_ref(), &spec)?;
    confirm(&question(context, all, &spec), stop.consent)?;
    let set = context.client.set_freeze(namespace, STOP, &spec).await?;
    report(context, before.as_ref(), &set);
    context.show.note(&format!("lift it with: bellwether stop-everything --off{flag}"));
    Ok(Exit::Yes)
}

fn question(context: &Context, all: bool, spec: &FreezeSpec) -> String {
    let what = match (&spec.entity, &spec.targets) {
        (Some(entity), _) => format!("rollouts of entity {entity}"),
        (None, Some(targets)) => format!("rollouts to targets {targets}"),
        (None, None) => "all rollouts".to_owned(),
    };
    format!("stop {what} in {}, rollbacks included?", place_name(context, all))
}

/// The namespaces that a stop covers, for people.
fn place_name(context: &Context, all: bool) -> String {
    if all { "every namespace".to_owned() } else { format!("namespace {}", context.namespace) }
}

/// Refuses to narrow a stop in force: what it covers now would continue.
fn narrows(before: Option<&FreezeView>, spec: &FreezeSpec) -> Result<(), Failure> {
    let Some(found) = before else { return Ok(()) };
    let same = found.freeze.entity == spec.entity && found.freeze.targets == spec.targets;
    let wider = spec.entity.is_none() && spec.targets.is_none();
    if found.expired || same || wider {
        return Ok(());
    }
    let what = format!("narrow {STOP}: it covers {}, which would continue", scope(found));
    Err(Failure::new(Exit::Refused, what).hint("set another freeze: bellwether freeze on NAME --stop"))
}
