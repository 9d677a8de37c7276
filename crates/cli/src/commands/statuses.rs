//! Statuses: of this node or another, those that failed across the fleet, and the output of failing runs.

use std::collections::BTreeSet;

use bellwether_agent::local::client;
use bellwether_api::client::NodeLogKey;
use bellwether_api::v1::failure::Failures;
use bellwether_api::v1::local::NewStatus;
use bellwether_api::v1::log::NodeLog;
use bellwether_api::v1::status::{Status, StatusState};
use bellwether_core::records::status::BUILT_IN;
use bellwether_core::words::time::Span;

use super::process_log::ProcessReader;
use crate::args::{DeleteStatus, Global, NodeLogs, UpdateStatus};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::time::date;
use crate::show::{Show, table};

/// Sets a status: of this node through its own agent, of another through the control plane.
pub(super) async fn update(global: &Global, set: UpdateStatus) -> CommandResult {
    let lifetime_ms = set.ttl.as_deref().map(millis).transpose()?;
    let UpdateStatus { category, state, reason, .. } = set;
    if BUILT_IN.contains(&category.as_str()) {
        let what = format!("set the status {category}: only a node's own agent sets {}", BUILT_IN.join(", "));
        return Err(Failure::usage(what).hint("use a category of your own, like backup"));
    }
    let node = set.node.as_ref().map_or_else(|| "this node".to_owned(), |node| format!("node {node}"));
    let changed = format!("{node}: status {category} set to {state}");
    let known = state.parse().ok().filter(|state| *state != StatusState::Unknown);
    let state: StatusState = known.ok_or_else(|| {
        Failure::usage(format!("set the state {state:?}: write success, failed, running or pending"))
    })?;
    match &set.node {
        Some(node) => {
            let context = Context::new(global)?;
            let status = Status { reason, lifetime_ms, ..state.into() };
            context.client.set_status(&context.namespace, node, &category, &status).await?;
        }
        None => {
            let status = NewStatus { state, reason, lifetime_ms };
            client::set_status(&set.agent.data_dir, &category, &status)
                .await
                .map_err(super::service::unreachable)?;
        }
    }
    Show::new(global).changed(&changed);
    Ok(Exit::Yes)
}

/// Deletes a status: of this node at its own agent, of another at the control plane.
pub(super) async fn delete(global: &Global, which: DeleteStatus) -> CommandResult {
    let DeleteStatus { category, node, agent } = which;
    let place = match &node {
        Some(node) => {
            let context = Context::new(global)?;
            context.client.delete_status(&context.namespace, node, &category).await?;
            format!("node {node}")
        }
        None => {
            let deleted = client::delete_status(&agent.data_dir, &category).await;
            deleted.map_err(super::service::unreachable)?;
            "this node".to_owned()
        }
    };
    Show::new(global).changed(&format!("{place}: status {category} deleted"));
    Ok(Exit::Yes)
}

fn millis(text: &str) -> Result<u64, Failure> {
    let span: Result<Span, _> = text.parse();
    span.map(Span::as_millis).map_err(|error| Failure::usage(format!("read --ttl: {error}")))
}

/// Lists failed statuses and failing service instances; unreachable nodes are listed beside them and are not failures.
pub(super) async fn failures(context: &Context, hosts: bool) -> CommandResult {
    let failures = context.client.failures(&context.namespace).await?;
    let names = || {
        let statuses = failures.failed.iter().map(|each| &each.node);
        let services = failures.services.iter().map(|each| &each.node);
        let nodes: BTreeSet<&String> =
            statuses.chain(services).chain(failures.ensembles.iter().map(|each| &each.node)).collect();
        nodes.into_iter().cloned().collect::<Vec<String>>()
    };
    if hosts {
        context.show.data(&names(), names, |_| names().join("\n"))?;
    } else {
        context.show.data(&failures, names, |_| lines(&failures))?;
    }
    let none = failures.failed.is_empty() && failures.services.is_empty() && failures.ensembles.is_empty();
    Ok(if none { Exit::Yes } else { Exit::No })
}

fn lines(failures: &Failures) -> String {
    let statuses = failures.failed.iter().chain(&failures.silent).map(|each| {
        let status = &each.status;
        let reason = match (&status.last_state, status.reason.as_str()) {
            (Some(said), "") => format!("not updated in time; it was \"{said}\""),
            (Some(said), reason) => format!("not updated in time; it was \"{said}\": {reason}"),
            (None, reason) => reason.to_owned(),
        };
        vec![
            each.node.clone(),
            each.category.clone(),
            status.state.to_string(),
            date(status.since_ms),
            reason,
        ]
    });
    let nodes = failures.unreachable.iter().map(|each| {
        let reason = "the last report may be out of date".to_owned();
        vec![each.node.clone(), "-".to_owned(), "unreachable".to_owned(), date(each.since_ms), reason]
    });
    let services = failures.services.iter().map(|each| {
        let reason = format!("{}: {}", each.instance, each.reason);
        let category = format!("service/{}", each.service);
        vec![each.node.clone(), category, "failing".to_owned(), date(each.since_ms), reason]
    });
    let ensembles = failures.ensembles.iter().map(|each| {
        let reason = format!("{} {}", each.part, each.reason);
        let category = format!("ensemble/{}", each.ensemble);
        vec![each.node.clone(), category, "failing".to_owned(), date(each.since_ms), reason]
    });
    let rows: Vec<Vec<String>> = statuses.chain(services).chain(ensembles).chain(nodes).collect();
    if rows.is_empty() {
        return "nothing failed".to_owned();
    }
    table(&["node", "category", "state", "since", "reason"], rows.into_iter())
}

/// Prints the kept output of a node's failing runs, newest last.
pub(super) async fn logs(context: &Context, wanted: NodeLogs) -> CommandResult {
    let NodeLogs { of, process, follow, entity, category } = wanted;
    let name = of.name;
    if let Some(of) = process {
        return ProcessReader { node: name, of, follow }.run(context).await;
    }
    let kept = context.client.node_logs(&context.namespace, &name).await?.items;
    let fits = |log: &&NodeLog| {
        entity.as_ref().is_none_or(|entity| *entity == log.entity)
            && category.as_ref().is_none_or(|category| *category == log.category)
    };
    let mut heads: Vec<&NodeLog> = kept.iter().filter(fits).collect();
    heads.sort_by_key(|log| log.at_ms);
    let mut logs = Vec::new();
    for head in heads {
        let (namespace, category, entity) = (&context.namespace, &head.category, &head.entity);
        let key = NodeLogKey { namespace, node: &name, category, entity };
        logs.push(context.client.node_log(key).await?);
    }
    if logs.is_empty() {
        let message = format!("no output of a failing run is kept for node {name}");
        return Err(Failure::stated(Exit::No, message));
    }
    let names = || logs.iter().map(|log| format!("{}/{}", log.category, log.entity)).collect();
    context.show.data(&logs, names, |_| {
        let each = logs.iter().map(|log| {
            let head = format!("{}/{} at {}, run {}", log.category, log.entity, date(log.at_ms), log.run);
            format!("==> {head}\n{}", log.text.trim_end())
        });
        each.collect::<Vec<_>>().join("\n\n")
    })?;
    Ok(Exit::Yes)
}
