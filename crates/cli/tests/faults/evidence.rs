//! Outages of several servers, longer than the deadline of a tight policy: none condemns a good version, and none promotes a
//! bad one.

use std::time::Duration;

use bellwether_testbed::Options;

use crate::bed::{Bed, options};

/// Longer than the deadline of the rollouts here.
const AWAY: Duration = Duration::from_secs(14);

/// Installs anything but versions that end in `bad`.
const SECTIONS: &str = "[entity.web]\nstatic = [\"/bin/sh\", \"-c\", \"sleep 1; case $BELLWETHER_VERSION in *bad) exit 1;; esac\"]\n";

async fn fleet() -> Bed {
    let bed = Bed::start(Options { sections: SECTIONS.to_owned(), ..options() }).await;
    let policy = ["--batch", "2", "--soak", "1s", "--deadline", "5s", "--unreachable", "0"];
    bed.run(1, &[&["entity", "set", "web", "--selector", "role=web"], &policy[..]].concat());
    bed.roll("v0").await;
    bed.ended("v0").await;
    bed
}

/// What goes wrong, and what puts it right again. `L` stands for the leader.
const OUTAGES: [(&[&str], &[&str]); 8] = [
    (&["pause server-L"], &["resume server-L"]),
    (&["kill server-L"], &["start server-L"]),
    (
        &["kill server-1", "kill server-2", "kill server-3"],
        &["start server-1", "start server-2", "start server-3"],
    ),
    (&["kill etcd-1", "kill etcd-2"], &["start etcd-1", "start etcd-2"]),
    (&["cut agent-1", "cut agent-2", "cut agent-3"], &["heal"]),
    (&["cut server-L -> agent-1", "cut server-L -> agent-2", "cut server-L -> agent-3"], &["heal"]),
    (&["cut agent-1 -> server-L", "cut agent-2 -> server-L", "cut agent-3 -> server-L"], &["heal"]),
    (&["pause agent-1", "kill agent-2"], &["resume agent-1", "start agent-2"]),
];

fn play(bed: &mut Bed, lines: &[&str], leader: usize) {
    for line in lines {
        bed.obey(&line.replace("server-L", &format!("server-{leader}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_outage_condemns_a_good_version() {
    let mut bed = fleet().await;
    for (number, (wrong, right)) in (1..).zip(OUTAGES) {
        let version = format!("v{number}");
        let leader = bed.leader_but(&[]).await;
        bed.roll(&version).await;
        bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
        eprintln!("{version}: {wrong:?}");
        play(&mut bed, wrong, leader);
        tokio::time::sleep(AWAY).await;
        play(&mut bed, right, leader);
        let view = bed.ended(&version).await;
        assert!(view.progress.bad.is_empty(), "{wrong:?} condemned a good version: {:?}", view.progress.bad);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_outage_promotes_a_bad_version() {
    let mut bed = fleet().await;
    for (number, (wrong, right)) in (1..).zip(OUTAGES) {
        let version = format!("v{number}bad");
        let leader = bed.leader_but(&[]).await;
        bed.roll(&version).await;
        eprintln!("{version}: {wrong:?}");
        play(&mut bed, wrong, leader);
        tokio::time::sleep(AWAY).await;
        play(&mut bed, right, leader);
        let view = bed
            .until("it is known bad and rolled back", |view| {
                view.progress.bad.iter().any(|bad| bad.version == version)
                    && view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())
            })
            .await;
        assert_eq!(view.progress.last_known_good.as_deref(), Some("v0"), "{wrong:?} promoted it");
    }
}
