//! What each fuzz target does with its input. Bytes are refused or understood, never a panic; and what was understood
//! and is written again means the same.

pub mod dns;
pub mod shapes;

use bellwether_api::v1;
use bellwether_api::v1::hook::answer::read_answer;
use bellwether_core::decide::probes::absorb as absorb_probes;
use bellwether_core::decide::report::{absorb, absorb_unassigned};
use bellwether_core::records::entity::{Entity, EntityKind, TargetSource};
use bellwether_core::records::key::{AnyRecord, Record};
use bellwether_core::records::policy::Policy;
use bellwether_core::records::probes::NodeProbes;
use bellwether_core::records::report::Report;
use bellwether_core::records::rollout::TargetCounts;
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::verdict::Write;
use bellwether_core::words::name::{EntityName, FilterName, NodeName, TargetName};
use bellwether_core::words::percent::{Amount, Percent};
use bellwether_core::words::filter::field::Field;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::filter::saved::FilterDraft;
use bellwether_core::words::filter::{FieldValue, Filter, FilterSubject};
use bellwether_core::words::selector::Selector;
use bellwether_core::words::value::{Number, Value};
use bellwether_core::words::label::Label;
use bellwether_core::words::node_order::NodeOrder;
use bellwether_core::words::address_range::AddressRange;
use bellwether_core::words::cron::Cron;
use bellwether_core::catalogue::need::Need;
use bellwether_core::records::ensemble_adoption::StoreEndpoint;
use bellwether_core::records::ensemble_restore::SnapshotName;
use bellwether_core::records::policy::ordering::{Domain, PolicyStage, ServiceNeed, TargetOrder};
use bellwether_core::records::reaction::ConditionSubject;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_core::words::window::Window;
use bellwether_core::words::zone::Zone;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads JSON; `None` if it is not what is expected.
fn read<T: DeserializeOwned>(data: &[u8]) -> Option<T> {
    serde_json::from_slice(data).ok()
}

/// The shape as another program would read it.
fn sent<T: Serialize + DeserializeOwned>(shape: &T) -> T {
    let text = serde_json::to_string(shape).expect("what was read can be written");
    serde_json::from_str(&text).expect("what was written can be read")
}

/// A policy, as a request and in the configuration of an entity.
pub fn policy(data: &[u8]) {
    let Some(shape) = read::<v1::policy::Policy>(data) else { return };
    let Ok(policy) = Policy::try_from(&shape) else { return };
    let again = Policy::try_from(&sent(&v1::policy::Policy::from(&policy)));
    assert_eq!(again.expect("an accepted policy is accepted again"), policy);
}

/// A request to create or change an entity, and an entity as it is stored.
pub fn entity(data: &[u8]) {
    if let Some(spec) = read::<v1::entity::EntitySpec>(data) {
        let (source, info, kind) = (spec.source(), spec.info(), spec.kind());
        if let (Ok(source), Ok(_), Ok(kind)) = (source, info, kind) {
            of_kind(&kind.unwrap_or(EntityKind::Version), &source, &spec.policy);
        }
    }
    if let Some(Ok(entity)) = read::<v1::entity::Entity>(data).map(Entity::try_from) {
        let again = Entity::try_from(sent(&v1::entity::Entity::from(&entity)));
        assert_eq!(again.expect("an accepted entity is accepted again"), entity);
    }
}

fn of_kind(kind: &EntityKind, source: &TargetSource, policy: &v1::policy::Policy) {
    if let Ok(draft) = policy.try_into() {
        drop(kind.policy(source, draft));
    }
}

/// The data stores of a node, absorbed as the first report and as the next one, which says nothing new.
fn probes(data: &[u8]) {
    let Some(Ok(probes)) = read::<v1::probes::NodeProbes>(data).map(NodeProbes::try_from) else { return };
    let again = NodeProbes::try_from(sent(&v1::probes::NodeProbes::from(&probes)));
    assert_eq!(again.expect("accepted stores are accepted again"), probes);
    let now = Timestamp::from_millis(1_800_000_000_000);
    let written = absorb_probes(None, probes.clone(), now).into_iter().flat_map(|changeset| changeset.writes);
    for write in written {
        let Write::Put(record) = write else { continue };
        let AnyRecord::Namespaced(Record::Probes(kept)) = *record else { continue };
        assert_eq!(absorb_probes(Some(&kept), probes.clone(), now), None);
    }
}

