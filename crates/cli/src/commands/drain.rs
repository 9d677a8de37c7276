//! `node drain`: requests drains, and waits for them if asked to.

use std::time::Duration;

use bellwether_api::v1::node::{Drain, DrainRequest, NodeView};

use bellwether_core::words::percent::Amount;

use super::node::members;
use super::selected_nodes::picked;
use crate::args::DrainNodes;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};

/// How long one read waits for the next event.
const POLL: Duration = Duration::from_secs(30);

pub(super) async fn run(context: &Context, drain: DrainNodes) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    if drain.max_unavailable.is_zero() {
        let text = "use 0 as --max-unavailable: no node that serves anything would ever be drained";
        return Err(Failure::usage(text.to_owned()));
    }
    let one = drain.which.name.is_some();
    let nodes = picked(context, drain.which).await?;
    if !one {
        confirm(&question(&nodes, drain.force, drain.max_unavailable), drain.consent)?;
    }
    let request = DrainRequest {
        reason: drain.why.reason,
        max_unavailable: (!drain.force).then(|| drain.max_unavailable.to_string()),
        deadline: (!drain.force).then(|| drain.deadline.to_string()),
        force: drain.force,
    };
    let last = client.overview(namespace).await?.last_event;
    for view in &nodes {
        let name = &view.node.name;
        client.drain_node(namespace, name, &request).await?;
        let after = client.node(namespace, name).await?;
        match after.node == view.node {
            true => context.show.changed(&format!("node {name}: unchanged, {}", state(&after))),
            false => context.show.changed(&format!("node {name}: {}", state(&after))),
        }
    }
    // Services are withdrawn at once; members of ensembles leave later, or stay.
    let names: Vec<String> = nodes.iter().map(|view| view.node.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if !drain.watch {
        let staying = members::staying(context, &names).await.unwrap_or_else(|unknown| vec![unknown]);
        tell(context, &staying);
        return Ok(Exit::Yes);
    }
    let deadline = tokio::time::Instant::now() + drain.deadline.to_duration();
    let exit = watch(context, nodes, last).await?;
    if exit != Exit::Yes {
        return Ok(exit);
    }
    tokio::time::timeout_at(deadline, emptied(context, &names, last)).await.unwrap_or_else(|_| {
        context.show.note("note: what is listed above is still there, and is not waited for any longer");
        Ok(Exit::No)
    })
}

fn tell(context: &Context, lines: &[String]) {
    lines.iter().for_each(|line| context.show.note(&format!("note: {line}")));
}

/// Waits until the nodes have nothing of ensembles any more, telling what they have whenever that changes. One that is not drained any more keeps
/// what it has, and is not waited for.
async fn emptied(context: &Context, nodes: &[&str], mut last: u64) -> CommandResult {
    let (mut shown, mut exit, mut nodes) = (Vec::new(), Exit::Yes, nodes.to_vec());
    loop {
        let (drained, others) = still_drained(context, &nodes).await?;
        for (node, state) in others {
            match members::staying(context, &[node]).await {
                Ok(staying) if staying.is_empty() => {}
                Ok(_) | Err(_) => {
                    let what = "what it has of ensembles stays, and is not waited for any longer";
                    context.show.changed(&format!("node {node}: {state}; {what}"));
                    exit = Exit::No;
                }
            }
        }
        nodes = drained;
        let staying = match members::staying(context, &nodes).await {
            Ok(staying) => staying,
            // Who may not read them drains for the services alone.
            Err(unknown) => {
                tell(context, &[unknown]);
                return Ok(exit);
            }
        };
        if staying.is_empty() {
            if !shown.is_empty() && exit == Exit::Yes {
                context.show.changed("nothing of ensembles is left there");
            }
            return Ok(exit);
        }
        if staying != shown {
            tell(context, &staying);
            shown = staying;
        }
        last = next_event(context, last).await?;
    }
}

/// The nodes that are drained, and the others with what became of their drain.
async fn still_drained<'a>(
    context: &Context,
    nodes: &[&'a str],
) -> Result<(Vec<&'a str>, Vec<(&'a str, String)>), Failure> {
    let (mut drained, mut others) = (Vec::new(), Vec::new());
    for node in nodes {
        let view = context.client.node(&context.namespace, node).await?;
        match view.node.cordon.as_ref().and_then(|cordon| cordon.drain.as_ref()) {
            Some(_) => drained.push(*node),
            None => others.push((*node, state(&view))),
        }
    }
    Ok((drained, others))
}

/// What is about to happen to several nodes.
fn question(nodes: &[NodeView], force: bool, most: Amount) -> String {
    let names: Vec<&str> = nodes.iter().take(5).map(|view| view.node.name.as_str()).collect();
    let more = nodes.len().saturating_sub(names.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let how = if force {
        "at once, whatever else is unavailable".to_owned()
    } else {
        format!("with at most {most} of the instances of each service unavailable")
    };
    format!("drain {} ({}{more}) {how}?", count(nodes.len()), names.join(", "))
}

fn count(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// The drain of a node, in words.
fn state(view: &NodeView) -> String {
    match view.node.cordon.as_ref().and_then(|cordon| cordon.drain.as_ref()) {
        Some(Drain::Drained { .. }) => "drained".to_owned(),
        Some(Drain::Waiting { reason: Some(reason), .. }) => format!("drain waits: {reason}"),
        Some(Drain::Waiting { reason: None, .. }) => "drain requested".to_owned(),
        None if view.node.cordon.is_some() => "drain given up, still cordoned".to_owned(),
        None => "not drained: uncordoned meanwhile".to_owned(),
    }
}

/// Waits until no drain is left waiting, printing each one that ends, and what the others wait for when that changes.
async fn watch(context: &Context, nodes: Vec<NodeView>, mut last: u64) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    let mut exit = Exit::Yes;
    let mut pending: Vec<(String, String)> =
        nodes.into_iter().map(|view| (view.node.name, String::new())).collect();
    loop {
        let mut left = Vec::new();
        for (name, shown) in pending {
            let view = client.node(namespace, &name).await?;
            let drain = view.node.cordon.as_ref().and_then(|cordon| cordon.drain.as_ref());
            let now = state(&view);
            if now != shown {
                context.show.changed(&format!("node {name}: {now}"));
            }
            match drain {
                Some(Drain::Waiting { .. }) => left.push((name, now)),
                Some(Drain::Drained { .. }) => {}
                None => exit = Exit::No,
            }
        }
        pending = left;
        if pending.is_empty() {
            return Ok(exit);
        }
        last = next_event(context, last).await?;
    }
}

/// Waits for the next event; returns the number of the last one.
async fn next_event(context: &Context, after: u64) -> Result<u64, Failure> {
    let page = context.client.events(&context.namespace, Some(after), 100, POLL).await?;
    Ok(page.items.iter().map(|event| event.seq).max().unwrap_or(after).max(after))
}
