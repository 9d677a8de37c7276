//! The keys of an ensemble reach the nodes that have a member of it, and nobody else.

use bellwether_api::problem::Code;
use bellwether_api::v1::ensemble::certificates::MemberCertificateRequest;
use bellwether_api::v1::ensemble::keys::MemberKeysRequest;
use bellwether_api::v1::ensemble::service::{CephSpec, EtcdSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::{EnsembleMode, EnsembleSpec};
use bellwether_api::v1::registrations::ServiceRegistrations;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::run::Server;
use bellwether_store::{Op, Store, Txn};
use serde_json::json;

use crate::harness::{Installation, problem};

fn spec(service: ServiceAgentSpec) -> EnsembleSpec {
    let mode = Some(EnsembleMode::Unmanaged);
    EnsembleSpec { service, filter: "all".to_owned(), mode, ..EnsembleSpec::default() }
}

/// An installation with an ensemble of Ceph and one of etcd, which nobody changes. Of the first, disk-1 has a member that votes, and disk-2 one that
/// leaves; of the second, disk-1 has one.
async fn with_members() -> Installation {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let ceph = ServiceAgentSpec { ceph: Some(CephSpec::default()), ..ServiceAgentSpec::default() };
    admin.set_ensemble("default", "disks", &spec(ceph)).await.unwrap();
    let etcd = ServiceAgentSpec { etcd: Some(EtcdSpec::default()), ..ServiceAgentSpec::default() };
    admin.set_ensemble("default", "store", &spec(etcd)).await.unwrap();
    installation.server.take().unwrap().stop().await.unwrap();
    let member = |number: u64, phase: &str| {
        let removal = (phase == "leaving").then_some("drained");
        json!({"number": number, "node": format!("disk-{number}"), "phase": phase, "since_ms": 1, "removal": removal})
    };
    let put = |name: &str, service: serde_json::Value, members: Vec<serde_json::Value>| {
        let record = json!({"ensemble": name, "identity": format!("{name}-1"), "last": 2, "service": service,
                            "is_bootstrapped": true, "members": members});
        let value = json!({"schema": "ensemble-members.v1", "record": record}).to_string();
        Op::Put {
            key: format!("/bw/ns/default/ensemble-members/{name}").into(),
            value: value.into(),
            lease: None,
        }
    };
    let ops = vec![
        put("disks", json!({"ceph": {"port": 3300}}), vec![member(1, "voting"), member(2, "leaving")]),
        put("store", json!({"etcd": {"client_port": 2379, "peer_port": 2380}}), vec![member(1, "voting")]),
    ];
    let tasks = Tasks::new();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    store.commit(Txn { compares: vec![], ops }).await.unwrap();
    store.close().await;
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    installation
}

#[tokio::test]
async fn certificates_of_members_name_addresses_of_their_node_alone() {
    let installation = with_members().await;
    let node = installation.node("disk-1").await;
    let ask = async |addresses: &[&str]| {
        let key = rcgen::KeyPair::generate().unwrap();
        let request = rcgen::CertificateParams::default().serialize_request(&key).unwrap();
        let request = MemberCertificateRequest {
            number: 1,
            identity: "store-1".to_owned(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            certificate_request: request.pem().unwrap(),
        };
        node.client.member_certificate(["default", "disk-1", "store"], &request).await
    };
    let refused = async |addresses: &[&str], unknown: &str| {
        let (code, detail) = problem(ask(addresses).await);
        assert_eq!(code, Code::Refused, "{detail}");
        let said = format!("node disk-1 has not reported that it has the address {unknown}");
        assert!(detail.ends_with(&said), "{detail}");
    };
    refused(&["10.0.0.7"], "10.0.0.7").await;
    ask(&["127.0.0.1"]).await.expect("it asks from there");
    let registrations = ServiceRegistrations {
        node: "disk-1".to_owned(),
        addresses: [("eth0".to_owned(), vec!["10.0.0.7".parse().unwrap()])].into(),
        instances: Vec::new(),
    };
    node.client.registration("default", &registrations).await.unwrap();
    ask(&["10.0.0.7", "127.0.0.1"]).await.unwrap();
    refused(&["10.0.0.7", "10.99.99.99"], "10.99.99.99").await;
    refused(&["0.0.0.0"], "0.0.0.0").await;
}

#[tokio::test]
async fn keys_reach_only_the_node_that_has_the_member_and_while_it_does_not_leave() {
    let installation = with_members().await;
    let one = installation.node("disk-1").await;
    let two = installation.node("disk-2").await;
    let ask = |number: u64, identity: &str| MemberKeysRequest { number, identity: identity.to_owned() };
    let of = |node: &'static str, ensemble: &'static str| ["default", node, ensemble];
    let own = one.client.member_keys(of("disk-1", "disks"), &ask(1, "disks-1")).await.unwrap();
    let again = one.client.member_keys(of("disk-1", "disks"), &ask(1, "disks-1")).await.unwrap();
    assert!(own == again && own.members != own.administrator, "{own:?}");
    assert_eq!(own.fsid.len(), 36);

    let other = problem(two.client.member_keys(of("disk-2", "disks"), &ask(1, "disks-1")).await);
    assert!(other.0 == Code::Refused && other.1.contains("it is not on node disk-2"), "{other:?}");
    let former = problem(one.client.member_keys(of("disk-1", "disks"), &ask(1, "disks-0")).await);
    assert!(former.0 == Code::Refused && former.1.contains("it is not on node disk-1"), "{former:?}");
    let leaving = problem(two.client.member_keys(of("disk-2", "disks"), &ask(2, "disks-1")).await);
    assert!(leaving.0 == Code::Refused && leaving.1.contains("it leaves"), "{leaving:?}");
    let none = problem(one.client.member_keys(of("disk-1", "store"), &ask(1, "store-1")).await);
    assert!(none.0 == Code::Refused && none.1.contains("etcd has none"), "{none:?}");
    let foreign = problem(two.client.member_keys(of("disk-1", "disks"), &ask(1, "disks-1")).await);
    assert_eq!(foreign.0, Code::Forbidden, "{foreign:?}");
    let person = problem(installation.admin().member_keys(of("disk-1", "disks"), &ask(1, "disks-1")).await);
    assert_eq!(person.0, Code::Forbidden, "{person:?}");
    let missing = problem(one.client.member_keys(of("disk-1", "nowhere"), &ask(1, "x")).await);
    assert_eq!(missing.0, Code::NotFound, "{missing:?}");
}