/// A report of a node, absorbed as the first one and as the next one; or its data stores.
pub fn report(data: &[u8]) {
    probes(data);
    let Some(Ok(report)) = read::<v1::report::Report>(data).map(Report::try_from) else { return };
    let again = Report::try_from(sent(&v1::report::Report::from(&report)));
    assert_eq!(again.expect("an accepted report is accepted again"), report);
    let now = Timestamp::from_millis(1_800_000_000_000);
    drop(absorb(None, report.clone(), now));
    drop(absorb_unassigned(Some(&report), report.clone(), now));
    drop(absorb(Some(&report), report.clone(), now));
}

/// The answer of a hook, to each question.
pub fn hook_answer(data: &[u8]) {
    let questions = [
        HookQuestion::Selection { turned: 0, room: 1, candidates: Vec::new() },
        HookQuestion::Approval { turned: 0, targets: Vec::new() },
        HookQuestion::Monitoring { targets: Vec::new() },
        HookQuestion::Removal { targets: Vec::new() },
        HookQuestion::Monitor { counts: TargetCounts::default() },
    ];
    for question in &questions {
        drop(read_answer(question, data));
    }
}

/// A node on which filters are tried.
struct FuzzedNode;

impl FilterSubject for FuzzedNode {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        match field.key().len() % 3 {
            0 => Some(FieldValue::Text("web-1")),
            1 => Some(FieldValue::Value(Value::Number(Number::integer(64)))),
            _ => None,
        }
    }
}

/// The next time of a schedule, and the end of a window, are found in bounded time, and lie in the future.
fn times(text: &str) {
    let now = Timestamp::from_millis(1_800_000_000_000);
    if let Ok(cron) = text.parse::<Cron>()
        && let Some(next) = cron.after(&"UTC".parse::<Zone>().expect("a zone"), now)
    {
        assert!(next > now, "{cron}");
    }
    if let Ok(window) = text.parse::<Window>() {
        let _state = window.at(now);
    }
}

/// A filter: what is accepted is read again as the same, matches or not within its time, and is the opposite of what it negates.
pub fn filter(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    saved_filter(text);
    match Filter::parse(text, &NODES) {
        Ok(filter) => {
            let again = Filter::parse(filter.as_str(), &NODES).expect("an accepted filter is accepted again");
            let matches = filter.matches(&FuzzedNode);
            assert_eq!(again.matches(&FuzzedNode), matches);
            if let Ok(negated) = Filter::parse(&format!("not ({filter})"), &NODES) {
                assert_ne!(negated.matches(&FuzzedNode), matches, "{filter}");
            }
        }
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    }
}

/// A filter that may name saved ones, each of which is the first or the last half of the text: what is written out is a filter
/// that names none.
fn saved_filter(text: &str) {
    let Ok(draft) = FilterDraft::parse(text, &NODES) else { return };
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(index, _)| index);
    let (first, last) = text.split_at(half);
    let find = |name: &FilterName| match name.as_str().len() {
        1 => Ok(first),
        2 => Ok(last),
        _ => Ok("all"),
    };
    match draft.resolve(None, &find) {
        Ok(filter) => {
            let again = Filter::parse(filter.as_str(), &NODES).expect("what is written out names none");
            assert_eq!(again.matches(&FuzzedNode), filter.matches(&FuzzedNode));
        }
        Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
    }
}

/// Names, versions, selectors, amounts and times: what is accepted is written as text that is read as the same.
pub fn words(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    macro_rules! there_and_back {
        ($($word:ty),*) => {
            $(if let Ok(word) = text.parse::<$word>() {
                let again = word.to_string().parse::<$word>();
                assert_eq!(again.expect("an accepted word is accepted again"), word, "{}", stringify!($word));
            })*
        };
    }
    there_and_back!(EntityName, NodeName, TargetName, Version, Selector, Amount, Percent, Span);
    there_and_back!(Label, NodeOrder, AddressRange, Zone, SnapshotName, StoreEndpoint, ConditionSubject);
    there_and_back!(TargetOrder, ServiceNeed, PolicyStage, Domain, Need, Cron, Window);
    times(text);
}
