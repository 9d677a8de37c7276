//! `node`: the machines of the fleet.

mod facts;
pub(super) mod members;

use super::lists;
use bellwether_api::paths::{self, fill};
use std::collections::BTreeMap;

use bellwether_api::client::CallError;
use bellwether_api::v1::annotation::Annotation;
use bellwether_api::v1::node::{AllowedServices, Cordon, DecommissionRequest, Drain, LabelChange, NodeView};
use bellwether_api::v1::not_runnable::Runnable;
use bellwether_api::v1::pause::Pause;

use crate::confirm::confirm;
use serde_json::json;

use super::selected_nodes::picked;
use crate::args::{Consent, ListFlags, NodeChoice, NodeVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::change::differences;
use crate::show::time::date;
use crate::show::{table, tell};

pub(super) async fn run(context: &Context, verb: NodeVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        NodeVerb::List { unaccounted: true, .. } => return unaccounted(context).await,
        NodeVerb::List { flags, all, unaccounted: false } => return list(context, &flags, all).await,
        NodeVerb::Get { of } => {
            let view = client.node(namespace, &of.name).await?;
            context.show.data(&view, || vec![view.node.name.clone()], |_| sheet(&view))?;
        }
        NodeVerb::Why { of } => return super::overview::why(context, &format!("node/{}", of.name)).await,
        NodeVerb::Label { of, changes } => label(context, &of.name, &changes).await?,
        NodeVerb::AllowServices { of, services } => allow_services(context, &of.name, services).await?,
        NodeVerb::Params(verb) => return super::param::change(context, verb).await,
        NodeVerb::Pause { which, why } => {
            let pause = async |name: &str| client.pause_node(namespace, name, &why.reason).await;
            each(context, which, "paused", "it was paused already", pause).await?;
        }
        NodeVerb::Resume { which } => return resume(context, which).await,
        NodeVerb::Cordon { which, why } => {
            let cordon = async |name: &str| client.cordon_node(namespace, name, &why.reason).await;
            each(context, which, "cordoned", "it was cordoned already", cordon).await?;
        }
        NodeVerb::Drain(nodes) => return super::drain::run(context, nodes).await,
        NodeVerb::Uncordon { which, yes: _ } => {
            let uncordon = async |name: &str| client.uncordon_node(namespace, name).await;
            each(context, which, "uncordoned", "it was not cordoned", uncordon).await?;
        }
        NodeVerb::Rescan { which } => rescan(context, which).await?,
        NodeVerb::Expect { name, off: true, .. } => {
            client.unexpect_node(namespace, &name).await?;
            context.show.changed(&format!("node {name}: no longer expected"));
        }
        NodeVerb::Expect { name, why, off: false } => {
            client.expect_node(namespace, &name, &why.reason).await?;
            context.show.changed(&format!("node {name}: expected"));
        }
        NodeVerb::Runnable { of, no, why } => runnable(context, &of.name, !no, why.reason).await?,
        NodeVerb::Jobs { of } => {
            return super::job::list(context, ListFlags::default(), None, Some(of.name)).await;
        }
        NodeVerb::Logs(wanted) => return super::statuses::logs(context, wanted).await,
        NodeVerb::Decommission { of, why, force, consent } => {
            let request = DecommissionRequest { reason: why.reason, force };
            decommission(context, &of.name, (&request, consent)).await?;
        }
    }
    Ok(Exit::Yes)
}

/// Decommissions a node after the question whether that is meant.
async fn decommission(
    context: &Context,
    name: &str,
    (request, consent): (&DecommissionRequest, Consent),
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    if client.node(namespace, name).await?.node.decommissioned.is_some() {
        context.show.changed(&format!("node {name}: unchanged, it is decommissioned"));
        return Ok(());
    }
    let lost = members::lost(context, name).await;
    let lost: String = lost.into_iter().map(|line| line + "\n").collect();
    confirm(&format!("{lost}decommission node {name} for good?"), consent)?;
    client.decommission_node_as(namespace, name, request).await?;
    context.show.changed(&format!("node {name}: decommissioned"));
    context.show.note(
        "its agent ends; the processes that it supervises keep running, unless its services_on_exit is \"stop\": end \
         them on the machine",
    );
    Ok(())
}

