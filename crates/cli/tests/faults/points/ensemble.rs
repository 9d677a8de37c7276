//! The leader dies at every named moment of a decision on an ensemble: one that grows, one that shrinks, and one of which a member lost its
//! disk. The next leader goes on, and what comes out is the same as without.

use std::collections::BTreeSet;
use std::process::Command;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::{EnsembleSize, ScaleEnsemble};
use bellwether_rt::fail::FailPoint;

use bellwether_testbed::Options;

use super::member::{complete, programs, spec};
use super::{small, under};
use crate::bed::Bed;

const AGENTS: usize = 4;

/// Decisions by which a member is added: it is chosen, added to the store, joins, and votes.
const GROWS: u32 = 4;

/// Decisions by which one is removed: it leaves, is removed, and is forgotten.
const SHRINKS: u32 = 3;

/// Decisions by which one is replaced: it leaves and is removed, and another one is chosen, added, joins, and votes.
const REPLACES: u32 = 6;

/// What is done to an ensemble while a leader dies.
#[derive(Debug, Clone, Copy)]
enum Change {
    Size(u32),
    Wipe,
}

/// An ensemble whose leader dies.
struct Play {
    bed: Bed,
    /// Number of the newest member.
    last: u64,
}

impl Play {
    async fn start() -> Self {
        let sections = "[ensembles]\n".to_owned();
        let bed = Bed::start(Options { sections, ..small(1, 2, AGENTS) }).await;
        let wanted = spec(2, Some("30s"));
        bed.client(1).set_ensemble("default", "store", &wanted).await.unwrap();
        let members = complete(&bed, 2, "it is created").await;
        Self { bed, last: newest(&members) }
    }

    /// A leader begins with a change and dies at a point; the one before it goes on.
    async fn dies_in_the_lead(&mut self, (point, passings): (FailPoint, u32), change: Change) {
        let (before, next) = self.bed.both_servers().await;
        self.bed.obey(&format!("kill {next}"));
        self.bed.obey(&format!("stop {before}"));
        self.bed.arm(&next, point, passings);
        let number: usize = next.trim_start_matches("server-").parse().unwrap();
        self.bed.wait_for("the next one leads", async || self.bed.leader().await == Some(number)).await;
        match change {
            Change::Size(size) => self.scale(size).await,
            Change::Wipe => self.wipe().await,
        }
        self.bed.killed(&next);
        self.bed.obey(&format!("start {before}"));
        let size = match change {
            Change::Size(size) => size as usize,
            Change::Wipe => 3,
        };
        self.comes_out(size, &format!("{change:?} at {}, {passings}", point.name())).await;
        self.bed.obey(&format!("start {next}"));
    }

    /// As many members as are wanted, each with its program and a number that no other one had.
    async fn comes_out(&mut self, size: usize, what: &str) {
        let last = self.last;
        self.bed
            .wait_for(&format!("members are as they are to be after {what}"), async || {
                let members = complete(&self.bed, size, what).await;
                what.starts_with("Size") || newest(&members) > last
            })
            .await;
        let members = complete(&self.bed, size, what).await;
        let nodes: BTreeSet<&String> = members.iter().map(|member| &member.node).collect();
        assert_eq!(nodes.len(), size, "{what}: {members:?}");
        for agent in (1..=AGENTS).map(|agent| format!("agent-{agent}")) {
            let expected = usize::from(nodes.contains(&agent));
            assert_eq!(programs(&self.bed, &agent), expected, "{what}: {agent}: {members:?}");
        }
        let newest = newest(&members);
        assert!(newest <= last + 1, "{what}: one is added twice: {members:?}");
        self.last = newest.max(last);
    }

    /// The leader may die before it answers.
    async fn scale(&self, size: u32) {
        let request = ScaleEnsemble { size: EnsembleSize::Number(size), reason: String::new() };
        let asked = async |client: bellwether_api::client::Client| {
            client.scale_ensemble("default", "store", &request).await
        };
        self.bed
            .wait_for("it is scaled", async || {
                let spec = self.bed.ask(async |client| client.ensemble("default", "store").await).await;
                let is_scaled = spec.is_some_and(|view| view.spec().size == Some(EnsembleSize::Number(size)));
                is_scaled || self.bed.ask(asked).await.is_some() || self.bed.leader().await.is_none()
            })
            .await;
    }

    /// A member loses its program and its disk.
    async fn wipe(&self) {
        let members = complete(&self.bed, 3, "it is to be wiped").await;
        let lost = &members.first().unwrap().node;
        let home = self.bed.inner.home(lost);
        let pattern = format!("^etcd --name store-.*{}", home.display());
        assert!(Command::new("pkill").args(["-9", "-f", &pattern]).status().unwrap().success());
        std::fs::remove_dir_all(home.join("data/ensembles/store")).unwrap();
    }
}

fn newest(members: &[EnsembleMember]) -> u64 {
    members.iter().map(|member| member.number).max().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_moment_of_a_change_of_members_is_followed_by_one_that_ends_it() {
    let mut play = Play::start().await;
    for point in under("ensemble.") {
        for passings in 0..GROWS {
            play.dies_in_the_lead((point, passings), Change::Size(3)).await;
            play.dies_in_the_lead((point, passings.min(SHRINKS - 1)), Change::Size(2)).await;
        }
    }
    play.scale(3).await;
    play.comes_out(3, "Size before it is wiped").await;
    for point in under("ensemble.") {
        for passings in 0..REPLACES {
            play.dies_in_the_lead((point, passings), Change::Wipe).await;
        }
    }
}
