//! Joining, tokens and certificates.

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::{Join, NewJoinToken, NewToken, Renew};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::role::{Claim, RoleSpec};
use bellwether_core::access;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;

use crate::harness::{Installation, join_request, policy, problem, set_entity, until, version};
use crate::hooked::eventually;

#[tokio::test]
async fn a_join_token_lets_one_machine_in_once() {
    let installation = Installation::new().await;
    let nobody = installation.client(Identity::Nobody);
    let token = installation.join_token(None).await;
    let (_, first) = join_request(&token, "web-1");
    nobody.join(&first).await.unwrap();
    let (_, second) = join_request(&token, "web-2");
    let (code, detail) = problem(nobody.join(&second).await);
    assert_eq!(code, Code::JoinToken);
    assert!(detail.contains("was used already"), "{detail}");
    assert!(installation.admin().node("default", "web-2").await.is_err());
}

#[tokio::test]
async fn an_expired_or_foreign_or_revoked_join_token_opens_nothing() {
    let installation = Installation::new().await;
    let (admin, nobody) = (installation.admin(), installation.client(Identity::Nobody));
    let short = NewJoinToken {
        expires_in: Some("1ms".to_owned()),
        labels: vec!["*".to_owned()],
        ..NewJoinToken::default()
    };
    let expired = admin.create_join_token(&short).await.unwrap().secret;
    let bound = installation.join_token(Some("db-1")).await;
    let revoked = installation.join_token(None).await;
    let id = bellwether_server::secret::hash(revoked.as_bytes()).chars().take(12).collect::<String>();
    admin.delete_join_token(&id).await.unwrap();
    for (token, reason) in
        [(expired, "expired"), (bound, "another name"), (revoked, "unknown"), ("x".into(), "unknown")]
    {
        let (code, detail) = problem(nobody.join(&join_request(&token, "web-1").1).await);
        assert_eq!(code, Code::JoinToken, "{detail}");
        assert!(detail.contains(reason), "{detail} does not say {reason}");
    }
    assert!(admin.nodes("default", true).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_name_in_use_is_refused_and_the_token_stays_good_for_another() {
    let installation = Installation::new().await;
    installation.node("web-1").await;
    let nobody = installation.client(Identity::Nobody);
    let token = installation.join_token(None).await;
    let (code, detail) = problem(nobody.join(&join_request(&token, "web-1").1).await);
    assert_eq!(code, Code::Exists);
    assert!(detail.contains("the name is in use"), "{detail}");
    nobody.join(&join_request(&token, "web-2").1).await.unwrap();
}

#[tokio::test]
async fn a_decommissioned_node_cannot_authenticate_and_its_name_is_free() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    installation.admin().decommission_node("default", "web-1", "disk died").await.unwrap();
    let (code, detail) = problem(node.client.report("default", &node.empty_report()).await);
    assert_eq!(code, Code::Decommissioned);
    assert_eq!(detail, "authentication failed: this node was decommissioned by admin: disk died");
    let again = installation.node("web-1").await;
    again.client.report("default", &again.empty_report()).await.unwrap();
    // The certificate of the machine that had the name is unknown from then on.
    let (code, detail) = problem(node.client.report("default", &node.empty_report()).await);
    assert_eq!(code, Code::Unauthenticated);
    assert_eq!(detail, "authentication failed: no valid token or node certificate");
}

#[tokio::test]
async fn a_renewal_makes_a_new_key_and_the_one_before_opens_nothing_once_it_is_shown() {
    let installation = Installation::new().await;
    let token = installation.join_token(None).await;
    let (key, join) = join_request(&token, "web-1");
    let joined = installation.client(Identity::Nobody).join(&join).await.unwrap();
    let client = |certificate: &str, key: &str| {
        let (certificate, key) = (certificate.to_owned(), Secret::new(key.to_owned()));
        installation.client(Identity::Node { certificate, key })
    };
    let first = client(&joined.certificate, &key);
    let poll = async |client: &Client| {
        client.sync("default", "web-1", (0, None), std::time::Duration::from_millis(1)).await
    };
    poll(&first).await.unwrap();
    let renewal = || {
        let (key, join) = join_request(&token, "web-1");
        (key, Renew { certificate_request: join.certificate_request })
    };
    // The answer to one was lost: another one is for another key, or for the same.
    first.renew("default", "web-1", &renewal().1).await.unwrap();
    let (second_key, renew) = renewal();
    first.renew("default", "web-1", &renew).await.unwrap();
    let answer = first.renew("default", "web-1", &renew).await.unwrap();
    poll(&first).await.unwrap();
    let second = client(&answer.certificate, &second_key);
    poll(&second).await.unwrap();
    // Who copied the first key has nothing of it any more, neither over its open connection nor by another renewal.
    assert_eq!(problem(poll(&first).await).0, Code::Unauthenticated);
    assert_eq!(problem(first.renew("default", "web-1", &renewal().1).await).0, Code::Unauthenticated);
    assert_eq!(problem(poll(&client(&joined.certificate, &key)).await).0, Code::Unauthenticated);
    let (third_key, renew) = renewal();
    let answer = second.renew("default", "web-1", &renew).await.unwrap();
    // Whatever the next key asks for: nobody who copied one goes on with both.
    let third = client(&answer.certificate, &third_key);
    third.renew("default", "web-1", &renewal().1).await.unwrap();
    let (code, told) = problem(poll(&second).await);
    assert_eq!(code, Code::Unauthenticated, "{told}");
    // Who goes on with a key that the node had before is told of: the node itself may be who is refused.
    let admin = installation.admin();
    let told = async || {
        assert_eq!(problem(poll(&second).await).0, Code::Unauthenticated);
        let events = admin.events("default", None, 1_000, std::time::Duration::ZERO).await.unwrap().items;
        events.into_iter().filter(|event| event.kind == "node.earlier_key_shown").collect::<Vec<_>>()
    };
    let told = eventually("it is told", async || Some(told().await).filter(|told| !told.is_empty())).await;
    assert_eq!((told.len(), told[0].subject.as_str()), (1, "node/web-1"));
}

#[tokio::test]
async fn a_machine_trusts_only_the_authority_its_token_names() {
    let installation = Installation::new().await;
    let token = installation.join_token(None).await;
    let fingerprint = token.rsplit_once('.').unwrap().1;
    let good = Client::by_fingerprint(&[installation.url()], fingerprint).unwrap();
    good.join(&join_request(&token, "web-1").1).await.unwrap();
    let bad = Client::by_fingerprint(&[installation.url()], &"0".repeat(64)).unwrap();
    let error = bad.join(&join_request(&token, "web-2").1).await.unwrap_err().to_string();
    assert!(error.contains("not the one in the join token"), "{error}");
}

#[tokio::test]
async fn tokens_are_unique_by_name_expire_and_the_last_admin_stays() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let request = |name: &str, life: Option<&str>| NewToken {
        name: name.to_owned(),
        roles: vec!["viewer".to_owned()],
        only_in: None,
        expires_in: life.map(str::to_owned),
    };
    admin.create_token(&request("kim", None)).await.unwrap();
    assert_eq!(problem(admin.create_token(&request("kim", None)).await).0, Code::Exists);
    let (code, detail) = problem(admin.create_token(&request("never", Some("0s"))).await);
    assert!(code == Code::Invalid && detail.contains("must be over 0s"), "{detail}");
    let (code, detail) = problem(admin.create_token(&request("long", Some("99999999999d"))).await);
    assert!(code == Code::Invalid && detail == "expires_in: must be over 0s and at most 365d", "{detail}");
    for name in ["..", ".", "a/b", "../a", "node/web-1", "server/a", "job/a", "bellwether"] {
        let (code, detail) = problem(admin.create_token(&request(name, None)).await);
        assert!(code == Code::Invalid && detail.starts_with("name: "), "{name}: {detail}");
    }
    let gone = admin.create_token(&request("brief", Some("1ms"))).await.unwrap().secret;
    let brief = installation.client(Identity::Token(Secret::new(gone)));
    assert_eq!(problem(brief.who_am_i().await).0, Code::Unauthenticated);
    let (code, detail) = problem(admin.delete_token("admin").await);
    assert_eq!(code, Code::Refused, "{detail}");
    admin.delete_token("kim").await.unwrap();
}

