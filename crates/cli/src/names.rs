//! Names of objects, asked of the server: for completion, and for the nearest name of a mistyped one.

use std::time::Duration;

use bellwether_core::words::near::nearest;
use clap::ArgMatches;

use crate::args::{self, Global};
use crate::context::{self, Context};
use crate::exit::{CommandResult, Failure};
use bellwether_api::client::ListOptions;

/// Longest time to wait for names: a person waits at the prompt.
const LIMIT: Duration = Duration::from_millis(1_500);

/// Most names asked for.
const MOST: u64 = 10_000;

/// A kind of object that has names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nodes.
    Node,
    /// Entities.
    Entity,
    /// Services.
    Service,
    /// Profiles.
    Profile,
    /// Freezes.
    Freeze,
    /// Pauses by selector.
    Pause,
    /// Slots, and so locks.
    Slot,
    /// API tokens.
    Token,
    /// Saved filters.
    Filter,
    /// Declared params.
    Param,
    /// Tasks.
    Task,
    /// Stages of workflows.
    Stage,
    /// Workflows.
    Workflow,
    /// Runs of workflows.
    Run,
    /// Clusters.
    Cluster,
    /// Ensembles.
    Ensemble,
    /// Schedules.
    Schedule,
    /// Reactions.
    Reaction,
    /// Sinks.
    Sink,
    /// Jobs.
    Job,
    /// Secrets.
    Secret,
    /// Roles.
    Role,
    /// Connection contexts; they are known without a server.
    Context,
}

/// Each kind by the value name that help shows, and by its word in subjects such as `node/web-1`.
const KINDS: [(&str, &str, Kind); 24] = [
    ("NODE", "node", Kind::Node),
    ("ENTITY", "entity", Kind::Entity),
    ("SERVICE", "service", Kind::Service),
    ("PROFILE", "profile", Kind::Profile),
    ("FREEZE", "freeze", Kind::Freeze),
    ("PAUSE", "pause", Kind::Pause),
    ("SLOT", "slot", Kind::Slot),
    ("LOCK", "lock", Kind::Slot),
    ("TOKEN", "token", Kind::Token),
    ("FILTER_NAME", "filter", Kind::Filter),
    ("PARAM", "param", Kind::Param),
    ("TASK", "task", Kind::Task),
    ("STAGE", "stage", Kind::Stage),
    ("WORKFLOW", "workflow", Kind::Workflow),
    ("RUN", "run", Kind::Run),
    ("CLUSTER", "cluster", Kind::Cluster),
    ("ENSEMBLE", "ensemble", Kind::Ensemble),
    ("SCHEDULE", "schedule", Kind::Schedule),
    ("REACTION", "reaction", Kind::Reaction),
    ("SINK", "sink", Kind::Sink),
    ("JOB", "job", Kind::Job),
    ("SECRET", "secret", Kind::Secret),
    ("ROLE", "role", Kind::Role),
    ("CONTEXT", "context", Kind::Context),
];

impl Kind {
    /// The kind of object that a value of this name is.
    pub(crate) fn of_value(name: &str) -> Option<Self> {
        KINDS.iter().find(|(value, _, _)| *value == name).map(|(_, _, kind)| *kind)
    }

    /// The kind of object that a subject begins with.
    pub(crate) fn of_subject(word: &str) -> Option<Self> {
        let word = if word == "rollout" { "entity" } else { word };
        KINDS.iter().find(|(_, known, _)| *known == word).map(|(_, _, kind)| *kind)
    }
}

/// The names of all objects of a kind; a failure is no names.
pub(crate) async fn of(global: &Global, kind: Kind) -> Vec<String> {
    let names = tokio::time::timeout(LIMIT, ask(global, kind)).await;
    names.ok().and_then(Result::ok).unwrap_or_default()
}

