//! `node`: machines.

use std::collections::BTreeMap;

use bellwether_api::client::CallError;
use bellwether_api::v1::node::{LabelChange, NodeView};
use bellwether_api::v1::pause::Pause;

use super::confirm;
use crate::args::{NodeChoice, NodeVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::date;
use crate::show::{table, tell};

pub(super) async fn run(context: &Context, verb: NodeVerb) -> CommandResult {
    let (client, namespace) = (&context.client, &context.namespace);
    match verb {
        NodeVerb::List { unaccounted: true, .. } => return unaccounted(context).await,
        NodeVerb::List { filter, all, unaccounted: false } => list(context, filter.as_deref(), all).await?,
        NodeVerb::Get { name } => {
            let view = client.node(namespace, &name).await?;
            context.show.data(&view, || vec![view.node.name.clone()], |_| sheet(&view))?;
        }
        NodeVerb::Why { name } => return super::overview::why(context, &format!("node/{name}")).await,
        NodeVerb::Label { name, changes } => client.label_node(namespace, &name, &labels(&changes)?).await?,
        NodeVerb::Pause { which, why } => {
            each(context, which, "paused", async |name| client.pause_node(namespace, name, &why).await)
                .await?;
        }
        NodeVerb::Resume { which } => {
            let (mut held, mut resumed) = (false, Vec::new());
            for name in picked(context, which).await? {
                let still = client.resume_node(namespace, &name).await?.held_by;
                held |= !still.is_empty();
                resumed.push((name, still));
            }
            say_resumed(&resumed);
            return Ok(if held { Exit::No } else { Exit::Yes });
        }
        NodeVerb::Cordon { which, why } => {
            let cordon = async |name: &str| client.cordon_node(namespace, name, &why, false).await;
            each(context, which, "cordoned", cordon).await?;
        }
        NodeVerb::Drain { which, why } => {
            let drain = async |name: &str| client.cordon_node(namespace, name, &why, true).await;
            each(context, which, "drained", drain).await?;
        }
        NodeVerb::Uncordon { which } => {
            let uncordon = async |name: &str| client.uncordon_node(namespace, name).await;
            each(context, which, "uncordoned", uncordon).await?;
        }
        NodeVerb::Expect { name, off: true, .. } => client.unexpect_node(namespace, &name).await?,
        NodeVerb::Expect { name, why, off: false } => client.expect_node(namespace, &name, &why).await?,
        NodeVerb::Logs(wanted) => return super::statuses::logs(context, wanted).await,
        NodeVerb::Decommission { name, why, yes } => {
            confirm(&format!("take {name} out for good?"), yes)?;
            client.decommission_node(namespace, &name, &why).await?;
        }
    }
    Ok(Exit::Yes)
}

/// All nodes that a filter picks, page by page.
pub(super) async fn all(
    context: &Context,
    filter: Option<&str>,
    decommissioned: bool,
) -> Result<Vec<NodeView>, Failure> {
    let mut nodes: Vec<NodeView> = Vec::new();
    let mut after = None;
    loop {
        let page = context.client.nodes(&context.namespace, filter, after.as_deref(), decommissioned).await?;
        nodes.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(nodes),
        }
    }
}

