//! What must hold whatever happens to servers and etcd: history without a gap, no batch too large, nothing told twice, no
//! acknowledged write lost, nobody called unreachable who could call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::event::Event;
use bellwether_api::v1::profile::{Edition, ProfilePatch};
use tokio_util::sync::CancellationToken;

use crate::bed::Bed;

/// Most events or revisions that one page holds.
const PAGE: u32 = 1_000;

/// How long one call may take: a server that is cut off or paused answers nothing.
const CALL: Duration = Duration::from_secs(2);

/// Looks on, from the first rollout to the last.
pub(crate) struct Watch {
    most_in_flight: Arc<Mutex<u64>>,
    acknowledged: Arc<Mutex<BTreeMap<u64, u64>>>,
    stop: CancellationToken,
}

impl Watch {
    /// Follows the rollout of `web` at every server, and writes a profile all the time, each revision after the one before.
    pub(crate) fn begin(bed: &Bed) -> Self {
        let watch = Self {
            most_in_flight: Arc::default(),
            acknowledged: Arc::default(),
            stop: bed.tasks.token().child_token(),
        };
        for client in &bed.clients {
            let (client, most, stop) = (client.clone(), watch.most_in_flight.clone(), watch.stop.clone());
            bed.tasks.spawn("follower", async move { follow(&client, &most, &stop).await });
        }
        let (clients, acknowledged, stop) =
            (bed.clients.clone(), watch.acknowledged.clone(), watch.stop.clone());
        bed.tasks.spawn("writer", async move { write(&clients, &acknowledged, &stop).await });
        watch
    }

    /// How many writes of the profile were acknowledged so far.
    pub(crate) fn written(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// Checks everything after the last rollout: `batch` was the policy's, `versions` those that were rolled out.
    pub(crate) async fn holds(&self, bed: &Bed, batch: u64, versions: &[&str]) {
        self.stop.cancel();
        let most = *self.most_in_flight.lock().unwrap();
        assert!(most > 0, "nobody saw anything in flight");
        assert!(most <= batch, "{most} were in flight at once, and the batch is {batch}");
        let events = history(bed).await;
        let fallen: Vec<_> = events.iter().filter(|event| event.kind == "node.unreachable").collect();
        assert!(fallen.is_empty(), "these could call: {fallen:?}");
        let started = events.iter().filter(|event| event.kind == "rollout.started").count();
        assert_eq!(started, versions.len(), "each rollout started once");
        for agent in 1..=bed.inner.options.agents {
            let marks = bed.inner.home(&format!("agent-{agent}")).join("marks");
            let marks = std::fs::read_to_string(marks).unwrap_or_default();
            assert_eq!(
                marks.lines().collect::<Vec<_>>(),
                versions,
                "agent-{agent} was told each version once"
            );
        }
        self.nothing_acknowledged_is_lost(bed).await;
    }

    async fn nothing_acknowledged_is_lost(&self, bed: &Bed) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        let read = bed.ask(async |client| client.profile("default", "written").await).await;
        let Some(newest) = read else {
            assert!(acknowledged.is_empty(), "the profile is gone with {} writes", acknowledged.len());
            return;
        };
        let last = acknowledged.keys().next_back().copied().unwrap_or_default();
        assert!(
            newest.revision >= last,
            "revision {last} was acknowledged, and {} is the newest",
            newest.revision
        );
        let kept = bed.ask(async |client| client.editions("default", "written").await).await.unwrap().items;
        let numbers: Vec<u64> = kept.iter().map(|edition| edition.revision).collect();
        let without_gap: Vec<u64> = (1..=newest.revision).rev().take(numbers.len()).collect();
        assert_eq!(numbers, without_gap, "revisions have a gap");
        for edition in &kept {
            let wanted = acknowledged.get(&edition.revision).copied();
            assert!(
                wanted.is_none_or(|wanted| wanted == number(edition)),
                "{edition:?} was acknowledged as {wanted:?}"
            );
        }
    }
}

/// All events, which every server tells alike and without a gap.
pub(crate) async fn history(bed: &Bed) -> Vec<Event> {
    let mut known: Option<Vec<Event>> = None;
    for client in &bed.clients {
        let mut events = all_events(client).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let first = numbers.first().copied().unwrap_or(1);
        assert_eq!(first, 1, "the history begins later");
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "events were lost or doubled");
        if let Some(known) = &known {
            // One asked later knows more.
            events.truncate(known.len());
            assert_eq!(&events, known, "{} tells another history", client.server());
        } else {
            known = Some(events);
        }
    }
    known.unwrap()
}

async fn all_events(client: &Client) -> Result<Vec<Event>, CallError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = client.events("default", Some(after), PAGE, Duration::ZERO).await?;
        if page.items.is_empty() {
            return Ok(events);
        }
        events.extend(page.items);
    }
}

/// Notes the most that were ever in flight at once, by one server.
async fn follow(client: &Client, most: &Mutex<u64>, stop: &CancellationToken) {
    let mut index = None;
    while !stop.is_cancelled() {
        let asked = client.current_rollout("default", "web", index, Duration::from_secs(1));
        let Ok(Ok(view)) = tokio::time::timeout(CALL, asked).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut most = most.lock().unwrap();
        *most = view.figures.in_flight.max(*most);
        index = Some(view.revision);
    }
}

/// Writes 1, 2, 3 and so on to a profile, at one server after the other, each following the newest revision.
async fn write(clients: &[Client], acknowledged: &Mutex<BTreeMap<u64, u64>>, stop: &CancellationToken) {
    let mut follows = 0;
    for (value, client) in (1..).zip(clients.iter().cycle()) {
        if stop.is_cancelled() {
            return;
        }
        let patch = ProfilePatch {
            set: [("n".to_owned(), serde_json::json!(value))].into(),
            reference: Some(follows),
            ..ProfilePatch::default()
        };
        match tokio::time::timeout(CALL, client.patch_profile("default", "written", &patch)).await {
            Ok(Ok(edition)) => {
                follows = edition.revision;
                acknowledged.lock().unwrap().insert(follows, value);
            }
            // It may have been made all the same: the next follows what is there.
            Ok(Err(_)) | Err(_) => {
                let read = tokio::time::timeout(CALL, client.profile("default", "written")).await;
                follows = read.ok().and_then(Result::ok).map_or(follows, |edition| edition.revision);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn number(edition: &Edition) -> u64 {
    edition.params.get("n").and_then(serde_json::Value::as_u64).unwrap_or_default()
}