/// Says whether a node begins runs, and reports what changed.
async fn runnable(context: &Context, name: &str, runnable: bool, reason: String) -> Result<(), Failure> {
    let before = context.client.node(&context.namespace, name).await?.not_runnable;
    context.client.set_node_runnable(&context.namespace, name, &Runnable { runnable, reason }).await?;
    context.show.changed(&match (runnable, before) {
        (true, Some(_)) => format!("node {name}: runnable"),
        (true, None) => format!("node {name}: unchanged, it was runnable"),
        (false, _) => format!("node {name}: not runnable"),
    });
    Ok(())
}

async fn list(context: &Context, flags: &ListFlags, decommissioned: bool) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.nodes(namespace, decommissioned).await;
    let path = format!("{}?decommissioned={decommissioned}", fill(paths::NODES, &[namespace]));
    lists::show(context, flags, &path, read, async |page| shown(context, &page.items)).await
}

fn shown(context: &Context, nodes: &[NodeView]) -> Result<(), Failure> {
    let names = || nodes.iter().map(|view| view.node.name.clone()).collect();
    context.show.data(&nodes, names, |wide| {
        let rows = nodes.iter().map(|view| {
            let mut row = vec![
                view.node.name.clone(),
                contact(view),
                pairs(&view.running, "@"),
                pairs(&view.node.labels, "="),
            ];
            if wide {
                let statuses =
                    view.statuses.iter().map(|(category, status)| format!("{category}={}", status.state));
                row.push(statuses.collect::<Vec<_>>().join(","));
                row.push(view.agent_version.clone().unwrap_or_default());
                row.push(date(view.node.joined_at_ms));
            }
            row
        });
        let header: &[&str] = if wide {
            &["name", "state", "runs", "labels", "statuses", "agent", "joined"]
        } else {
            &["name", "state", "runs", "labels"]
        };
        table(header, rows)
    })
}

/// Lists nodes that are expected or unreachable; exits 1 if there are any.
async fn unaccounted(context: &Context) -> CommandResult {
    let nodes = context.client.unaccounted(&context.namespace).await?.items;
    let names = || nodes.iter().map(|each| each.node.clone()).collect();
    context.show.data(&nodes, names, |_| {
        let rows = nodes.iter().map(|each| {
            let mark = each.expected.as_ref();
            let why = mark.map_or(String::new(), |mark| format!("by {}{}", mark.by, because(mark)));
            vec![each.node.clone(), each.state.to_string(), date(each.since_ms), why]
        });
        if nodes.is_empty() { String::new() } else { table(&["name", "state", "since", "expected"], rows) }
    })?;
    Ok(if nodes.is_empty() { Exit::Yes } else { Exit::No })
}

/// The state of a node's connection, and what keeps work from it.
fn contact(view: &NodeView) -> String {
    if view.node.decommissioned.is_some() {
        return "decommissioned".to_owned();
    }
    let is_paused = view.node.pause.is_some() || !view.pauses.is_empty();
    let cordon = view.node.cordon.as_ref().map(cordon_state);
    let held = if is_paused { Some("paused") } else { cordon };
    let halted = view.not_runnable.as_ref().map(|_| "not runnable");
    let refuses = view.order_refusal.as_ref().map(|_| "refuses orders");
    let presence = super::overview::presence(view.presence.state);
    [presence].into_iter().chain(refuses).chain(held).chain(halted).collect::<Vec<_>>().join(", ")
}

/// The state of a node with the time since which it is in it: its connection's, or that of its end.
fn state(view: &NodeView) -> String {
    if let Some(mark) = &view.node.decommissioned {
        return format!("decommissioned since {}", date(mark.at_ms));
    }
    let (whole, connection) = (contact(view), super::overview::presence(view.presence.state).to_owned());
    let held = whole.strip_prefix(&connection).unwrap_or_default();
    format!("{connection} since {}{held}", date(view.presence.since_ms))
}

