//! One apply on its draft: sets objects by their own operations, and gives them their labels.

use std::sync::{Mutex, PoisonError};

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::apply::{
    AppliedObject, ApplyOutcome, Document, EnsembleDocument, EntityDocument, FieldChange, FreezeDocument,
    NodeDocument, ProfileDocument, ReactionDocument, ScheduleDocument,
};
use bellwether_api::v1::rollout::NewRollout;
use bellwether_api::v1::workflow::TaskSpec;
use bellwether_core::access::Identity;
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::entity::EntityKind;
use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{
    Actor, EnsembleName, EntityName, FreezeName, Namespace, NodeName, ProfileName, ReactionName, ScheduleName,
};
use bellwether_core::words::plural::plural;
use bellwether_core::words::version::Version;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::version_resolution;

use super::object::{Object, ObjectId};
use super::{secrets, version};
use crate::ops::cluster::{self, ClusterScope};
use crate::ops::definition::{self, DefinitionContent, DefinitionScope};
use crate::ops::ensemble::{self, EnsembleScope};
use crate::ops::field_change;
use crate::ops::filter::FilterScope;
use crate::ops::freeze::FreezeNamespace;
use crate::ops::params::{ParamsChange, ParamsRequest};
use crate::ops::reaction::{self, ReactionScope};
use crate::ops::schedule::{self, ScheduleScope};
use crate::ops::scope::{EntityScope, NodeScope, ProfileScope, SlotScope};
use crate::ops::sink::{self, SinkScope};
use crate::ops::{OpError, entity, event, filter, freeze, node_params, param, pause, profile, rollout, slot};
use crate::transactor::{Draft, Transactor};

/// One attempt of an apply.
pub(super) struct Session {
    pub(super) transactor: Transactor,
    pub(super) draft: Draft,
    pub(super) namespace: Namespace,
    pub(super) who: Identity,
    pub(super) actor: Actor,
    /// The objects that stay as they are.
    unchanged: Mutex<Vec<AnyKey>>,
}

/// What setting an object came to, besides its fields.
#[derive(Debug, Default)]
struct Done {
    rollout: Option<String>,
    note: Option<String>,
}

impl Session {
    /// An apply that has not changed anything yet.
    pub(super) fn new(transactor: &Transactor, namespace: &Namespace, who: &Identity) -> Self {
        let (transactor, draft) = transactor.draft();
        let (namespace, unchanged) = (namespace.clone(), Mutex::default());
        Self { transactor, draft, namespace, who: who.clone(), actor: who.actor(), unchanged }
    }

    /// The namespace with all changes so far.
    pub(super) fn fleet(&self) -> Fleet {
        self.draft.world().fleets.get(&self.namespace).cloned().unwrap_or_default()
    }

