//! `cluster`.

mod discovery;
mod past_view;
mod stores;

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::cluster::work::{ClusterWait, ClusterWaitState, NewClusterRun};
use bellwether_api::v1::cluster::{Cluster, ClusterMember, ClusterSpec};
use bellwether_api::v1::page::Page;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use super::{documents, lists, runs};
use crate::args::{ClusterFlags, ClusterVerb, RunFlags, StartFlags};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, bare};
use crate::show::screen::Screen;
use crate::show::table;
use crate::show::time::date;

/// Longest wait of one long poll: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// Pause before another attempt to reach a server.
const AGAIN: Duration = Duration::from_secs(1);

/// Time between two drawings of a cluster on the screen.
const REDRAW: Duration = Duration::from_secs(1);

pub(super) async fn run(context: &Context, verb: ClusterVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        ClusterVerb::Create { of, change, profile } => {
            let spec = changed(ClusterSpec { profile, ..ClusterSpec::default() }, change);
            let created = client.only_at(0).set_cluster(namespace, &of.name, &spec).await;
            let cluster = created.map_err(|error| pointing(error, &spec))?;
            report(context, &cluster, "created")?;
        }
        ClusterVerb::Set { of, change, if_revision } => {
            let before = client.cluster(namespace, &of.name).await?;
            let spec = changed(before.spec(), change);
            let at = if_revision.unwrap_or(before.revision);
            let after = client.only_at(at).set_cluster(namespace, &of.name, &spec).await;
            let cluster = after.map_err(|error| pointing(error, &spec))?;
            let what = if cluster.revision == before.revision { "unchanged" } else { "changed" };
            report(context, &cluster, what)?;
        }
        ClusterVerb::List(flags) => {
            let read = async |context: &Context| context.client.clusters(namespace).await;
            let path = fill(paths::CLUSTERS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        ClusterVerb::Get { of, watch: true } => return watch(context, &of.name).await,
        ClusterVerb::Get { of, watch: false } => {
            let cluster = client.cluster(namespace, &of.name).await?;
            if documents::yaml(context, "cluster", std::slice::from_ref(&cluster)).await? {
                return Ok(Exit::Yes);
            }
            let members = client.cluster_members(namespace, &of.name, None).await?;
            let text = || whole(&cluster, &members.items);
            context.show.data(&cluster, || vec![cluster.name.clone()], |_| text())?;
        }
        ClusterVerb::View { of, watch, at } => return stores::run(context, &of.name, watch, at).await,
        ClusterVerb::Members { of, accept: true, reason, consent, .. } => {
            return discovery::accept(context, &of.name, reason, consent).await;
        }
        ClusterVerb::Members { of, role, .. } => {
            let page = client.cluster_members(namespace, &of.name, role.as_deref()).await?;
            let names = || page.items.iter().map(|member| member.node.clone()).collect();
            context.show.data(&page.items, names, |_| members(&page.items))?;
        }
        ClusterVerb::Run { of, workflow, run } => {
            return start(context, &of.name, (workflow, None), run).await;
        }
        ClusterVerb::StartWorkflow { workflow, on, cluster, run } => {
            return start(context, &cluster, (Some(workflow), Some(on)), run).await;
        }
        ClusterVerb::Wait { of, on, timeout, fail_on_failure, workflow_complete: _ } => {
            return wait(context, (&of.name, on.as_deref()), timeout, fail_on_failure).await;
        }
        ClusterVerb::Delete { of, consent } => {
            confirm(&format!("delete cluster {}? its members and its profile stay", of.name), consent)?;
            client.delete_cluster(namespace, &of.name).await?;
            context.show.changed(&format!("cluster {}: deleted; its members and its profile stay", of.name));
        }
    }
    Ok(Exit::Yes)
}

/// Starts a run on members, or on the manager if there is no filter.
async fn start(
    context: &Context,
    cluster: &str,
    (workflow, on): (Option<String>, Option<String>),
    flags: RunFlags,
) -> CommandResult {
    let RunFlags { from, start: StartFlags { reason, busy, dry_run, wait, policy } } = flags;
    let policy = runs::policy_of(policy)?;
    let new = NewClusterRun { workflow, on, from, policy, reason, busy: busy.chosen(), dry_run };
    let started = context.client.start_cluster_run(&context.namespace, cluster, &new).await;
    let started = started.map_err(|error| Failure::pointing(error, new.on.as_deref()))?;
    runs::begun(context, started, dry_run, wait).await
}

/// Waits until the workflows of members are complete.
async fn wait(
    context: &Context,
    (cluster, on): (&str, Option<&str>),
    timeout: Option<Span>,
    fail_on_failure: bool,
) -> CommandResult {
    let until = timeout.map(|timeout| Instant::now() + timeout.to_duration());
    let left = |most: Duration| {
        until.map_or(most, |until| until.saturating_duration_since(Instant::now()).min(most))
    };
    let mut said = String::new();
    // The first answer comes at once, and says what it waits for.
    let mut longest = Duration::ZERO;
    loop {
        let place = (context.namespace.as_str(), cluster);
        let asked = context.client.cluster_wait(place, on, fail_on_failure, left(longest)).await;
        longest = HANG;
        let there = match asked {
            Ok(ClusterWait { state: ClusterWaitState::Waiting, reason }) => reason,
            Ok(ClusterWait { state: ClusterWaitState::Complete, reason }) => {
                context.show.changed(&format!("cluster {cluster}: {reason}"));
                return Ok(Exit::Yes);
            }
            Ok(ClusterWait { state: ClusterWaitState::Failed, reason }) => {
                let hint = "bellwether run list";
                return Err(Failure::stated(Exit::No, format!("cluster {cluster}: {reason}")).hint(hint));
            }
            Ok(ClusterWait { state: ClusterWaitState::Interrupted, reason }) => {
                return Err(Failure::stated(Exit::Interrupted, format!("cluster {cluster}: {reason}")));
            }
            // In a job, its agent answers for the servers that it cannot reach.
            Err(CallError::Problem(problem)) if matches!(problem.code, Code::Store | Code::Busy) => {
                tokio::time::sleep(left(AGAIN)).await;
                format!("{}; trying again", problem.detail)
            }
            // The object is gone, or the caller may not read it: nothing is waited for.
            Err(error @ CallError::Problem(_)) => return Err(Failure::pointing(error, on)),
            Err(error) => {
                tokio::time::sleep(left(AGAIN)).await;
                format!("cannot {}; trying again", bare(&error.to_string()))
            }
        };
        if there != said {
            context.show.note(&format!("waiting: {there}"));
            said = there;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            let timeout = timeout.unwrap_or(Span::ZERO).brief();
            let message = format!("waited {timeout} for cluster {cluster}: {said}");
            return Err(
                Failure::stated(Exit::Timeout, message).hint(format!("bellwether cluster get {cluster}"))
            );
        }
    }
}

/// What a cluster is to be, with what the flags change of it.
fn changed(before: ClusterSpec, flags: ClusterFlags) -> ClusterSpec {
    let (discovery, default_filter) = discovery::changed(&before, &flags);
    let ClusterFlags { filter, leaders, prefer, replace_after, manager_workflow, mode, reason, .. } = flags;
    let not_empty = |text: &String| !text.is_empty();
    ClusterSpec {
        filter: filter.or(default_filter),
        discovery,
        leaders: leaders.or(before.leaders),
        prefer: prefer.or(before.prefer).filter(not_empty),
        replace_after: replace_after.map(|span| span.to_string()).or(before.replace_after),
        profile: before.profile,
        manager_workflow: manager_workflow.or(before.manager_workflow).filter(not_empty),
        mode: mode.or(before.mode),
        reason,
    }
}

fn pointing(error: CallError, spec: &ClusterSpec) -> Failure {
    Failure::pointing(error, spec.filter.as_deref())
}

fn report(context: &Context, cluster: &Cluster, what: &str) -> Result<(), Failure> {
    let Cluster { name, revision, members, profile, members_of_others, .. } = cluster;
    let count =
        bellwether_core::words::plural::plural(usize::try_from(*members).unwrap_or(usize::MAX), "member");
    context.show.changed(&format!("cluster {name}: {what}, revision {revision}, {count}, profile {profile}"));
    if *members_of_others > 0 {
        context.show.note(&format!(
            "{members_of_others} more match its filter and are members of older clusters: bellwether why cluster/{name}"
        ));
    }
    if *members == 0 && cluster.discovery.is_none() {
        context.show.note(&format!("no node matches its filter {}", cluster.filter));
    }
    context.show.data(cluster, || vec![name.clone()], |_| String::new())
}

async fn list(context: &Context, page: &Page<Cluster>) -> Result<(), Failure> {
    if documents::yaml(context, "cluster", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|cluster| cluster.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "no clusters; create one with: bellwether cluster create NAME --filter FILTER".to_owned();
        }
        let rows = page.items.iter().map(|cluster| {
            let Cluster { name, members, profile, filter, .. } = cluster;
            vec![name.clone(), members.to_string(), leaders(cluster), profile.clone(), filter.clone()]
        });
        table(&["name", "members", "leaders", "profile", "filter"], rows)
    })
}

