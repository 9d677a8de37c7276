//! What must hold whatever happens to servers and etcd: history without a gap, no batch too large, nothing assigned twice, no
//! acknowledged write lost, nobody called unreachable who could call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::event::Event;
use tokio_util::sync::CancellationToken;

use crate::bed::Bed;
use crate::written::Written;

/// Most events or revisions that one page holds.
const PAGE: u32 = 1_000;

/// How long one call may take: a server that is cut off or paused answers nothing.
const CALL: Duration = Duration::from_secs(2);

/// Looks on, from the first rollout to the last.
pub(crate) struct Watch {
    most_in_flight: Arc<Mutex<u64>>,
    written: Written,
    stop: CancellationToken,
}

impl Watch {
    /// Follows the rollout of `web` at every server, and writes a profile all the time, each revision after the one before.
    pub(crate) fn begin(bed: &Bed) -> Self {
        let stop = bed.tasks.token().child_token();
        let written = Written::begin(bed, "written", 0, stop.clone());
        let watch = Self { most_in_flight: Arc::default(), written, stop };
        for client in &bed.clients {
            let (client, most, stop) = (client.clone(), watch.most_in_flight.clone(), watch.stop.clone());
            bed.tasks.spawn("follower", async move { follow(&client, &most, &stop).await });
        }
        watch
    }

    /// How many writes of the profile were acknowledged so far.
    pub(crate) fn written(&self) -> usize {
        self.written.count()
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
                "agent-{agent} was assigned each version once"
            );
        }
        self.written.nothing_acknowledged_is_lost(bed).await;
    }
}

/// All events, which every server tells alike and without a gap.
pub(crate) async fn history(bed: &Bed) -> Vec<Event> {
    let mut known: Option<Vec<Event>> = None;
    for client in &bed.clients {
        let mut events = all_events(&client.clone().consistent()).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let first = numbers.first().copied().unwrap_or(1);
        assert_eq!(first, 1, "the history begins later");
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "events were lost or doubled");
        if let Some(known) = &known {
            // One asked later knows more: it was asked for the present.
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
        *most = view.counts.in_flight.max(*most);
        index = Some(view.revision);
    }
}
