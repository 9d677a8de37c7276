//! The rights of a job: what its node, its run and its cluster imply, and the claims that its task was granted.

use bellwether_core::access::{Claim, Claims, NamePattern, Rights};
use bellwether_core::records::run::Run;
use bellwether_core::records::target::AssignmentOutcome;
use bellwether_core::words::name::{Actor, EntityName, Namespace, NodeName, RoleName, TargetName};
use bellwether_core::world::fleet::Fleet;

use crate::ops;

/// The prefix of a job's name where it is the actor.
pub(crate) const JOB_ACTOR: &str = "job/";

/// Who a job is, and what it may do: while its run is in flight on its node, and not afterwards. `job` is `RUN/INDEX`.
pub(crate) fn of(
    fleet: &Fleet,
    namespace: &Namespace,
    node: &NodeName,
    job: &str,
) -> Option<(Actor, Rights)> {
    let (name, index) = job.rsplit_once('/')?;
    let (name, index): (EntityName, usize) = (name.parse().ok()?, index.parse().ok()?);
    let target = fleet.boards.get(&name)?.target(&TargetName::from(node))?;
    if !matches!(target.state?.outcome, AssignmentOutcome::InFlight) {
        return None;
    }
    let run = &fleet.runs.get(&name)?.value;
    let actor = Actor::parse(&format!("{JOB_ACTOR}{name}/{node}/{index}")).ok()?;
    let texts = implied(fleet, run, node).into_iter().chain(granted(fleet, (run, node), index)?);
    let claims = texts.filter_map(|text| Claim::parse(&text).ok());
    let claims: Claims = claims.collect::<Vec<_>>().into();
    let role = RoleName::parse("job").ok()?;
    // What a task was granted elsewhere is for elsewhere: the rest is of its own namespace.
    let only_in = NamePattern::parse(namespace.as_str()).ok()?;
    Some((actor, Rights::new(vec![(role, claims)], Some(only_in))))
}

/// What node, run and cluster imply.
fn implied(fleet: &Fleet, run: &Run, node: &NodeName) -> Vec<String> {
    let mut claims =
        vec![format!("get node/{node}"), format!("get run/{}", run.name), "get service".to_owned()];
    let Some(cluster) = fleet.cluster_of(node) else { return claims };
    let (name, profile) = (&cluster.name, &cluster.profile);
    claims.push(format!("get cluster/{name}"));
    claims.push(format!("get,update profile/{profile}"));
    claims.push(format!("get,update:/holders slot/{name}"));
    if cluster.manager == *node {
        claims.push(format!("update:/runs cluster/{name}"));
        claims.push("get run,rollout".to_owned());
    }
    claims
}

/// The claims that the task of this index was granted when it was written.
fn granted(fleet: &Fleet, (run, node): (&Run, &NodeName), index: usize) -> Option<Vec<String>> {
    let task = fleet.tasks_of(run, node).get(index)?;
    Some(ops::run::spec(fleet, (run, node), task).ok()?.claims)
}
