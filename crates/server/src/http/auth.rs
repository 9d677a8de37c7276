//! Authentication and authorisation. Every route is guarded here, with the access that it was registered with.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bellwether_api::paths;
use bellwether_api::problem::Code;
use bellwether_core::access::{AccessRequest, Denied, Identity, RequiredAccess, Right, Rights, authorise};
use bellwether_core::records::annotation::attribution;
use bellwether_core::words::name::{Actor, Namespace, NodeName};
use bellwether_core::world::World;
use http::request::Parts;
use http::{Method, header};

use super::accepted::Accepted;
use super::admission::{AdmissionPermit, RequestClass, Requester};
use super::audit::{self, AuditedRoute, RecordedRequest};
use super::consistency::{self, Consistency};
use super::credential::{credential, token, too_many};
use super::currency;
use super::input::PathParams;
use super::listen::Peer;
use super::node_certificate::{
    earlier_key, has_expired, is_of_retired, is_of_trusted, is_shown, named, next_key_shown, node,
    tell_of_earlier_key,
};
use super::node_quota::take_quota;
use super::problem::{FORBIDDEN_HINT, Failure};
use super::readable::Readable;
use super::route_object::object;
use super::state::AppState;
use super::waited;
use crate::metrics::ShownCredential;
use crate::pki::CertificateIdentity;
use crate::{job_rights, rights, secret};

/// The authenticated and authorised caller.
#[derive(Debug, Clone)]
pub(crate) struct Authenticated(pub(crate) Identity);

impl Authenticated {
    /// The actor of the caller's events.
    pub(crate) fn actor(&self) -> Actor {
        self.0.actor()
    }

    /// What the caller's token may do.
    pub(crate) fn rights(&self) -> Result<&Rights, Failure> {
        self.0.rights().ok_or_else(|| Failure::new(Code::Forbidden, "this needs a token"))
    }

    /// Refuses a caller without this right to the object of this name, which the body named or the path only in part.
    pub(crate) fn require(
        &self,
        right: Right,
        name: Option<&str>,
        namespace: Option<&Namespace>,
    ) -> Result<(), Failure> {
        self.require_field(right, right.field, (name, namespace))
    }

    /// As [`Self::require`], for each of these fields of the object, as JSON pointers.
    pub(crate) fn require_fields(
        &self,
        right: Right,
        fields: &[String],
        (name, namespace): (&str, &Namespace),
    ) -> Result<(), Failure> {
        let object = (Some(name), Some(namespace));
        fields.iter().try_for_each(|field| self.require_field(right, field, object))
    }

    /// As [`Self::require`], for one field of the object, as a JSON pointer.
    pub(crate) fn require_field(
        &self,
        right: Right,
        field: &str,
        (name, namespace): (Option<&str>, Option<&Namespace>),
    ) -> Result<(), Failure> {
        let request = right.on(name, namespace.map(Namespace::as_str));
        let denied = self.0.require(&AccessRequest { field, is_partial: false, ..request });
        denied.map_err(|denied| Failure::from(denied).hint(FORBIDDEN_HINT))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        // The guard inserts it; a handler without it was not registered through `Routes`.
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Failure::new(Code::Internal, "the caller was not authenticated"))
    }
}

