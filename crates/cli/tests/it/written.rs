//! A profile that is written all the time, each revision after the one before: what was acknowledged stays, and what was not
//! is whole or not there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::v1::profile::{ParamsPatch, ProfileRevision};
use tokio_util::sync::CancellationToken;

use crate::bed::Bed;

/// How long one call may take: a server that is cut off or paused answers nothing.
const CALL: Duration = Duration::from_secs(2);

/// What is written to one profile, and what of it was acknowledged.
pub(crate) struct Written {
    profile: String,
    filler: String,
    /// By revision: the number written.
    acknowledged: Arc<Mutex<BTreeMap<u64, u64>>>,
}

impl Written {
    /// Begins to write 1, 2, 3 and so on to a profile, at one server after the other, each time with a filler of so many bytes.
    pub(crate) fn begin(bed: &Bed, profile: &str, filler_bytes: usize, stop: CancellationToken) -> Self {
        let written = Self {
            profile: profile.to_owned(),
            filler: "x".repeat(filler_bytes),
            acknowledged: Arc::default(),
        };
        let (writing, clients) = (written.again(), bed.clients.clone());
        bed.tasks.spawn("writer", async move { writing.write(&clients, &stop).await });
        written
    }

    fn again(&self) -> Self {
        let (profile, filler) = (self.profile.clone(), self.filler.clone());
        Self { profile, filler, acknowledged: self.acknowledged.clone() }
    }

    /// How many writes were acknowledged so far.
    pub(crate) fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    async fn write(&self, clients: &[Client], stop: &CancellationToken) {
        let mut follows = 0;
        for (value, client) in (1..).zip(clients.iter().cycle()) {
            if stop.is_cancelled() {
                return;
            }
            let set = [("filler", serde_json::json!(self.filler)), ("n", serde_json::json!(value))];
            let patch = ParamsPatch {
                set: set.map(|(key, value)| (key.to_owned(), value)).into(),
                ..ParamsPatch::default()
            };
            let client_at = client.only_at(follows);
            let writing = client_at.patch_profile("default", &self.profile, &patch);
            match tokio::time::timeout(CALL, writing).await {
                Ok(Ok(profile_revision)) => {
                    follows = profile_revision.revision;
                    self.acknowledged.lock().unwrap().insert(follows, value);
                }
                // It may have been made all the same: the next follows what is there.
                Ok(Err(_)) | Err(_) => {
                    let read = tokio::time::timeout(CALL, client.profile("default", &self.profile)).await;
                    follows = read
                        .ok()
                        .and_then(Result::ok)
                        .map_or(follows, |profile_revision| profile_revision.revision);
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks that every acknowledged write is there, and every one that is there whole and in its place.
    pub(crate) async fn nothing_acknowledged_is_lost(&self, bed: &Bed) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        let name = self.profile.as_str();
        let read = bed.ask(async |client| client.profile("default", name).await).await;
        let Some(newest) = read else {
            assert!(acknowledged.is_empty(), "{name} is gone with {} writes", acknowledged.len());
            return;
        };
        let last = acknowledged.keys().next_back().copied().unwrap_or_default();
        assert!(
            newest.revision >= last,
            "revision {last} of {name} was acknowledged, and {} is the newest",
            newest.revision
        );
        let kept =
            bed.ask(async |client| client.profile_revisions("default", name).await).await.unwrap().items;
        let numbers: Vec<u64> = kept.iter().map(|profile_revision| profile_revision.revision).collect();
        // A write whose answer nobody waited for may have come in between.
        let first = numbers.first().copied().unwrap_or_default();
        assert!(first >= newest.revision, "revision {} of {name} is not listed", newest.revision);
        let without_gap: Vec<u64> = (1..=first).rev().take(numbers.len()).collect();
        assert_eq!(numbers, without_gap, "revisions of {name} have a gap");
        for profile_revision in &kept {
            let (found, revision) = (number(profile_revision), profile_revision.revision);
            let wanted = acknowledged.get(&revision).copied();
            assert!(
                wanted.is_none_or(|wanted| wanted == found),
                "revision {revision} of {name} was acknowledged as {wanted:?} and is {found}"
            );
            let filler = profile_revision.params.get("filler").and_then(serde_json::Value::as_str);
            assert_eq!(filler, Some(self.filler.as_str()), "revision {revision} of {name} is not whole");
        }
    }
}

fn number(profile_revision: &ProfileRevision) -> u64 {
    profile_revision.params.get("n").and_then(serde_json::Value::as_u64).unwrap_or_default()
}
