//! Who is admitted: by class, by share, and after the body has arrived.

use axum::response::IntoResponse;
use bellwether_core::access::{Identity, RequiredAccess, Rights};
use bellwether_core::words::time::Timestamp;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::Method;

use super::super::listen::Peer;
use super::*;
use crate::pki::CertificateIdentity;

fn admission(limit: ConcurrencyLimit) -> Admission {
    let limits = ConcurrencyLimits {
        urgent: limit,
        people: limit,
        watchers: limit,
        machines: limit,
        syncs: limit,
        joins: limit,
    };
    Admission::new(limits, Family::default())
}

/// One request runs, one waits.
fn narrow() -> Admission {
    admission(ConcurrencyLimit::whole(1, 1, 1_500))
}

fn requester(name: &str) -> Requester {
    Requester::Token(name.to_owned())
}

impl Admission {
    /// Enters with a request without a body.
    async fn arrive(&self, class: RequestClass, name: &str) -> Result<Box<AdmissionPermit>, Failure> {
        self.enter(class, requester(name), &mut Request::default(), MAX_BODY_BYTES).await
    }
}

/// A request whose body never ends.
fn endless() -> Request {
    Request::new(Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()))
}

#[tokio::test]
async fn one_request_runs_one_waits_and_the_third_is_refused_with_a_retry_time() {
    let admission = narrow();
    let first = admission.arrive(RequestClass::Machines, "a").await.unwrap();
    let mut second = Box::pin(admission.arrive(RequestClass::Machines, "b"));
    assert!(second.as_mut().now_or_never().is_none());
    let third = admission.arrive(RequestClass::Machines, "c").await.unwrap_err().into_response();
    assert_eq!(third.status(), 429);
    assert_eq!(third.headers()[http::header::RETRY_AFTER], "2", "whole seconds, rounded up");
    assert!(admission.arrive(RequestClass::People, "a").await.is_ok(), "another class has room");
    drop(first);
    drop(second.await.unwrap());
    assert!(admission.arrive(RequestClass::Machines, "a").await.is_ok());
    let refused = |class| admission.refused.get_or_create(&RefusedRequests { class }).get();
    assert_eq!((refused("machines"), refused("people")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_too_long_is_refused() {
    let admission = narrow();
    let first = admission.arrive(RequestClass::People, "a").await.unwrap();
    assert!(admission.arrive(RequestClass::People, "b").await.is_err());
    drop(first);
    assert!(admission.arrive(RequestClass::People, "a").await.is_ok());
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_releases_its_permit() {
    let admission = narrow();
    let first = admission.arrive(RequestClass::People, "a").await.unwrap();
    let mut second = Box::pin(admission.arrive(RequestClass::People, "b"));
    assert!(second.as_mut().now_or_never().is_none());
    drop(second);
    let mut third = Box::pin(admission.arrive(RequestClass::People, "c"));
    assert!(third.as_mut().now_or_never().is_none(), "it waits, and is not refused");
    drop(first);
    assert!(third.await.is_ok());
}

#[tokio::test]
async fn who_has_its_whole_share_waits_and_is_refused_while_others_find_room() {
    let admission = admission(ConcurrencyLimit::whole(2, 2, 1_000).shared(1, 1));
    let first = admission.arrive(RequestClass::People, "greedy").await.unwrap();
    let mut second = Box::pin(admission.arrive(RequestClass::People, "greedy"));
    assert!(second.as_mut().now_or_never().is_none(), "its share waits though the class has room");
    let third = admission.arrive(RequestClass::People, "greedy").await.unwrap_err();
    assert_eq!(
        third.detail(),
        "cannot accept another request of people: 1 of this client are in flight and 1 wait"
    );
    assert!(admission.arrive(RequestClass::People, "other").now_or_never().unwrap().is_ok());
    drop(first);
    drop(second.await.unwrap());
    assert_eq!(admission.people.shares.len(), 0, "who has no request is forgotten");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_holds_no_permit_to_run() {
    let admission = admission(ConcurrencyLimit::whole(1, 3, 1_000));
    let mut slow = endless();
    let entering = admission.enter(RequestClass::People, requester("slow"), &mut slow, MAX_BODY_BYTES);
    let mut entering = Box::pin(entering);
    assert!(entering.as_mut().now_or_never().is_none());
    assert!(admission.arrive(RequestClass::People, "other").now_or_never().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_arrive_are_given_up_and_leave_their_room() {
    let admission = admission(ConcurrencyLimit::whole(1, 0, 1_000));
    let large = 2 * MAX_BODY_BYTES;
    for largest in [MAX_BODY_BYTES, large] {
        let refused = admission.enter(RequestClass::People, requester("slow"), &mut endless(), largest).await;
        assert!(refused.unwrap_err().detail().contains("did not arrive"), "{largest}");
        let mut request = Request::new(Body::from("{}"));
        admission.enter(RequestClass::People, requester("slow"), &mut request, largest).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn large_bodies_of_one_client_leave_room_for_one_of_another() {
    let admission = admission(ConcurrencyLimit::whole(8, 8, 1_000));
    let large = 2 * MAX_BODY_BYTES;
    let (mut first, mut second, mut other) = (endless(), endless(), Request::new(Body::from("{}")));
    let first = admission.enter(RequestClass::People, requester("slow"), &mut first, large);
    let mut first = Box::pin(first);
    assert!(first.as_mut().now_or_never().is_none());
    let second = admission.enter(RequestClass::People, requester("slow"), &mut second, large);
    let mut second = Box::pin(second);
    assert!(second.as_mut().now_or_never().is_none());
    *other.body_mut() = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(Bytes::from("{}"))]));
    let other = admission.enter(RequestClass::People, requester("other"), &mut other, large);
    assert!(other.now_or_never().unwrap().is_ok());
    assert_eq!(second.await.unwrap_err().detail(), "cannot read the body: 2 large bodies are in progress");
}

#[tokio::test(start_paused = true)]
async fn few_dry_runs_of_an_apply_run_at_the_same_time() {
    let admission = narrow();
    let first = admission.dry_run().await.unwrap();
    let _second = admission.dry_run().await.unwrap();
    assert_eq!(admission.dry_run().await.unwrap_err().into_response().status(), 429);
    drop(first);
    assert!(admission.dry_run().await.is_ok());
}

/// A request of a peer with or without a node's certificate.
fn request(method: Method, uri: &str, is_machine: bool) -> Request {
    let bearer = is_machine.then(|| CertificateIdentity {
        namespace: "default".parse().unwrap(),
        node: "web-1".parse().unwrap(),
        key_fingerprint: String::new(),
        issuer: None,
        expires_at: Timestamp::EPOCH,
    });
    let mut request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
    let address = Some("[2001:db8:1:2:3::4]:5".parse().unwrap());
    request.extensions_mut().insert(Peer { bearer, address, connection: None });
    request
}

fn token(role: &str) -> Identity {
    Identity::Token { name: "ci".parse().unwrap(), rights: Arc::new(Rights::of_built_in(role)) }
}

#[test]
fn each_request_has_its_class() {
    let viewer = token("viewer");
    let class = |path, need, uri: &str, is_machine| {
        RequestClass::of((path, need), &request(Method::GET, uri, is_machine), &viewer)
    };
    use bellwether_api::paths;
    assert_eq!(class(paths::HEALTHZ, RequiredAccess::Open, "/healthz", false), None);
    assert_eq!(class(paths::METRICS, RequiredAccess::Token, "/metrics", false), None);
    assert_eq!(class(paths::JOIN, RequiredAccess::Open, "/v1/join", false), Some(RequestClass::Joins));
    assert_eq!(
        class(paths::NODE_ORDER, RequiredAccess::OwnNode, "/s?wait=1s", true),
        Some(RequestClass::Syncs)
    );
    assert_eq!(class(paths::NODE_REPORT, RequiredAccess::OwnNode, "/r", true), Some(RequestClass::Machines));
    let events = |uri| class(paths::EVENTS, RequiredAccess::Token, uri, false);
    assert_eq!(events("/e?after=1&wait=9s"), Some(RequestClass::Watchers));
    assert_eq!(events("/e?after=1"), Some(RequestClass::People));
}

#[test]
fn what_stops_is_urgent_and_every_change_of_an_admin() {
    use bellwether_api::paths;
    use bellwether_core::access::ObjectKind;
    let class = |method, path, need, role: &str| {
        RequestClass::of((path, need), &request(method, "/x", false), &token(role))
    };
    let freeze = RequiredAccess::update(ObjectKind::Freeze);
    let entity = RequiredAccess::update(ObjectKind::Entity);
    assert_eq!(class(Method::PUT, paths::FREEZE, freeze, "operator"), Some(RequestClass::Urgent));
    assert_eq!(class(Method::PUT, paths::ENTITY, entity, "operator"), Some(RequestClass::People));
    assert_eq!(class(Method::PUT, paths::ENTITY, entity, "admin"), Some(RequestClass::Urgent));
    assert_eq!(class(Method::GET, paths::ENTITY, entity, "admin"), Some(RequestClass::People));
    let operation = class(Method::POST, paths::ROLLOUT_OPERATION, entity, "operator");
    assert_eq!(operation, Some(RequestClass::Urgent));
}

#[test]
fn a_requester_is_a_token_a_node_or_the_network_of_a_host() {
    let request = request(Method::POST, "/v1/join", true);
    assert_eq!(Requester::of(&token("viewer"), &request), requester("ci"));
    let node = Requester::of(&Identity::Node("web-1".parse().unwrap()), &request);
    assert_eq!(node, Requester::Node("default".to_owned(), "web-1".to_owned()));
    let host = Some("2001:db8:1:2::".parse().unwrap());
    assert_eq!(Requester::of(&Identity::Anonymous, &request), Requester::Address(host));
}
