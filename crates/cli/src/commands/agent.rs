//! `agent`: joins, runs and shows a node's agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_agent::config::{Config, DEFAULT_DATA_DIR};
use bellwether_agent::join::{JoinError, JoinRequest, join};
use bellwether_agent::local::client::{self, CurrentStatus, LocalError};
use bellwether_agent::reload::ConfigSource;
use bellwether_agent::run::RunError;
use bellwether_agent::status::{AgentStatus, StatusError};
use bellwether_api::client::secret::Secret;
use bellwether_core::words::name::EntityName;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::signal::termination_requested;
use bellwether_rt::tasks::Tasks;

use super::service::unreachable;
use crate::args::{AgentVerb, Global};
use crate::context::read;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::near::improved;
use crate::show::time::{ago, date};
use crate::show::{Show, table};

/// How often to ask whether a new configuration is in force.
const POLL: Duration = Duration::from_millis(50);

/// Longest time for the agent's tasks to stop; a service's own stop timeout is shorter.
const GRACE: Duration = Duration::from_secs(30);

/// Says that a join changed nothing, and what of it was ignored.
fn joined_before(show: &Show, node: &str, dir: &Path, has_labels: bool) {
    show.changed(&format!("node {node}: joined before, nothing changed"));
    show.note(&format!(
        "the identity in {} was kept, and the token was not used; --force joins anew",
        dir.display()
    ));
    if has_labels {
        show.note(&format!(
            "--label was ignored; change labels with: bellwether node label {node} KEY=VALUE"
        ));
    }
}

pub(super) async fn run(global: &Global, verb: AgentVerb) -> CommandResult {
    match verb {
        AgentVerb::Join { token_file, name, label, data_dir, force } => {
            let servers = global.server.clone().ok_or_else(|| Failure::usage("join without --server"))?;
            let servers = servers.each().map(str::to_owned).collect();
            let token = Secret::new(read(&token_file, "the join token")?.trim());
            let namespace = global.namespace.clone().unwrap_or_else(|| "default".to_owned());
            let (labels, dir) = (labels(&label)?, data_dir.clone());
            let request =
                JoinRequest { servers, token, node: name.clone(), namespace, labels, data_dir, force };
            let joined = join(request).await.map_err(not_joined)?;
            let show = Show::new(global);
            let node = joined.node.as_str();
            if name != node {
                show.note(&format!("the node name is {node}: node names are in lower case"));
            }
            if joined.already {
                joined_before(&show, node, &dir, !label.is_empty());
                return Ok(Exit::Yes);
            }
            show.changed(&format!("node {node}: joined"));
            if !joined.left_running.is_empty() {
                let names: Vec<&str> = joined.left_running.iter().map(EntityName::as_str).collect();
                show.note(&format!(
                    "processes of a former agent are still running: {}; the new agent stops those of an entity before it \
                     starts its own",
                    names.join(", ")
                ));
            }
            show.note(&next(node, &dir));
            Ok(Exit::Yes)
        }
        AgentVerb::Run { config, check: true, .. } => {
            let config = load(&config)?;
            if let Some(reason) = config.refused_definitions.values().next() {
                return Err(Failure::usage(improved(reason)));
            }
            let refused = |error: RunError| Failure::local(LocalFault::DataDirectory, error.to_string());
            let joined = bellwether_agent::run::has_joined(&config).map_err(refused)?;
            let show = Show::new(global);
            show.note("the configuration is valid");
            if !joined {
                show.note("this node has not joined yet: bellwether agent join");
            }
            Ok(Exit::Yes)
        }
        AgentVerb::Run { config, check: false, die_with_parent } => {
            crate::parent::follow(die_with_parent)?;
            live(config).await
        }
        AgentVerb::Reload { agent, timeout } => reload(global, &agent.data_dir, timeout).await,
        AgentVerb::Status { agent } => status(global, &agent.data_dir).await,
    }
}

