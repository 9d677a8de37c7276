//! Output of supervised processes over HTTP: a reader waits here for an answer of the node, which is connected to this server.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::job_log::{EnsembleLog, LogRequest, MAX_FOLLOW_MS};
use bellwether_api::v1::process_log::ProcessLog;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{Entity, JsonAnswer, NamedEnsemble, NamespacePath, Node, QueryParams};
use super::problem::Failure;
use super::state::AppState;
use crate::log_requests::{ANSWER_WITHIN, MOST, MOST_OF_NODE, Unanswered};
use crate::ops::job_log::{self, LogPlace};

/// When a reader of a node that does not answer may retry.
const RETRY_MS: u64 = 2_000;

/// How much of the end of a log is read without an offset, in bytes: what one answer has.
const TAIL_BYTES: u64 = 16 << 10;

/// What wrote a log that is read.
#[derive(Debug, Clone)]
enum Writer {
    /// The process of an entity.
    Entity(EntityName),
    /// A part of an ensemble.
    Ensemble(EnsembleLog),
}

impl Writer {
    fn request(&self) -> LogRequest {
        let (entity, ensemble) = match self {
            Self::Entity(entity) => (Some(entity.to_string()), None),
            Self::Ensemble(ensemble) => (None, Some(ensemble.clone())),
        };
        LogRequest {
            number: 0,
            run: entity.clone().unwrap_or_default(),
            index: 0,
            offset: 0,
            wait_ms: 0,
            entity,
            ensemble,
            tail_bytes: None,
        }
    }
}

impl std::fmt::Display for Writer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Entity(entity) => write!(out, "{entity}"),
            Self::Ensemble(EnsembleLog { ensemble, osd: Some(number), .. }) => {
                write!(out, "OSD {number} of ensemble {ensemble}")
            }
            Self::Ensemble(EnsembleLog { ensemble, manager: true, .. }) => {
                write!(out, "the manager of ensemble {ensemble}")
            }
            Self::Ensemble(EnsembleLog { ensemble, .. }) => write!(out, "the member of ensemble {ensemble}"),
        }
    }
}

/// A part of the output of the process of an entity, from the byte `offset` on, or its end; waits for new output at most `wait`.
pub(crate) async fn read(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node), Entity(entity)): (NamespacePath, Node, Entity),
    query: QueryParams,
) -> Result<JsonAnswer<ProcessLog>, Failure> {
    query.only(&["offset", "wait"])?;
    let at = (query.get("offset")?, query.wait()?);
    drop(query);
    answer((&app, caller.actor()), (namespace, node), &Writer::Entity(entity), at).await
}

/// The same of what a node has of an ensemble: its member, or the OSD or the manager that is named.
pub(crate) async fn read_member(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    NamedEnsemble(ensemble): NamedEnsemble,
    query: QueryParams,
) -> Result<JsonAnswer<ProcessLog>, Failure> {
    query.only(&["offset", "wait", "osd", "manager"])?;
    let at = (query.get("offset")?, query.wait()?);
    let (osd, manager) = (query.get("osd")?, query.get("manager")?.unwrap_or_default());
    drop(query);
    if osd.is_some() && manager {
        return Err(Failure::new(Code::Invalid, "osd excludes manager"));
    }
    let writer = Writer::Ensemble(EnsembleLog { ensemble: ensemble.to_string(), osd, manager });
    answer((&app, caller.actor()), (namespace, node), &writer, at).await
}

async fn answer(
    (app, caller): (&AppState, Actor),
    (namespace, node): (Namespace, NodeName),
    writer: &Writer,
    (offset, wait): (Option<u64>, Duration),
) -> Result<JsonAnswer<ProcessLog>, Failure> {
    let wait = wait.min(Duration::from_millis(MAX_FOLLOW_MS));
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.nodes.get(&node).is_some());
    let fleet = fleet.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("cannot find node {node}"))
            .hint("list them: bellwether node list")
    })?;
    let begin = offset.unwrap_or_default();
    match job_log::place(&world, fleet, &node, &app.identity.name, app.clock.now()) {
        LogPlace::Here => {}
        LogPlace::At(server) => {
            return Ok(JsonAnswer(ProcessLog { server: Some(server), ..ProcessLog::nothing(begin) }));
        }
        LogPlace::Nowhere => return Err(later(&node, writer, "the node is connected to no server")),
        LogPlace::Decommissioned => return Err(later(&node, writer, "the node was decommissioned")),
    }
    drop(world);
    let request = LogRequest {
        offset: begin,
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(MAX_FOLLOW_MS),
        tail_bytes: offset.is_none().then_some(TAIL_BYTES),
        ..writer.request()
    };
    let reader = app.traffic.log_requests.park(caller, (namespace.clone(), node.clone()), request);
    let reader = reader.ok_or_else(|| busy(&node, writer))?;
    app.traffic.sessions.wake(&namespace, &node);
    // Both arms only wait; a reader that goes away drops its request.
    let answer = tokio::select! {
        answer = reader.answer() => answer,
        () = app.stop.cancelled() => return Ok(JsonAnswer(ProcessLog::nothing(begin))),
    };
    let chunk = answer.map_err(|unanswered| match unanswered {
        Unanswered::MadeRoom => busy(&node, writer),
        Unanswered::Late => {
            later(&node, writer, &format!("the node does not answer within {}s", ANSWER_WITHIN.as_secs()))
        }
    })?;
    match (chunk.read, chunk.problem) {
        (Some(read), _) => Ok(JsonAnswer(read.into())),
        (None, problem) => {
            let reason = problem.unwrap_or_else(|| "its node does not say why".to_owned());
            let detail = format!("cannot read the output of {writer} on {node}: {reason}");
            Err(Failure::new(Code::Refused, detail)
                .hint(format!("see what it does: bellwether node get {node}")))
        }
    }
}

/// The log cannot be read now.
fn later(node: &NodeName, writer: &Writer, reason: &str) -> Failure {
    Failure::new(Code::Refused, format!("cannot read the output of {writer} on {node}: {reason}"))
        .hint(format!("retry, or see: bellwether node get {node}"))
        .retry_after_ms(RETRY_MS)
}

fn busy(node: &NodeName, writer: &Writer) -> Failure {
    let detail = format!(
        "cannot read the output of {writer} on {node}: {MOST_OF_NODE} readers of this node, or {MOST} in all, wait already"
    );
    Failure::new(Code::Busy, detail).hint("end another reader, or retry").retry_after_ms(RETRY_MS)
}