/// The names of the leaders by slot, `-` for each slot that is vacant.
fn leaders(cluster: &Cluster) -> String {
    let of = |slot: u32| {
        let found = cluster.leading.iter().find(|(_, role)| role.slot == slot);
        found.map_or("-", |(node, _)| node.as_str())
    };
    if cluster.leaders == 0 {
        return "none".to_owned();
    }
    (0..cluster.leaders).map(of).collect::<Vec<_>>().join(", ")
}

/// A cluster with all its fields, one a line.
pub(super) fn sheet(cluster: &Cluster) -> String {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let reason = if cluster.reason.is_empty() { String::new() } else { format!(": {}", cluster.reason) };
    let wanted = cluster.leaders;
    [
        format!("name              {}", cluster.name),
        format!("filter            {}", cluster.filter),
        format!("members           {}{}", cluster.members, discovery::lines(cluster)),
        format!("profile           {}", cluster.profile),
        format!("leaders           {} (wanted: {wanted})", leaders(cluster)),
        format!("prefer            {}", cluster.prefer.as_deref().unwrap_or("random")),
        format!("replace after     {}", Span::from_millis(cluster.replace_after_ms)),
        format!("manager           {}, on {}", cluster.manager.node, or_dash(&cluster.manager.host)),
        format!("manager workflow  {}", or_dash(&cluster.manager_workflow)),
        format!("mode              {}", cluster.mode.as_str()),
        format!("revision          {}", cluster.revision),
        format!("changed           by {}, {}{reason}", cluster.by, date(cluster.at_ms)),
    ]
    .join("\n")
}

