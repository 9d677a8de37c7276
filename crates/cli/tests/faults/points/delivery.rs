//! The leading server dies between a delivery and the record of it, and right after the record: no event is missing at a receiver, their
//! order stays, and what is sent twice was not recorded.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_api::v1::filter::FilterSpec;
use bellwether_rt::fail::FailPoint;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, service::service_fn};
use hyper_util::rt::TokioIo;

use super::{small, under};
use crate::bed::Bed;

/// How often each point is passed unharmed before the server dies there.
const PASSINGS: [u32; 3] = [0, 1, 2];

/// How long one request may take of a server that may die meanwhile.
const CALL: Duration = Duration::from_secs(5);

/// The events that the sinks have.
const FILTER: &str = "kind = filter.changed";

/// Number and identifier of an event, as a receiver had it.
type Taken = (u64, String);

/// What the sink sends to.
enum Receiver {
    Webhook(Arc<Mutex<Vec<Taken>>>),
    File(std::path::PathBuf),
}

impl Receiver {
    /// The events that arrived, in their order.
    fn taken(&self) -> Vec<Taken> {
        match self {
            Self::Webhook(taken) => taken.lock().unwrap().clone(),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.lines().map(|line| number_and_id(line.as_bytes())).collect()
            }
        }
    }
}

