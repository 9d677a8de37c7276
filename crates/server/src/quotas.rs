//! What one node may change: a number of changes and of bytes at once, and a rate afterwards, so that a node that went wrong, or is in
//! wrong hands, neither rolls over the history of all others nor fills the store. Each server remembers it for itself, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{AnyKey, Key};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, NODE_ACTOR, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use prometheus_client::metrics::counter::Counter;

/// Changes that a node may make at once: all that it has may change several times in a minute.
const CHANGES: u64 = 2_000;

/// Changes a second that it may make afterwards: the history of a million events lasts for two days of the worst node.
const CHANGES_PER_SECOND: u64 = 5;

/// What the name of a service counts that nobody had registered before: it stays known for a time.
const NAME_CHANGES: u64 = 5;

/// Bytes that a node may send at once: 16 of the largest reports.
const BYTES: u64 = 16 << 20;

/// Bytes a millisecond that it may send afterwards: a quarter of a megabyte a second.
const BYTES_PER_MILLI: u64 = 256;

/// How often it is told of a node that it is limited.
const TOLD_EVERY: Span = Span::from_secs(3_600);

/// Number of nodes after which those that have their whole quota are forgotten.
const PRUNED_AT: usize = 1_024;

/// What nodes have used of their quotas. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeQuotas {
    used: Arc<Mutex<BTreeMap<(Namespace, Actor), UsedQuota>>>,
    refused: Counter,
}

/// What a node has used, as of a time.
#[derive(Debug, Clone, Copy, Default)]
struct UsedQuota {
    /// In thousandths of a change.
    changes_milli: u64,
    bytes: u64,
    at: Timestamp,
    told_at: Option<Timestamp>,
}

/// What a change or a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaUse {
    /// This many changes.
    Changes(u64),
    /// This many bytes.
    Bytes(u64),
}

/// That a node has used its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaUsed {
    pub(crate) retry_after_ms: u64,
    /// Whether it is to be told now.
    pub(crate) is_to_be_told: bool,
}

impl NodeQuotas {
    /// Quotas that count in `refused` what they refuse.
    pub(crate) fn counting(refused: Counter) -> Self {
        Self { used: Arc::default(), refused }
    }

    /// Uses some of the quota of an actor that is a node; others have none.
    ///
    /// # Errors
    /// When to try again, if it is used up.
    pub(crate) fn take(
        &self,
        namespace: &Namespace,
        actor: &Actor,
        taken: QuotaUse,
        now: Timestamp,
    ) -> Result<(), QuotaUsed> {
        if !actor.as_str().starts_with(NODE_ACTOR) {
            return Ok(());
        }
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PRUNED_AT && all.len().is_power_of_two() {
            all.retain(|_, used| {
                used.refill(now);
                !used.is_whole(now)
            });
        }
        let used = all.entry((namespace.clone(), actor.clone())).or_default();
        used.refill(now);
        let result = used.take(taken, now);
        if result.is_err() {
            self.refused.inc();
        }
        result
    }
}

impl UsedQuota {
    fn refill(&mut self, now: Timestamp) {
        let passed = now.since(self.at).as_millis();
        self.at = self.at.max(now);
        self.changes_milli = self.changes_milli.saturating_sub(passed.saturating_mul(CHANGES_PER_SECOND));
        self.bytes = self.bytes.saturating_sub(passed.saturating_mul(BYTES_PER_MILLI));
    }

    /// Whether nothing of it is used, and nothing needs to be remembered.
    fn is_whole(&self, now: Timestamp) -> bool {
        let told = self.told_at.is_some_and(|at| now.since(at) < TOLD_EVERY);
        self.changes_milli == 0 && self.bytes == 0 && !told
    }

    /// What is too large for the rest is taken all the same, as long as there is a rest: nothing is too large for ever.
    fn take(&mut self, taken: QuotaUse, now: Timestamp) -> Result<(), QuotaUsed> {
        let (used, most, per_milli, amount) = match taken {
            QuotaUse::Changes(changes) => {
                (&mut self.changes_milli, CHANGES * 1_000, CHANGES_PER_SECOND, changes.saturating_mul(1_000))
            }
            QuotaUse::Bytes(bytes) => (&mut self.bytes, BYTES, BYTES_PER_MILLI, bytes),
        };
        if *used < most {
            *used = used.saturating_add(amount);
            return Ok(());
        }
        let until = (*used - most) / per_milli;
        let is_to_be_told = self.told_at.is_none_or(|at| now.since(at) >= TOLD_EVERY);
        if is_to_be_told {
            self.told_at = Some(now);
        }
        Err(QuotaUsed { retry_after_ms: until.clamp(1_000, 60_000), is_to_be_told })
    }
}