fn admin_request() -> NewToken {
    NewToken { name: String::new(), roles: vec!["admin".to_owned()], only_in: None, expires_in: None }
}

/// A client with a token of this name and these roles.
async fn with_token(installation: &Installation, name: &str, role: &str, life: Option<&str>) -> Client {
    let (roles, expires_in) = (vec![role.to_owned()], life.map(str::to_owned));
    let request = NewToken { name: name.to_owned(), roles, expires_in, ..admin_request() };
    let made = installation.admin().create_token(&request).await.unwrap();
    installation.client(Identity::Token(Secret::new(made.secret)))
}

#[tokio::test]
async fn an_admin_that_does_not_expire_is_left_whatever_is_deleted_or_changed() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    // One that ends soon does not count.
    with_token(&installation, "guest", "admin", Some("1h")).await;
    let (code, detail) = problem(admin.delete_token("admin").await);
    assert_eq!(code, Code::Refused, "{detail}");
    assert!(detail.contains("no admin token that does not expire would be left"), "{detail}");
    // A role of one's own may be everything, too: it is not taken from the last one that has it.
    let role = |claim: &str, description: &str| RoleSpec {
        claims: vec![Claim::from(&access::Claim::parse(claim).unwrap())],
        description: description.to_owned(),
    };
    admin.put_role("boss", &role("* *", "")).await.unwrap();
    let boss = with_token(&installation, "boss", "boss", None).await;
    boss.delete_token("admin").await.unwrap();
    let (code, detail) = problem(boss.put_role("boss", &role("get node", "")).await);
    assert_eq!(code, Code::Refused, "{detail}");
    boss.put_role("boss", &role("* *", "all")).await.unwrap();
}

