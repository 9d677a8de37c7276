//! An agent that has a member of an ensemble, killed at every named moment of it: the member is prepared, started, changes the store, and leaves,
//! and what the agent left behind is taken up by the next one.

use std::process::Command;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::service::{EtcdSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec, ScaleEnsemble};
use bellwether_rt::fail::FailPoint;

use bellwether_testbed::Options;

use super::{small, under};
use crate::bed::Bed;

const AGENTS: usize = 3;

pub(super) fn spec(size: u32, failover_after: Option<&str>) -> EnsembleSpec {
    EnsembleSpec {
        service: ServiceAgentSpec { etcd: Some(EtcdSpec::default()), ..ServiceAgentSpec::default() },
        size: Some(EnsembleSize::Number(size)),
        filter: "all".to_owned(),
        failover_after: failover_after.map(str::to_owned),
        ..EnsembleSpec::default()
    }
}

async fn members(bed: &Bed) -> Option<Vec<EnsembleMember>> {
    let ensemble = bed.client(1).ensemble("default", "store").await.ok()?;
    Some(ensemble.status?.members)
}

/// The members, once there are so many and all of them vote.
pub(super) async fn complete(bed: &Bed, size: usize, what: &str) -> Vec<EnsembleMember> {
    let mut found = Vec::new();
    bed.wait_for(&format!("{size} members vote after {what}"), async || {
        let asked = bed.ask(async |client| client.ensemble("default", "store").await).await;
        let all = asked.and_then(|of| of.status);
        let Some(status) = all else { return false };
        found = status.members;
        status.is_complete
            && found.len() == size
            && found.iter().all(|member| member.state == MemberPhase::Voting)
    })
    .await;
    found
}

async fn scale(bed: &Bed, size: u32) {
    let request = ScaleEnsemble { size: EnsembleSize::Number(size), reason: String::new() };
    bed.client(1).scale_ensemble("default", "store", &request).await.unwrap();
}

/// Number of programs of members on the machine of an agent.
pub(super) fn programs(bed: &Bed, agent: &str) -> usize {
    let data = bed.inner.home(agent).display().to_string();
    let found =
        Command::new("pgrep").args(["-fc", &format!("^etcd --name store-.*{data}")]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().parse().unwrap()
}

/// Has these agents die at a point, once they come there.
fn arm(bed: &mut Bed, agents: &[String], point: FailPoint) {
    for agent in agents {
        bed.obey(&format!("kill {agent}"));
        bed.arm(agent, point, 0);
    }
}

/// Starts the agent that died at the point, and the others as they were.
fn mend(bed: &mut Bed, agents: &[String], dead: &str) {
    bed.killed(dead);
    for agent in agents {
        if agent != dead {
            bed.obey(&format!("kill {agent}"));
        }
        bed.obey(&format!("start {agent}"));
    }
}

/// The one of these nodes of whose member it holds, once there is one.
async fn chosen(bed: &Bed, what: &str, is: impl Fn(&EnsembleMember) -> bool) -> String {
    let mut found = None;
    bed.wait_for(what, async || {
        let all = members(bed).await.unwrap_or_default();
        found = all.iter().find(|member| is(member)).map(|member| member.node.clone());
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_a_member_is_followed_by_one_that_goes_on() {
    let sections = "[ensembles]\n".to_owned();
    let mut bed = Bed::start(Options { sections, ..small(0, 1, AGENTS) }).await;
    bed.wait_for("every agent is up", async || bed.up().await == AGENTS).await;
    bed.client(1).set_ensemble("default", "store", &spec(1, None)).await.unwrap();
    let agents: Vec<String> = (1..=AGENTS).map(|number| format!("agent-{number}")).collect();
    let mut last = 0;
    for point in under("member.") {
        let name = point.name();
        let one = complete(&bed, 1, name).await;
        let (own, others): (Vec<String>, Vec<String>) =
            agents.iter().cloned().partition(|agent| one.iter().any(|member| member.node == *agent));
        let leaves = matches!(point, FailPoint::MemberSetAside | FailPoint::MemberLeft);
        let changes = point == FailPoint::MemberChanged;
        if !leaves {
            arm(&mut bed, if changes { &own } else { &others }, point);
        }
        scale(&bed, 2).await;
        if !leaves {
            let added = chosen(&bed, "a node is chosen", |member| member.node != one[0].node).await;
            let dead = if changes { own[0].clone() } else { added };
            mend(&mut bed, if changes { &own } else { &others }, &dead);
        }
        let two = complete(&bed, 2, name).await;
        assert!(two.iter().all(|member| programs(&bed, &member.node) == 1), "{name}: {two:?}");
        let newest = two.iter().map(|member| member.number).max().unwrap();
        assert!(newest > last, "{name}: number {newest} is given twice");
        last = newest;
        let both: Vec<String> = two.iter().map(|member| member.node.clone()).collect();
        if leaves {
            arm(&mut bed, &both, point);
        }
        scale(&bed, 1).await;
        if leaves {
            let is_leaving = |member: &EnsembleMember| member.state != MemberPhase::Voting;
            let dead = chosen(&bed, "one leaves", is_leaving).await;
            mend(&mut bed, &both, &dead);
        }
        let kept = complete(&bed, 1, name).await;
        let running: usize = agents.iter().map(|agent| programs(&bed, agent)).sum();
        assert_eq!((running, programs(&bed, &kept[0].node)), (1, 1), "{name}: {kept:?}");
    }
    bed.client(1).delete_ensemble("default", "store").await.unwrap();
    bed.wait_for("all members have stopped", async || agents.iter().all(|agent| programs(&bed, agent) == 0))
        .await;
}
