//! Applying documents: each object is set as its single operation would set it, on a draft, and the draft is committed in
//! one transaction, or not at all. Owns the order, the limits and the answer; what an object is set to is up to its operation.

mod export;
mod object;
mod prune;
mod set;
mod size;
mod version;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::apply::{Applied, AppliedObject, ApplyOutcome, ApplyRequest};
use bellwether_core::access::{Identity, RequiredAccess, authorise};
use bellwether_core::words::name::Namespace;

pub use self::export::documents;
use self::object::Object;
use self::set::Session;
use super::OpError;
use crate::records::commit::CommitError;
use crate::transactor::{CommitContext, TRIES, Transactor};

/// Applies documents, or answers what that would change.
///
/// # Errors
/// [`OpError`] naming the object; nothing was changed then.
pub async fn apply(
    transactor: &Transactor,
    namespace: &Namespace,
    who: &Identity,
    request: &ApplyRequest,
) -> Result<Applied, OpError> {
    let objects = read(namespace, request)?;
    if !request.dry_run {
        for object in &objects {
            allowed(who, &format!("apply {object}"), object.needed())?;
        }
    }
    let mut tries = 0;
    loop {
        let session = Session::new(transactor, namespace, who.actor());
        let answer = decide(&session, &objects, request, who).await?;
        let (changeset, seen) = session.changes();
        size::check(&changeset, answer.objects.len())?;
        if request.dry_run || changeset.writes.is_empty() {
            return Ok(answer);
        }
        tries += 1;
        let by = CommitContext { seen, ..CommitContext::person(who.actor()) };
        let base = Arc::clone(session.draft.base());
        match transactor.commit(&base, namespace, by, vec![changeset]).await {
            Ok(_) => return Ok(answer),
            Err(CommitError::Conflict) if tries < TRIES => {
                transactor.wait_for_revision(base.revision.next()).await
            }
            Err(CommitError::TooLarge) => return Err(size::too_large(answer.objects.len())),
            Err(error) => return Err(error.into()),
        }
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
        let missing =
            request.prune.iter().flatten().find(|(key, value)| document.labels().get(*key) != Some(*value));
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

/// Sets every object on the draft, in an order in which none is missed by another, and prunes; answers in the documents' order.
async fn decide(
    session: &Session,
    objects: &[Object],
    request: &ApplyRequest,
    who: &Identity,
) -> Result<Applied, OpError> {
    let mut order: Vec<(usize, &Object)> = objects.iter().enumerate().collect();
    order.sort_by_key(|(_, object)| object.rank());
    let mut done: Vec<(usize, AppliedObject)> = Vec::new();
    for (place, object) in order {
        done.push((place, session.apply(object).await?));
    }
    done.sort_by_key(|(place, _)| *place);
    let mut applied: Vec<AppliedObject> = done.into_iter().map(|(_, object)| object).collect();
    if let Some(labels) = &request.prune {
        for id in prune::prunable(&session.fleet(), labels, objects) {
            if !request.dry_run {
                allowed(who, &format!("prune {id}"), id.needed_to_delete())?;
            }
            session.prune(&id).await?;
            applied.push(AppliedObject {
                object: id.to_string(),
                namespace: Some(session.namespace.to_string()),
                outcome: ApplyOutcome::Pruned,
                fields: Vec::new(),
                rollout: None,
                note: None,
            });
        }
    }
    Ok(Applied { objects: applied, dry_run: request.dry_run })
}

fn allowed(who: &Identity, what: &str, needed: RequiredAccess) -> Result<(), OpError> {
    authorise(who, needed, None)
        .map_err(|_| OpError::Forbidden { what: what.to_owned(), needed: needed.describe() })
}