/// What to do after a join: the agent finds its identity in the data directory that its configuration names.
fn next(node: &str, data_dir: &Path) -> String {
    let dir = data_dir.display();
    if data_dir == Path::new(DEFAULT_DATA_DIR) {
        return format!(
            "next: set name = \"{node}\" and server in agent.toml, then run: bellwether agent run"
        );
    }
    format!(
        "next: set name = \"{node}\", server and data_dir = \"{dir}\" in FILE, then run: bellwether agent run --config FILE"
    )
}

pub(super) fn load(path: &Path) -> Result<Config, Failure> {
    Config::load(path).map_err(|error| Failure::usage(improved(&error.to_string())))
}

async fn live(path: PathBuf) -> CommandResult {
    let config = load(&path)?;
    let source = ConfigSource::file(path).map_err(|error| Failure::ours(error.to_string()))?;
    let tasks = Tasks::new();
    let level = tasks.clone();
    let stop = tasks.spawn("signals", async move {
        // Both arms only wait.
        tokio::select! {
            _ = termination_requested() => level.cancel(),
            () = level.cancelled() => {}
        }
    });
    bellwether_agent::renderer::separate();
    let ended = bellwether_agent::run::run_from(source, config, Clock::system(), &tasks).await;
    tasks.cancel();
    drop(stop);
    let stopped = tasks.stop(GRACE).await;
    ended.map_err(|error| {
        let exit = match error {
            RunError::Decommissioned { .. } => Exit::NeedsPerson,
            RunError::NotJoined { .. }
            | RunError::Another { .. }
            | RunError::Directory { .. }
            | RunError::Lock(_)
            | RunError::NotPrivate(_)
            | RunError::Identity(_)
            | RunError::Ledger(_) => LocalFault::DataDirectory.exit(),
        };
        Failure::new(exit, error.to_string())
    })?;
    stopped.map_err(|error| Failure::ours(error.to_string()))?;
    Ok(Exit::Yes)
}

/// Has the agent read its configuration again, and waits until it is in force. A refused one changes nothing.
async fn reload(global: &Global, data_dir: &Path, limit: Span) -> CommandResult {
    let number = client::reload(data_dir).await.map_err(|error| match error {
        LocalError::Problem(problem) => Failure::new(Exit::Refused, improved(&problem.detail)).hint(
            "the configuration before stays in force; check the file with: bellwether agent run --check",
        ),
        error @ (LocalError::Away { .. } | LocalError::Broken(_)) => unreachable(error),
    })?;
    let in_force = async {
        // Between two configurations nobody listens on the socket.
        while !client::status(data_dir).await.is_ok_and(|status| status.configuration.number >= number) {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(limit.to_duration(), in_force).await.is_err() {
        let text = format!(
            "see the new configuration in force within {limit}: it is valid, and replaces the one before once the steps that run have ended"
        );
        return Err(Failure::new(Exit::Timeout, text));
    }
    Show::new(global).changed("configuration: reloaded");
    Ok(Exit::Yes)
}

/// A failed join: the exit code tells a refusal from an unreachable server.
pub(super) fn not_joined(error: JoinError) -> Failure {
    let what = error.to_string();
    let exit = match error {
        JoinError::Call { source, .. } => Failure::from(source).exit,
        JoinError::Token(_) | JoinError::Server(_) | JoinError::Name(_) => Exit::Usage,
        JoinError::Another { .. }
        | JoinError::Lock(_)
        | JoinError::NotPrivate(_)
        | JoinError::Identity(_)
        | JoinError::Directory { .. }
        | JoinError::Forget { .. } => LocalFault::DataDirectory.exit(),
        JoinError::Key(_) => Exit::Internal,
    };
    Failure::new(exit, what)
}

fn labels(texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let split = |text: &String| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| Failure::usage(format!("read label {text:?}: write KEY=VALUE")))
    };
    texts.iter().map(split).collect()
}

async fn status(global: &Global, data_dir: &Path) -> CommandResult {
    let current = client::current(data_dir).await.map_err(|error| {
        let fault = match error {
            StatusError::None { .. } => LocalFault::Missing,
            StatusError::File { .. } => LocalFault::DataDirectory,
        };
        Failure::local(fault, error.to_string())
    })?;
    let stored = match &current {
        CurrentStatus::Live(_) => None,
        CurrentStatus::Stored(status) => Some(stored(status)),
    };
    let status = current.into_inner();
    Show::new(global).data(&status, || vec![status.node.clone()], |_| sheet(&status, stored.as_deref()))?;
    Ok(if status.alive { Exit::Yes } else { Exit::No })
}

