//! The audit log over HTTP: what is recorded of a request, and reading the log.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use bellwether_api::list::JsonRow;
use bellwether_api::list::tables::AUDIT;
use bellwether_api::paths;
use bellwether_api::problem::Code;
use bellwether_api::v1::audit::{AuditEntry, AuditOutcome};
use bellwether_core::access::{Denied, Identity, RequiredAccess, Verb};
use bellwether_core::records::freeze::EMERGENCY_STOP;
use http::Method;
use tokio::time::Instant;

use super::input::QueryParams;
use super::list::{ListAnswer, ListQuery};
use super::listen::Peer;
use super::problem::Failure;
use super::state::AppState;
use crate::metrics::ShownCredential;

/// A route, as far as it decides whether a request is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditedRoute<'a> {
    pub(super) path: &'static str,
    pub(super) need: RequiredAccess,
    /// Name and namespace of the object in the path.
    pub(super) object: (Option<&'a str>, Option<&'a str>),
}

impl AuditedRoute<'_> {
    /// Whether it reads the values of secrets, or may change something on behalf of a person, a program or a machine that joins. What nodes report of themselves, many
    /// times a minute, is none of this.
    pub(super) fn changes(&self, method: &Method, identity: &Identity) -> bool {
        let is_read = *method == Method::GET || self.path == paths::ACCESS_REVIEW;
        let reads = self.need.right().is_some_and(|right| right.verb == Verb::Get);
        let is_own = matches!(identity, Identity::Node(_));
        let reveals = self.need.right().is_some_and(|right| right.verb == Verb::Reveal);
        let issues = [paths::RENEW, paths::MEMBER_CERTIFICATE, paths::MEMBER_KEYS, paths::OSD_KEYS]
            .contains(&self.path);
        let changes = !is_read && !reads && (!is_own || issues);
        changes || reveals || self.path == paths::NODE_SECRETS
    }

    /// Whether it stops everything, of a namespace or of all: no disk may be in the way of that.
    fn stops_everything(&self, method: &Method) -> bool {
        let sets_freeze =
            *method == Method::PUT && [paths::FREEZE, paths::GLOBAL_FREEZE].contains(&self.path);
        sets_freeze && self.object.0 == Some(EMERGENCY_STOP)
    }

    fn entry(&self, app: &AppState, request: &Request, identity: &Identity) -> AuditEntry {
        let (name, namespace) = self.object;
        let address = request.extensions().get::<Peer>().and_then(|peer| peer.address);
        let roles = identity.rights().into_iter().flat_map(|rights| rights.roles().map(ToString::to_string));
        AuditEntry {
            id: 0,
            time_ms: app.clock.now().as_millis(),
            server: app.identity.name.to_string(),
            actor: identity.actor().to_string(),
            roles: roles.collect(),
            address: address.map(|address| address.to_string()),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            right: self.need.right().map(|right| right.on(name, namespace).to_string()),
            outcome: AuditOutcome::Allowed,
            reason: None,
            omitted: None,
            status: None,
        }
    }

    /// What is recorded of a request that is about to be passed on; `None` if it changes nothing.
    pub(super) fn allowed(
        &self,
        app: &AppState,
        request: &Request,
        identity: &Identity,
    ) -> Option<AllowedRequest> {
        self.changes(request.method(), identity).then(|| AllowedRequest {
            entry: self.entry(app, request, identity),
            stops_everything: self.stops_everything(request.method()),
        })
    }

    /// The entry of a request that was refused.
    pub(super) fn refused(
        &self,
        app: &AppState,
        request: &Request,
        (identity, denied): (&Identity, &Denied),
    ) -> AuditEntry {
        let reason = Some(denied.to_string());
        AuditEntry { outcome: AuditOutcome::Denied, reason, ..self.entry(app, request, identity) }
    }
}

/// A request that is about to be passed on, as it is recorded.
pub(super) struct AllowedRequest {
    entry: AuditEntry,
    stops_everything: bool,
}

/// What was recorded of a request before it was passed on.
pub(super) enum RecordedRequest {
    /// Nothing.
    Nothing,
    /// An entry of this number.
    Entry(u64),
    /// Nothing yet, as it is that of a stranger, who may have no right to anything: this is to be.
    OfStranger(Box<AuditEntry>),
}

