//! Looks at the whole embedded store of a server that does not run, and at every record in it. Changes nothing.

use std::collections::BTreeMap;

use bellwether_core::records::key::Key;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::Namespace;
use bellwether_store::{CutTail, Entry, Store, StoreCheck};

use crate::config::Config;
use crate::installation::Installation;
use crate::records::key_text::{self, KeyLocation};
use crate::run::RunError;
use crate::run::store::own_store;
use crate::transfer::location;
use crate::world;

/// What was seen of an installation.
#[derive(Debug)]
pub struct InstallationCheck {
    /// The store.
    pub store: StoreCheck,
    /// Records that can be read.
    pub records: u64,
    /// What is wrong with the records, apart from the store.
    pub findings: Vec<String>,
    /// What an earlier start left out of the journal, with what to do about it.
    pub cut_warning: Option<String>,
}

/// Looks at the store in the data directory.
///
/// # Errors
/// [`RunError`] if there is no store there, a server has it open, or its files cannot be read.
pub fn check(config: &Config) -> Result<InstallationCheck, RunError> {
    let dir =
        own_store(&config.data_dir)?.ok_or(RunError::NotInitialised { dir: config.data_dir.clone() })?;
    if !dir.join("store.redb").exists() {
        return Err(RunError::NoStoreFile { dir });
    }
    let store = Store::check(&dir)?;
    let cut = store.cut_copy.clone().map(|copy| CutTail { copy: Some(copy), now: None });
    let cut_warning = cut.map(|cut| cut.warning());
    let mut check = InstallationCheck { store, records: 0, findings: Vec::new(), cut_warning };
    // A store that cannot be opened has nothing to look at.
    if !check.store.entries.is_empty() {
        (check.records, check.findings) = records(&check.store.entries);
        check.findings.extend(authority(config, &check.store.entries));
    }
    Ok(check)
}

/// That the authority in the data directory is not that of the installation.
fn authority(config: &Config, entries: &[Entry]) -> Option<String> {
    let record = entries.iter().find(|entry| entry.key == key_text::META)?;
    let installation = Installation::parse(&record.value).ok()?;
    location::other_authority(config, &installation.ca_fingerprint)
}

/// The events of a namespace, and their number as it is stored.
#[derive(Debug, Default)]
struct Events {
    last: Option<Sequence>,
    sequence: Option<Sequence>,
}

fn records(entries: &[Entry]) -> (u64, Vec<String>) {
    let (mut count, mut findings) = (0_u64, Vec::new());
    let mut events: BTreeMap<Namespace, Events> = BTreeMap::new();
    for entry in entries {
        match world::unreadable(&entry.key, &entry.value) {
            None if key_text::read(&entry.key) == Some(KeyLocation::Aside) => {}
            None => count = count.saturating_add(1),
            Some(reason) => findings.push(format!("cannot {reason}")),
        }
        if let Some(KeyLocation::Namespaced(namespace, Key::Event(number))) = key_text::read(&entry.key) {
            let seen = events.entry(namespace.clone()).or_default();
            if let Some(last) = seen.last.filter(|last| last.next() != number) {
                findings
                    .push(format!("namespace {namespace}: there is no event between {last} and {number}"));
            }
            seen.last = Some(number);
        }
    }
    for (namespace, seen) in &mut events {
        let key = key_text::sequence(namespace);
        let stored = entries.iter().find(|entry| entry.key == key);
        let number = stored.and_then(|entry| std::str::from_utf8(&entry.value).ok()?.parse().ok());
        seen.sequence = number.map(Sequence::new);
        if seen.sequence != seen.last {
            let told =
                |number: Option<Sequence>| number.map_or("none".to_owned(), |number| number.to_string());
            let (last, stored) = (told(seen.last), told(seen.sequence));
            findings
                .push(format!("namespace {namespace}: its last event is {last}, and its sequence {stored}"));
        }
    }
    if !entries.iter().any(|entry| entry.key == key_text::META) {
        findings.push("there is no record of the installation".to_owned());
    }
    (count, findings)
}

#[cfg(test)]
mod tests {
    use bellwether_store::Revision;

    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        let (created, modified) = (Revision(1), Revision(1));
        Entry { key: key.to_owned().into(), value: value.to_owned().into(), created, modified, lease: None }
    }

    fn event(number: u64) -> Entry {
        let sample = r#"{"schema": "event.v1", "record": {}}"#;
        entry(&format!("/bw/ns/default/event/{number:020}"), sample)
    }

    #[test]
    fn what_is_missing_among_the_records_is_found() {
        let entries = [
            event(3),
            event(4),
            event(6),
            entry("/bw/ns/default/sequence", "7"),
            entry("/bw/ns/default/node/web-1", "nonsense"),
        ];
        let (count, findings) = records(&entries);
        assert_eq!(count, 0);
        let gaps: Vec<_> =
            findings.iter().filter(|what| !what.starts_with("cannot read the record")).collect();
        let expected = [
            "namespace default: there is no event between 4 and 6",
            "namespace default: its last event is 6, and its sequence 7",
            "there is no record of the installation",
        ];
        assert_eq!(gaps, expected);
        assert_eq!(findings.len(), expected.len() + 4, "and no record parses: {findings:?}");
    }
}