async fn list(context: &Context, filter: Option<&str>, decommissioned: bool) -> Result<(), Failure> {
    let nodes = all(context, filter, decommissioned).await?;
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

/// Nodes of whom nobody hears: 0 if there are none, 1 if there are some.
async fn unaccounted(context: &Context) -> CommandResult {
    let nodes = context.client.unaccounted(&context.namespace).await?.items;
    let names = || nodes.iter().map(|each| each.node.clone()).collect();
    context.show.data(&nodes, names, |_| {
        let rows = nodes.iter().map(|each| {
            let mark = each.expected.as_ref();
            let why = mark.map_or(String::new(), |mark| format!("by {}: {}", mark.by, mark.why));
            vec![each.node.clone(), each.state.to_string(), date(each.since_ms), why]
        });
        if nodes.is_empty() { String::new() } else { table(&["name", "state", "since", "expected"], rows) }
    })?;
    Ok(if nodes.is_empty() { Exit::Yes } else { Exit::No })
}

fn contact(view: &NodeView) -> String {
    match (&view.node.decommissioned, &view.node.pause) {
        (Some(_), _) => "decommissioned".to_owned(),
        (None, Some(_)) => format!("{}, paused", view.presence.state),
        (None, None) if !view.pauses.is_empty() => format!("{}, paused", view.presence.state),
        (None, None) if view.node.cordon.as_ref().is_some_and(|cordon| cordon.drained) => {
            format!("{}, drained", view.presence.state)
        }
        (None, None) if view.node.cordon.is_some() => format!("{}, cordoned", view.presence.state),
        (None, None) => view.presence.state.to_string(),
    }
}

fn pairs(map: &BTreeMap<String, String>, join: &str) -> String {
    map.iter().map(|(key, value)| format!("{key}{join}{value}")).collect::<Vec<_>>().join(",")
}

fn sheet(view: &NodeView) -> String {
    let mut lines = vec![
        format!("name      {}", view.node.name),
        format!("state     {} since {}", contact(view), date(view.presence.since_ms)),
        format!("labels    {}", pairs(&view.node.labels, "=")),
        format!("joined    {}", date(view.node.joined_at_ms)),
        format!("agent     {}", view.agent_version.as_deref().unwrap_or("has not reported yet")),
        format!("told      {}", pairs(&view.assigned, "@")),
        format!("runs      {}", pairs(&view.running, "@")),
    ];
    for (word, mark) in [("paused", &view.node.pause), ("ended", &view.node.decommissioned)] {
        if let Some(mark) = mark {
            lines.push(format!("{word:<9} by {} at {}: {}", mark.by, date(mark.at_ms), mark.why));
        }
    }
    for Pause { name, nodes, mark, .. } in &view.pauses {
        let at = date(mark.at_ms);
        lines.push(format!("paused    by {} at {at}, pause {name} of {nodes}: {}", mark.by, mark.why));
    }
    if let Some(cordon) = &view.node.cordon {
        let (word, mark) = (if cordon.drained { "drained" } else { "cordoned" }, &cordon.mark);
        lines.push(format!("{word:<9} by {} at {}: {}", mark.by, date(mark.at_ms), mark.why));
    }
    for (category, status) in &view.statuses {
        let since = date(status.since_ms);
        let log = status.log.as_ref().map_or(String::new(), |log| {
            format!(" (log: bellwether node logs {} --entity {})", view.node.name, log.entity)
        });
        lines.push(format!("status    {category} {} since {since} {}{log}", status.state, status.reason));
    }
    lines.join("\n")
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

/// Says of each what still holds it; of several, also that nothing does.
fn say_resumed(resumed: &[(String, Vec<Pause>)]) {
    for (name, still) in resumed {
        for pause in still {
            let (mark, nodes) = (&pause.mark, &pause.nodes);
            let why = if mark.why.is_empty() { String::new() } else { format!(": {}", mark.why) };
            tell(&format!(
                "{name} is still paused: pause {} of {nodes} by {} holds it{why}; end it for all with: bellwether \
                 pause off {}",
                pause.name, mark.by, pause.name
            ));
        }
        if still.is_empty() && resumed.len() > 1 {
            tell(&format!("{name} resumed"));
        }
    }
}

/// The one machine that is meant, or each that a selector picks now.
async fn picked(context: &Context, which: NodeChoice) -> Result<Vec<String>, Failure> {
    if let Some(name) = which.name {
        return Ok(vec![name]);
    }
    let nodes = all(context, which.filter.as_deref(), false).await?;
    if nodes.is_empty() {
        return Err(Failure::new(Exit::No, "find a machine that the selector picks".to_owned())
            .hint("bellwether node list -o wide"));
    }
    Ok(nodes.into_iter().map(|view| view.node.name).collect())
}

/// Does something to one machine, or to each that a selector picks now; says each that was done when there are several.
async fn each(
    context: &Context,
    which: NodeChoice,
    word: &str,
    act: impl AsyncFn(&str) -> Result<(), CallError>,
) -> Result<(), Failure> {
    let alone = which.name.is_some();
    for name in picked(context, which).await? {
        act(&name).await?;
        if !alone {
            tell(&format!("{name} {word}"));
        }
    }
    Ok(())
}
