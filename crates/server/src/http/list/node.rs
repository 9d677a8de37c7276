//! A node in a list: the values of its fields, read from its record, report, presence and registrations.

use std::collections::BTreeSet;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::node::{NodeView, PresenceState as PresenceWord};
use bellwether_core::records::node::{Cordon, Node, Presence, PresenceState};
use bellwether_core::words::filter::field::Field;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::filter::{FieldValue, Filter, FilterSubject};
use bellwether_core::words::name::{Category, EntityName, NodeName};
use bellwether_core::words::role_params::ROLE_PARAMS;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::value::{Number, Value};
use bellwether_core::world::fleet::Fleet;

use super::ListRow;

/// A node in the list of a namespace.
pub(crate) struct NodeRow<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) node: &'a Node,
    pub(crate) now: Timestamp,
}

/// The nodes of a namespace that a filter matches, without logical ones and those that were decommissioned.
pub(crate) fn matching<'a>(
    fleet: &'a Fleet,
    filter: &'a Filter,
    now: Timestamp,
) -> impl Iterator<Item = NodeRow<'a>> {
    let rows = fleet.nodes.values().map(move |kept| NodeRow { fleet, node: &kept.value, now });
    rows.filter(|row| row.node.decommissioned.is_none() && row.node.logical.is_none())
        .filter(|row| filter.matches(row))
}

/// The nodes that a filter matches now.
pub(crate) fn matching_names(
    fleet: &Fleet,
    filter: &str,
    now: Timestamp,
) -> Result<BTreeSet<NodeName>, ShapeError> {
    let filter = Filter::parse(filter, &NODES).map_err(|error| ShapeError::misread("filter", &error))?;
    Ok(matching(fleet, &filter, now).map(|row| row.node.name.clone()).collect())
}

impl ListRow for NodeRow<'_> {
    type View = NodeView;

    fn id(&self) -> String {
        self.node.name.to_string()
    }

    fn view(&self) -> Option<NodeView> {
        view(self.fleet, &self.node.name)
    }
}

impl FilterSubject for NodeRow<'_> {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        let (node, key) = (self.node, field.key());
        let report = || self.fleet.reports.get(&node.name).map(|kept| &kept.value);
        let flag = |is: bool| Some(FieldValue::Value(Value::Bool(is)));
        let owned = |text: String| Some(FieldValue::Value(Value::Text(text.into())));
        match field.name() {
            "name" => Some(FieldValue::Text(node.name.as_str())),
            "label" => node.labels.get(key).map(FieldValue::Text),
            "version" => {
                let entity = report()?.entities.get(&EntityName::parse(key).ok()?)?;
                owned(entity.running.as_ref()?.to_string())
            }
            "assigned" => {
                let content = self.fleet.contents.get(&node.name)?;
                owned(content.entities.get(&EntityName::parse(key).ok()?)?.version.to_string())
            }
            "status" => {
                let status = report()?.statuses.get(&Category::parse(key).ok()?)?;
                Some(FieldValue::Text(status.shown()))
            }
            "cluster" => owned(self.fleet.cluster_of(&node.name)?.name.to_string()),
            "param" if ROLE_PARAMS.contains(&key) => {
                self.fleet.role_params(&node.name).remove(key).map(FieldValue::Value)
            }
            "service" => Some(FieldValue::Value(self.services())),
            "agent_version" => report().map(|report| FieldValue::Text(&report.agent_version)),
            "presence" => {
                let presence = self.fleet.presences.get(&node.name);
                let state = presence.map_or(PresenceState::Never, |kept| kept.value.contact);
                Some(FieldValue::Text(PresenceWord::from(state).as_str()))
            }
            "logical" => flag(node.logical.is_some()),
            "cordoned" => flag(node.cordon.is_some()),
            "drained" => flag(node.cordon.as_ref().is_some_and(Cordon::is_drained)),
            "runnable" => flag(self.fleet.not_runnable.get(&node.name).is_none()),
            "paused" => flag(self.fleet.holds(node)),
            "decommissioned" => flag(node.decommissioned.is_some()),
            "age" => Some(self.since(node.joined_at)),
            "last_report" => report().map(|report| self.since(report.received_at)),
            _ => self.fleet.data_of(&node.name).value(field).map(FieldValue::Value),
        }
    }
}

