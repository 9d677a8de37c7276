//! The certificate that a node shows, and whether it is to be believed now.

use std::sync::Arc;

use axum::extract::Request;
use bellwether_core::records::node::Node;
use bellwether_core::world::World;
use http::header;

use super::listen::Peer;
use super::state::AppState;
use crate::pki::CertificateIdentity;

/// The node whose present certificate was shown.
pub(super) fn node(world: &World, request: &Request) -> Option<(CertificateIdentity, Arc<Node>)> {
    let bearer = request.extensions().get::<Peer>()?.bearer.clone()?;
    let node = world.fleets.get(&bearer.namespace)?.nodes.get(&bearer.node)?.value.clone();
    node.has_key(&bearer.key_fingerprint).then_some((bearer, node))
}

/// Whether the certificate of a node was shown, known here or not.
pub(super) fn is_shown(request: &Request) -> bool {
    request.extensions().get::<Peer>().is_some_and(|peer| peer.bearer.is_some())
}

/// Whether a present certificate of a node was shown that has expired since its connection was made, or the session that was resumed.
pub(super) fn has_expired(app: &AppState, request: &Request) -> bool {
    let shown =
        node(&app.world(), request).filter(|_| !request.headers().contains_key(header::AUTHORIZATION));
    shown.is_some_and(|(bearer, _)| bearer.expires_at <= app.clock.now())
}

/// Whether the authority of a certificate is trusted now: its connection may be older than that.
pub(super) fn is_of_trusted(app: &AppState, bearer: &CertificateIdentity) -> bool {
    bearer.issuer.as_ref().is_none_or(|issuer| app.identity.pki.live().trusts(issuer))
}

/// Whether a certificate of a node was shown whose authority is not trusted any more.
pub(super) fn is_of_retired(app: &AppState, request: &Request) -> bool {
    let shown =
        node(&app.world(), request).filter(|_| !request.headers().contains_key(header::AUTHORIZATION));
    shown.is_some_and(|(bearer, _)| !is_of_trusted(app, &bearer))
}