#[tokio::test]
async fn of_two_admins_who_delete_each_other_one_is_left() {
    let mut installation = Installation::new().await;
    for round in 0..20 {
        let (one, two) = (format!("one-{round}"), format!("two-{round}"));
        let first = with_token(&installation, &one, "admin", None).await;
        let second = with_token(&installation, &two, "admin", None).await;
        // The installation's own admin is away meanwhile.
        first.delete_token("admin").await.unwrap();
        let (a, b) = tokio::join!(first.delete_token(&two), second.delete_token(&one));
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        let left = if a.is_ok() { first } else { second };
        let again = NewToken { name: "admin".to_owned(), ..admin_request() };
        let made = left.create_token(&again).await.unwrap();
        installation.admin_token = Secret::new(made.secret);
        let own = if a.is_ok() { &one } else { &two };
        installation.admin().delete_token(own).await.unwrap();
    }
}

#[tokio::test]
async fn a_machine_that_takes_a_dead_ones_name_inherits_nothing_of_it() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let old = installation.node("web-1").await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = old.assigned("v1").await;
    old.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.progress.last_known_good.is_some()).await;
    admin.decommission_node("default", "web-1", "disk died").await.unwrap();
    let new = installation.node("web-1").await;
    let view = admin.node("default", "web-1").await.unwrap();
    assert!(view.running.is_empty() && view.reported_at_ms.is_none(), "{view:?}");
    // The known good version is assigned anew: the node does not count as running it.
    assert_eq!(new.assigned("v1").await, 1);
}

#[tokio::test]
async fn a_join_token_is_for_one_namespace() {
    let installation = Installation::new().await;
    let token = installation.join_token(None).await;
    let (_, mut request) = join_request(&token, "web-1");
    request.namespace = "staging".to_owned();
    let (code, detail) = problem(installation.client(Identity::Nobody).join(&request).await);
    assert_eq!(code, Code::JoinToken);
    assert!(detail.contains("another namespace"), "{detail}");
}

#[tokio::test]
async fn a_token_is_never_sent_in_clear_to_another_machine() {
    let token = Identity::Token(Secret::new("bwt_x"));
    let access = |server: &str| Access { server: server.to_owned(), ca: None, identity: token.clone() };
    let error = Client::new(&access("http://192.0.2.1:7421")).unwrap_err().to_string();
    assert!(error.contains("unencrypted"), "{error}");
    for server in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
        Client::new(&access(server)).unwrap();
    }
}

#[tokio::test]
async fn a_node_is_expected_until_it_joins_and_missed_while_it_is_silent() {
    let mut installation = Installation::new().await;
    let (operator, viewer) = (installation.token("operator").await, installation.token("viewer").await);
    operator.expect_node("default", "web-9", "ordered yesterday").await.unwrap();
    operator.expect_node("default", "web-9", "twice").await.unwrap();
    operator.expect_node("default", "web-8", "").await.unwrap();
    assert_eq!(problem(viewer.expect_node("default", "web-7", "").await).0, Code::Forbidden);
    installation.restart().await;
    let admin = installation.admin();
    let missing = admin.unaccounted("default").await.unwrap().items;
    let names: Vec<&str> = missing.iter().map(|each| each.node.as_str()).collect();
    assert_eq!(names, ["web-8", "web-9"]);
    assert_eq!(missing[1].expected.as_ref().unwrap().reason, "ordered yesterday");
    admin.unexpect_node("default", "web-8").await.unwrap();
    assert_eq!(problem(admin.unexpect_node("default", "web-8").await).0, Code::NotFound);
    let node = installation.node("web-9").await;
    let silent = admin.unaccounted("default").await.unwrap().items;
    assert_eq!((silent.len(), silent[0].state.as_str(), &silent[0].expected), (1, "never", &None));
    assert_eq!(problem(admin.expect_node("default", "web-9", "").await).0, Code::Exists);
    node.client.sync("default", "web-9", (0, None), std::time::Duration::from_millis(1)).await.unwrap();
    let heard = async {
        while !admin.unaccounted("default").await.unwrap().items.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), heard).await.expect("it was heard of");
}