/// What a cordon does to the node, in one word.
const fn cordon_state(cordon: &Cordon) -> &'static str {
    match cordon.drain {
        Some(Drain::Waiting { .. }) => "draining",
        Some(Drain::Drained { .. }) => "drained",
        None => "cordoned",
    }
}

/// The reason of an operation behind a colon; nothing if none was given.
fn because(mark: &Annotation) -> String {
    if mark.reason.is_empty() { String::new() } else { format!(": {}", mark.reason) }
}

fn pairs(map: &BTreeMap<String, String>, join: &str) -> String {
    map.iter().map(|(key, value)| format!("{key}{join}{value}")).collect::<Vec<_>>().join(",")
}

/// Requests rescans, and reports the number of each.
async fn rescan(context: &Context, which: NodeChoice) -> Result<(), Failure> {
    for view in picked(context, which).await? {
        let name = &view.node.name;
        let number = context.client.rescan_node(&context.namespace, name).await?.rescan;
        context.show.changed(&format!("node {name}: rescan {number} requested"));
    }
    Ok(())
}

/// A node with all that is known of it, one fact a line.
pub(super) fn sheet(view: &NodeView) -> String {
    let mut lines = vec![
        format!("name      {}", view.node.name),
        format!("state     {}", state(view)),
        format!("labels    {}", pairs(&view.node.labels, "=")),
        format!("services  may register {}", allowed(&view.node.services)),
        format!("joined    {}", date(view.node.joined_at_ms)),
        format!("agent     {}", view.agent_version.as_deref().unwrap_or("not reported yet")),
        format!("assigned  {}", pairs(&view.assigned, "@")),
        format!("runs      {}", pairs(&view.running, "@")),
    ];
    for (word, mark) in [("paused", &view.node.pause), ("removed", &view.node.decommissioned)] {
        if let Some(mark) = mark {
            lines.push(format!("{word:<9} by {} at {}{}", mark.by, date(mark.at_ms), because(mark)));
        }
    }
    for Pause { name, nodes, annotation: mark, .. } in &view.pauses {
        let at = date(mark.at_ms);
        lines.push(format!("paused    by {} at {at}, pause {name} of {nodes}{}", mark.by, because(mark)));
    }
    if let Some(cordon) = &view.node.cordon {
        let (word, mark) = (cordon_state(cordon), &cordon.annotation);
        lines.push(format!("{word:<9} by {} at {}{}", mark.by, date(mark.at_ms), because(mark)));
        if let Some(Drain::Waiting { reason: Some(reason), deadline_ms, .. }) = &cordon.drain {
            lines.push(format!("waits     {reason}; given up at {}", date(*deadline_ms)));
        }
    }
    if let Some(mark) = &view.not_runnable {
        let who = match (&mark.run, &mark.by) {
            (Some(run), _) => format!("run {run} failed"),
            (None, by) => format!("by {}", by.as_deref().unwrap_or("-")),
        };
        let colon = if mark.reason.is_empty() { "" } else { ": " };
        lines.push(format!("runnable  no since {}, {who}{colon}{}", date(mark.at_ms), mark.reason));
    }
    for (category, status) in &view.statuses {
        let since = date(status.since_ms);
        let log = status.log.as_ref().map_or(String::new(), |log| {
            format!(" (log: bellwether node logs {} --entity {})", view.node.name, log.entity)
        });
        let line = format!("status    {category} {} since {since} {}{log}", status.state, status.reason);
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(members::unrecorded(view).map(|line| format!("ensemble  {line}")));
    lines.extend(stores(view));
    lines.extend(facts::lines(view));
    lines.join("\n")
}

/// The data stores of a node, one a line.
fn stores(view: &NodeView) -> impl Iterator<Item = String> {
    view.probes.iter().flat_map(|probes| &probes.stores).map(|(name, store)| {
        let version = store.facts.version.as_deref().unwrap_or_default();
        let roles = store.facts.shards.iter().map(|(shard, part)| format!("{shard}={}", part.role.as_str()));
        let roles = roles.collect::<Vec<_>>().join(" ");
        let since = crate::show::time::date(store.since_ms);
        let line = format!(
            "store     {name} {} since {since} {} {version} {roles} {}",
            store.state, store.facts.software, store.reason
        );
        line.split_whitespace().collect::<Vec<_>>().join(" ").replacen("store ", "store     ", 1)
    })
}

/// `KEY=VALUE` sets, `KEY-` removes.
fn labels(changes: &[String]) -> Result<LabelChange, Failure> {
    let mut change = LabelChange::default();
    for text in changes {
        match (text.split_once('='), text.strip_suffix('-')) {
            (Some((key, value)), _) => {
                change.set.insert(key.to_owned(), value.to_owned());
            }
            (None, Some(key)) => change.remove.push(key.to_owned()),
            (None, None) => {
                let what = format!("read {text:?} as a label: write KEY=VALUE to set, KEY- to remove");
                return Err(Failure::usage(what));
            }
        }
    }
    Ok(change)
}

/// Sets and removes labels, and reports which.
async fn label(context: &Context, name: &str, changes: &[String]) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    let change = labels(changes)?;
    let before = client.node(namespace, name).await?.node.labels;
    client.label_node(namespace, name, &change).await.map_err(|error| {
        let mut failure = Failure::from(error);
        if let Some(rest) = failure.message.strip_prefix("set.") {
            failure.message = format!("label {rest}");
        }
        failure
    })?;
    let after = client.node(namespace, name).await?.node.labels;
    let changes = differences(&json!(before), &json!(after)).unwrap_or_else(|| "labels unchanged".to_owned());
    context.show.changed(&format!("node {name}: {changes}"));
    Ok(())
}

