//! Output of supervised processes over HTTP: a reader waits here for an answer of the node, which is connected to this server.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::job_log::{LogRequest, MAX_FOLLOW_MS};
use bellwether_api::v1::process_log::ProcessLog;
use bellwether_core::words::name::{EntityName, NodeName};

use super::input::{Entity, JsonAnswer, NamespacePath, Node, QueryParams};
use super::problem::Failure;
use super::state::AppState;
use crate::log_requests::{ANSWER_WITHIN, MOST, MOST_OF_NODE};
use crate::ops::job_log::{self, LogPlace};

/// When a reader of a node that does not answer may retry.
const RETRY_MS: u64 = 2_000;

/// How much of the end of a log is read without an offset, in bytes: what one answer has.
const TAIL_BYTES: u64 = 16 << 10;

/// A part of the output of the process of an entity, from the byte `offset` on, or its end; waits for new output at most `wait`.
pub(crate) async fn read(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node), Entity(entity)): (NamespacePath, Node, Entity),
    query: QueryParams,
) -> Result<JsonAnswer<ProcessLog>, Failure> {
    query.only(&["offset", "wait"])?;
    let offset: Option<u64> = query.get("offset")?;
    let wait = query.wait()?.min(Duration::from_millis(MAX_FOLLOW_MS));
    drop(query);
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
        LogPlace::Nowhere => return Err(later(&node, &entity, "the node is connected to no server")),
    }
    drop(world);
    let request = LogRequest {
        number: 0,
        run: entity.to_string(),
        index: 0,
        offset: begin,
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(MAX_FOLLOW_MS),
        entity: Some(entity.to_string()),
        tail_bytes: offset.is_none().then_some(TAIL_BYTES),
    };
    let reader = app.traffic.log_requests.park((namespace.clone(), node.clone()), request);
    let reader = reader.ok_or_else(|| busy(&node, &entity))?;
    app.traffic.sessions.wake(&namespace, &node);
    // Both arms only wait; a reader that goes away drops its request.
    let answer = tokio::select! {
        answer = reader.answer() => answer,
        () = app.stop.cancelled() => return Ok(JsonAnswer(ProcessLog::nothing(begin))),
    };
    let Some(chunk) = answer else {
        let reason = format!("the node does not answer within {}s", ANSWER_WITHIN.as_secs());
        return Err(later(&node, &entity, &reason));
    };
    match (chunk.read, chunk.problem) {
        (Some(read), _) => Ok(JsonAnswer(read.into())),
        (None, problem) => {
            let reason = problem.unwrap_or_else(|| "its node does not say why".to_owned());
            let detail = format!("cannot read the output of {entity} on {node}: {reason}");
            Err(Failure::new(Code::Refused, detail)
                .hint(format!("see what it does: bellwether node get {node}")))
        }
    }
}

/// The log cannot be read now.
fn later(node: &NodeName, entity: &EntityName, reason: &str) -> Failure {
    Failure::new(Code::Refused, format!("cannot read the output of {entity} on {node}: {reason}"))
        .hint(format!("retry, or see: bellwether node get {node}"))
        .retry_after_ms(RETRY_MS)
}

fn busy(node: &NodeName, entity: &EntityName) -> Failure {
    let detail = format!(
        "cannot read the output of {entity} on {node}: {MOST_OF_NODE} readers of this node, or {MOST} in all, wait already"
    );
    Failure::new(Code::Busy, detail).hint("end another reader, or retry").retry_after_ms(RETRY_MS)
}