fn whole(cluster: &Cluster, of: &[ClusterMember]) -> String {
    format!("{}\n\n{}", sheet(cluster), members(of))
}

fn members(members: &[ClusterMember]) -> String {
    if members.is_empty() {
        return "no members".to_owned();
    }
    let rows = members.iter().map(|member| {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let ClusterMember { node, role, slot, fence, host, presence } = member;
        let host = host.clone().unwrap_or_else(|| "-".to_owned());
        vec![node.clone(), role.clone(), number(slot.map(u64::from)), number(*fence), host, presence.clone()]
    });
    table(&["node", "role", "slot", "fence", "host", "presence"], rows)
}

/// Shows a cluster live until Ctrl-C: redrawn on a terminal, else each time that it changes.
async fn watch(context: &Context, name: &str) -> CommandResult {
    let drawn = context.show.terminal && !context.show.is_data();
    let (mut screen, mut said) = (Screen::default(), String::new());
    let mut ticks = tokio::time::interval(REDRAW);
    loop {
        ticks.tick().await;
        let cluster = context.client.cluster(&context.namespace, name).await?;
        let members = context.client.cluster_members(&context.namespace, name, None).await?;
        let text = whole(&cluster, &members.items);
        if drawn {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            screen.draw(&lines);
        } else if text != said {
            context.show.data(&cluster, || vec![cluster.name.clone()], |_| text.clone())?;
            said = text;
        }
    }
}
