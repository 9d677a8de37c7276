//! `cluster view --at`: the data stores of a cluster as they were after an event.

use std::collections::BTreeSet;

use bellwether_api::v1::cluster::past_view::{PastClusterView, PastStore};

use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::paint::{Paint, Tone};
use crate::show::time::date;

pub(super) async fn run(context: &Context, name: &str, event: u64) -> CommandResult {
    let view = context.client.past_cluster_view(&context.namespace, name, event).await?;
    let names = || view.nodes.keys().cloned().collect();
    context.show.data(&view, names, |_| lines(&view, context.show.paint).join("\n"))?;
    Ok(Exit::Yes)
}

/// The tree, line by line.
fn lines(view: &PastClusterView, paint: Paint) -> Vec<String> {
    let at = view.at_ms.map_or_else(String::new, |at| format!(", {}", date(at)));
    let mut lines =
        vec![format!("{}  after event {}{at}", paint.text(Tone::Strong, &view.cluster), view.event)];
    let probes: BTreeSet<&str> =
        view.nodes.values().flat_map(|stores| stores.keys().map(String::as_str)).collect();
    if probes.is_empty() {
        lines.push("└ no data store of its members was known".to_owned());
    }
    let last = probes.len().saturating_sub(1);
    for (index, probe) in probes.into_iter().enumerate() {
        let (branch, rest) = if index == last { ("└", " ") } else { ("├", "│") };
        lines.push(format!("{branch} {}", paint.text(Tone::Strong, probe)));
        let told = view.conditions.iter().filter(|condition| condition.probe == probe);
        let told = told.map(|of| paint.text(Tone::Bad, &format!("! {} ({})", of.reason, of.kind)));
        let stores =
            view.nodes.iter().filter_map(|(node, stores)| Some(member(node, stores.get(probe)?, paint)));
        let leaves: Vec<String> = told.chain(stores).collect();
        let end = leaves.len().saturating_sub(1);
        let leaf = |(index, leaf): (usize, &String)| {
            format!("{rest} {} {leaf}", if index == end { "└" } else { "├" })
        };
        lines.extend(leaves.iter().enumerate().map(leaf));
    }
    lines
}

fn member(node: &str, store: &PastStore, paint: Paint) -> String {
    let (glyph, tone) = match store.state.as_str() {
        "up" => ("✓", Tone::Good),
        "down" => ("✗", Tone::Bad),
        _ => ("?", Tone::Busy),
    };
    let mut parts = vec![format!("{node}  {}", paint.text(tone, &format!("{glyph} {}", store.state)))];
    parts.extend(store.software.clone());
    parts.extend(store.roles.iter().map(|(shard, role)| {
        let name = if store.roles.len() > 1 { format!("{shard}: ") } else { String::new() };
        let of = store.replication.get(shard).map_or_else(String::new, |from| {
            let (from, state) = from.split_once(' ').unwrap_or((from, ""));
            let state = if state == "connected=false" { " (not connected)" } else { "" };
            format!(" of {from}{state}")
        });
        format!("{name}{role}{of}")
    }));
    parts.join("  ")
}
