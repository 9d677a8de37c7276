//! Waiting for the workflows of a cluster's members: one blocking read, whose cost per change does not depend on the number of members.

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::cluster::work::{ClusterWait, ClusterWaitState};
use bellwether_core::words::counter::Revision;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::{ClusterName, EntityName, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::workflow_state::WorkflowState;

use super::clusters::missing;
use super::input::{JsonAnswer, NamedCluster, NamespacePath, QueryParams};
use super::list::node::NodeRow;
use super::problem::Failure;
use super::state::AppState;

/// Whether the workflows of the members that a filter matches are complete; with `wait`, once they are, or one fails.
pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedCluster(name)): (NamespacePath, NamedCluster),
    query: QueryParams,
) -> Result<JsonAnswer<ClusterWait>, Failure> {
    query.only(&["on", "fail_on_failure", "wait"])?;
    let wait = query.wait()?;
    let on: Option<String> = query.get("on")?;
    let on = on.map_or(Ok(Filter::all()), |text| query.filter(&text, &NODES));
    let on = on.map_err(|error| Failure::from(ShapeError::misread("on", &error)))?;
    let fail_on_failure = query.get("fail_on_failure")?.unwrap_or(false);
    let mut progress =
        WaitProgress { cluster: name.clone(), on, fail_on_failure, witness: None, since: Revision::ZERO };
    let world = app.world();
    let is_named = |fleet: &&Fleet| fleet.clusters.contains_key(&name);
    if let Some(fleet) = world.fleets.get(&namespace).filter(is_named)
        && progress.on != Filter::all()
        && !fleet.membership.members(&name).any(|node| progress.covers(fleet, node, app.clock.now()))
    {
        let detail =
            format!("cannot wait for members of cluster {name}: none matches {:?}", progress.on.as_str());
        let hint = "params such as cluster/leader are compared by words: 'cluster/leader Eq true'; see: bellwether cluster members";
        return Err(Failure::new(Code::Refused, detail).hint(hint));
    }
    let mut worlds = app.records.transactor.follow();
    let ends = tokio::time::Instant::now() + wait;
    loop {
        let world = worlds.borrow_and_update().clone();
        let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.clusters.contains_key(&name));
        let found = progress.look(&world, fleet.ok_or_else(|| missing(&name))?, app.clock.now());
        let is_over = found.state != ClusterWaitState::Waiting || tokio::time::Instant::now() >= ends;
        if is_over || app.stop.is_cancelled() {
            return Ok(JsonAnswer(found));
        }
        // All arms only wait; the world is read above.
        tokio::select! {
            _ = worlds.changed() => {}
            () = tokio::time::sleep_until(ends) => {}
            () = app.stop.cancelled() => {}
        }
    }
}

/// How far a wait is. While the witness, a member whose workflow is not complete, stays so, nothing else is looked at.
struct WaitProgress {
    cluster: ClusterName,
    on: Filter,
    fail_on_failure: bool,
    witness: Option<NodeName>,
    /// The revision up to which failures were looked for.
    since: Revision,
}

impl WaitProgress {
    fn look(&mut self, world: &World, fleet: &Fleet, now: Timestamp) -> ClusterWait {
        let manager = fleet.clusters.get(&self.cluster).map(|kept| &kept.value.manager);
        if let Some(mark) = manager.and_then(|manager| fleet.not_runnable.get(manager)) {
            let state = ClusterWaitState::Interrupted;
            let node = &mark.value.node;
            return ClusterWait { state, reason: format!("its manager {node} is {}", mark.value.line()) };
        }
        let since = std::mem::replace(&mut self.since, world.revision);
        if self.fail_on_failure {
            let failed = if since == Revision::ZERO {
                self.failure(fleet, fleet.runs.keys(), now)
            } else {
                let touched = fleet.touched.after(since);
                self.failure(fleet, touched.filter(|entity| fleet.runs.contains_key(entity)), now)
            };
            if let Some(failed) = failed {
                return failed;
            }
        }
        if let Some(witness) = self.witness.clone() {
            if let Some(waiting) = self.waits_for(fleet, &witness, now) {
                return waiting;
            }
            // On from there, and then once more through all: one that was complete may have begun another run.
            if let Some(found) = self.search(fleet, Some(&witness), now) {
                return found;
            }
        }
        self.witness = None;
        let complete = ClusterWait {
            state: ClusterWaitState::Complete,
            reason: "every workflow is complete".to_owned(),
        };
        self.search(fleet, None, now).unwrap_or(complete)
    }

    /// The first member after this one whose workflow is not complete.
    fn search(&mut self, fleet: &Fleet, after: Option<&NodeName>, now: Timestamp) -> Option<ClusterWait> {
        let members = fleet.membership.members_after(&self.cluster, after);
        for node in members {
            if let Some(found) = self.waits_for(fleet, node, now) {
                self.witness = Some(node.clone());
                return Some(found);
            }
        }
        None
    }

    /// What a member keeps the wait from; `None` if its workflow is complete, or the filter does not match it.
    fn waits_for(&self, fleet: &Fleet, node: &NodeName, now: Timestamp) -> Option<ClusterWait> {
        let state = fleet.workflow_state(node);
        if state == WorkflowState::Complete || !self.covers(fleet, node, now) {
            return None;
        }
        Some(match state {
            WorkflowState::Failed(run) if self.fail_on_failure => failed(fleet, node, run),
            WorkflowState::Failed(run) if fleet.has_ended(run) => {
                waiting(format!("{node}: run {run} ended without it; the next run there is waited for"))
            }
            WorkflowState::Failed(run) => waiting(format!(
                "{node}: run {run} failed; what is waited for: bellwether job retry {run}/{node}"
            )),
            WorkflowState::InProgress(run) => waiting(match fleet.held_back(run, node) {
                Some(reason) => format!("{node}: run {run} does not begin: the node is {reason}"),
                None => format!("{node}: run {run} is in progress"),
            }),
            WorkflowState::Complete => return None,
        })
    }

    fn covers(&self, fleet: &Fleet, node: &NodeName, now: Timestamp) -> bool {
        let is_member = fleet.membership.of(node) == Some(&self.cluster);
        let kept = fleet.nodes.get(node).filter(|_| is_member);
        kept.is_some_and(|kept| self.on.matches(&NodeRow { fleet, node: &kept.value, now }))
    }

    /// A member whose workflow failed in one of these runs. Costs time in proportion to the failures, not to the members.
    fn failure<'a>(
        &self,
        fleet: &Fleet,
        mut runs: impl Iterator<Item = &'a EntityName>,
        now: Timestamp,
    ) -> Option<ClusterWait> {
        runs.find_map(|run| {
            let is_newest = |node: &NodeName| fleet.workflow_state(node) == WorkflowState::Failed(run);
            let mut nodes = fleet.failed_nodes(run).into_iter();
            let node = nodes.find(|node| is_newest(node) && self.covers(fleet, node, now))?;
            Some(failed(fleet, &node, run))
        })
    }
}

fn waiting(reason: String) -> ClusterWait {
    ClusterWait { state: ClusterWaitState::Waiting, reason }
}

fn failed(fleet: &Fleet, node: &NodeName, run: &EntityName) -> ClusterWait {
    let reason = match fleet.left_without(run, node) {
        Some(left) => format!("{node}: run {run} {left}"),
        None => format!("{node}: run {run} failed"),
    };
    ClusterWait { state: ClusterWaitState::Failed, reason }
}