async fn ask(global: &Global, kind: Kind) -> Result<Vec<String>, Failure> {
    if kind == Kind::Context {
        return Ok(context::load(global)?.context.into_keys().collect());
    }
    let context = Context::new(global)?;
    let (client, namespace) = (&context.client, context.namespace.as_str());
    Ok(match kind {
        Kind::Node => nodes(&context).await?,
        Kind::Entity => client.entities(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Service => client.services(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Profile => client.profiles(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Freeze => {
            client.freezes(Some(namespace)).await?.items.into_iter().map(|each| each.freeze.name).collect()
        }
        Kind::Pause => {
            client.pauses(namespace).await?.items.into_iter().map(|each| each.pause.name).collect()
        }
        Kind::Slot => client.slots(namespace, true).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Token => client.tokens().await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Filter => client.filters(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Param => client.params(namespace).await?.items.into_iter().map(|each| each.key).collect(),
        Kind::Task => client.tasks(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Stage => client.stages(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Workflow => {
            client.workflows(namespace).await?.items.into_iter().map(|each| each.name).collect()
        }
        Kind::Run => client.runs(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Cluster => client.clusters(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Ensemble => {
            client.ensembles(namespace).await?.items.into_iter().map(|each| each.name).collect()
        }
        Kind::Schedule => {
            client.schedules(namespace).await?.items.into_iter().map(|each| each.name).collect()
        }
        Kind::Reaction => {
            client.reactions(namespace).await?.items.into_iter().map(|each| each.name).collect()
        }
        Kind::Sink => client.sinks(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Job => client.jobs(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Secret => client.secrets(namespace).await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Role => client.roles().await?.items.into_iter().map(|each| each.name).collect(),
        Kind::Context => Vec::new(),
    })
}

async fn nodes(context: &Context) -> Result<Vec<String>, Failure> {
    let options = ListOptions { limit: Some(MOST), ..ListOptions::default() };
    let page = context.client.listing(options).nodes(&context.namespace, false).await?;
    Ok(page.items.into_iter().map(|view| view.node.name).collect())
}

/// A failure to find an object that the command line names, with the nearest name there is as its hint.
pub(crate) async fn with_nearest(
    ended: CommandResult,
    global: &Global,
    matches: &ArgMatches,
) -> CommandResult {
    let failure = match ended {
        Err(failure) if failure.not_found && !is_destructive(matches) => failure,
        Ok(_) | Err(_) => return ended,
    };
    for (kind, name) in named(matches) {
        let known = of(global, kind).await;
        if known.contains(&name) {
            continue;
        }
        if let Some(near) = nearest(&name, known.iter().map(String::as_str)) {
            return Err(failure.hint(format!("did you mean {near}?")));
        }
    }
    Err(failure)
}

/// Whether the command takes something away: a near name there would be one of another object, which is alive.
fn is_destructive(mut matches: &ArgMatches) -> bool {
    let mut last = "";
    while let Some((name, inner)) = matches.subcommand() {
        (last, matches) = (name, inner);
    }
    let off = matches.try_get_one::<bool>("off").ok().flatten().copied().unwrap_or_default();
    off || ["delete", "decommission", "drain", "release", "abort", "undo", "revoke"].contains(&last)
}

/// The objects that the command line names, with their kinds.
fn named(matches: &ArgMatches) -> Vec<(Kind, String)> {
    let mut command = &args::command();
    let mut matches = matches;
    let mut found = Vec::new();
    loop {
        for arg in command.get_arguments() {
            let value =
                arg.get_value_names().and_then(<[_]>::first).map(|name| name.as_str()).unwrap_or_default();
            let Ok(Some(texts)) = matches.try_get_raw(arg.get_id().as_str()) else { continue };
            let texts = texts.map(|text| text.to_string_lossy().into_owned());
            match Kind::of_value(value) {
                Some(kind) => found.extend(texts.map(|text| typed(kind, text))),
                None if value == "SUBJECT" => found.extend(texts.flat_map(|text| subject(&text))),
                None => {}
            }
        }
        match matches.subcommand().and_then(|(name, inner)| Some((command.find_subcommand(name)?, inner))) {
            Some(next) => (command, matches) = next,
            None => return found,
        }
    }
}

/// The object that a value of this kind names, which may have its kind before it.
fn typed(kind: Kind, text: String) -> (Kind, String) {
    let subject =
        text.split_once('/').and_then(|(word, name)| Some((Kind::of_subject(word)?, name.to_owned())));
    subject.unwrap_or((kind, text))
}

/// What a subject such as `node/web-1` may name; a bare name is a node's or an entity's.
fn subject(text: &str) -> Vec<(Kind, String)> {
    match text.split_once('/') {
        Some(("target", rest)) => {
            let entity = rest.split('/').next().unwrap_or_default();
            vec![(Kind::Entity, entity.to_owned())]
        }
        Some((word, name)) => {
            Kind::of_subject(word).map(|kind| (kind, name.to_owned())).into_iter().collect()
        }
        None => vec![(Kind::Node, text.to_owned()), (Kind::Entity, text.to_owned())],
    }
}
