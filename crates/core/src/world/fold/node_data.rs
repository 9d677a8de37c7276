//! Folds what is recorded of nodes besides their labels: facts, params and profiles.

use super::kept;
use crate::records::facts::NodeFacts;
use crate::records::node_params::NodeParams;
use crate::words::counter::Revision;
use crate::words::name::NodeName;
use crate::words::node_data::NodeData;
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_facts(&mut self, facts: NodeFacts, revision: Revision) {
        let name = facts.node.clone();
        self.facts.insert_mut(name.clone(), kept(facts, revision));
        self.data_changed(&name, revision);
    }

    pub(super) fn delete_facts(&mut self, name: &NodeName, revision: Revision) {
        self.facts.remove_mut(name);
        self.data_changed(name, revision);
    }

    pub(super) fn put_node_params(&mut self, params: NodeParams, revision: Revision) {
        let name = params.node.clone();
        self.forget_reader(&name);
        for profile in &params.profiles {
            self.readers_of_profile.insert(profile.clone(), &name);
        }
        self.node_params.insert_mut(name.clone(), kept(params, revision));
        self.data_changed(&name, revision);
    }

    pub(super) fn delete_node_params(&mut self, name: &NodeName, revision: Revision) {
        self.forget_reader(name);
        self.node_params.remove_mut(name);
        self.data_changed(name, revision);
    }

    fn forget_reader(&mut self, node: &NodeName) {
        let Some(before) = self.node_params.get(node).map(|kept| kept.value.clone()) else { return };
        for profile in &before.profiles {
            self.readers_of_profile.remove(profile, node);
        }
    }

    /// Facts, params or profiles of a node changed: other selectors may match it.
    fn data_changed(&mut self, name: &NodeName, revision: Revision) {
        let facts = self.facts.get(name).map(|kept| kept.value.facts.clone()).unwrap_or_default();
        let params = self.node_params.get(name).map(|kept| &kept.value);
        let profiles = params.map(|params| params.profiles.clone()).unwrap_or_default();
        let params = params.map(|params| params.values.clone()).unwrap_or_default();
        let data = NodeData::new(facts, params, profiles);
        if data == *self.data_of(name) {
            return;
        }
        self.counting(name, |fleet| {
            if data.is_empty() {
                fleet.data.remove_mut(name);
            } else {
                fleet.data.insert_mut(name.clone(), data);
            }
        });
        self.recorded_changed(name, revision);
        self.candidate_changed(name, revision);
    }
}