/// Authenticates and authorises a request, admits it, and runs its handler.
///
/// Ten thousand requests wait behind it at a time, so what lives across an await is small: strings are copied out of the
/// request, and the request is boxed, since a future reserves space for everything it ever holds.
pub(crate) fn guard(
    State((app, path, need, accepted)): State<(AppState, &'static str, RequiredAccess, Accepted)>,
    PathParams(params): PathParams,
    request: Request,
    next: Next,
) -> impl Future<Output = Response> + Send {
    let param = |wanted: &str| params.iter().find(|(key, _)| *key == wanted).map(|(_, text)| text.to_owned());
    let named = param("node").and_then(|name| NodeName::parse(&name).ok());
    let (name, namespace) = object(need, path, param);
    let mut request = Box::new(request);
    async move {
        let route = AuditedRoute { path, need, object: (name.as_deref(), namespace.as_deref()) };
        let (identity, place) = match enter(&app, &mut request, (route, named), accepted.largest_body).await {
            Ok(entered) => entered,
            Err(refused) => return refused,
        };
        let (object, waiting) = (route.object, waited::kept(&request));
        if let Identity::Token { rights, .. } = &identity {
            let readable = Readable::of(rights, need, object.0, object.1);
            request.extensions_mut().insert(readable);
        }
        if let Err(failure) = accepted.check(need, &request) {
            return failure.into_response();
        }
        let shown = match consistency::asked(&request) {
            Ok(Consistency::Local) => Ok(()),
            Ok(Consistency::Linearizable) => match Box::pin(consistency::wait_until_current(&app)).await {
                Ok(()) if !still_hosts(&app, &request) => Err(Failure::from(Denied::Unknown)),
                current => current,
            },
            Err(neither) => Err(neither),
        };
        if let Err(failure) = shown {
            return failure.into_response();
        }
        // Polls note it themselves, also where the store takes no changes.
        if matches!(identity, Identity::Node(_))
            && path != paths::NODE_ORDER
            && let Err(failure) = Box::pin(next_key_shown(&app, &request)).await
        {
            return failure.into_response();
        }
        let recorded = match route.allowed(&app, &request, &identity) {
            Some(entry) => Box::pin(audit::record(&app, entry, &identity)).await,
            None => Ok(RecordedRequest::Nothing),
        };
        let entry = match recorded {
            Ok(entry) => entry,
            Err(failure) => return currency::mark(&app, failure.into_response()),
        };
        request.extensions_mut().insert(Authenticated(identity));
        let measured = place.as_ref().filter(|_| accepted.is_immediate(&request));
        let is_read =
            request.method() == Method::GET && place.as_ref().is_some_and(|place| place.is_of_people());
        let run = |request: Box<Request>| next.run(*request);
        let response = match is_read {
            true => app.traffic.reads.run(run(request)).await.unwrap_or_else(Failure::into_response),
            false => run(request).await,
        };
        let response = waited::answered(waiting, |kept| refusal(&app, kept, need, object), response);
        if let Some(place) = measured {
            place.observe(&app.traffic.metrics.request_seconds);
        }
        let response = currency::mark(&app, response);
        Box::pin(audit::answered(&app, entry, response.status().as_u16())).await;
        response
    }
}

/// The caller's identity and a permit, once the body has arrived.
async fn enter(
    app: &AppState,
    request: &mut Request,
    (route, named): (AuditedRoute<'_>, Option<NodeName>),
    largest: usize,
) -> Result<(Identity, Option<Box<AdmissionPermit>>), Response> {
    let identity = authorised(app, request, &route, named.clone()).await?;
    if identity != Identity::Anonymous
        && let Some(connection) = request.extensions().get::<Peer>().and_then(|peer| peer.connection.as_ref())
    {
        connection.is_of_somebody();
    }
    let Some(class) = RequestClass::of((route.path, route.need), request, &identity) else {
        return Ok((identity, None));
    };
    let requester = Requester::of(&identity, request);
    drop(identity);
    let entering = app.traffic.admission.enter(class, requester, request, largest);
    let place = entering.await.map_err(Failure::into_response)?;
    // As of now: what the caller may do may have changed while its body arrived, or while it waited.
    let identity = authorised(app, request, &route, named).await?;
    take_quota(app, request, (route, &identity)).await?;
    Ok((identity, Some(place)))
}

/// The caller's identity, if it has access.
///
/// # Errors
/// The answer to one that has not; it is recorded in the audit log.
fn authorised(
    app: &AppState,
    request: &Request,
    route: &AuditedRoute<'_>,
    named: Option<NodeName>,
) -> impl Future<Output = Result<Identity, Response>> + Send {
    let shown = credential(request);
    let address = request.extensions().get::<Peer>().and_then(|peer| peer.address);
    let failures = &app.traffic.authentication_failures;
    let admitted = admit(app, request, (route.need, named), route.object).map_err(|(identity, denied)| {
        let unknown = shown.filter(|_| denied == Denied::Unknown);
        // One that somebody has is never kept waiting by those that others try.
        if let Some(busy) = unknown.and_then(|_| too_many(failures, shown, address)) {
            return (None, None, busy.into_response());
        }
        let failed = unknown.map(|shown| {
            let delayed = address.and_then(|address| failures.count(address, shown));
            (shown, delayed, earlier_key(app, request))
        });
        (Some(route.refused(app, request, (&identity, &denied))), failed, refuse(app, request, denied))
    });
    async move {
        let (entry, failed, answer) = match admitted {
            Ok(identity) => return Ok(identity),
            Err(refused) => refused,
        };
        if let Some(entry) = entry {
            Box::pin(app.audit.record_refused(entry, app.clock.now())).await;
        }
        if let Some((credential, delayed, earlier)) = failed {
            if let Some(node) = earlier {
                Box::pin(tell_of_earlier_key(app, node)).await;
            }
            app.traffic.metrics.unauthenticated.get_or_create(&ShownCredential { credential }).inc();
            if let Some(delayed) = delayed {
                Box::pin(delayed.wait()).await;
            }
        }
        Err(answer)
    }
}

/// The caller's identity, if it has this access to the object in the path.
fn admit(
    app: &AppState,
    request: &Request,
    (need, named): (RequiredAccess, Option<NodeName>),
    (name, namespace): (Option<&str>, Option<&str>),
) -> Result<Identity, (Identity, Denied)> {
    let identity = identify(app, request);
    let own = match &identity {
        Some((_, Some(home))) => namespace.is_none_or(|named| named == home.as_str()),
        Some((_, None)) | None => true,
    };
    // A path without a node belongs to every node of the namespace.
    let named = match (&identity, need) {
        (Some((Identity::Node(node), _)), RequiredAccess::NodeOr(_)) => Some(node.clone()),
        (_, _) => named,
    };
    let identity = identity.map_or(Identity::Anonymous, |(identity, _)| identity);
    match authorise(&identity, need, named.as_ref().filter(|_| own), (name, namespace)) {
        Ok(()) => Ok(identity),
        Err(denied) => Err((identity, denied)),
    }
}

/// The answer to who may not do it any more; `None` if they may.
fn refusal(
    app: &AppState,
    request: &Request,
    need: RequiredAccess,
    object: (Option<&str>, Option<&str>),
) -> Option<Response> {
    admit(app, request, (need, None), object).err().map(|(_, denied)| refuse(app, request, denied))
}

fn refuse(app: &AppState, request: &Request, denied: Denied) -> Response {
    let denied = match (denied, decommissioned(app, request)) {
        (Denied::Unknown, Some(mark)) => {
            let detail = format!("authentication failed: this node was decommissioned {mark}");
            let hint = "to bring the machine back, join it again: bellwether agent join --force";
            return Failure::new(Code::Decommissioned, detail).hint(hint).into_response();
        }
        (Denied::Unknown, None) if has_expired(app, request) => {
            let hint = "a certificate is renewed at half of its life; join the machine again: bellwether agent join --force";
            let detail = "authentication failed: the certificate of this node has expired";
            return Failure::new(Code::Unauthenticated, detail).hint(hint).into_response();
        }
        (Denied::Unknown, None) if is_of_retired(app, request) => {
            let hint = "the authority was replaced while this node was away; join the machine again: bellwether agent join --force";
            let detail =
                "authentication failed: the certificate of this node is of an authority that is retired";
            return Failure::new(Code::Unauthenticated, detail).hint(hint).into_response();
        }
        (denied, _) => denied,
    };
    let hint = match &denied {
        Denied::Unknown if request.headers().contains_key(header::AUTHORIZATION) => {
            "the token is unknown here, expired or deleted: check BELLWETHER_TOKEN, --token-file or the context"
        }
        Denied::Unknown if named(&app.world(), request).is_some() => {
            "a later certificate of this node is in use: it was renewed elsewhere, as by a copy of this machine, or was joined on another one; if nobody \
             meant that, decommission the node, which ends that certificate; to have this machine be the node: bellwether agent join --force"
        }
        Denied::Unknown if is_shown(request) => {
            "the node of this certificate is not known here, as after a restore of a backup from before it joined: join it again: bellwether \
             agent join --force"
        }
        Denied::Unknown => "set BELLWETHER_TOKEN, or run `bellwether context use`",
        Denied::Forbidden { .. } => FORBIDDEN_HINT,
    };
    Failure::from(denied).hint(hint).into_response()
}

/// Whether who sent a request is still known by it, with the same rights.
pub(super) fn is_still(app: &AppState, request: &Request, identity: &Identity) -> bool {
    identify(app, request).is_some_and(|(now, _)| now == *identity)
}

/// The caller's identity, and the namespace of a node. A token takes precedence over a certificate: it was sent on purpose.
fn identify(app: &AppState, request: &Request) -> Option<(Identity, Option<String>)> {
    let world = app.world();
    if let Some(shown) = request.headers().get(header::AUTHORIZATION) {
        let shown = token(shown.to_str().ok()?, paths::is_fleet_lock(request.uri().path()))?;
        let hash = secret::hash(shown.as_bytes());
        let token = world.tokens.get(&hash)?;
        let alive = token.value.expires_at.is_none_or(|end| end > app.clock.now());
        let same = secret::same(&token.value.secret_hash, &hash);
        let name = token.value.name.clone();
        let rights = Arc::new(rights::of(&world, &token.value));
        return (alive && same).then_some((Identity::Token { name, rights }, None));
    }
    let (bearer, node) = node(&world, request)?;
    if !is_of_trusted(app, &bearer) {
        return None;
    }
    let home = Some(bearer.namespace.to_string());
    if node.decommissioned.is_some() || bearer.expires_at <= app.clock.now() {
        return None;
    }
    let acting = match request.headers().get(paths::LOGICAL_NODE) {
        None => bearer.node.clone(),
        Some(logical) => {
            let logical = NodeName::parse(logical.to_str().ok()?).ok()?;
            hosts(&world, &bearer, &logical).then_some(logical)?
        }
    };
    let Some(job) = request.headers().get(paths::ACTING_JOB) else {
        return Some((Identity::Node(acting), home));
    };
    let fleet = world.fleets.get(&bearer.namespace)?;
    let (name, rights) = job_rights::of(fleet, &bearer.namespace, &acting, job.to_str().ok()?)?;
    Some((Identity::Token { name, rights: Arc::new(rights) }, None))
}

/// Whether a node hosts a logical node.
fn hosts(world: &World, bearer: &CertificateIdentity, logical: &NodeName) -> bool {
    let fleet = world.fleets.get(&bearer.namespace);
    fleet.is_some_and(|fleet| fleet.is_hosted_by(logical, &bearer.node))
}

/// Whether a request for a logical node is of the node that hosts it, as of now: others may host it since it was identified.
fn still_hosts(app: &AppState, request: &Request) -> bool {
    !request.headers().contains_key(paths::LOGICAL_NODE) || identify(app, request).is_some()
}

/// By whom and why the node that shows its certificate was decommissioned, if it was.
fn decommissioned(app: &AppState, request: &Request) -> Option<String> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    // Also one whose certificate was renewed elsewhere before is to know it.
    let node = named(&app.world(), request)?;
    let mark = node.decommissioned.as_ref()?;
    Some(attribution(&mark.by, &mark.reason))
}
