//! Every named moment of a rollout, a commit and an apply: the process dies exactly there, as by kill -9, and what it leaves
//! behind is taken up without harm. The moments are those of `bellwether_rt::fail`; a new one is played by its name.

mod agent;
mod delivery;
mod ensemble;
mod handover;
mod job;
mod leader;
mod member;
mod osd;
mod redis;
mod silent;
mod slices;
mod snapshot;
mod store;

use bellwether_rt::fail::FailPoint;
use bellwether_testbed::Options;

use crate::bed::{Bed, options};

/// The points whose names begin so.
fn under(area: &str) -> Vec<FailPoint> {
    let found: Vec<FailPoint> =
        FailPoint::ALL.iter().copied().filter(|point| point.name().starts_with(area)).collect();
    assert!(!found.is_empty(), "no fail point is under {area}");
    found
}

/// The variable that has a process die at a point after it passed it so often unharmed.
fn armed(point: FailPoint, passings: u32) -> String {
    let name = point.name();
    if passings == 0 {
        format!("FAILPOINTS={name}=return")
    } else {
        format!("FAILPOINTS={name}={passings}*off->return")
    }
}

/// As many servers on one etcd, or one on its own store, and as many agents.
fn small(etcd: usize, servers: usize, agents: usize) -> Options {
    Options { etcd, servers, agents, ..options() }
}

impl Bed {
    /// The server that leads, and the other one.
    async fn both_servers(&self) -> (String, String) {
        let leader = self.leader_but(&[]).await;
        (format!("server-{leader}"), format!("server-{}", 3 - leader))
    }

    /// Starts a part that is to die at a point.
    fn arm(&mut self, part: &str, point: FailPoint, passings: u32) {
        eprintln!("{part} dies at {}, after {passings} passings", point.name());
        self.obey(&format!("start {part} {}", armed(point, passings)));
    }

    /// Waits until a part has died as by kill -9.
    fn killed(&mut self, part: &str) {
        tokio::task::block_in_place(|| self.inner.part(part).unwrap().killed()).unwrap();
    }
}

#[test]
fn a_point_that_does_not_exist_is_refused() {
    for (text, complaint) in [
        ("rollout.nowhere=return", "arm fail point \"rollout.nowhere\": there is none of that name"),
        ("rollout.leadership-acquired", "arm fail point rollout.leadership-acquired: "),
    ] {
        let mut command = std::process::Command::new(options().program);
        let refused = command.arg("status").env("FAILPOINTS", text).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(complaint) && refused.status.code() == Some(64), "{refused:?}");
    }
}
