//! Jobs of runs over HTTP.

use std::cmp::Ordering;

use axum::extract::State;
use bellwether_api::list::JsonRow;
use bellwether_api::list::tables::JOBS;
use bellwether_api::problem::Code;
use bellwether_api::v1::job::Job;
use bellwether_api::v1::node::Reason;
use bellwether_api::v1::task_list::{TaskList, TaskListEdit};

use super::auth::Authenticated;
use super::input::{JsonAnswer, JsonBody, NamespacePath, Node, Number, OptionalBody, QueryParams, RunNamed};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::OpError;

/// The jobs of the runs that the caller may read.
pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let (list, readable) = ListQuery::read(&query, &JOBS, &[])?.by_itself();
    let (world, now) = (app.world(), app.clock.now());
    let jobs = world.fleets.get(&namespace).into_iter().flat_map(ops::job::list);
    let rows = jobs.filter(|job| readable.has(&job.run)).map(|job| JsonRow::new(&job, &JOBS, now));
    list.answer_rows(rows, |row, after| order(&row.id(), after) == Ordering::Greater, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), RunNamed(run)): (NamespacePath, RunNamed),
    (Node(node), Number(index)): (Node, Number),
) -> Result<JsonAnswer<Job>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.runs.contains_key(&run));
    let fleet = fleet.ok_or_else(|| super::runs::missing(&run))?;
    let missing = || {
        let detail =
            format!("cannot find job {run}/{node}/{index}: the node has not begun that task of the run");
        let why = format!("why: bellwether why target/{run}/{node}");
        let hint = match ops::run::lacking_param(fleet, &node, &run, index) {
            Some(key) if fleet.has_ended(&run) => {
                format!("set the param: bellwether node set {node} {key}=VALUE; {why}")
            }
            Some(key) => format!(
                "set the param: bellwether node set {node} {key}=VALUE; then begin the task: bellwether job retry {run}/{node}; {why}"
            ),
            None => format!(
                "{why}; list the jobs: bellwether job list --run {run}; its tasks: bellwether run get {run}"
            ),
        };
        Failure::new(Code::NotFound, detail).hint(hint)
    };
    ops::job::get(fleet, (&run, &node), index)?.map(JsonAnswer).ok_or_else(missing)
}

/// Has a node begin the task of a run again that failed there.
pub(crate) async fn retry(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), RunNamed(run), Node(node)): (NamespacePath, RunNamed, Node),
    OptionalBody(because): OptionalBody<Reason>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let by = (&namespace, &caller.actor());
    ops::job::retry(&app.records.transactor, by, (&run, &node), &because.reason).await?;
    Ok(JsonAnswer(Empty {}))
}

/// The tasks of a run on one node.
pub(crate) async fn tasks(
    State(app): State<AppState>,
    (NamespacePath(namespace), RunNamed(run), Node(node)): (NamespacePath, RunNamed, Node),
) -> Result<JsonAnswer<TaskList>, Failure> {
    let world = app.world();
    let missing = || OpError::NotFound(format!("run {run}"));
    let fleet = world.fleets.get(&namespace).ok_or_else(missing)?;
    Ok(JsonAnswer(ops::task_list::get(fleet, (&run, &node))?))
}

/// Changes the tasks of a run that a node has not begun.
pub(crate) async fn edit_tasks(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), RunNamed(run), Node(node)): (NamespacePath, RunNamed, Node),
    JsonBody(edit): JsonBody<TaskListEdit>,
) -> Result<JsonAnswer<TaskList>, Failure> {
    let by = (&namespace, &caller.actor());
    Ok(JsonAnswer(ops::task_list::edit(&app.records.transactor, by, (&run, &node), &edit).await?))
}

/// The order of two names of jobs: by run, node and number.
fn order(one: &str, other: &str) -> Ordering {
    let parts = |name: &str| -> (String, String, u64) {
        let mut parts = name.split('/').map(ToOwned::to_owned);
        let (run, node) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        (run, node, parts.next().and_then(|index| index.parse().ok()).unwrap_or_default())
    };
    parts(one).cmp(&parts(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_in_the_order_of_their_tasks() {
        let names = ["a-1/web-1/2", "a-1/web-1/10", "a-1/web-2/0", "a-12/web-1/0"];
        assert!(names.is_sorted_by(|one, other| order(one, other) == Ordering::Less));
    }
}