#[tokio::test]
async fn a_node_may_have_the_longest_host_name_and_reports_under_it() {
    let longest = [&*"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].join(".");
    assert_eq!(longest.len(), 253);
    for name in ["web-1.example.org", &longest] {
        let installation = Installation::new().await;
        let admin = installation.admin();
        let selector = format!("name={name}");
        let spec = EntitySpec { selector, policy: policy("1", "0s"), ..EntitySpec::default() };
        admin.set_entity("default", "web", &spec).await.unwrap();
        let node = installation.node(name).await;
        admin.start_rollout("default", "web", &version("v1")).await.unwrap();
        let number = node.assigned("v1").await;
        node.runs("v1", number, TargetHealth::Healthy).await;
        until(&admin, |view| view.progress.last_known_good.is_some()).await;
        admin.pause_node("default", name, "a disk").await.unwrap();
        let seen = admin.node("default", name).await.unwrap();
        assert_eq!((seen.presence.state.as_str(), seen.node.pause.is_some()), ("up", true), "{name}");
    }
}

#[tokio::test]
async fn a_node_name_that_is_no_host_name_is_refused_with_the_one_to_use() {
    let installation = Installation::new().await;
    let token = installation.join_token(None).await;
    let nobody = installation.client(Identity::Nobody);
    for (name, reason) in [
        ("Web-1.Example.org", "upper-case letters are not allowed; use \"web-1.example.org\""),
        ("web_1", "'_' is not allowed in host names; use \"web-1\""),
    ] {
        let (code, detail) = problem(nobody.join(&join_request(&token, name).1).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(reason), "{detail}");
        let for_node = NewJoinToken {
            node: Some(name.to_owned()),
            labels: vec!["*".to_owned()],
            ..NewJoinToken::default()
        };
        let (code, detail) = problem(installation.admin().create_join_token(&for_node).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(reason), "{detail}");
    }
    nobody.join(&join_request(&token, "web-1").1).await.unwrap();
}

#[tokio::test]
async fn a_machine_has_the_labels_of_its_join_token_and_chooses_of_those_that_it_leaves_open() {
    let installation = Installation::new().await;
    let (admin, nobody) = (installation.admin(), installation.client(Identity::Nobody));
    let token = async |labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let new = NewJoinToken { labels, services: vec!["web-*".to_owned()], ..NewJoinToken::default() };
        admin.create_join_token(&new).await.map(|made| made.secret)
    };
    let join = |token: &str, chosen: &[(&str, &str)]| {
        let chosen = chosen.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Join { labels: chosen.collect(), ..join_request(token, "web-1").1 }
    };
    let none = token(&[]).await.unwrap();
    let (code, detail) = problem(nobody.join(&join(&none, &[("role", "payments")])).await);
    assert_eq!(code, Code::Refused, "{detail}");
    assert!(detail.contains("label role=payments: the join token does not allow it"), "{detail}");
    let some = token(&["role=web", "zone=*"]).await.unwrap();
    for chosen in [&[("role", "payments")][..], &[("zonex", "a")], &[("zone", "a"), ("rack", "1")]] {
        assert_eq!(problem(nobody.join(&join(&some, chosen)).await).0, Code::Refused, "{chosen:?}");
    }
    nobody.join(&join(&some, &[("zone", "a")])).await.unwrap();
    let node = admin.node("default", "web-1").await.unwrap().node;
    let labels = [("role", "web"), ("zone", "a")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!((node.labels, node.services), (labels.into(), vec!["web-*".to_owned()]));
    for bad in [&["role"][..], &["=web"], &["role=a b"], &["Ro le=*"]] {
        assert_eq!(problem(token(bad).await).0, Code::Invalid, "{bad:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_expires_opens_nothing_more_over_a_connection_that_is_open_or_resumed() {
    let mut installation = Installation::new().await;
    let clock = Clock::manual(Clock::system().now());
    installation.restart_at(clock.clone()).await;
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    clock.advance(Span::from_secs(72 * 3_600));
    let again = installation.client(node.identity.clone());
    for client in [&node.client, &again] {
        let (code, detail) = problem(client.report("default", &node.empty_report()).await);
        assert_eq!(code, Code::Unauthenticated);
        assert!(detail.contains("has expired"), "{detail}");
        let request = rcgen::KeyPair::generate().unwrap();
        let request = rcgen::CertificateParams::default().serialize_request(&request).unwrap().pem().unwrap();
        let renewal = Renew { certificate_request: request };
        assert_eq!(problem(client.renew("default", "web-1", &renewal).await).0, Code::Unauthenticated);
    }
}
