//! Replacing the certificate authority: both trusted, another one active, the one before retired.

use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, CallError, Client, Identity, NodeKnowledge};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::Renew;
use bellwether_api::v1::authorities::{Authorities, AuthorityPhase, ChangeAuthorities, TrustBundle};
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::order::OrderPoll;

use crate::harness::{Installation, SOON, join_request, problem};

const AT_ONCE: Duration = Duration::from_millis(1);

/// A client that trusts these certificates.
fn trusting(installation: &Installation, ca: &str, identity: Identity) -> Client {
    Client::new(&Access { server: installation.url(), ca: Some(ca.to_owned()), identity }).unwrap()
}

fn admin(installation: &Installation, ca: &str) -> Client {
    trusting(installation, ca, Identity::Token(installation.admin_token.clone()))
}

async fn poll(client: &Client, version: u64, wait: Duration) -> Result<OrderPoll, CallError> {
    let known = NodeKnowledge { authorities: Some(version), ..NodeKnowledge::default() };
    client.sync("default", "web-1", known, wait).await
}

fn nothing() -> ChangeAuthorities {
    ChangeAuthorities::default()
}

fn forced() -> ChangeAuthorities {
    ChangeAuthorities { force: true, ..nothing() }
}

/// What everybody is to trust, once the server has taken in this version.
async fn bundle(client: &Client, version: u64) -> TrustBundle {
    let asking = async {
        loop {
            let bundle = client.trust_bundle().await.unwrap();
            if bundle.version == version {
                return bundle;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, asking).await.unwrap()
}

/// Renews the certificate of the node; whom it is to trust, and its identity.
async fn renewed(client: &Client) -> (String, Identity) {
    let (key, join) = join_request("", "web-1");
    let renewal = Renew { certificate_request: join.certificate_request };
    let joined = client.renew("default", "web-1", &renewal).await.unwrap();
    (joined.ca, Identity::Node { certificate: joined.certificate, key: Secret::new(key) })
}

/// How events name an authority.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().take(12).collect()
}

/// Retires the first authority, of which an event tells with the second one.
async fn retire(client: &Client, both: &Authorities) {
    client.retire_authority(&nothing()).await.unwrap();
    let [before, after] = [0, 1].map(|at| short(&both.authorities[at].fingerprint));
    let events = client.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let told = events.into_iter().find(|event| event.kind == "authority.retired").unwrap();
    assert_eq!(told.subject, format!("authority/{before}"));
    assert_eq!((told.before, told.after), (Some(before), Some(after)));
}

#[tokio::test]
async fn an_authority_follows_another_one_and_a_node_goes_with_it() {
    let mut installation = Installation::new().await;
    let before = installation.server().ca_pem.clone();
    let node = installation.node("web-1").await;
    let first = installation.admin();
    let answer = poll(&node.client, 0, AT_ONCE).await.unwrap();
    assert!(answer.authorities.is_none() && !answer.renew);
    let founded = first.authorities().await.unwrap().authorities[0].since_ms.unwrap();
    let made = first.rotate_authority(&nothing()).await.unwrap();
    assert_eq!(made.authorities[0].since_ms, Some(founded), "since the installation was made");
    assert_eq!(made.not_trusting_next, ["default/web-1"]);
    let phases: Vec<AuthorityPhase> = made.authorities.iter().map(|each| each.phase).collect();
    assert_eq!(phases, [AuthorityPhase::Active, AuthorityPhase::Next]);
    let (code, detail) = problem(first.activate_authority(&nothing()).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("1 of 1 nodes do not trust it yet: default/web-1"), "{detail}");
    let both = bundle(&first, 1).await.certificates;
    let answer = poll(&node.client, 0, AT_ONCE).await.unwrap();
    assert_eq!(answer.authorities.map(|sent| sent.certificates), Some(both.clone()));
    assert!(!answer.renew);
    assert!(poll(&node.client, 1, AT_ONCE).await.unwrap().authorities.is_none());
    assert!(first.authorities().await.unwrap().not_trusting_next.is_empty());
    installation.restart().await;
    let second = admin(&installation, &both);
    assert!(second.authorities().await.unwrap().not_trusting_next.is_empty());
    let named = installation.join_token(None).await;
    second.activate_authority(&nothing()).await.unwrap();
    bundle(&second, 2).await;
    let moved = second.authorities().await.unwrap();
    assert_eq!((moved.not_renewed.len(), moved.old_join_tokens.len()), (1, 1));
    // Who trusts the one before alone is cut off, a machine with its join token too.
    assert!(matches!(
        admin(&installation, &before).nodes("default", false).await,
        Err(CallError::Unreachable { .. })
    ));
    let fingerprint = named.rsplit_once('.').unwrap().1;
    let joining = Client::by_fingerprint(&[installation.url()], fingerprint).unwrap();
    assert!(joining.join(&join_request(&named, "web-2").1).await.is_err());
    let old = trusting(&installation, &both, node.identity.clone());
    let answer = poll(&old, 1, AT_ONCE).await.unwrap();
    assert!(answer.renew && answer.authorities.is_some());
    let (code, detail) = problem(second.retire_authority(&nothing()).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("1 of 1 nodes use a certificate of it: default/web-1"), "{detail}");
    let (ca, fresh) = renewed(&old).await;
    assert_eq!(TrustBundle::version_in(&ca), 2);
    let renewed = trusting(&installation, &ca, fresh.clone());
    assert!(!poll(&renewed, 2, AT_ONCE).await.unwrap().renew);
    assert!(second.authorities().await.unwrap().not_renewed.is_empty());
    retire(&second, &moved).await;
    let last = bundle(&second, 3).await.certificates;
    assert_eq!(last.matches("BEGIN CERTIFICATE").count(), 1);
    assert_eq!(
        poll(&renewed, 2, AT_ONCE).await.unwrap().authorities.map(|sent| sent.certificates),
        Some(last.clone())
    );
    installation.restart().await;
    let third = admin(&installation, &last);
    let phases: Vec<AuthorityPhase> =
        third.authorities().await.unwrap().authorities.iter().map(|each| each.phase).collect();
    assert_eq!(phases, [AuthorityPhase::Retired, AuthorityPhase::Active]);
    poll(&trusting(&installation, &last, fresh), 3, AT_ONCE).await.unwrap();
}

#[tokio::test]
async fn a_certificate_of_a_retired_authority_opens_nothing_over_a_connection_that_is_open() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let first = installation.admin();
    poll(&node.client, 0, AT_ONCE).await.unwrap();
    first.rotate_authority(&nothing()).await.unwrap();
    bundle(&first, 1).await;
    first.activate_authority(&forced()).await.unwrap();
    // The connections were made before: they last.
    bundle(&first, 2).await;
    assert!(poll(&node.client, 2, AT_ONCE).await.unwrap().renew);
    first.retire_authority(&forced()).await.unwrap();
    let last = bundle(&first, 3).await.certificates;
    let CallError::Problem(refused) = poll(&node.client, 2, AT_ONCE).await.unwrap_err() else {
        panic!("it was answered otherwise")
    };
    assert_eq!(refused.code, Code::Unauthenticated);
    assert!(refused.detail.contains("of an authority that is retired"), "{}", refused.detail);
    assert!(refused.hint.unwrap().contains("bellwether agent join --force"));
    let anew = trusting(&installation, &last, node.identity);
    assert!(poll(&anew, 2, AT_ONCE).await.is_err());
    let behind = admin(&installation, &last).authorities().await.unwrap();
    assert_eq!(behind.not_renewed, ["default/web-1"]);
}

