//! Applying documents: each object is set as its single operation would set it, on a draft. Only if all of them can be set, the
//! draft is committed: in one transaction if one takes it, otherwise in several. Owns the order, the limits and the answer; what
//! an object is set to is up to its operation.

mod export;
mod filters;
mod object;
mod prune;
mod secrets;
mod set;
mod split;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::apply::{Applied, AppliedObject, ApplyOutcome, ApplyRequest, Document};
use bellwether_core::access::{Identity, ObjectKind, Right};
use bellwether_core::verdict::GuardedChangeset;
use bellwether_core::words::name::Namespace;

pub use self::export::documents;
use self::object::{Object, ObjectId};
use self::set::Session;
use self::split::{Part, Step, split};
use super::{OpError, schedule, sink};
use crate::records::commit::CommitError;
use crate::transactor::{CommitContext, TRIES, Transactor};

/// Applies documents, or answers what that would change.
///
/// # Errors
/// [`OpError`] naming the object; nothing was changed then. [`OpError::Interrupted`] if a part of the transactions was committed.
pub async fn apply(
    transactor: &Transactor,
    namespace: &Namespace,
    who: &Identity,
    request: &ApplyRequest,
) -> Result<Applied, OpError> {
    let objects = read(namespace, request)?;
    for object in &objects {
        // What a dry run would change tells what is there.
        if request.dry_run {
            let what = format!("compare {object}");
            allowed(who, &what, Right::get(object.id.kind()), (&object.id, namespace))?;
        } else {
            for right in object.id.rights() {
                allowed(who, &format!("apply {object}"), right, (&object.id, namespace))?;
            }
            // A cluster makes its profile live, and has its members read it.
            if let Document::Cluster(cluster) = &object.document {
                let profile = cluster.profile.as_deref().unwrap_or(&cluster.name);
                let profile = ObjectId::Profile(bellwether_api::shape::read("profile", profile)?);
                let right = Right::update(ObjectKind::Profile);
                allowed(who, &format!("apply {object}"), right, (&profile, namespace))?;
            }
            of_what_it_names(who, transactor, namespace, object)?;
            if let (Document::Schedule(document), Some(rights)) = (&object.document, who.rights()) {
                schedule::grantable(rights, namespace, &document.workflow, "write a schedule")?;
            }
            if let (Document::Reaction(document), Some(rights)) = (&object.document, who.rights()) {
                schedule::grantable(rights, namespace, &document.workflow, "write a reaction")?;
            }
            if let (Document::Sink(_), Some(rights)) = (&object.document, who.rights()) {
                sink::exportable(rights, namespace)?;
            }
            if object.document.has_version() {
                let start = Right::update_field(ObjectKind::Rollout, "/start");
                allowed(who, &format!("apply {object}"), start, (&object.id, namespace))?;
            }
        }
    }
    let mut apply = Apply { transactor, namespace, who, request, objects, committed: Committed::default() };
    let mut tries = 0;
    loop {
        let before = apply.committed.transactions;
        match apply.attempt().await {
            // A part conflicts with one before it if both write the same profile: that is progress.
            Err(OpError::Commit(CommitError::Conflict { .. })) if apply.committed.transactions > before => {
                tries = 0
            }
            Err(OpError::Commit(CommitError::Conflict { .. })) if tries < TRIES => tries += 1,
            Err(error) => return Err(apply.committed.interrupted(error)),
            Ok(applied) => return Ok(applied),
        }
    }
}

/// An apply, over all its attempts.
struct Apply<'a> {
    transactor: &'a Transactor,
    namespace: &'a Namespace,
    who: &'a Identity,
    request: &'a ApplyRequest,
    objects: Vec<Object>,
    committed: Committed,
}

/// What earlier transactions of an apply changed: an attempt after a conflict finds these objects unchanged or gone.
#[derive(Debug, Default)]
struct Committed {
    answers: BTreeMap<ObjectId, AppliedObject>,
    transactions: u32,
}

impl Committed {
    /// The error, with what was changed before it.
    fn interrupted(&self, error: OpError) -> OpError {
        if self.answers.is_empty() {
            return error;
        }
        OpError::Interrupted { changed: self.answers.len(), error: Box::new(error) }
    }

