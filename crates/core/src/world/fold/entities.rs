//! Folds records of entities: the entity, its progress, rollouts, targets, controllers and hook answers.

use super::kept;
use crate::records::entity::Entity;
use crate::records::external::{Controllers, ExternalTarget};
use crate::records::hook_answers::HookAnswers;
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::records::target::TargetState;
use crate::words::counter::{Revision, RolloutNumber};
use crate::words::name::{EntityName, TargetName};
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_entity(&mut self, entity: Entity, revision: Revision) {
        let name = entity.name.clone();
        self.entities.insert_mut(name.clone(), kept(entity, revision));
        self.entity_changed(&name, revision);
    }

    pub(super) fn delete_entity(&mut self, name: &EntityName, revision: Revision) {
        self.entities.remove_mut(name);
        self.entity_changed(name, revision);
    }

    pub(super) fn put_progress(&mut self, name: &EntityName, progress: Progress, revision: Revision) {
        self.progresses.insert_mut(name.clone(), kept(progress, revision));
        self.progress_changed(name, revision);
    }

    pub(super) fn delete_progress(&mut self, name: &EntityName, revision: Revision) {
        self.progresses.remove_mut(name);
        self.progress_changed(name, revision);
    }

    pub(super) fn put_rollout(&mut self, name: &EntityName, rollout: Rollout, revision: Revision) {
        self.rollouts.insert_mut((name.clone(), rollout.number), kept(rollout, revision));
        self.progress_changed(name, revision);
    }

    pub(super) fn delete_rollout(&mut self, name: &EntityName, number: RolloutNumber, revision: Revision) {
        self.rollouts.remove_mut(&(name.clone(), number));
        self.progress_changed(name, revision);
    }

    pub(super) fn put_target(
        &mut self,
        entity: &EntityName,
        target: &TargetName,
        state: TargetState,
        revision: Revision,
    ) {
        self.targets.insert_mut((entity.clone(), target.clone()), revision);
        self.target_changed(entity, target, Some(state), revision);
    }

    pub(super) fn delete_target(&mut self, entity: &EntityName, target: &TargetName, revision: Revision) {
        self.targets.remove_mut(&(entity.clone(), target.clone()));
        self.target_changed(entity, target, None, revision);
    }

    pub(super) fn put_external(
        &mut self,
        entity: &EntityName,
        target: &TargetName,
        external: ExternalTarget,
        revision: Revision,
    ) {
        let key = (entity.clone(), target.clone());
        let before = self.externals.get(&key).cloned();
        self.externals.insert_mut(key, kept(external, revision));
        self.external_changed(entity, target, before.as_ref(), revision);
    }

    pub(super) fn delete_external(&mut self, entity: &EntityName, target: &TargetName, revision: Revision) {
        let key = (entity.clone(), target.clone());
        let before = self.externals.get(&key).cloned();
        self.externals.remove_mut(&key);
        self.external_changed(entity, target, before.as_ref(), revision);
    }

    pub(super) fn put_controllers(
        &mut self,
        name: &EntityName,
        controllers: Controllers,
        revision: Revision,
    ) {
        self.controllers.insert_mut(name.clone(), kept(controllers, revision));
        self.note_orphans(name);
    }

    pub(super) fn delete_controllers(&mut self, name: &EntityName) {
        self.controllers.remove_mut(name);
        self.note_orphans(name);
    }

    pub(super) fn put_answers(&mut self, name: &EntityName, answers: HookAnswers, revision: Revision) {
        let before = self.answers.get(name).cloned();
        self.answers.insert_mut(name.clone(), kept(answers, revision));
        self.answers_changed(name, before.as_ref(), revision);
    }

    pub(super) fn delete_answers(&mut self, name: &EntityName, revision: Revision) {
        let before = self.answers.get(name).cloned();
        self.answers.remove_mut(name);
        self.answers_changed(name, before.as_ref(), revision);
    }
}