/// The services that a node may register, in a line.
fn allowed(services: &[String]) -> String {
    match services {
        [] => "none".to_owned(),
        [all] if all == "*" => "all".to_owned(),
        some => some.join(", "),
    }
}

/// Sets which services a node may register, and reports what changed.
async fn allow_services(context: &Context, name: &str, services: Vec<String>) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    let before = client.node(namespace, name).await?.node.services;
    client.allow_node_services(namespace, name, &AllowedServices { services: services.clone() }).await?;
    let change = match before == services {
        true => "services unchanged".to_owned(),
        false => format!("may register {} → {}", allowed(&before), allowed(&services)),
    };
    context.show.changed(&format!("node {name}: {change}"));
    Ok(())
}

/// Resumes nodes; exits 1 if a pause by selector still covers one of them.
async fn resume(context: &Context, which: NodeChoice) -> CommandResult {
    let mut exit = Exit::Yes;
    for view in picked(context, which).await? {
        let name = view.node.name;
        let still = context.client.resume_node(&context.namespace, &name).await?.held_by;
        for Pause { name: pause, nodes, annotation: mark, .. } in &still {
            let (by, reason) = (&mark.by, because(mark));
            tell(&format!("node {name}: still paused by pause {pause} of {nodes} by {by}{reason}"));
            tell(&format!("  end it for all of its nodes with: bellwether pause off {pause}"));
            exit = Exit::No;
        }
        match (&view.node.pause, still.as_slice()) {
            (Some(_), []) => context.show.changed(&format!("node {name}: resumed")),
            (None, []) => context.show.changed(&format!("node {name}: unchanged, it was not paused")),
            (Some(_) | None, _) => {}
        }
    }
    Ok(exit)
}

/// Changes one node, or each one that the selector picks now, and reports each: `done`, or why it is `unchanged`.
async fn each(
    context: &Context,
    which: NodeChoice,
    done: &str,
    unchanged: &str,
    act: impl AsyncFn(&str) -> Result<(), CallError>,
) -> Result<(), Failure> {
    for view in picked(context, which).await? {
        let name = &view.node.name;
        act(name).await?;
        let after = context.client.node(&context.namespace, name).await?.node;
        match after == view.node {
            true => context.show.changed(&format!("node {name}: unchanged, {unchanged}")),
            false => context.show.changed(&format!("node {name}: {done}")),
        }
    }
    Ok(())
}
