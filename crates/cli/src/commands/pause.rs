//! `pause`: nodes that a selector picks start nothing new, now and later.

use bellwether_api::v1::pause::PauseSpec;

use crate::args::PauseVerb;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::date;
use crate::show::{print, table, tell};

pub(super) async fn run(context: &Context, verb: PauseVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        PauseVerb::On { name, nodes, why } => {
            let set = client.set_pause(namespace, &name, &PauseSpec { nodes, reason: why }).await?;
            tell(&format!(
                "{name} holds {} node(s) now, and whichever {} picks later",
                set.held, set.pause.nodes
            ));
            tell(&format!("end it with: bellwether pause off {name}"));
        }
        PauseVerb::Off { name } => client.delete_pause(namespace, &name).await?,
        PauseVerb::List => list(context).await?,
    }
    Ok(Exit::Yes)
}

async fn list(context: &Context) -> Result<(), Failure> {
    let page = context.client.pauses(&context.namespace).await?;
    if super::documents::yaml(context, "pause", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|view| view.pause.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return String::new();
        }
        let rows = page.items.iter().map(|view| {
            let (pause, mark) = (&view.pause, &view.pause.annotation);
            let (since, held) = (date(mark.at_ms), view.held.to_string());
            vec![pause.name.clone(), pause.nodes.clone(), held, mark.by.clone(), since, mark.reason.clone()]
        });
        table(&["name", "nodes", "held", "by", "since", "why"], rows)
    })?;
    if page.items.is_empty() && !context.is_data() {
        print("no pause of several nodes; node list shows those that are paused one by one");
    }
    Ok(())
}