    fn add(&mut self, steps: &[Step]) {
        self.transactions += 1;
        let changed = steps.iter().filter(|step| step.answer.outcome != ApplyOutcome::Unchanged);
        self.answers.extend(changed.map(|step| (step.id.clone(), step.answer.clone())));
    }

    /// The answers of all steps in the documents' order, followed by the pruned objects.
    fn answer(mut self, steps: Vec<Step>, objects: &[Object], is_dry: bool, planned: usize) -> Applied {
        let mut answers: BTreeMap<ObjectId, AppliedObject> = BTreeMap::new();
        for Step { id, answer, .. } in steps {
            let before = self.answers.remove(&id);
            let answer = match (answer.outcome, before) {
                (ApplyOutcome::Unchanged, Some(before)) => before,
                (_, _) => answer,
            };
            answers.insert(id, answer);
        }
        answers.append(&mut self.answers);
        let mut in_order: Vec<AppliedObject> =
            objects.iter().filter_map(|object| answers.remove(&object.id)).collect();
        in_order.extend(answers.into_values());
        let transactions =
            if is_dry { u32::try_from(planned).unwrap_or(u32::MAX) } else { self.transactions };
        Applied { objects: in_order, dry_run: is_dry, transactions }
    }
}

impl Apply<'_> {
    /// Decides everything on the newest world and commits it. After a conflict, the next attempt continues.
    async fn attempt(&mut self) -> Result<Applied, OpError> {
        // Whoever may only compare must not learn whether a secret is what they guess.
        let keyring = self.transactor.keyring();
        let keyring = if self.request.dry_run { keyring.blind() } else { keyring.clone() };
        let transactor = self.transactor.clone().with_keys(keyring);
        let session = Session::new(&transactor, self.namespace, self.who);
        let steps = self.decide(&session).await?;
        let parts = split(&steps, &session.unchanged())?;
        let (planned, is_dry) = (parts.len(), self.request.dry_run);
        if !is_dry {
            self.commit(&session, &steps, parts).await?;
        }
        Ok(std::mem::take(&mut self.committed).answer(steps, &self.objects, is_dry, planned))
    }

    async fn commit(&mut self, session: &Session, steps: &[Step], parts: Vec<Part>) -> Result<(), OpError> {
        let base = Arc::clone(session.draft.base());
        for Part { changeset, guards, steps: of } in parts {
            let seen = guards.into_iter().collect();
            let by = CommitContext { seen, ..CommitContext::person(self.who.actor()) };
            let commit = self.transactor.commit(&base, self.namespace, by, vec![changeset]).await;
            if let Err(CommitError::Conflict { at }) = &commit {
                self.transactor.after_conflict(&base, *at).await;
            }
            commit?;
            self.committed.add(steps.get(of).unwrap_or_default());
        }
        Ok(())
    }

    /// Sets every object on the draft, in an order in which none is missed by another, and prunes.
    async fn decide(&self, session: &Session) -> Result<Vec<Step>, OpError> {
        let mut order: Vec<&Object> = self.objects.iter().collect();
        order.sort_by_cached_key(|object| (object.rank(), filters::depth(object, &self.objects)));
        let mut steps = Vec::new();
        for object in order {
            let answer = session.apply(object).await?;
            steps.push(Step { id: object.id.clone(), answer, changes: session.draft.take() });
            // Nothing above waits for anything on a draft: other requests are answered between two objects.
            tokio::task::yield_now().await;
        }
        if let Some(labels) = &self.request.prune {
            for id in prune::prunable(&session.fleet(), labels, &self.objects) {
                let note = prune::kept(&id);
                let is_dry = self.request.dry_run || note.is_some();
                let right = if is_dry { Right::get(id.kind()) } else { Right::delete(id.kind()) };
                allowed(self.who, &format!("prune {id}"), right, (&id, self.namespace))?;
                session.prune(&id).await?;
                let changes: GuardedChangeset = session.draft.take();
                steps.push(Step { answer: pruned(&id, self.namespace, note), id, changes });
            }
        }
        self.objects.iter().try_for_each(|object| session.still_fits(object))?;
        for step in &mut steps {
            if let ObjectId::Definition(id) = &step.id {
                step.answer.note = session.lacks(id)?;
            }
        }
        Ok(steps)
    }
}

