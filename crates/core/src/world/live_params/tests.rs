use alloc::string::String;
use alloc::vec;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::key::{Key, Record};
use crate::records::node::Node;
use crate::records::profile::Profile;
use crate::words::counter::{NodeParamsRevision, ProfileRevisionNumber, Revision};
use crate::words::label::Labels;
use crate::words::name::{Actor, Namespace};
use crate::words::time::Timestamp;
use crate::world::World;

fn name<T: core::str::FromStr<Err: core::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn annotation() -> Annotation {
    Annotation::of(name::<Actor>("kim"), Timestamp::EPOCH)
}

struct Bed(World, u64);

impl Bed {
    fn put(&mut self, record: Record) {
        self.1 += 1;
        self.0.put(&name::<Namespace>("default"), record, Revision::new(self.1));
    }

    fn profile(&mut self, profile: &str, newest: u64, live: bool) {
        let (profile, newest): (ProfileName, _) = (name(profile), ProfileRevisionNumber::new(newest));
        self.put(Record::ProfileRevision(ProfileRevision {
            secrets: Default::default(),
            profile: profile.clone(),
            number: newest,
            params: "{}".into(),
            annotation: annotation(),
        }));
        let (annotation, labels) = (annotation(), Labels::default());
        self.put(Record::Profile(Profile {
            name: profile,
            newest,
            deleted: false,
            live,
            annotation,
            labels,
        }));
    }

    fn reads(&mut self, node: &str, revision: u64, profiles: &[&str]) {
        self.put(Record::NodeParams(NodeParams {
            secrets: Default::default(),
            node: name(node),
            revision: NodeParamsRevision::new(revision),
            params: "{}".into(),
            values: Default::default(),
            profiles: profiles.iter().map(|profile| name(profile)).collect(),
            annotation: annotation(),
        }));
    }

    fn fleet(&self) -> &Fleet {
        self.0.fleets.get(&name::<Namespace>("default")).unwrap()
    }

    fn read_by(&self, node: &str) -> Vec<(&str, u64)> {
        let live = self.fleet().live_params(&name(node));
        live.profiles.iter().map(|read| (read.profile.as_str(), read.number.get())).collect()
    }

    fn readers(&self, profile: &str) -> Vec<String> {
        self.fleet().readers(&name(profile)).map(|node| node.as_str().into()).collect()
    }

    fn digest(&self, node: &str) -> u64 {
        self.fleet().live_params(&name(node)).digest()
    }
}

fn bed() -> Bed {
    let mut bed = Bed(World::default(), 0);
    for node in ["web-1", "web-2"] {
        bed.put(Record::Node(Node {
            name: name(node),
            labels: Labels::default(),
            joined_at: Timestamp::EPOCH,
            key_fingerprint: "".into(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: alloc::vec![crate::access::NamePattern::Any],
        }));
    }
    bed
}

#[test]
fn a_node_reads_the_live_ones_of_its_profiles_and_the_global_one_in_order() {
    let mut bed = bed();
    bed.profile("eu", 3, true);
    bed.profile("fast", 2, false);
    bed.profile("global", 1, true);
    bed.reads("web-1", 1, &["fast", "eu", "gone"]);
    assert_eq!(bed.read_by("web-1"), [("eu", 3), ("global", 1)]);
    assert_eq!(bed.read_by("web-2"), [("global", 1)]);
    bed.profile("fast", 2, true);
    bed.profile("global", 1, false);
    assert_eq!(bed.read_by("web-1"), [("fast", 2), ("eu", 3)]);
    assert_eq!(bed.read_by("web-2"), []);
}

#[test]
fn the_readers_of_a_profile_follow_the_lists_and_all_read_the_global_one() {
    let mut bed = bed();
    bed.reads("web-1", 1, &["eu", "fast"]);
    bed.reads("web-2", 1, &["eu"]);
    assert_eq!(bed.readers("eu"), ["web-1", "web-2"]);
    assert_eq!(bed.readers("global"), ["web-1", "web-2"]);
    bed.reads("web-1", 2, &["fast"]);
    assert_eq!((bed.readers("eu"), bed.readers("fast")), (vec!["web-2".into()], vec!["web-1".into()]));
    bed.0.delete(&name::<Namespace>("default"), &Key::NodeParams(name("web-1")), Revision::new(99));
    assert_eq!((bed.readers("eu"), bed.readers("fast")), (vec!["web-2".into()], vec![]));
}

#[test]
fn the_digest_changes_with_what_the_node_reads_and_with_nothing_else() {
    let mut bed = bed();
    bed.profile("eu", 1, true);
    bed.profile("fast", 1, false);
    bed.reads("web-1", 1, &["eu", "fast"]);
    assert_eq!(bed.digest("web-2"), 0);
    let mut seen = vec![bed.digest("web-1")];
    bed.profile("fast", 2, false);
    bed.reads("web-2", 1, &["fast"]);
    assert_eq!(bed.digest("web-1"), seen[0], "neither is read by it");
    bed.profile("eu", 2, true);
    seen.push(bed.digest("web-1"));
    bed.profile("fast", 2, true);
    seen.push(bed.digest("web-1"));
    bed.profile("global", 1, true);
    seen.push(bed.digest("web-1"));
    bed.reads("web-1", 2, &["eu", "fast"]);
    seen.push(bed.digest("web-1"));
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), all);
}
