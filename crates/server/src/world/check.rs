//! Compares a world with the store, by keys and the revisions at which they were written: much less to read than the values,
//! and nothing to fold.

use std::time::Duration;

use bellwether_core::records::key::Key;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_store::{MAX_PAGE, Range, Store, StoreError, Watch};
use futures_util::{StreamExt, TryStreamExt};

use super::WorldUpdater;
use super::load::{AT_ONCE, last_event};
use crate::records::key_text::{self, KeyLocation};

/// Longest wait for the watch to deliver recent commits, before the comparison.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// Comparisons until everything is listed: the world may only be behind.
const COMPARED: usize = 3;

impl WorldUpdater {
    /// Whether the world equals the store, including everything that was committed before this call. Follows `watch`
    /// meanwhile.
    pub(super) async fn is_up_to_date(
        &self,
        store: &Store,
        world: &mut World,
        watch: &mut Option<Watch>,
    ) -> bool {
        for _ in 0..COMPARED {
            let before = world.revision;
            match self.compare(store, world, watch).await {
                Ok(true) => return true,
                // The world may only be behind: compare again.
                Ok(false) if world.revision > before => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot compare the world with the store; listing everything again");
                    return false;
                }
            }
        }
        if watch.is_some() {
            let at = world.revision.get();
            tracing::warn!(at, "the world differs from the store; listing everything again");
        }
        false
    }

    /// Compares once with the store, at the present or a slightly later revision.
    async fn compare(
        &self,
        store: &Store,
        world: &mut World,
        watch: &mut Option<Watch>,
    ) -> Result<bool, StoreError> {
        let now = Revision::new(self.meanwhile(store.now(), world, watch).await?.0);
        let Some(open) = watch else { return Ok(false) };
        // Waits only in Watch::next, which is cancel safe. The watch does not deliver commits of other programs in a shared etcd.
        let catching_up = tokio::time::timeout(UNDER_WAY, self.follow_to(now, open, world));
        if let Ok(Some(error)) = catching_up.await {
            tracing::warn!(%error, "the watch ended; listing everything again");
            *watch = None;
            return Ok(false);
        }
        let (compared, at) = (world.clone(), now.max(world.revision));
        let agrees = self.meanwhile(agrees(store, &compared, at), world, watch).await?;
        if agrees && world.revision < at {
            world.revision = at;
            self.publisher.publish(world.clone());
        }
        Ok(agrees)
    }
}

/// Whether `world` has exactly the records that the store had at a revision, none older. Events are compared by the first
/// and the last number of each log.
///
/// # Errors
/// [`StoreError`] when the store fails, or has compacted the revision.
async fn agrees(store: &Store, world: &World, at: Revision) -> Result<bool, StoreError> {
    let at = bellwether_store::Revision(at.get());
    for (namespace, fleet) in &world.fleets {
        if !agree(store, namespace, fleet, at).await? {
            return Ok(false);
        }
    }
    let events: Vec<Range> = world.fleets.keys().map(key_text::events).collect();
    let ranges = key_text::ranges(world.fleets.keys());
    let ranges = ranges.into_iter().filter(|range| !events.contains(range));
    let counting = ranges.map(|range| count(store, range, world, at));
    let counts: Vec<Option<usize>> =
        futures_util::stream::iter(counting).buffered(AT_ONCE).try_collect().await?;
    let found = counts.into_iter().sum::<Option<usize>>();
    Ok(found == Some(world.records()))
}

/// Number of records in a range of keys; none if the world differs in one of them.
async fn count(
    store: &Store,
    mut range: Range,
    world: &World,
    at: bellwether_store::Revision,
) -> Result<Option<usize>, StoreError> {
    let mut count = 0;
    loop {
        let page = store.keys(range.clone(), Some(at), MAX_PAGE).await?;
        for (key, put) in &page.keys {
            let shown = match key_text::read(key) {
                Some(KeyLocation::Namespaced(namespace, key)) => world.revision(&namespace, &key.into()),
                Some(KeyLocation::Global(key)) => world.global_revision(&key),
                Some(KeyLocation::Aside) | None => continue,
            };
            if shown != Revision::new(put.0) {
                return Ok(None);
            }
            count += 1;
        }
        match page.keys.last().filter(|_| page.more) {
            Some((last, _)) => range = range.after(last),
            None => return Ok(Some(count)),
        }
    }
}

