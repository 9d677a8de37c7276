//! Replacing the certificate authority under several servers on one etcd: each of them presents and trusts what is recorded, whichever was asked, and
//! whichever dies in between.

use bellwether_api::client::{Access, Client, Identity, secret::Secret};
use bellwether_api::v1::authorities::{Authorities, AuthorityPhase, ChangeAuthorities};
use bellwether_testbed::Options;

use crate::bed::{Bed, options};

const SERVERS: usize = 3;
const AGENTS: usize = 3;

/// A client of each server that trusts these certificates alone.
fn trusting(bed: &Bed, certificates: &str) -> Vec<Client> {
    let of = |server| {
        let environment = bed.inner.environment(server).unwrap();
        let token = environment.iter().find(|(name, _)| name == "BELLWETHER_TOKEN").unwrap().1.clone();
        let (server, ca) = (bed.inner.url(server).unwrap(), Some(certificates.to_owned()));
        Client::new(&Access { server, ca, identity: Identity::Token(Secret::new(token)) }).unwrap()
    };
    (1..=SERVERS).map(of).collect()
}

/// Waits until every server says that of the authorities, as clients with this trust reach it.
async fn everywhere(bed: &Bed, trust: &str, what: &str, holds: impl Fn(&Authorities) -> bool) {
    let clients = trusting(bed, trust);
    bed.wait_for(what, async || {
        for client in &clients {
            if !client.authorities().await.is_ok_and(|all| holds(&all)) {
                return false;
            }
        }
        true
    })
    .await;
}

/// The certificates that are trusted in a version, once a server has taken that in.
async fn bundle(bed: &Bed, trust: &str, version: u64) -> String {
    let clients = trusting(bed, trust);
    let mut certificates = String::new();
    bed.wait_for(&format!("version {version} is in use"), async || {
        match clients.last().unwrap().trust_bundle().await {
            Ok(bundle) if bundle.version == version => {
                certificates = bundle.certificates;
                true
            }
            Ok(_) | Err(_) => false,
        }
    })
    .await;
    certificates
}

/// The first of several certificates: the active one.
fn active(certificates: &str) -> String {
    let end = "-----END CERTIFICATE-----\n";
    let (first, _) = certificates.split_once(end).unwrap();
    format!("{first}{end}")
}

fn of_phase(all: &Authorities, phase: AuthorityPhase) -> usize {
    all.authorities.iter().filter(|each| each.phase == phase).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_is_replaced_under_several_servers_of_which_one_dies_in_between() {
    let mut bed = Bed::start(Options { etcd: 1, servers: SERVERS, agents: AGENTS, ..options() }).await;
    let change = ChangeAuthorities::default();
    bed.client(1).rotate_authority(&change).await.unwrap();
    let founding = std::fs::read_to_string(bed.inner.home("server-1").join("data/pki/ca.pem")).unwrap();
    everywhere(&bed, &founding, "all nodes trust the next one", |all| {
        of_phase(all, AuthorityPhase::Next) == 1 && all.not_trusting_next.is_empty()
    })
    .await;
    let both = bundle(&bed, &founding, 1).await;
    // The key that the next one is encrypted with is on one server alone: the others do as they are told.
    let refused = trusting(&bed, &founding).swap_remove(0).activate_authority(&change).await.unwrap_err();
    assert!(refused.to_string().contains("lack the key for secrets"), "{refused}");
    let key = |server: usize| bed.inner.home(&format!("server-{server}")).join("data/pki/secrets.key");
    let others = [2, SERVERS].map(|server| (format!("server-{server}"), key(server)));
    for (_, to) in &others {
        std::fs::copy(key(1), to).unwrap();
    }
    for (server, _) in &others {
        bed.obey(&format!("kill {server}"));
        bed.obey(&format!("start {server}"));
    }
    everywhere(&bed, &founding, "all servers have the key", |all| all.servers_without_key.is_empty()).await;
    // The leader dies when another server is told to use the next one.
    let killed = bed.leader_but(&[]).await;
    bed.obey(&format!("kill server-{killed}"));
    let asked = trusting(&bed, &both).swap_remove(killed % SERVERS);
    bed.wait_for("another server activates the next one", async || {
        asked.activate_authority(&change).await.is_ok()
            || asked.authorities().await.is_ok_and(|all| of_phase(&all, AuthorityPhase::Previous) == 1)
    })
    .await;
    bed.obey(&format!("start server-{killed}"));
    let next = active(&bundle(&bed, &both, 2).await);
    assert!(!next.contains(founding.trim()), "another one is active");
    everywhere(&bed, &next, "each presents a certificate of the next one, and all nodes have one", |all| {
        of_phase(all, AuthorityPhase::Previous) == 1 && all.not_renewed.is_empty()
    })
    .await;
    bed.clients = trusting(&bed, &next);
    bed.client(2).retire_authority(&change).await.unwrap();
    everywhere(&bed, &next, "the founding one is retired", |all| of_phase(all, AuthorityPhase::Retired) == 1)
        .await;
    for client in trusting(&bed, &founding) {
        assert!(client.control_plane().await.is_err(), "nobody presents a certificate of it");
    }
    let all: Vec<String> = (1..=SERVERS).map(|server| format!("server-{server}")).collect();
    all.iter().for_each(|server| bed.obey(&format!("kill {server}")));
    tokio::task::block_in_place(|| bed.inner.start_parts(&all)).unwrap();
    bed.wait_for("all agents are up", async || bed.up().await == AGENTS).await;
}
