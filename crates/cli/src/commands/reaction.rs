//! `reaction`.

use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::reaction::test::{ReactionTest, TestReaction};
use bellwether_api::v1::reaction::{
    FiringResult, Reaction, ReactionFiring, ReactionMatch, ReactionSpec, ReactionState,
};
use bellwether_core::words::plural::Plural;
use bellwether_core::words::time::Span;

use super::policy::merged;
use super::{documents, lists, runs};
use crate::args::{ReactionFlags, ReactionVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: ReactionVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        ReactionVerb::Create { of, workflow, on, change } => {
            let policy = runs::policy_of(change.policy.clone())?;
            let spec = changed(ReactionSpec { on, workflow, policy, ..ReactionSpec::default() }, change);
            let created = client.only_at(0).set_reaction(namespace, &of.name, &spec).await;
            report(context, &created.map_err(|error| pointing(error, &spec))?, "created").await?;
        }
        ReactionVerb::Set { of, workflow, on, change, if_revision } => {
            let before = client.reaction(namespace, &of.name).await?;
            let spec = before.spec();
            let policy = merged(spec.policy, change.policy.clone())?;
            let (on, workflow) = (on.unwrap_or(spec.on), workflow.unwrap_or(spec.workflow));
            let spec = ReactionSpec { on, workflow, policy, ..spec };
            write(context, &before, changed(spec, change), if_revision).await?;
        }
        ReactionVerb::List(flags) => {
            let read = async |context: &Context| context.client.reactions(namespace).await;
            let path = fill(paths::REACTIONS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        ReactionVerb::Get { of } => {
            let reaction = client.reaction(namespace, &of.name).await?;
            if !documents::yaml(context, "reaction", std::slice::from_ref(&reaction)).await? {
                context.show.data(&reaction, || vec![reaction.name.clone()], |_| sheet(&reaction))?;
            }
        }
        ReactionVerb::Test { of, condition, subject } => {
            let asked = TestReaction { condition, subject };
            return test(context, &of.name, &asked).await;
        }
        ReactionVerb::Suspend { of, reason } => suspend(context, &of.name, true, reason).await?,
        ReactionVerb::Resume { of, reason } => suspend(context, &of.name, false, reason).await?,
        ReactionVerb::Delete { of, consent } => {
            confirm(&format!("delete reaction {}? its runs go on", of.name), consent)?;
            client.delete_reaction(namespace, &of.name).await?;
            context.show.changed(&format!("reaction {}: deleted; its runs go on", of.name));
        }
    }
    Ok(Exit::Yes)
}

async fn test(context: &Context, name: &str, asked: &TestReaction) -> CommandResult {
    let test = context.client.test_reaction(&context.namespace, name, asked).await?;
    let starts = test.refused.is_none() && test.state == Some(ReactionState::Due);
    context.show.data(&test, || test.nodes.clone(), |_| would_do(name, asked, &test))?;
    Ok(if starts { Exit::Yes } else { Exit::No })
}

/// What a reaction would do about a condition.
fn would_do(name: &str, asked: &TestReaction, test: &ReactionTest) -> String {
    let of = format!("{} of {}", asked.condition, asked.subject);
    let Some(state) = test.state else { return format!("reaction {name} is not about {of}") };
    let fires = (state == ReactionState::Due).then(|| "it would fire".to_owned());
    let would = fires.unwrap_or_else(|| {
        standing_text(&ReactionMatch {
            condition: asked.condition.clone(),
            subject: asked.subject.clone(),
            since_ms: 0,
            state,
            until_ms: test.until_ms,
            run: test.run.clone(),
            observed_cluster: test.observed_cluster.clone(),
            mode: test.mode,
        })
    });
    let nodes = match &test.refused {
        Some(refused) => format!("no run could be started: {refused}"),
        None if test.nodes.is_empty() => format!("the run is on {}", Plural(test.node_count, "node")),
        None => {
            let shown = u64::try_from(test.nodes.len()).unwrap_or(u64::MAX);
            let more = test.node_count.saturating_sub(shown);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("the run is on {}{more}", test.nodes.join(", "))
        }
    };
    let lines = [format!("{of}: {would}"), nodes].into_iter().chain(test.warning.clone());
    lines.collect::<Vec<_>>().join("\n")
}

async fn suspend(context: &Context, name: &str, suspended: bool, reason: String) -> Result<(), Failure> {
    let before = context.client.reaction(&context.namespace, name).await?;
    let spec = ReactionSpec { suspended, reason, ..before.spec() };
    write(context, &before, spec, None).await
}

/// Writes what a reaction is to be, unless somebody changed it since it was read.
async fn write(
    context: &Context,
    before: &Reaction,
    spec: ReactionSpec,
    if_revision: Option<u64>,
) -> Result<(), Failure> {
    let client = context.client.only_at(if_revision.unwrap_or(before.revision));
    let after = client.set_reaction(&context.namespace, &before.name, &spec).await;
    let after = after.map_err(|error| pointing(error, &spec))?;
    let what = if after.revision == before.revision { "unchanged" } else { "changed" };
    report(context, &after, what).await
}

fn changed(spec: ReactionSpec, change: ReactionFlags) -> ReactionSpec {
    let ReactionFlags { nodes, hold, cooldown, max_per_hour, reason, policy: _ } = change;
    ReactionSpec {
        nodes: nodes.or(spec.nodes),
        hold: hold.map(|span| span.to_string()).or(spec.hold),
        cooldown: cooldown.map(|span| span.to_string()).or(spec.cooldown),
        max_per_hour: max_per_hour.or(spec.max_per_hour),
        reason,
        ..spec
    }
}

fn pointing(error: CallError, spec: &ReactionSpec) -> Failure {
    let is_of_nodes = matches!(&error, CallError::Problem(problem) if problem.detail.contains("nodes"));
    let text = if is_of_nodes { spec.nodes.as_deref() } else { Some(spec.on.as_str()) };
    Failure::pointing(error, text)
}

async fn report(context: &Context, reaction: &Reaction, what: &str) -> Result<(), Failure> {
    let suspended = if reaction.suspended { ", suspended" } else { "" };
    context
        .show
        .changed(&format!("reaction {}: {what}, revision {}{suspended}", reaction.name, reaction.revision));
    if let Some(warning) = &reaction.warning {
        context.show.note(warning);
    }
    let workflow = context.client.workflow(&context.namespace, &reaction.workflow).await;
    if matches!(&workflow, Err(CallError::Problem(problem)) if problem.code == Code::NotFound) {
        context.show.note(&format!("no run starts until there is workflow {}", reaction.workflow));
    }
    context.show.data(reaction, || vec![reaction.name.clone()], |_| String::new())
}

async fn list(context: &Context, page: &Page<Reaction>) -> Result<(), Failure> {
    if documents::yaml(context, "reaction", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|reaction| reaction.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|reaction| {
            let Reaction { name, on, workflow, nodes, .. } = reaction;
            vec![name.clone(), on.clone(), workflow.clone(), nodes.clone(), last(reaction)]
        });
        if page.items.is_empty() {
            return "no reactions; create one with: bellwether reaction create REACTION WORKFLOW --on FILTER"
                .to_owned();
        }
        table(&["name", "on", "workflow", "nodes", "last"], rows)
    })
}

