//! `pause`: nodes that a selector picks start nothing new, now and later.

use super::lists;
use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::pause::{Pause, PauseSpec, PauseView};
use bellwether_core::words::plural::Plural;

use crate::args::{ListFlags, PauseVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: PauseVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        PauseVerb::On { name, selector, reason } => {
            let spec = PauseSpec { nodes: selector, reason };
            let before = match client.pause(namespace, &name).await {
                Ok(before) => Some(before.pause),
                Err(CallError::Problem(problem)) if problem.code == Code::NotFound => None,
                Err(error) => return Err(error.into()),
            };
            let set = client.set_pause(namespace, &name, &spec).await?;
            let unchanged = if before.as_ref() == Some(&set.pause) { "unchanged, " } else { "" };
            context.show.changed(&format!(
                "pause {name}: {unchanged}covers {} now, and those that {} matches later",
                Plural(set.held, "node"),
                set.pause.nodes
            ));
            context.show.note(&format!("end the pause with: bellwether pause off {name}"));
        }
        PauseVerb::Off { name } => {
            client.delete_pause(namespace, &name).await?;
            context.show.changed(&format!("pause {name}: ended"));
        }
        PauseVerb::List(flags) => return list(context, &flags).await,
    }
    Ok(Exit::Yes)
}

async fn list(context: &Context, flags: &ListFlags) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.pauses(namespace).await;
    lists::show(context, flags, &fill(paths::PAUSES, &[namespace]), read, async |page| {
        shown(context, &page).await
    })
    .await
}

async fn shown(context: &Context, page: &Page<PauseView>) -> Result<(), Failure> {
    if super::documents::yaml(context, "pause", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|view| view.pause.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "no pauses; `bellwether node list` shows nodes that are paused one by one".to_owned();
        }
        let rows = page.items.iter().map(|view| {
            let (pause, mark) = (&view.pause, &view.pause.annotation);
            let (since, held) = (date(mark.at_ms), view.held.to_string());
            vec![pause.name.clone(), pause.nodes.clone(), held, mark.by.clone(), since, mark.reason.clone()]
        });
        table(&["name", "nodes", "paused", "by", "since", "reason"], rows)
    })
}

/// A pause with all its fields, one a line.
pub(super) fn sheet(view: &PauseView) -> String {
    let Pause { name, nodes, annotation: mark, .. } = &view.pause;
    let set = super::freeze::set_by(&mark.by, mark.at_ms, &mark.reason);
    format!("name    {name}\nnodes   {nodes}\n{set}\npauses  {} now", Plural(view.held, "node"))
}