/// How many changes it counts as; what nobody is told of is one, too.
pub(crate) fn changes(changeset: &Changeset) -> u64 {
    let is_name = |write: &&Write| matches!(write.key(), AnyKey::Namespaced(Key::Service(_)));
    let names = changeset.writes.iter().filter(is_name).count();
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    count(changeset.events.len()).saturating_add(count(names).saturating_mul(NAME_CHANGES)).max(1)
}

/// That a node is limited, as an event; the name of its actor is its subject too.
pub(crate) fn event(actor: &Actor) -> EventDraft {
    let cause = format!(
        "it changes more than a node may: {CHANGES} changes and {} MiB at once, then {CHANGES_PER_SECOND} changes and 256 KB a second",
        BYTES >> 20
    );
    EventDraft { kind: "node.limited", subject: actor.to_string(), before: None, after: None, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Span::from_secs(1_000 + seconds))
    }

    fn take(quotas: &NodeQuotas, actor: &str, taken: QuotaUse, now: Timestamp) -> Result<(), QuotaUsed> {
        let (namespace, actor): (Namespace, Actor) = (valid("default"), valid(actor));
        quotas.take(&namespace, &actor, taken, now)
    }

    fn valid<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().unwrap()
    }

    fn node(name: &str) -> String {
        format!("{NODE_ACTOR}{name}")
    }

    #[test]
    fn a_node_has_its_quota_at_once_and_a_rate_afterwards_and_others_have_their_own() {
        let quotas = NodeQuotas::default();
        let (web, db) = (node("web-1"), node("db-1"));
        for _ in 0..CHANGES / 100 {
            take(&quotas, &web, QuotaUse::Changes(100), at(0)).unwrap();
        }
        let refused = take(&quotas, &web, QuotaUse::Changes(1), at(0)).unwrap_err();
        assert_eq!(refused, QuotaUsed { retry_after_ms: 1_000, is_to_be_told: true });
        assert!(!take(&quotas, &web, QuotaUse::Changes(1), at(0)).unwrap_err().is_to_be_told);
        take(&quotas, &db, QuotaUse::Changes(1), at(0)).unwrap();
        take(&quotas, &web, QuotaUse::Bytes(1), at(0)).unwrap();
        take(&quotas, "ci", QuotaUse::Changes(CHANGES * 9), at(0)).unwrap();
        take(&quotas, "ci", QuotaUse::Changes(1), at(0)).unwrap();
        for second in 1..100 {
            take(&quotas, &web, QuotaUse::Changes(CHANGES_PER_SECOND), at(second)).unwrap();
            assert!(take(&quotas, &web, QuotaUse::Changes(1), at(second)).is_err());
        }
    }

    #[test]
    fn what_is_larger_than_the_rest_is_paid_for_afterwards() {
        let quotas = NodeQuotas::default();
        let web = node("web-1");
        take(&quotas, &web, QuotaUse::Bytes(BYTES * 2), at(0)).unwrap();
        let refused = take(&quotas, &web, QuotaUse::Bytes(1), at(0)).unwrap_err();
        assert_eq!(refused.retry_after_ms, 60_000);
        assert!(take(&quotas, &web, QuotaUse::Bytes(1), at(60)).is_err());
        take(&quotas, &web, QuotaUse::Bytes(1), at(66)).unwrap();
    }

    #[test]
    fn nodes_that_have_their_whole_quota_are_forgotten() {
        let quotas = NodeQuotas::default();
        for number in 0..PRUNED_AT {
            take(&quotas, &node(&format!("n{number}")), QuotaUse::Changes(1), at(0)).unwrap();
        }
        take(&quotas, &node("last"), QuotaUse::Changes(1), at(60)).unwrap();
        assert_eq!(quotas.used.lock().unwrap().len(), 1);
    }
}