fn number_and_id(bytes: &[u8]) -> Taken {
    let event: CloudEvent = serde_json::from_slice(bytes).unwrap();
    (event.data.seq, event.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_every_named_moment_of_a_delivery_sends_again_what_it_did_not_record_and_no_more()
{
    let mut bed = Bed::start(small(0, 1, 0)).await;
    permit_sinks(&mut bed, 1);
    let taken = Arc::default();
    let url = start_receiver(&bed, Arc::clone(&taken)).await;
    let path = bed.inner.home("server-1").join("events/default/log.jsonl");
    let receivers = [
        (["--webhook", url.as_str()], Receiver::Webhook(taken)),
        (["--to-file", "log.jsonl"], Receiver::File(path)),
    ];
    let happened = AtomicU64::default();
    for ([how, to], receiver) in receivers {
        bed.run(1, &["sink", "set", "audit", how, to, "--filter", FILTER]);
        for point in under("delivery.") {
            for passings in PASSINGS {
                let before = all_recorded(&bed).await;
                let sent = receiver.taken().len();
                bed.obey("kill server-1");
                bed.arm("server-1", point, passings);
                events_until_death(&mut bed, "server-1", &happened).await;
                let sent_before_death = receiver.taken().split_off(sent);
                bed.obey("start server-1");
                all_arrive(&bed, &receiver, before).await;
                let sent_again = receiver.taken().split_off(sent + sent_before_death.len());
                only_unrecorded((point, passings), &sent_before_death, &sent_again);
            }
        }
        bed.run(1, &["sink", "delete", "audit", "--yes"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_at_every_named_moment_of_a_delivery_is_followed_by_one_that_sends_the_rest() {
    let mut bed = Bed::start(small(1, 2, 0)).await;
    permit_sinks(&mut bed, 2);
    let taken = Arc::default();
    let url = start_receiver(&bed, Arc::clone(&taken)).await;
    let receiver = Receiver::Webhook(taken);
    let happened = AtomicU64::default();
    bed.run(1, &["sink", "set", "audit", "--webhook", &url, "--filter", FILTER]);
    for point in under("delivery.") {
        for passings in PASSINGS {
            let before = all_recorded(&bed).await;
            let sent = receiver.taken().len();
            let (leader, next) = bed.both_servers().await;
            bed.obey(&format!("kill {next}"));
            bed.obey(&format!("stop {leader}"));
            bed.arm(&next, point, passings);
            events_until_death(&mut bed, &next, &happened).await;
            let sent_before_death = receiver.taken().split_off(sent);
            bed.obey(&format!("start {leader}"));
            all_arrive(&bed, &receiver, before).await;
            let sent_again = receiver.taken().split_off(sent + sent_before_death.len());
            only_unrecorded((point, passings), &sent_before_death, &sent_again);
            bed.obey(&format!("start {next}"));
        }
    }
}

/// Lets the servers send to this machine, and to files of theirs.
fn permit_sinks(bed: &mut Bed, servers: usize) {
    for server in (1..=servers).map(|number| format!("server-{number}")) {
        let home = bed.inner.home(&server);
        let config = home.join("server.toml");
        let before = std::fs::read_to_string(&config).unwrap();
        let (outside, directory) = (bed.inner.network.outside(), home.join("events").display().to_string());
        let table = format!("[sinks]\nallow_addresses = [{outside:?}]\ndirectory = {directory:?}\n");
        std::fs::write(&config, format!("{before}\n{table}")).unwrap();
        bed.obey(&format!("stop {server}"));
        bed.obey(&format!("start {server}"));
    }
}

/// A receiver that acknowledges each event once it has noted it, and where it is.
async fn start_receiver(bed: &Bed, taken: Arc<Mutex<Vec<Taken>>>) -> String {
    let listener = tokio::net::TcpListener::bind((bed.inner.network.outside(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, stop) = (bed.tasks.clone(), bed.tasks.token());
    let note = move |request: Request<Incoming>| {
        let taken = Arc::clone(&taken);
        async move {
            // A server that died in the middle of its request has not sent it.
            if let Ok(body) = request.into_body().collect().await {
                taken.lock().unwrap().push(number_and_id(&body.to_bytes()));
            }
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    };
    bed.tasks.spawn("receiver", async move {
        // Both arms only wait.
        while let Some(Ok((stream, _))) = tokio::select! {
            () = stop.cancelled() => None,
            accepted = listener.accept() => Some(accepted),
        } {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(note.clone()));
            // A server that died does not wait for its answer.
            tasks.spawn("events", async move { drop(served.await) });
        }
    });
    format!("http://{address}/events")
}

/// Waits until the record of the sink has done with all events, and answers the last one.
async fn all_recorded(bed: &Bed) -> u64 {
    let mut last = 0;
    bed.wait_for("all is delivered and recorded", async || {
        let sink = bed.ask(async |client| client.sink("default", "audit").await).await;
        let status = sink.and_then(|sink| sink.status);
        last = status.as_ref().map_or(0, |status| status.state.delivered_to);
        status.is_some_and(|status| status.undelivered == 0)
    })
    .await;
    last
}

/// Has one event after the other happen until the server has died.
async fn events_until_death(bed: &mut Bed, server: &str, happened: &AtomicU64) {
    let index: usize = server.trim_start_matches("server-").parse().unwrap();
    bed.dead_or(server, async |bed| {
        let description = format!("change {}", happened.fetch_add(1, Ordering::Relaxed));
        let spec = FilterSpec { of: "nodes".to_owned(), filter: "all".to_owned(), description };
        // A change that is not answered may have happened, and its event then is to arrive.
        let set = bed.client(index).set_filter("default", "changing", &spec);
        drop(tokio::time::timeout(CALL, set).await);
        false
    })
    .await;
    bed.killed(server);
}

/// Waits until every event since a number arrived, each behind those before it.
async fn all_arrive(bed: &Bed, receiver: &Receiver, since: u64) {
    all_recorded(bed).await;
    let after = Some(since);
    let page = bed.ask(async |client| client.events("default", after, 1_000, Duration::ZERO).await).await;
    let events = page.unwrap().items.into_iter().filter(|event| event.kind == "filter.changed");
    let expected: Vec<u64> = events.map(|event| event.seq).collect();
    let taken: Vec<u64> =
        receiver.taken().into_iter().map(|(number, _)| number).filter(|number| *number > since).collect();
    let mut next = 0;
    for number in &taken {
        let at = expected.iter().position(|known| known == number).unwrap();
        assert!(at <= next, "{number} came before {:?}: {taken:?}", expected.get(next));
        next = next.max(at + 1);
    }
    assert_eq!(next, expected.len(), "{taken:?} of {expected:?}");
}

/// What came twice is what was sent last and was not recorded, under the same identifiers.
fn only_unrecorded((point, passings): (FailPoint, u32), before: &[Taken], after: &[Taken]) {
    let ids: BTreeMap<&u64, &String> = before.iter().map(|(number, id)| (number, id)).collect();
    assert_eq!(ids.len(), before.len(), "a server that lives sends nothing twice: {before:?}");
    let twice: Vec<&Taken> = after.iter().filter(|(number, _)| ids.contains_key(number)).collect();
    assert!(twice.iter().all(|(number, id)| ids.get(number) == Some(&id)), "{before:?}, {after:?}");
    let last: Vec<&Taken> = before.iter().skip(before.len() - twice.len()).collect();
    assert_eq!(twice, last, "the last ones, in order");
    let passed = usize::try_from(passings).unwrap() + 1;
    // The one that was on its way when the record was written.
    let possible = if point == FailPoint::DeliveryRecorded { 0..=1 } else { 1..=passed };
    assert!(possible.contains(&twice.len()), "{} times {passed}: {twice:?} of {before:?}", point.name());
}