fn last(reaction: &Reaction) -> String {
    match (reaction.suspended, reaction.firings.last()) {
        (true, _) => "suspended".to_owned(),
        (false, Some(firing)) => outcome(firing),
        (false, None) => "-".to_owned(),
    }
}

/// A reaction with all its fields, one a line, then what is true now, and what it did.
pub(super) fn sheet(reaction: &Reaction) -> String {
    let reason = if reaction.reason.is_empty() { String::new() } else { format!(": {}", reaction.reason) };
    let limited = reaction
        .limited_since_ms
        .map(|at| format!("limited       since {}: it fired as often as it may within an hour", date(at)));
    let fields = [
        format!("name          {}", reaction.name),
        format!("on            {}", reaction.on),
        format!("for           {}", Span::from_millis(reaction.for_ms)),
        format!("workflow      {}", reaction.workflow),
        format!("nodes         {}", reaction.nodes),
        format!("cooldown      {}", Span::from_millis(reaction.cooldown_ms)),
        format!("max per hour  {}", reaction.max_per_hour),
        format!("suspended     {}", if reaction.suspended { "yes" } else { "no" }),
        format!("revision      {}", reaction.revision),
        format!("changed       by {}, {}{reason}", reaction.by, date(reaction.at_ms)),
    ];
    let policy = (reaction.policy != Policy::default()).then(|| serde_json::to_string(&reaction.policy).ok());
    let policy = policy.flatten().map(|policy| format!("policy        {policy}"));
    let mut lines: Vec<String> = fields.into_iter().chain(policy).chain(limited).collect();
    lines.push(String::new());
    if reaction.matches.is_empty() {
        lines.push("no condition that it is about is true".to_owned());
    }
    lines.extend(reaction.matches.iter().map(standing));
    lines.extend(reaction.firings.iter().rev().map(|firing| format!("fired {}", outcome(firing))));
    lines.join("\n")
}

/// A condition that is true, and what the reaction does about it.
fn standing(of: &ReactionMatch) -> String {
    let state = standing_text(of);
    format!("true  {} of {} since {}: {state}", of.condition, of.subject, date(of.since_ms))
}

/// How a reaction stands to a condition.
fn standing_text(of: &ReactionMatch) -> String {
    let until = of.until_ms.map_or_else(String::new, date);
    match of.state {
        ReactionState::Due => "it fires now".to_owned(),
        ReactionState::Fired => "it has fired for it".to_owned(),
        ReactionState::Running => {
            let run = of.run.as_deref().unwrap_or_default();
            format!(
                "run {run}, which it started for this subject before, has not ended; see: bellwether why run/{run}"
            )
        }
        ReactionState::Pending => format!("it fires at {until} if that is still so"),
        ReactionState::CoolingDown => {
            format!(
                "it fired for this subject not long ago, or could start nothing, and may again from {until}"
            )
        }
        ReactionState::Limited => {
            format!("it fired as often as it may within an hour, and may again from {until}")
        }
        ReactionState::Observed => match (&of.observed_cluster, of.mode) {
            (Some(cluster), Some(mode)) => format!(
                "the mode of cluster {cluster} is {}, which starts nothing; bellwether cluster set {cluster} --mode active",
                mode.as_str()
            ),
            (_, _) => "the mode of the cluster starts nothing".to_owned(),
        },
        ReactionState::Suspended => "it is suspended".to_owned(),
        ReactionState::Unsettled => {
            format!("the servers listen to the nodes until {until} before it may fire")
        }
    }
}

fn outcome(firing: &ReactionFiring) -> String {
    let ReactionFiring { condition, subject, at_ms, result, text, .. } = firing;
    let between = match result {
        FiringResult::Started => " run ",
        FiringResult::Failed => ": ",
    };
    format!("{} for {condition} of {subject}: {}{between}{text}", date(*at_ms), result.as_str())
}