/// Records a request that is about to be passed on; answers the number of its entry. A stop of everything that cannot be recorded is passed
/// on without one, and the log of the program tells of it.
///
/// # Errors
/// If it cannot be recorded: it must not be passed on.
pub(super) async fn record(
    app: &AppState,
    request: AllowedRequest,
    identity: &Identity,
) -> Result<RecordedRequest, Failure> {
    let AllowedRequest { entry, stops_everything } = request;
    if *identity == Identity::Anonymous {
        return match app.audit.trouble() {
            None => Ok(RecordedRequest::OfStranger(Box::new(entry))),
            Some(reason) => Err(unwritable(&reason)),
        };
    }
    let (actor, path) = (entry.actor.clone(), entry.path.clone());
    match app.audit.record(entry).await {
        Ok(number) => Ok(number.map_or(RecordedRequest::Nothing, RecordedRequest::Entry)),
        Err(reason) if stops_everything => {
            tracing::warn!(%actor, path, %reason, "everything is stopped, and the audit log cannot be written");
            Ok(RecordedRequest::Nothing)
        }
        Err(reason) => Err(unwritable(&format!("cannot write the audit log: {reason}"))),
    }
}

fn unwritable(detail: &str) -> Failure {
    let hint = "nothing was changed; see to the disk of the server's data directory (meanwhile, stop-everything is accepted)";
    Failure::new(Code::Store, detail).hint(hint)
}

/// Records how a request was answered. One of a stranger is recorded only now: what was refused is one of those of which so many are recorded, and
/// whoever tried a join token that nobody can use waits, as who tries another one.
pub(super) async fn answered(app: &AppState, recorded: RecordedRequest, code: u16) {
    match recorded {
        RecordedRequest::Nothing => {}
        RecordedRequest::Entry(entry) => app.audit.answered(entry, code).await,
        RecordedRequest::OfStranger(entry) if (200..300).contains(&code) => {
            let path = entry.path.clone();
            match app.audit.record(*entry).await {
                Ok(Some(number)) => app.audit.answered(number, code).await,
                Ok(None) => {}
                Err(reason) => {
                    tracing::warn!(path, %reason, "a request was carried out, and the audit log cannot be written");
                }
            }
        }
        RecordedRequest::OfStranger(entry) => {
            let address = entry.address.as_deref().and_then(|address| address.parse().ok());
            let reason = Some(format!("answered with {code}"));
            let entry = AuditEntry { outcome: AuditOutcome::Denied, reason, ..*entry };
            app.audit.record_refused(entry, app.clock.now()).await;
            if code == Code::JoinToken.status() {
                let credential = "join_token";
                app.traffic.metrics.unauthenticated.get_or_create(&ShownCredential { credential }).inc();
                let failures = &app.traffic.authentication_failures;
                if let Some(delayed) = address.and_then(|address| failures.count(address, credential)) {
                    delayed.wait().await;
                }
            }
        }
    }
}

/// Entries after `after`, oldest first; the newest when `after` is absent. With `wait`, waits for the first.
pub(crate) async fn list(State(app): State<AppState>, query: QueryParams) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &AUDIT, &["wait"])?;
    list.only_in_own_order()?;
    let (mut after, wait): (Option<u64>, Duration) = (query.get("after")?, query.wait()?);
    let end = Instant::now() + wait;
    let (list, mut newest) = (Arc::new(list), app.audit.follow());
    loop {
        // Entries that follow while this reads are found by the next round.
        let seen = newest.as_mut().map(|newest| *newest.borrow_and_update());
        let rows = read(&app, &list, after).await?;
        let is_over = after.is_none() || app.stop.is_cancelled() || Instant::now() >= end;
        let (Some(newest), true, false) = (&mut newest, rows.is_empty(), is_over) else {
            let next = rows.last().filter(|_| rows.len() == list.limit).map(JsonRow::id);
            return Ok(list.page(&rows, next, None, app.world().revision));
        };
        after = after.max(seen);
        // All arms only wait.
        tokio::select! {
            _ = newest.changed() => {}
            () = tokio::time::sleep_until(end) => {}
            () = app.stop.cancelled() => {}
        }
    }
}

/// The matching entries, read on the blocking threads.
async fn read(
    app: &AppState,
    list: &Arc<ListQuery>,
    after: Option<u64>,
) -> Result<Vec<JsonRow<AuditEntry>>, Failure> {
    let (log, list, now) = (app.audit.clone(), Arc::clone(list), app.clock.now());
    let read = tokio::task::spawn_blocking(move || {
        let row = |entry: &AuditEntry| JsonRow::new(entry, &AUDIT, now).ok();
        let matches = |entry: &AuditEntry| row(entry).is_some_and(|row| list.filter.matches(&row));
        let entries = list.evaluate(|| log.read((after, list.limit), matches))?;
        Ok::<_, std::io::Error>(entries.iter().filter_map(row).collect())
    });
    let failed =
        |reason: String| Failure::new(Code::Internal, format!("cannot read the audit log: {reason}"));
    read.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}
