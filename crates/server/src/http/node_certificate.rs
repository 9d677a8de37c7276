//! The certificate that a node shows, and whether it is to be believed now.

use std::future::Future;
use std::sync::Arc;

use axum::extract::Request;
use bellwether_core::access::Identity;
use bellwether_core::records::node::Node;
use bellwether_core::verdict::Changeset;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use http::header;

use super::listen::Peer;
use super::problem::Failure;
use super::state::AppState;
use crate::ops::scope::NodeScope;
use crate::pki::CertificateIdentity;
use crate::transactor::CommitContext;
use crate::{earlier_keys, ops};

/// The node whose present certificate was shown.
pub(super) fn node(world: &World, request: &Request) -> Option<(CertificateIdentity, Arc<Node>)> {
    let bearer = request.extensions().get::<Peer>()?.bearer.clone()?;
    let node = world.fleets.get(&bearer.namespace)?.nodes.get(&bearer.node)?.value.clone();
    node.has_key(&bearer.key_fingerprint).then_some((bearer, node))
}

/// The node that a certificate names that was shown, whether it is the present one or was before; `None` if the node is not known here.
pub(super) fn named(world: &World, request: &Request) -> Option<Arc<Node>> {
    let bearer = request.extensions().get::<Peer>()?.bearer.as_ref()?;
    Some(world.fleets.get(&bearer.namespace)?.nodes.get(&bearer.node)?.value.clone())
}

/// The node that has shown, in place of a token, a key that it had before, and was not decommissioned since.
pub(super) fn earlier_key(app: &AppState, request: &Request) -> Option<(Namespace, NodeName)> {
    let bearer = request.extensions().get::<Peer>()?.bearer.as_ref()?;
    let node =
        named(&app.world(), request).filter(|_| !request.headers().contains_key(header::AUTHORIZATION))?;
    let is_earlier = node.decommissioned.is_none() && !node.has_key(&bearer.key_fingerprint);
    is_earlier.then(|| (bearer.namespace.clone(), bearer.node.clone()))
}

/// Tells of a node that shows a key that it had before, unless that is known.
pub(super) async fn tell_of_earlier_key(app: &AppState, of: (Namespace, NodeName)) {
    if !app.traffic.earlier_keys.shown(&of, app.clock.now()) {
        return;
    }
    let (namespace, node) = of;
    tracing::warn!(%namespace, %node, "an agent shows a key that its node had before");
    let told = Changeset { writes: Vec::new(), events: vec![earlier_keys::event(&node)] };
    let (transactor, by) = (&app.records.transactor, CommitContext::decider());
    if let Err(error) = transactor.commit(&app.world(), &namespace, by, vec![told]).await {
        tracing::warn!(%namespace, %node, %error, "cannot record that an earlier key was shown");
    }
}

/// Whether a certificate of a node was shown, known here or not.
pub(super) fn is_shown(request: &Request) -> bool {
    request.extensions().get::<Peer>().is_some_and(|peer| peer.bearer.is_some())
}

/// Whether a present certificate of a node was shown that has expired since its connection was made, or the session that was resumed.
pub(super) fn has_expired(app: &AppState, request: &Request) -> bool {
    let shown =
        node(&app.world(), request).filter(|_| !request.headers().contains_key(header::AUTHORIZATION));
    shown.is_some_and(|(bearer, _)| bearer.expires_at <= app.clock.now())
}

/// Ends the key that a node had before, once the next one is shown, in whatever request: nobody goes on with both.
pub(super) fn next_key_shown(
    app: &AppState,
    request: &Request,
) -> impl Future<Output = Result<(), Failure>> + Send {
    let shown = node(&app.world(), request);
    let shown = shown.filter(|(bearer, node)| node.is_next_key(&bearer.key_fingerprint));
    let app = app.clone();
    async move {
        let Some((bearer, node)) = shown else { return Ok(()) };
        let actor = Identity::Node(node.name.clone()).actor();
        let scope = NodeScope { namespace: &bearer.namespace, node: &node.name, actor: &actor };
        Ok(ops::node::key_shown(&app.records.transactor, scope, (&bearer.key_fingerprint, None)).await?)
    }
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
