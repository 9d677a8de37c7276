//! Indexes by entity: when each was touched, which nodes are its targets, its profile, what it needs, whether it has hooks to
//! ask, and the numbered versions it names.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::records::entity::{Entity, EntityKind};
use crate::words::counter::Revision;
use crate::words::name::{EntityName, NodeName, ProfileName, ServiceName, TargetName};
use crate::world::fleet::Fleet;
use crate::world::version_uses::VersionUser;

impl Fleet {
    /// What a decision about an entity reads has changed; others may need it as a service.
    pub(super) fn touch(&mut self, entity: &EntityName, revision: Revision) {
        self.touched.touch(entity, revision);
        self.touch_those_that_need(entity, revision);
    }

    /// The instances of a service changed.
    pub(super) fn service_changed(&mut self, service: &ServiceName, revision: Revision) {
        if let Ok(name) = EntityName::parse(service.as_str()) {
            self.touch_those_that_need(&name, revision);
        }
    }

    fn touch_those_that_need(&mut self, service: &EntityName, revision: Revision) {
        for entity in self.entities_that_need.get(service) {
            self.touched.touch(entity, revision);
        }
    }

    /// Data stores, the members of a cluster, or the presence of a node changed: rollouts that read data stores may do something else.
    pub(super) fn touch_those_with_stores(&mut self, revision: Revision) {
        for entity in &self.entities_with_stores {
            self.touched.touch(entity, revision);
        }
    }

    /// An entity was added, removed, or changed; its board is still that of the former one.
    pub(super) fn index_entity(&mut self, name: &EntityName) {
        let before = self.boards.get(name).map(|board| board.shared_entity());
        let now = self.entities.get(name).map(|kept| kept.value.in_force());
        if now.as_ref().is_some_and(|entity| entity.policy.store.is_some()) {
            self.entities_with_stores.insert_mut(name.clone());
        } else {
            self.entities_with_stores.remove_mut(name);
        }
        for (entity, is_new) in
            before.iter().map(|entity| (entity, false)).chain(now.iter().map(|entity| (entity, true)))
        {
            for need in &entity.policy.needs {
                if is_new {
                    self.entities_that_need.insert(need.service.clone(), name);
                } else {
                    self.entities_that_need.remove(&need.service, name);
                }
            }
            if let Some(profile) = profile_of(entity) {
                if is_new {
                    self.entities_of_profile.insert(profile.clone(), name);
                } else {
                    self.entities_of_profile.remove(profile, name);
                }
            }
        }
    }

    /// An entity, its progress or its rollout changed, and its board with it.
    pub(super) fn refresh_progress_indexes(&mut self, name: &EntityName, revision: Revision) {
        self.index_run(name, revision);
        let board = self.boards.get(name);
        let asks = board.is_some_and(|board| {
            board.entity().policy.asks_hooks() && board.rollout().is_some_and(|rollout| !rollout.is_over())
        });
        if asks {
            self.hooked.insert_mut(name.clone());
        } else {
            self.hooked.remove_mut(name);
        }
        let wanted = board.and_then(|board| board.entity().wanted.as_ref()).map(|wanted| &wanted.version);
        let moving = board.into_iter().flat_map(|board| board.progress().moving());
        let rolled_out = board.and_then(|board| board.rollout()).map(|rollout| &rollout.version);
        self.version_uses
            .set(VersionUser::Entity(name.clone()), wanted.into_iter().chain(moving).chain(rolled_out));
    }

    /// A node was added, removed, or changed its labels: other entities may have it as a target. Costs time in proportion to all
    /// entities.
    pub(super) fn membership_changed(&mut self, name: &NodeName, revision: Revision) {
        if self.loading {
            return;
        }
        let of_nodes = self.boards.iter().filter(|(_, board)| board.entity().source.is_nodes());
        let entities: Vec<EntityName> = of_nodes.map(|(entity, _)| entity.clone()).collect();
        self.observe_node(name, entities, revision);
    }

    /// Observes a node as a target of these entities.
    pub(super) fn observe_node(&mut self, name: &NodeName, entities: Vec<EntityName>, revision: Revision) {
        let target = TargetName::from(name);
        for entity in entities {
            let observation = self.observation_of_node(&entity, name);
            let Some(board) = self.boards.get_mut(&entity) else { continue };
            let before = board.target(&target).and_then(|target| target.observation);
            if before == observation.as_ref() {
                continue;
            }
            match (before.is_some(), observation.is_some()) {
                (false, true) => self.entities_of_node.insert(name.clone(), &entity),
                (true, false) => self.entities_of_node.remove(name, &entity),
                (true, true) | (false, false) => {}
            }
            board.fold_observation(&target, observation);
            self.touch(&entity, revision);
        }
    }

    /// The board of an entity is removed or replaced.
    pub(super) fn forget_targets(&mut self, name: &EntityName) {
        let Some(board) = self.boards.get(name).filter(|board| board.entity().source.is_nodes()) else {
            return;
        };
        let members = board.targets().filter(|target| target.observation.is_some());
        for node in members.filter_map(|target| NodeName::parse(target.name.as_str()).ok()) {
            self.entities_of_node.remove(&node, name);
        }
    }
}

fn profile_of(entity: &Arc<Entity>) -> Option<&ProfileName> {
    match &entity.kind {
        EntityKind::Profile(profile) => Some(profile),
        EntityKind::Version | EntityKind::Action(_) | EntityKind::Workflow(_) => None,
    }
}
