//! The leading server dies at every named moment of a rollout, and of a commit to etcd.

use std::convert::Infallible;

use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::{Hook, Hooks, Policy};
use bellwether_rt::fail::FailPoint;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, service::service_fn};
use hyper_util::rt::TokioIo;

use super::{small, under};
use crate::bed::Bed;
use crate::laws::Watch;
use crate::story_servers::kept;

/// How often each point is passed unharmed before the server dies there. A seat is won once in a life. The first two commits
/// to etcd are those by which a server takes its place and the lead.
fn passings(point: FailPoint) -> &'static [u32] {
    if point == FailPoint::LeadershipAcquired {
        &[0]
    } else if point.name().starts_with("commit.") {
        &[1, 12]
    } else {
        &[0, 2]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_named_moment_of_a_rollout_or_a_commit_is_followed_without_harm() {
    let mut bed = Bed::start(small(1, 2, 5)).await;
    make_entity(&bed).await;
    let watch = Watch::begin(&bed);
    let points = [under("rollout."), under("commit.etcd.")].concat();
    let mut versions = Vec::new();
    // Where a verdict takes more than one slice it is played with more targets.
    for point in points.into_iter().filter(|point| *point != FailPoint::BetweenSlices) {
        for passings in passings(point) {
            versions.push(format!("v{}", versions.len() + 1));
            let version = versions.last().unwrap().clone();
            dies_in_the_lead(&mut bed, (point, *passings), &version).await;
        }
    }
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    watch.holds(&bed, 1, &versions).await;
}

/// In the middle of a rollout the leader stops, the next one dies at the point, and the one before is there again.
async fn dies_in_the_lead(bed: &mut Bed, (point, passings): (FailPoint, u32), version: &str) {
    let (before, next) = bed.both_servers().await;
    bed.obey(&format!("kill {next}"));
    bed.roll(version).await;
    bed.until("it is under way", |view| view.counts.in_flight > 0).await;
    bed.obey(&format!("stop {before}"));
    bed.arm(&next, point, passings);
    bed.killed(&next);
    let leads = kept(bed, "leader").contains(&next);
    assert!(leads || passings == 1, "{next} died at {} before it led", point.name());
    bed.obey(&format!("start {before}"));
    bed.ended(version).await;
    bed.obey(&format!("start {next}"));
}

/// The entity `web`, one after the other, each with the consent of a controller.
async fn make_entity(bed: &Bed) {
    let approval = Hook { url: consenting(bed).await, timeout: None, every: None, token: None };
    let policy = Policy {
        batch: Some("1".to_owned()),
        soak: Some("1s".to_owned()),
        hooks: Some(Hooks { approval: Some(approval), ..Hooks::default() }),
        ..Policy::default()
    };
    let spec = EntitySpec { selector: "role=web".to_owned(), policy, ..EntitySpec::default() };
    bed.client(1).set_entity("default", "web", &spec).await.unwrap();
}

/// A controller that agrees with everything, and where it is asked.
async fn consenting(bed: &Bed) -> String {
    let listener = tokio::net::TcpListener::bind((bed.inner.network.outside(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, stop) = (bed.tasks.clone(), bed.tasks.token());
    let consent = service_fn(async |_| {
        let consent = Bytes::from_static(b"{\"approved\": true}");
        Ok::<_, Infallible>(Response::new(Full::new(consent)))
    });
    bed.tasks.spawn("controller", async move {
        // Both arms only wait.
        while let Some(Ok((stream, _))) = tokio::select! {
            () = stop.cancelled() => None,
            accepted = listener.accept() => Some(accepted),
        } {
            let asked =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), consent);
            // A server that died does not wait for its answer.
            tasks.spawn("question", async move { drop(asked.await) });
        }
    });
    format!("http://{address}/consent")
}
