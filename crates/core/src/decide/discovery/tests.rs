use proptest::prelude::*;

use super::*;
use crate::records::key::AnyRecord;

fn list(hosts: &[&str]) -> MemberList {
    let labels = BTreeMap::new();
    by_host(hosts.iter().map(|host| (*host, &labels))).unwrap()
}

/// A cluster whose list is read again and again.
struct Play {
    known: Option<ClusterDiscovery>,
    told: Vec<String>,
    second: u64,
}

impl Play {
    fn new() -> Self {
        Self { known: None, told: Vec::new(), second: 0 }
    }

    fn apply(&mut self, changeset: Option<Changeset>) -> Vec<String> {
        let Some(Changeset { writes, events }) = changeset else { return Vec::new() };
        for write in writes {
            let Write::Put(record) = write else { panic!("it deletes nothing") };
            let AnyRecord::Namespaced(Record::ClusterDiscovery(known)) = *record else {
                panic!("another record")
            };
            self.known = Some(known);
        }
        let told = events.into_iter().map(|event| {
            let value = event.after.or(event.before).unwrap_or_default();
            format!("{} {value}", event.kind.trim_start_matches("cluster."))
        });
        let told: Vec<String> = told.map(|line| line.trim_end().to_string()).collect();
        self.told.extend(told.clone());
        told
    }

    fn answer(&mut self, answer: Result<MemberList, String>) -> Vec<String> {
        self.second += 60;
        let now = Timestamp::from_millis(self.second * 1_000);
        let cluster = "db".parse().unwrap();
        let source = DiscoverySource::File("db.json".into());
        let changeset = refreshed((&cluster, &source), self.known.as_ref(), answer, now);
        self.apply(changeset)
    }

    fn read(&mut self, hosts: &[&str]) -> Vec<String> {
        self.answer(Ok(list(hosts)))
    }

    fn accept(&mut self) -> Vec<String> {
        let source = DiscoverySource::File("db.json".into());
        let known = self.known.clone().unwrap();
        let changeset = accepted(&known, &source, ("kim said so".into(), Timestamp::EPOCH));
        self.apply(changeset)
    }

    fn members(&self) -> Vec<&str> {
        self.known.iter().flat_map(|known| known.members.keys()).map(String::as_str).collect()
    }

    fn held(&self) -> usize {
        self.known.as_ref().and_then(|known| known.held.as_ref()).map_or(0, |held| held.hosts.len())
    }
}

#[test]
fn new_changed_and_gone_members_are_told_once() {
    let mut play = Play::new();
    assert_eq!(play.read(&["db-1:9100", "db-2"]), ["member_added db-1 (db-1:9100)", "member_added db-2"]);
    assert_eq!(play.read(&["db-1:9100", "db-2"]), [""; 0], "what is the same is not written");
    assert_eq!(
        play.read(&["db-1:9101", "db-2", "db-3"]),
        ["member_changed db-1 (db-1:9101)", "member_added db-3"]
    );
    assert_eq!(play.read(&["db-1:9101", "db-3"]), ["member_gone db-2"]);
    assert_eq!(play.members(), ["db-1", "db-3"]);
}

#[test]
fn a_list_that_cannot_be_read_or_is_empty_keeps_the_members() {
    let mut play = Play::new();
    play.read(&["db-1", "db-2"]);
    assert_eq!(play.answer(Err("no answer".into())), ["discovery_failed"]);
    assert_eq!(play.answer(Err("no answer".into())), [""; 0]);
    assert_eq!(play.read(&[]), [""; 0], "the failure goes on");
    let failure = play.known.as_ref().unwrap().failure.clone().unwrap();
    assert_eq!((&*failure.reason, failure.since), ("it lists no members", Timestamp::from_millis(120_000)));
    assert_eq!(play.members(), ["db-1", "db-2"]);
    assert_eq!(play.read(&["db-1", "db-2"]), ["discovery_recovered"]);
}

#[test]
fn a_large_drop_waits_for_a_person_and_what_is_new_does_not() {
    let mut play = Play::new();
    play.read(&["a", "b", "c", "d", "e"]);
    assert_eq!(play.read(&["a", "b", "f"]), ["member_added f", "members_held 2 members"]);
    assert_eq!((play.members().len(), play.held()), (6, 3));
    assert_eq!(play.read(&["a", "b", "f"]), [""; 0], "it waits, and writes nothing");
    let new = ["a", "b", "f", "g", "h", "i", "j", "k"];
    play.read(&new);
    assert_eq!(play.held(), 3, "a list that grew since is no acceptance");
    play.read(&[&new[..], &["c"]].concat());
    assert_eq!(play.held(), 2, "who is back is no longer gone");
    assert_eq!(play.accept(), ["members_accepted 2 members", "member_gone d", "member_gone e"]);
    assert_eq!(play.held(), 0);
    assert_eq!(play.members(), ["a", "b", "c", "f", "g", "h", "i", "j", "k"]);
}

#[test]
fn one_of_two_leaves_at_once_and_both_do_not() {
    let mut play = Play::new();
    play.read(&["a", "b"]);
    assert_eq!(play.read(&["a"]), ["member_gone b"]);
    play.read(&["a", "b"]);
    assert_eq!(play.read(&["c"]), ["member_added c", "members_held 0 members"]);
}

#[test]
fn many_changes_at_once_are_few_events() {
    let mut play = Play::new();
    let hosts: Vec<String> = (0..2_000).map(|number| format!("n-{number}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let told = play.read(&hosts);
    assert_eq!(told.len(), MAX_TOLD + 1);
    assert_eq!(play.members().len(), 2_000);
}

#[test]
fn a_target_has_a_host_with_or_without_a_port() {
    for (target, expected) in [
        ("db-1:9100", Some("db-1")),
        ("db-1", Some("db-1")),
        ("db-1.example.org:80", Some("db-1.example.org")),
        ("[fd00::1]:80", Some("fd00::1")),
        ("[fd00::1]", Some("fd00::1")),
        ("10.0.0.1:80", Some("10.0.0.1")),
        ("", None),
        (":80", None),
        ("db-1:", None),
        ("db-1:port", None),
        ("db-1:99999", None),
        ("db 1:80", None),
        ("http://db-1", None),
        ("[fd00::1", None),
    ] {
        assert_eq!(host(target), expected, "{target}");
    }
    let labels = BTreeMap::from([("zone".into(), "x".repeat(MAX_LIST_BYTES))]);
    assert!(by_host([("a:1", &labels)]).unwrap_err().contains("too large"));
}

proptest! {
    /// Without a person, members leave only in small drops, and reading the same list again writes nothing.
    #[test]
    fn no_large_drop_happens_without_a_person(lists in prop::collection::vec(prop::collection::btree_set(0_u8..12, 0..12), 1..12)) {
        let mut play = Play::new();
        for hosts in lists {
            let before: Vec<String> = play.members().into_iter().map(ToString::to_string).collect();
            let hosts: Vec<String> = hosts.into_iter().map(|number| format!("n-{number}")).collect();
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            play.read(&hosts);
            let after = play.members();
            let gone = before.iter().filter(|host| !after.contains(&host.as_str())).count();
            prop_assert!(gone < LARGE_DROP || gone * 2 <= before.len(), "{gone} of {}", before.len());
            prop_assert!(hosts.iter().all(|host| after.contains(host)), "who is listed is a member");
            prop_assert!(play.read(&hosts).is_empty(), "the same again");
        }
    }
}
