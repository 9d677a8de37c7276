//! Logs of jobs over HTTP: a reader waits here for an answer of the node, which is connected to this server.

use std::time::Duration;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::job_log::{JobLog, LogChunk, LogRequest, MAX_FOLLOW_MS};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::job::Job;
use bellwether_core::words::name::{EntityName, Namespace, NodeName};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Node, Number, QueryParams, RunNamed};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::log_requests::{ANSWER_WITHIN, MOST, MOST_OF_NODE, Unanswered};
use crate::ops::job_log::{self, LogPlace};

/// When a reader of a node that does not answer may retry.
const RETRY_MS: u64 = 2_000;

/// A part of the log of a job, from the byte `offset` on; waits for new output at most `wait`.
pub(crate) async fn read(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), RunNamed(run)): (NamespacePath, RunNamed),
    (Node(node), Number(index)): (Node, Number),
    query: QueryParams,
) -> Result<JsonAnswer<JobLog>, Failure> {
    query.only(&["offset", "wait"])?;
    caller.require(Right::get(ObjectKind::Node), Some(node.as_str()), Some(&namespace))?;
    let offset = query.get("offset")?.unwrap_or_default();
    let wait = query.wait()?.min(Duration::from_millis(MAX_FOLLOW_MS));
    drop(query);
    let of = JobOnNode { namespace, run, node, index };
    let (place, job) = of.find(&app)?;
    match place {
        LogPlace::Here => {}
        LogPlace::At(server) => {
            return Ok(JsonAnswer(JobLog {
                server: Some(server),
                ..JobLog::nothing(offset, job.state.into())
            }));
        }
        LogPlace::Nowhere => return Err(of.later(&job, "the node is connected to no server")),
        LogPlace::Decommissioned => return Err(of.later(&job, "the node was decommissioned")),
    }
    let request = LogRequest {
        number: 0,
        run: of.run.to_string(),
        index: job.index,
        offset,
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(MAX_FOLLOW_MS),
        entity: None,
        ensemble: None,
        tail_bytes: None,
    };
    let node = (of.namespace.clone(), of.node.clone());
    let reader = app.traffic.log_requests.park(caller.actor(), node, request).ok_or_else(|| of.busy())?;
    app.traffic.sessions.wake(&of.namespace, &of.node);
    // Both arms only wait; a reader that goes away drops its request.
    let answer = tokio::select! {
        answer = reader.answer() => answer,
        () = app.stop.cancelled() => return Ok(JsonAnswer(JobLog::nothing(offset, job.state.into()))),
    };
    let chunk = answer.map_err(|unanswered| match unanswered {
        Unanswered::MadeRoom => of.busy(),
        Unanswered::Late => {
            of.later(&job, &format!("the node does not answer within {}s", ANSWER_WITHIN.as_secs()))
        }
    })?;
    match (chunk.read, chunk.problem) {
        (Some(read), _) => Ok(JsonAnswer(read.into())),
        (None, problem) => {
            let reason = job_log::not_begun(&job).map(str::to_owned).or(problem);
            Err(of.later(&job, &reason.unwrap_or_else(|| "its node does not say why".to_owned())))
        }
    }
}

/// Gives a part of a log to the reader that waits for it.
pub(crate) async fn put(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(node)): (NamespacePath, Node),
    JsonBody(chunk): JsonBody<LogChunk>,
) -> Result<JsonAnswer<Empty>, Failure> {
    if app.traffic.log_requests.answer((namespace, node), chunk) {
        return Ok(JsonAnswer(Empty {}));
    }
    Err(Failure::new(Code::NotFound, "cannot find the reader of this log: it has gone away"))
}

/// The job whose log is read.
struct JobOnNode {
    namespace: Namespace,
    run: EntityName,
    node: NodeName,
    index: u64,
}

impl JobOnNode {
    /// Where its log can be read, and what is known of it.
    fn find(&self, app: &AppState) -> Result<(LogPlace, Job), Failure> {
        let world = app.world();
        let missing = || {
            let hint = format!("list jobs: bellwether job list --run {}", self.run);
            Failure::new(Code::NotFound, format!("cannot find job {self}")).hint(hint)
        };
        let fleet = world.fleets.get(&self.namespace).ok_or_else(missing)?;
        let job = job_log::job(fleet, (&self.run, &self.node), self.index)?;
        let place = job_log::place(&world, fleet, &self.node, &app.identity.name, app.clock.now());
        Ok((place, job))
    }

    /// The log cannot be read now.
    fn later(&self, job: &Job, reason: &str) -> Failure {
        let failure = Failure::new(Code::Refused, format!("cannot read the log of job {self}: {reason}"));
        let failure = failure.hint(job_log::elsewhere(&self.run, &self.node, job));
        if job.state.is_open() { failure.retry_after_ms(RETRY_MS) } else { failure }
    }

    fn busy(&self) -> Failure {
        let detail = format!(
            "cannot read the log of job {self}: {MOST_OF_NODE} readers of this node, or {MOST} in all, wait already"
        );
        Failure::new(Code::Busy, detail).hint("end another reader, or retry").retry_after_ms(RETRY_MS)
    }
}

impl std::fmt::Display for JobOnNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.run, self.node, self.index)
    }
}
