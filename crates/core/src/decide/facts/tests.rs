use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::*;
use crate::words::counter::RescanNumber;
use crate::words::facts::Facts;
use crate::words::name::NodeName;
use crate::words::value::{Number, Value};

fn facts(cpus: i64, disks: &[&str]) -> NodeFacts {
    let disk =
        |name: &&str| Value::Object(BTreeMap::from([(Arc::from("name"), Value::Text((*name).into()))]));
    let facts = BTreeMap::from([
        (Arc::from("cpus"), Value::Number(Number::integer(cpus))),
        (Arc::from("disks"), Value::List(disks.iter().map(disk).collect())),
    ]);
    NodeFacts {
        node: NodeName::parse("web-1").unwrap(),
        received_at: Timestamp::EPOCH,
        rescan: RescanNumber::ZERO,
        facts: Facts::new(facts).unwrap(),
    }
}

#[test]
fn only_what_changed_is_written_and_only_disks_are_an_event() {
    let now = Timestamp::from_millis(5_000);
    let first = absorb(None, facts(4, &["sda"]), now).unwrap();
    assert!(first.events.is_empty());
    assert_eq!(absorb(Some(&facts(4, &["sda"])), facts(4, &["sda"]), now), None);
    let more = absorb(Some(&facts(4, &["sda"])), facts(8, &["sda"]), now).unwrap();
    assert!(more.events.is_empty());
    let disks = absorb(Some(&facts(4, &["sda"])), facts(4, &["sdb", "sda"]), now).unwrap();
    let [event] = disks.events.as_slice() else { panic!("{disks:?}") };
    assert_eq!((event.kind, &*event.subject), ("node.disks_changed", "node/web-1"));
    assert_eq!(event.after.as_deref(), Some("disks=sda,sdb"));
}

#[test]
fn a_rescan_is_answered_even_if_nothing_changed() {
    let done = NodeFacts { rescan: RescanNumber::new(1), ..facts(4, &[]) };
    let changeset = absorb(Some(&facts(4, &[])), done, Timestamp::EPOCH).unwrap();
    assert_eq!((changeset.writes.len(), changeset.events.len()), (1, 0));
}