#[tokio::test]
async fn a_poll_that_waits_is_answered_once_there_are_other_authorities() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    let admin = installation.admin();
    let rotated = async {
        // Its poll waits by then.
        while admin.node("default", "web-1").await.unwrap().presence.state != PresenceState::Up {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        admin.rotate_authority(&nothing()).await.unwrap();
    };
    let waits = tokio::time::timeout(SOON, poll(&node.client, 0, Duration::from_secs(55)));
    let (answer, ()) = tokio::join!(waits, rotated);
    let answer = answer.unwrap().unwrap();
    assert_eq!(answer.authorities.unwrap().version, 1);
}

#[tokio::test]
async fn a_next_authority_is_dropped_and_what_is_not_due_is_refused_with_the_next_step() {
    let installation = Installation::new().await;
    let client = installation.admin();
    let refused = async |answer: Result<_, CallError>| {
        let CallError::Problem(problem) =
            Result::<bellwether_api::v1::authorities::Authorities, _>::unwrap_err(answer)
        else {
            panic!("no problem")
        };
        (problem.detail, problem.hint.unwrap())
    };
    let (detail, hint) = refused(client.activate_authority(&nothing()).await).await;
    assert!(detail.contains("no authority is next") && hint.contains("server ca rotate"), "{detail} {hint}");
    let (detail, _) = refused(client.retire_authority(&forced()).await).await;
    assert!(detail.contains("no previous authority is trusted"), "{detail}");
    client.rotate_authority(&nothing()).await.unwrap();
    let (detail, hint) = refused(client.rotate_authority(&nothing()).await).await;
    assert!(
        detail.contains("another authority is next already") && hint.contains("cancel"),
        "{detail} {hint}"
    );
    let left = client.cancel_authority(&nothing()).await.unwrap();
    assert_eq!((left.version, left.authorities.len()), (2, 1));
}