    /// The objects that stay as they are.
    pub(super) fn unchanged(&self) -> Vec<AnyKey> {
        self.unchanged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets one object, unless it is as it is to be.
    pub(super) async fn apply(&self, object: &Object) -> Result<AppliedObject, OpError> {
        let (id, saved) = (&object.id, self.draft.save());
        let (world, fleet) = (self.draft.world(), self.fleet());
        let before = id.current(&world, &fleet);
        let done = self.set(object).await.map_err(|error| in_object(object, error))?;
        let after = id.current(&self.draft.world(), &self.fleet());
        let mut fields = field_change::between(before.as_ref(), after.as_ref());
        fields.extend(self.in_force_again(id, &fleet));
        fields.extend(secrets::changes(&secrets::of(id, &fleet), &secrets::of(id, &self.fleet())));
        let outcome = match (&before, &after) {
            (None, Some(_)) => ApplyOutcome::Created,
            _ if fields.is_empty() => ApplyOutcome::Unchanged,
            (Some(_) | None, _) => ApplyOutcome::Changed,
        };
        let done = if outcome == ApplyOutcome::Unchanged {
            self.draft.restore(saved);
            self.unchanged.lock().unwrap_or_else(PoisonError::into_inner).push(id.key());
            Done::default()
        } else {
            done
        };
        let namespace = (!object.document.is_global()).then(|| self.namespace.to_string());
        let (rollout, note) = (done.rollout, done.note);
        Ok(AppliedObject { object: id.to_string(), namespace, outcome, fields, rollout, note })
    }

    /// Refuses a declared param that a value does not fit, now that all objects are set.
    pub(super) fn still_fits(&self, object: &Object) -> Result<(), OpError> {
        let ObjectId::Param(key) = &object.id else { return Ok(()) };
        let fits = param::still_fits((&self.namespace, &self.fleet()), &self.who, key);
        fits.map_err(|error| in_object(object, error))
    }

    /// A freeze that ended is set again, even if nothing else about it changes.
    fn in_force_again(&self, id: &ObjectId, fleet: &Fleet) -> Option<FieldChange> {
        let base = self.draft.base();
        let old = match id {
            ObjectId::Freeze(name) => fleet.freezes.get(name),
            ObjectId::GlobalFreeze(name) => base.freezes.get(name),
            ObjectId::Pause(_)
            | ObjectId::Cluster(_)
            | ObjectId::Ensemble(_)
            | ObjectId::Entity(_)
            | ObjectId::Schedule(_)
            | ObjectId::Reaction(_)
            | ObjectId::Sink(_)
            | ObjectId::Slot(_)
            | ObjectId::Definition(_)
            | ObjectId::Node(_)
            | ObjectId::Profile(_)
            | ObjectId::Filter(_)
            | ObjectId::Param(_) => None,
        };
        old.filter(|kept| !kept.value.is_in_force(self.transactor.now())).map(|_| FieldChange {
            field: "in force".to_owned(),
            old: Some("no, it ended".to_owned()),
            new: Some("yes".to_owned()),
        })
    }

    async fn set(&self, object: &Object) -> Result<Done, OpError> {
        let (transactor, namespace, actor) = (&self.transactor, &self.namespace, &self.actor);
        let (events, mut done) = (self.draft.events(), Done::default());
        match (&object.id, &object.document) {
            (ObjectId::Cluster(name), Document::Cluster(document)) => {
                let scope = ClusterScope { namespace, name, actor, only_at: None };
                cluster::set(transactor, scope, &document.spec()).await?;
            }
            (ObjectId::Ensemble(name), Document::Ensemble(document)) => {
                done.note = self.set_ensemble(name, document).await?;
            }
            (ObjectId::Entity(name), Document::Entity(document)) => {
                done.note = entity::set(transactor, namespace, actor, name, &document.spec()).await?;
            }
            (ObjectId::Filter(name), Document::Filter(document)) => {
                let may_read = filter::readable(&self.who, namespace);
                let scope = FilterScope { namespace, name, actor, may_read: &may_read, only_at: None };
                filter::set(transactor, scope, &document.spec()).await?;
            }
            (ObjectId::Freeze(name) | ObjectId::GlobalFreeze(name), Document::Freeze(document)) => {
                done.note = self.set_freeze(name, document).await?;
            }
            (ObjectId::Pause(name), Document::Pause(document)) => {
                pause::put(transactor, namespace, actor, name, &document.spec()).await?;
                done.note = self.paused(&object.id);
            }
            (ObjectId::Profile(name), Document::Profile(document)) => {
                self.set_profile(name, document).await?
            }
            (ObjectId::Node(name), Document::Node(document)) => self.set_node(name, document).await?,
            (ObjectId::Param(key), Document::Param(document)) => {
                param::declare(transactor, (namespace, &self.who), key, &document.spec()).await?;
            }
            (ObjectId::Definition(id), document) => self.define(id, document).await?,
            (ObjectId::Reaction(name), Document::Reaction(document)) => {
                done.note = self.set_reaction(name, document).await?;
            }
            (ObjectId::Sink(name), Document::Sink(document)) => {
                sink::set(transactor, SinkScope::of(namespace, name, actor), &document.spec()).await?;
            }
            (ObjectId::Schedule(name), Document::Schedule(document)) => {
                done.note = self.set_schedule(name, document).await?;
            }
            (ObjectId::Slot(name), Document::Slot(document)) => {
                let scope = SlotScope { namespace, slot: name, actor };
                slot::set(transactor, scope, &document.spec()).await?;
            }
            (id, document) => {
                return Err(
                    ShapeError::at(&id.to_string(), format!("not a valid {}", document.kind())).into()
                );
            }
        }
        self.label(object, events);
        if let (ObjectId::Entity(name), Document::Entity(document)) = (&object.id, &object.document) {
            done.rollout = self.request(name, document).await?;
        }
        Ok(done)
    }

    /// What a task, a stage or a workflow names that does not exist, now that all objects are set.
    pub(super) fn lacks(&self, id: &DefinitionId) -> Result<Option<String>, OpError> {
        let fleet = self.fleet();
        let missing =
            if fleet.definitions.contains_key(id) { definition::missing(&fleet, id)? } else { vec![] };
        Ok((!missing.is_empty()).then(|| format!("no run starts until there is {}", missing.join(", "))))
    }

    /// Sets a task, a stage or a workflow.
    async fn define(&self, id: &DefinitionId, document: &Document) -> Result<(), OpError> {
        let (content, reason) = match document {
            Document::Task(task) => (self.task(id, &task.spec())?, &task.reason),
            Document::Stage(stage) => (definition::stage(&stage.spec())?, &stage.reason),
            Document::Workflow(workflow) => {
                (definition::workflow(id.name(), &workflow.spec())?, &workflow.reason)
            }
            Document::Cluster(_)
            | Document::Ensemble(_)
            | Document::Entity(_)
            | Document::Filter(_)
            | Document::Freeze(_)
            | Document::Node(_)
            | Document::Param(_)
            | Document::Pause(_)
            | Document::Profile(_)
            | Document::Schedule(_)
            | Document::Reaction(_)
            | Document::Sink(_)
            | Document::Slot(_) => {
                return Err(
                    ShapeError::at(&id.to_string(), format!("not a valid {}", document.kind())).into()
                );
            }
        };
        let scope = DefinitionScope { namespace: &self.namespace, id, actor: &self.actor };
        definition::set(&self.transactor, scope, &content, reason).await?;
        Ok(())
    }

    /// The content of a task, if its author has the claims that it grants, or grants nothing anew.
    fn task(&self, id: &DefinitionId, spec: &TaskSpec) -> Result<DefinitionContent, OpError> {
        let content = definition::task(spec)?;
        let fleet = self.fleet();
        let before = fleet.definitions.get(id).map(|kept| &kept.value.content);
        if let (false, Some(rights)) = (content.is(before), self.who.rights()) {
            definition::grantable(rights, &self.namespace, spec)?;
        }
        Ok(content)
    }

    /// Sets the params of a profile and whether they reach nodes at once, which they do if a cluster shares it.
    async fn set_profile(&self, name: &ProfileName, document: &ProfileDocument) -> Result<(), OpError> {
        let (transactor, namespace, actor) = (&self.transactor, &self.namespace, &self.actor);
        let scope = ProfileScope { namespace, profile: name, actor, only_at: None };
        let spec = document.spec();
        let (change, why) = (ParamsChange::All(&spec), &spec.reason);
        profile::change(transactor, scope, ParamsRequest { change, who: &self.who, why }).await?;
        let live = document.live || profile::is_shared(&self.fleet(), name);
        profile::set_live(transactor, scope, live, &spec.reason).await?;
        Ok(())
    }

    /// Sets the params of a node and the profiles that it reads.
    async fn set_node(&self, name: &NodeName, document: &NodeDocument) -> Result<(), OpError> {
        let scope = NodeScope { namespace: &self.namespace, node: name, actor: &self.actor };
        let (spec, profiles) = (document.params_spec(), document.profiles_spec());
        let (change, why) = (ParamsChange::All(&spec), &spec.reason);
        let request = ParamsRequest { change, who: &self.who, why };
        node_params::change(&self.transactor, scope, None, request).await?;
        node_params::read_profiles(&self.transactor, scope, None, &profiles).await?;
        Ok(())
    }

    /// Sets an ensemble; answers what may not be meant.
    async fn set_ensemble(
        &self,
        name: &EnsembleName,
        document: &EnsembleDocument,
    ) -> Result<Option<String>, OpError> {
        let (namespace, actor) = (&self.namespace, &self.actor);
        let scope = EnsembleScope { namespace, name, actor, only_at: None };
        let (ensemble, _) = ensemble::set(&self.transactor, scope, &document.spec()).await?;
        Ok(ensemble::warning(&self.fleet(), &ensemble))
    }

    /// Sets a reaction; answers what it lacks so that no run would start, and what it is warned of.
    async fn set_reaction(
        &self,
        name: &ReactionName,
        document: &ReactionDocument,
    ) -> Result<Option<String>, OpError> {
        let (namespace, actor) = (&self.namespace, &self.actor);
        let scope = ReactionScope { namespace, name, actor, only_at: None };
        let (reaction, _) = reaction::set(&self.transactor, scope, &document.spec()).await?;
        Ok(reaction::note(&self.fleet(), &reaction))
    }

    /// Sets a schedule; answers what it lacks so that no run would start.
    async fn set_schedule(
        &self,
        name: &ScheduleName,
        document: &ScheduleDocument,
    ) -> Result<Option<String>, OpError> {
        let (namespace, actor) = (&self.namespace, &self.actor);
        let scope = ScheduleScope { namespace, name, actor, only_at: None };
        let (schedule, _) = schedule::set(&self.transactor, scope, &document.spec()).await?;
        Ok(schedule::lacks(&self.fleet(), &schedule.workflow, &schedule.policy))
    }

    async fn set_freeze(
        &self,
        name: &FreezeName,
        document: &FreezeDocument,
    ) -> Result<Option<String>, OpError> {
        let place = match document.all_namespaces {
            true => FreezeNamespace::Everywhere,
            false => FreezeNamespace::In(self.namespace.clone()),
        };
        let (view, _) = freeze::put(&self.transactor, &place, &self.actor, name, &document.spec()).await?;
        Ok(view.hint)
    }

    fn paused(&self, id: &ObjectId) -> Option<String> {
        let ObjectId::Pause(name) = id else { return None };
        let fleet = self.fleet();
        let pause = &fleet.pauses.get(name)?.value;
        let active = fleet.nodes.values().filter(|node| node.value.decommissioned.is_none());
        let held = active.filter(|node| pause.holds(&node.value, fleet.data_of(&node.value.name))).count();
        Some(format!("covers {} now, and those that {} matches later", plural(held, "node"), pause.nodes))
    }

    /// Gives an object its labels. That is an event of its own if nothing else was said about it, after `events`.
    fn label(&self, object: &Object, events: usize) {
        let (world, fleet) = (self.draft.world(), self.fleet());
        let Some(record) = object.id.labelled(&world, &fleet, &object.labels) else { return };
        let labels: Vec<String> = object.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let cause =
            format!("its labels are {}", if labels.is_empty() { "none".into() } else { labels.join(", ") });
        let change_event = event(object.id.labelled_event(), object.to_string(), cause);
        let events = if self.draft.events() == events { vec![change_event] } else { Vec::new() };
        let changeset = Changeset { writes: vec![Write::put(record)], events };
        self.draft.collect(&self.namespace, changeset.into());
    }

    /// Requests the version that an entity is to be at, unless it is; answers the one that was requested.
    async fn request(&self, name: &EntityName, document: &EntityDocument) -> Result<Option<String>, OpError> {
        let Some(asked) = &document.version else { return Ok(None) };
        let asked: Version = bellwether_api::shape::read("version", asked)?;
        let fleet = self.fleet();
        let (entity, _) = rollout::find(&fleet, name)?;
        if let EntityKind::Action(action) = &entity.kind {
            let reason = format!(
                "an entity of action {action} has runs, which no document starts; \
                 leave it out, and use: bellwether rollout start {name}"
            );
            return Err(ShapeError::at("version", reason).into());
        }
        let version = version_resolution::resolve(&fleet, &entity, Some(&asked))?;
        if version::requested(&fleet, &entity).as_ref() == Some(&version) {
            return Ok(None);
        }
        let reason = document.reason.clone();
        let scope = EntityScope { namespace: &self.namespace, entity: name, actor: &self.actor };
        let request = NewRollout { version: Some(version.to_string()), reason, ..NewRollout::default() };
        let started = rollout::start(&self.transactor, scope, false, request).await;
        started?;
        Ok(Some(version.to_string()))
    }
}

/// The error of an operation, with the object it is about.
fn in_object(object: &Object, error: OpError) -> OpError {
    match error {
        OpError::Invalid(error) => {
            OpError::Invalid(ShapeError { place: format!("{object}: {}", error.place), ..error })
        }
        OpError::Refused { reason, hint } => {
            OpError::Refused { reason: format!("apply {object}: {reason}"), hint }
        }
        OpError::Moved { reason, hint } => {
            OpError::Refused { reason: format!("apply {object}: {reason}"), hint: Some(hint) }
        }
        OpError::NotFound(what) => {
            OpError::Refused { reason: format!("apply {object}: {what} does not exist"), hint: None }
        }
        other @ (OpError::Exists { .. }
        | OpError::Differs { .. }
        | OpError::Forbidden { .. }
        | OpError::Ungrantable { .. }
        | OpError::JoinToken(_)
        | OpError::Keyring(_)
        | OpError::Pki(_)
        | OpError::Random(_)
        | OpError::Interrupted { .. }
        | OpError::Commit(_)) => other,
    }
}