impl NodeRow<'_> {
    fn since(&self, time: Timestamp) -> FieldValue<'static> {
        FieldValue::Value(Value::Number(Number::integer(self.now.since(time).as_millis())))
    }

    /// The names of the services with an instance on the node, each once.
    fn services(&self) -> Value {
        let registrations = self.fleet.registrations.get(&self.node.name);
        let instances = registrations.into_iter().flat_map(|kept| kept.value.instances.keys());
        let mut names: Vec<Value> =
            instances.map(|(service, _)| Value::Text(service.as_str().into())).collect();
        names.dedup();
        Value::List(names)
    }
}

/// One node with its report, presence and statuses, without its facts.
pub(crate) fn view(fleet: &Fleet, name: &NodeName) -> Option<NodeView> {
    let node = &fleet.nodes.get(name)?.value;
    let never = Presence { contact: PresenceState::Never, since: node.joined_at, server: None };
    let presence = fleet.presences.get(name).map_or(never, |kept| (*kept.value).clone());
    let report = fleet.reports.get(name).map(|kept| &kept.value);
    let running = report.into_iter().flat_map(|report| &report.entities);
    // A run of a workflow is nothing that runs on: `run list` has it.
    let is_run = |name: &EntityName| fleet.runs.contains_key(name);
    let running = running
        .filter(|(name, _)| !is_run(name))
        .filter_map(|(name, entity)| Some((name.to_string(), entity.running.as_ref()?.to_string())));
    let assigned = fleet.contents.get(name).into_iter().flat_map(|content| &content.entities);
    let statuses = report.into_iter().flat_map(|report| &report.statuses);
    let mut shown = v1::node::Node::from(&**node);
    if let Some(v1::node::Drain::Waiting { reason, .. }) =
        shown.cordon.as_mut().and_then(|cordon| cordon.drain.as_mut())
    {
        *reason = fleet.why_drain_waits(name);
    }
    Some(NodeView {
        node: shown,
        presence: (&presence).into(),
        pauses: fleet.pauses_of(node).map(v1::pause::Pause::from).collect(),
        not_runnable: fleet.not_runnable.get(name).map(|kept| (&*kept.value).into()),
        order_refusal: fleet.order_refusal(name).map(str::to_owned),
        running: running.collect(),
        assigned: assigned.map(|(name, assigned)| (name.to_string(), assigned.version.to_string())).collect(),
        statuses: statuses.map(|(name, status)| (name.to_string(), status.into())).collect(),
        agent_version: report.map(|report| report.agent_version.clone()),
        reported_at_ms: report.map(|report| report.received_at.as_millis()),
        unrecorded_members: fleet
            .all_unrecorded_on(name)
            .map(|(of, member)| (of.to_string(), member.into()))
            .collect(),
        facts: None,
        probes: None,
    })
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::filter::nodes::NODES;
    use bellwether_core::words::filter::read_field;
    use bellwether_core::words::label::Labels;

    use super::*;

    #[test]
    fn every_field_without_a_key_has_a_value() {
        let fleet = Fleet::default();
        let node = Node {
            name: "web-1".parse().unwrap(),
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
            services: vec![bellwether_core::access::NamePattern::Any],
        };
        let row = NodeRow { fleet: &fleet, node: &node, now: Timestamp::from_millis(5_000) };
        for spec in NODES.fields.iter().filter(|spec| !spec.is_keyed) {
            let reported = ["agent_version", "last_report", "cluster"].contains(&spec.name);
            let value = row.value(&read_field(spec.name, &NODES).unwrap());
            assert_eq!(value.is_some(), !reported, "{}", spec.name);
        }
    }
}