/// That a status is only what an agent wrote last, and how old that is.
fn stored(status: &AgentStatus) -> String {
    let why = if status.alive { "the agent does not answer" } else { "no agent is running" };
    let age = ago(Clock::system().now().as_millis(), status.written_at_ms);
    format!("written {age} ago, on {}; it may have changed since: {why}", date(status.written_at_ms))
}

fn sheet(status: &AgentStatus, stored: Option<&str>) -> String {
    let alive = if status.alive { "running" } else { "not running" };
    let contact = match (&status.problem, status.connected_since_ms, status.last_contact_ms) {
        _ if status.decommissioned.is_some() => "this node was decommissioned".to_owned(),
        (None, Some(since), _) => format!("connected since {}", date(since)),
        (Some(problem), _, Some(last)) => format!("last contact {}; {problem}", date(last)),
        (Some(problem), _, None) => problem.clone(),
        (None, None, _) => "not connected yet".to_owned(),
    };
    let mut lines = vec![
        format!("node      {}/{}", status.namespace, status.node),
        format!("agent     {} (pid {}, {alive})", status.agent_version, status.pid),
        format!("server    {} ({contact})", status.server),
        format!("order     generation {}, term {}", status.generation, status.term),
    ];
    lines.extend(stored.map(|stored| format!("as of     {stored}")));
    lines.extend(
        status.decommissioned.iter().map(|reason| {
            format!("ended     {reason}; join this machine again: bellwether agent join --force")
        }),
    );
    lines.extend(status.unwritable.iter().map(|reason| format!("disk      cannot {reason}")));
    let provision = status.provision.iter().filter(|provision| provision.state != "success");
    lines.extend(provision.map(|provision| format!("set up    {}: {}", provision.state, provision.reason)));
    let misread = status.misread.iter();
    lines.extend(misread.map(|reason| format!("catalogue cannot be read, an older one is used: {reason}")));
    lines.extend(status.refused.iter().map(|reason| format!("refused   {reason}")));
    let configuration = &status.configuration;
    let refused = configuration.refused.iter();
    lines.extend(refused.map(|reason| {
        format!(
            "refused   cannot {reason}; the configuration of {} stays in force",
            date(configuration.read_at_ms)
        )
    }));
    lines.extend(configuration.refused_definitions.iter().map(|reason| format!("left out  cannot {reason}")));
    let stored = status.catalogue_stored_at_ms.iter();
    lines.extend(stored.map(|at| format!("catalogue as stored {}, until a server answers", date(*at))));
    lines.extend(status.paused.iter().map(|why| format!("paused    {why}")));
    lines.extend(tables(status));
    lines.join("\n")
}

/// The entities, and the members and files if there are any, each after an empty line.
fn tables(status: &AgentStatus) -> Vec<String> {
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let rows = status.entities.iter().map(|(name, entity)| {
        vec![
            name.clone(),
            dash(&entity.running),
            dash(&entity.assigned),
            entity.health.clone(),
            entity.line.clone(),
        ]
    });
    let mut lines = vec![String::new()];
    lines.push(table(&["entity", "runs", "assigned", "health", "state"], rows));
    if !status.members.is_empty() {
        let rows = status.members.iter().map(|(ensemble, member)| {
            vec![ensemble.clone(), member.number.to_string(), member.state.clone(), member.reason.clone()]
        });
        lines.push(String::new());
        lines.push(table(&["ensemble", "member", "state", "reason"], rows));
    }
    if !status.files.is_empty() {
        let rows = status.files.iter().map(|(path, file)| {
            let changed = file.changed_at_ms.map_or_else(|| "-".to_owned(), date);
            vec![path.clone(), file.state.clone(), changed, file.reason.clone()]
        });
        lines.push(String::new());
        lines.push(table(&["file", "state", "changed", "reason"], rows));
    }
    lines
}