/// Whether a namespace's event log begins and ends in the store where it does in the world.
async fn agree(
    store: &Store,
    namespace: &Namespace,
    fleet: &Fleet,
    at: bellwether_store::Revision,
) -> Result<bool, StoreError> {
    let oldest = store.keys(key_text::events(namespace), Some(at), 1).await?.keys.pop();
    let oldest = oldest.and_then(|(key, _)| match key_text::read(&key) {
        Some(KeyLocation::Namespaced(_, Key::Event(sequence))) => Some(sequence),
        Some(_) | None => None,
    });
    let Some((first, _)) = fleet.events.first() else { return Ok(oldest.is_none()) };
    let last = last_event(store, namespace, at).await?;
    let gapless =
        fleet.last_event().get() - first.get() + 1 == u64::try_from(fleet.events.size()).unwrap_or(u64::MAX);
    Ok(gapless && last == Some(fleet.last_event().get()) && oldest == Some(fleet.oldest_event))
}

#[cfg(test)]
mod tests {
    use bellwether_rt::tasks::Tasks;
    use bellwether_store::{CommitOutcome, Op, Txn};
    use bytes::Bytes;

    use super::super::load::load;
    use super::*;
    use crate::records::encoding;

    /// An encoded sample of each kind of record: the name of a file, or the text.
    const SAMPLES: [(&str, &str, &str); 51] = [
        ("node", "node.v1", "ns/default/node/web-1"),
        ("presence", "presence.v1", "ns/default/presence/web-1"),
        ("annotation", "expected.v1", "ns/default/expected/web-9"),
        ("report", "report.v1", "ns/default/report/web-1"),
        ("order", "order.v1", "ns/default/order/web-1"),
        ("registrations", "registrations.v1", "ns/default/registrations/web-1"),
        ("known_service", "service.v1", "ns/default/service/web"),
        ("wait_cycles", "wait-cycles.v1", "ns/default/wait-cycles/current"),
        ("node_log", "node-log.v1", "ns/default/node-log/web-1/configure/web"),
        ("entity", "entity.v1", "ns/default/entity/web"),
        ("progress", "progress.v1", "ns/default/progress/web"),
        ("rollout", "rollout.v1", "ns/default/rollout/web/00000000000000000007"),
        ("target", "target.v1", "ns/default/target/web/web-1"),
        ("external", "external.v1", "ns/default/external/web/web-1"),
        ("controllers", "controllers.v1", "ns/default/controllers/web"),
        ("definition", "definition.v1", "ns/default/task/install-db"),
        ("run", "run.v1", "ns/default/run/new-shop-7"),
        ("jobs", "jobs.v1", "ns/default/jobs/new-shop-7/web-1"),
        ("task_list", "task-list.v1", "ns/default/task-list/new-shop-7/web-1"),
        ("not_runnable", "not-runnable.v1", "ns/default/not-runnable/web-1"),
        ("profile", "profile.v1", "ns/default/profile/web"),
        ("profile_revision", "profile-revision.v1", "ns/default/profile-revision/web/00000000000000000007"),
        ("hook_answers", "hook-answers.v1", "ns/default/hook-answers/web"),
        ("cluster", "cluster.v1", "ns/default/cluster/db"),
        ("cluster_roles", "cluster-roles.v1", "ns/default/cluster-roles/db"),
        ("cluster_view", "cluster-view.v1", "ns/default/cluster-view/db"),
        ("filter", "filter.v1", "ns/default/filter/old"),
        ("freeze", "freeze.v1", "ns/default/freeze/winter"),
        ("pause", "pause.v1", "ns/default/pause/disks"),
        ("slot", "slot.v1", "ns/default/slot/reboot"),
        ("schedule", "schedule.v1", "ns/default/schedule/nightly"),
        ("reaction", "reaction.v1", "ns/default/reaction/repair"),
        ("sink", "sink.v1", "ns/default/sink/audit"),
        ("sink_state", "sink-state.v1", "ns/default/sink-state/audit"),
        ("cluster_discovery", "cluster-discovery.v1", "ns/default/cluster-discovery/db"),
        ("ensemble", "ensemble.v1", "ns/default/ensemble/store"),
        ("ensemble_members", "ensemble-members.v1", "ns/default/ensemble-members/store"),
        ("node_params", "node-params.v1", "ns/default/node-params/web-1"),
        ("node_facts", "facts.v1", "ns/default/facts/web-1"),
        ("node_probes", "probes.v1", "ns/default/probes/web-1"),
        (r#"{"node": "web-1", "members": {}}"#, "node-members.v1", "ns/default/node-members/web-1"),
        ("param", "param.v1", "ns/default/param/port"),
        ("stored_secret", "secret.v1", "ns/default/secret/db"),
        ("event", "event.v1", "ns/default/event/00000000000000000042"),
        ("freeze", "freeze.v1", "freeze/winter"),
        ("server", "server.v1", "server/cp-1"),
        ("leader", "leader.v1", "leader"),
        ("token", "token.v1", "token/abc"),
        ("join_token", "join-token.v1", "join-token/abc"),
        ("role", "role.v1", "role/deployer"),
        ("stored_authorities", "authorities.v1", "authorities"),
    ];

    /// The keys and values of the samples, stored under the names that they contain.
    fn samples() -> Vec<(Bytes, Bytes)> {
        let default: Namespace = "default".parse().unwrap();
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/tests/golden");
        let sample = |(name, schema, key): (&str, &str, &str)| {
            let text = match name.starts_with('{') {
                true => name.to_owned(),
                false => std::fs::read_to_string(golden.join(format!("{name}.json"))).unwrap(),
            };
            let value = Bytes::from(format!(r#"{{"schema": "{schema}", "record": {text}}}"#));
            let key = format!("{}{key}", key_text::ROOT);
            let key = match key_text::read(key.as_bytes()) {
                Some(KeyLocation::Namespaced(_, kind)) => {
                    key_text::of(&default, &encoding::read(&kind, &value).unwrap().key())
                }
                Some(KeyLocation::Global(kind)) => {
                    key_text::global(&encoding::read_global(&kind, &value).unwrap().key())
                }
                Some(KeyLocation::Aside) | None => panic!("{key}"),
            };
            (key, value)
        };
        SAMPLES.map(sample).into()
    }

    async fn commit(store: &Store, op: Op) -> Revision {
        let done = store.commit(Txn { compares: vec![], ops: vec![op] }).await.unwrap();
        let CommitOutcome::Committed(at) = done else { panic!("{done:?}") };
        Revision::new(at.0)
    }

    #[tokio::test]
    async fn whatever_kind_of_record_is_missed_is_noticed() {
        let tasks = Tasks::new();
        let store = Store::memory(&tasks);
        let put =
            |key: &Bytes, value: &Bytes| Op::Put { key: key.clone(), value: value.clone(), lease: None };
        let schemas = include_str!("../records/encoding.rs").split('"').filter(|text| text.ends_with(".v1"));
        for schema in schemas {
            assert!(SAMPLES.iter().any(|(_, of, _)| *of == schema), "no sample of {schema}");
        }
        let samples = samples();
        let event = samples.iter().find_map(|(key, _)| match key_text::read(key) {
            Some(KeyLocation::Namespaced(namespace, Key::Event(sequence))) => Some((namespace, sequence)),
            Some(_) | None => None,
        });
        let (namespace, last) = event.unwrap();
        commit(&store, put(&key_text::sequence(&namespace), &last.to_string().into())).await;
        let mut now = commit(&store, put(&"/bw/moving".into(), &"somebody".into())).await;
        for (key, value) in &samples {
            now = commit(&store, put(key, value)).await;
        }
        let mut world = load(&store, &World::default()).await.unwrap();
        assert!(agrees(&store, &world, now).await.unwrap(), "{} records", world.records());
        for (key, value) in &samples {
            let is_event = matches!(key_text::read(key), Some(KeyLocation::Namespaced(_, Key::Event(_))));
            let again = [put(key, value), Op::Delete { key: key.clone() }, put(key, value)];
            // Events never change: the existence of one is all there is to compare.
            for op in again.into_iter().skip(usize::from(is_event)) {
                let now = commit(&store, op).await;
                assert!(!agrees(&store, &world, now).await.unwrap(), "{}", String::from_utf8_lossy(key));
                world = load(&store, &world).await.unwrap();
                assert!(agrees(&store, &world, now).await.unwrap(), "{}", String::from_utf8_lossy(key));
            }
        }
    }
}
