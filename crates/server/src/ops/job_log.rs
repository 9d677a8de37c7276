//! Logs of jobs: which server can ask the node that has one.

use bellwether_api::v1::server::ServerAddress;
use bellwether_core::records::job::{Job, JobState};
use bellwether_core::records::node::PresenceState;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::name::{EntityName, NodeName, ServerName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::OpError;
use super::job::state_of;

/// Where the log of a job can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
    /// The node is connected to this server.
    Here,
    /// The node is connected to another server.
    At(ServerAddress),
    /// The node is connected to no server.
    Nowhere,
    /// The node is none any more.
    Decommissioned,
}

/// The job of the task of this index; one that was open when its node left the run is cancelled.
///
/// # Errors
/// [`OpError::NotFound`] when the run or the job is not there; [`OpError::Refused`] when the agent of the node sends no logs.
pub fn job(fleet: &Fleet, (run, node): (&EntityName, &NodeName), index: u64) -> Result<Job, OpError> {
    let refused = |reason: &str, hint: String| OpError::Refused {
        reason: format!("read the log of job {run}/{node}/{index}: {reason}"),
        hint: Some(hint),
    };
    if fleet.runs.get(run).is_none() {
        return Err(OpError::NotFound(format!(
            "run {run}; a run that is deleted takes the logs of its jobs with it"
        )));
    }
    let of = fleet.jobs.get(&(run.clone(), node.clone())).map(|kept| &kept.value);
    let job = of.and_then(|of| Some((of, of.jobs.iter().find(|job| u64::from(job.index) == index)?)));
    let (of, job) = job.ok_or_else(|| OpError::NotFound(format!("job {run}/{node}/{index}")))?;
    let job = Job { state: state_of(fleet, of, job), ..job.clone() };
    if !fleet.reports.get(node).is_some_and(|kept| kept.value.features.has(Feature::JobLogs)) {
        return Err(refused(
            "the agent of the node is of a build that sends no logs of jobs",
            elsewhere(run, node, &job),
        ));
    }
    Ok(job)
}

/// Why a job has no log yet; `None` once it was begun.
#[must_use]
pub const fn not_begun(job: &Job) -> Option<&'static str> {
    match (job.state, job.attempts) {
        (JobState::Created, 0) => Some("it has not begun, so that there is no log yet"),
        (_, _) => None,
    }
}

/// Where a log can be read that is not to be had, or what to do instead.
#[must_use]
pub fn elsewhere(run: &EntityName, node: &NodeName, job: &Job) -> String {
    if not_begun(job).is_some() {
        return format!("see what it waits for: bellwether why target/{run}/{node}");
    }
    match job.state {
        JobState::Failed => {
            format!("the end of its output is on the servers: bellwether node logs {node} --entity {run}")
        }
        JobState::Cancelled => {
            format!(
                "a node that leaves a run removes its logs; what is known of it: bellwether job get {run}/{node}/{}",
                job.index
            )
        }
        JobState::Created
        | JobState::Running
        | JobState::Finished
        | JobState::Skipped
        | JobState::Incomplete
        | JobState::Lost => {
            format!(
                "see what the node does: bellwether node get {node}; on the node, the log is in logs/jobs/{run} of its data directory"
            )
        }
    }
}

/// The server that can ask a node: the one that holds its session.
#[must_use]
pub fn place(world: &World, fleet: &Fleet, node: &NodeName, me: &ServerName, now: Timestamp) -> LogPlace {
    if fleet.active_node(node).is_none() {
        return LogPlace::Decommissioned;
    }
    let Some(presence) = fleet.presences.get(node).map(|kept| &kept.value) else { return LogPlace::Nowhere };
    match presence.contact {
        PresenceState::Up | PresenceState::Suspect => {}
        PresenceState::Never | PresenceState::Unreachable => return LogPlace::Nowhere,
    }
    match &presence.server {
        Some(server) if server == me => LogPlace::Here,
        Some(server) => {
            let live = world.servers.get(server).map(|kept| &kept.value);
            live.map_or(LogPlace::Nowhere, |live| {
                LogPlace::At(ServerAddress {
                    name: live.name.to_string(),
                    address: live.address.clone(),
                    up_for_ms: now.since(live.since).as_millis(),
                })
            })
        }
        None => LogPlace::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::name::TaskName;

    use super::*;

    fn hint(state: JobState, attempts: u32) -> (Option<&'static str>, String) {
        let job = Job {
            index: 2,
            task: TaskName::parse("one").unwrap(),
            state,
            exit: None,
            exit_code: None,
            attempts,
            started: None,
            ended: None,
            outputs: None,
        };
        let (run, node) = (EntityName::parse("shop-7").unwrap(), NodeName::parse("web-1").unwrap());
        (not_begun(&job), elsewhere(&run, &node, &job))
    }

    #[test]
    fn a_log_that_is_not_there_is_not_looked_for_on_the_node() {
        let (reason, what) = hint(JobState::Created, 0);
        assert!(reason.unwrap().contains("has not begun"));
        assert!(what.ends_with("bellwether why target/shop-7/web-1"), "{what}");
        let (reason, what) = hint(JobState::Cancelled, 1);
        assert_eq!(reason, None);
        assert!(what.ends_with("bellwether job get shop-7/web-1/2") && !what.contains("logs/jobs"), "{what}");
        let (reason, what) = hint(JobState::Created, 1);
        assert!(reason.is_none() && what.contains("logs/jobs/shop-7"), "it is to begin again: {what}");
    }
}