/// The answer about an object that was pruned, or of which the note says why it was not.
fn pruned(id: &ObjectId, namespace: &Namespace, note: Option<String>) -> AppliedObject {
    AppliedObject {
        object: id.to_string(),
        namespace: Some(namespace.to_string()),
        outcome: if note.is_none() { ApplyOutcome::Pruned } else { ApplyOutcome::Unchanged },
        fields: Vec::new(),
        rollout: None,
        note,
    }
}

/// The objects of the documents: each there once, in this namespace or in all of them, with the labels to prune by.
fn read(namespace: &Namespace, request: &ApplyRequest) -> Result<Vec<Object>, OpError> {
    if request.documents.is_empty() {
        return Err(ShapeError::at("documents", "missing").into());
    }
    let mut names = BTreeSet::new();
    let mut objects = Vec::new();
    for document in &request.documents {
        let object = Object::of(document)?;
        let at = |field: &str, reason: String| Err(ShapeError::at(&format!("{object}: {field}"), reason));
        match document.namespace() {
            Some(_) if document.is_global() => {
                let reason = "namespace and all_namespaces exclude each other";
                at("namespace", reason.to_owned())?;
            }
            Some(other) if other != namespace.as_str() => {
                at("namespace", format!("{other:?} is not {namespace}: one apply changes one namespace"))?;
            }
            Some(_) | None => {}
        }
        let missing = document.labels().and_then(|labels| {
            request.prune.iter().flatten().find(|(key, value)| labels.get(*key) != Some(*value))
        });
        if let Some((key, value)) = missing {
            let reason = format!(
                "missing {key}={value}, which --prune selects by; without it the object is never pruned"
            );
            at("labels", reason)?;
        }
        if !names.insert(object.id.clone()) {
            let (place, reason) = (object.to_string(), "two documents describe it");
            return Err(ShapeError::at(&place, reason).into());
        }
        objects.push(object);
    }
    Ok(objects)
}

/// Refuses an object that newly names another one which its nodes then read or run, to who may not change or run that: by a document as by any
/// other request.
fn of_what_it_names(
    who: &Identity,
    transactor: &Transactor,
    namespace: &Namespace,
    object: &Object,
) -> Result<(), OpError> {
    let world = transactor.world();
    let fleet = world.fleets.get(namespace);
    let (right, names) = if let Document::Cluster(cluster) = &object.document {
        let known = fleet.and_then(|fleet| {
            let known = fleet.clusters.values().find(|kept| kept.value.name.as_str() == cluster.name)?;
            known.value.workflow.as_ref()
        });
        let workflow = cluster.manager_workflow.as_deref();
        let is_news = |workflow: &&str| known.is_none_or(|known| known.as_str() != *workflow);
        (Right::update(ObjectKind::Run), workflow.filter(is_news).into_iter().collect())
    } else if let Document::Entity(entity) = &object.document {
        let mut known = fleet.into_iter().flat_map(|fleet| fleet.entities.keys());
        let is_known = known.any(|known| known.as_str() == entity.name);
        let profile = entity.profile.as_deref().filter(|_| !is_known);
        (Right::update(ObjectKind::Profile), profile.into_iter().collect())
    } else if let (Document::Node(node), ObjectId::Node(name)) = (&object.document, &object.id) {
        let known = fleet.map(|fleet| fleet.profiles_read_by(name)).unwrap_or_default();
        let is_news = |profile: &&str| known.iter().all(|known| known.as_str() != *profile);
        let profiles: Vec<&str> = node.profiles.iter().map(String::as_str).filter(is_news).collect();
        (Right::update(ObjectKind::Profile), profiles)
    } else {
        return Ok(());
    };
    names.into_iter().try_for_each(|name| {
        let request = right.on(Some(name), Some(namespace.as_str()));
        let what = format!("apply {object}");
        who.require(&request).map_err(|_| OpError::Forbidden { what, needed: request.to_string() })
    })
}

/// Refuses an operation on an object without this right.
fn allowed(
    who: &Identity,
    what: &str,
    right: Right,
    (id, namespace): (&ObjectId, &Namespace),
) -> Result<(), OpError> {
    let namespace = (!right.kind.is_global()).then_some(namespace.as_str());
    let request = right.on(Some(id.name()), namespace);
    who.require(&request)
        .map_err(|_| OpError::Forbidden { what: what.to_owned(), needed: request.to_string() })
}
