//! What requests of nodes use of their quotas, before they are passed on.

use std::future::Future;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bellwether_api::paths;
use bellwether_core::access::Identity;

use super::audit::AuditedRoute;
use super::listen::Peer;
use super::problem::Failure;
use super::state::AppState;
use crate::quotas::QuotaUse;

/// Uses some of a node's quotas: of bytes, and of changes for what is recorded in the audit log. Logs that somebody reads are sent on request and not
/// stored.
pub(super) fn take_quota(
    app: &AppState,
    request: &Request,
    (route, identity): (AuditedRoute<'_>, &Identity),
) -> impl Future<Output = Result<(), Response>> + Send {
    let bytes = request.body().size_hint().exact().unwrap_or_default();
    let is_recorded = route.changes(request.method(), identity);
    let peer = request.extensions().get::<Peer>();
    let home = peer.and_then(|peer| peer.bearer.as_ref()).map(|bearer| bearer.namespace.clone());
    let bytes = Some(bytes).filter(|bytes| *bytes > 0 && route.path != paths::NODE_JOB_LOGS);
    let used = bytes.map(QuotaUse::Bytes).into_iter().chain(is_recorded.then_some(QuotaUse::Changes(1)));
    let used: Vec<QuotaUse> = used.collect();
    let node = home.filter(|_| !used.is_empty()).map(|home| (home, identity.actor()));
    async move {
        let Some((home, actor)) = node else { return Ok(()) };
        for of in used {
            let taken = Box::pin(app.records.transactor.take_quota(&home, &actor, of));
            taken.await.map_err(|used| Failure::from(used).into_response())?;
        }
        Ok(())
    }
}
