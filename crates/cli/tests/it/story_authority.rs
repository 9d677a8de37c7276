//! Replacing the certificate authority under two agents: both go with it, whatever is killed in between, and a context is refreshed.

use std::process::Output;

use bellwether_api::v1::authorities::{Authorities, AuthorityPhase};
use bellwether_api::v1::node::PresenceState;
use bellwether_core::words::time::Span;

use crate::place::{Setup, code, done, text, wait_for};

async fn until(place: &Setup, what: &str, holds: impl Fn(&Authorities) -> bool) {
    // A client of its own each time: the server and the trust in it change.
    wait_for(what, async || place.client().authorities().await.is_ok_and(|all| holds(&all))).await;
}

/// Runs the command line with a context alone.
fn in_context(place: &Setup, args: &[&str]) -> Output {
    let mut command = place.command(args);
    for variable in ["BELLWETHER_SERVER", "BELLWETHER_CA", "BELLWETHER_TOKEN"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

/// Makes a context that trusts the authority of now.
fn set_context(place: &Setup) {
    let (url, ca, token) = (place.url(), place.path("server/pki/ca.pem"), place.path("server/admin-token"));
    let set = ["context", "set", "main", "--server", &url, "--ca", &ca, "--token-file", &token];
    let made = in_context(place, &set);
    assert_eq!(code(&made), 0, "{}", text(&made.stderr));
}

/// Has the context trust what the server says, which is of this version.
fn refresh(place: &Setup, version: &str) {
    let refreshed = in_context(place, &["context", "refresh"]);
    let said = format!("context main: trusts the authorities of {version}");
    assert!(text(&refreshed.stderr).contains(&said), "{}", text(&refreshed.stderr));
}

/// Waits until a node has stored that it trusts one authority alone.
async fn trusts_one(place: &Setup, name: &str) {
    let stored = place.path(&format!("{name}/data/ca.pem"));
    wait_for("the node trusts one authority", async || {
        std::fs::read_to_string(&stored).unwrap().matches("BEGIN CERTIFICATE").count() == 1
    })
    .await;
}

fn has_phase(all: &Authorities, phase: AuthorityPhase) -> bool {
    all.authorities.iter().any(|each| each.phase == phase)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_is_replaced_while_nodes_run_and_everybody_goes_with_it() {
    let began = bellwether_rt::clock::Clock::system().now();
    let mut place = Setup::new().await;
    place.start_agent("web-1", "");
    place.start_agent("web-2", "");
    set_context(&place);
    done(&place, &["server", "ca", "rotate", "--reason", "its key was copied"]);
    until(&place, "both nodes trust the next one", |all| all.not_trusting_next.is_empty()).await;
    refresh(&place, "version 1");
    // One is away while the next is brought into use; the server dies in between.
    place.stop_agent("web-2");
    done(&place, &["server", "ca", "activate"]);
    place.kill_server();
    place.start_server().await;
    until(&place, "the node that is up has renewed", |all| all.not_renewed == ["default/web-2"]).await;
    let refused = place.run(&["server", "ca", "retire", "--yes"]);
    assert_ne!(code(&refused), 0);
    assert!(
        text(&refused.stderr).contains("use a certificate of it: default/web-2"),
        "{}",
        text(&refused.stderr)
    );
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    place.resume_agent("web-2");
    until(&place, "both have renewed", |all| all.not_renewed.is_empty()).await;
    let shown = in_context(&place, &["server", "ca", "get"]);
    assert!(
        text(&shown.stdout).contains("0 of 2 nodes have no certificate of the active authority"),
        "{}",
        text(&shown.stdout)
    );
    done(&place, &["server", "ca", "retire", "--yes"]);
    until(&place, "one is retired", |all| has_phase(all, AuthorityPhase::Retired)).await;
    refresh(&place, "version 3");
    for name in ["web-1", "web-2"] {
        trusts_one(&place, name).await;
        place.stop_agent(name);
        place.resume_agent(name);
    }
    place.kill_server();
    place.start_server().await;
    place.start_agent("web-3", "");
    wait_for("all are up", async || {
        let nodes = in_context(&place, &["node", "list", "-o", "json"]);
        code(&nodes) == 0 && text(&nodes.stdout).matches("\"up\"").count() == 3
    })
    .await;
    let took = bellwether_rt::clock::Clock::system().now().since(began);
    assert!(took < Span::from_secs(120), "polls were not woken: it took {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_trusts_the_authority_before_is_told_which_file_has_the_present_one() {
    let place = Setup::new().await;
    set_context(&place);
    let token = done(&place, &["join-token", "create", "--node", "web-1"]);
    done(&place, &["server", "ca", "rotate"]);
    done(&place, &["server", "ca", "activate"]);
    wait_for("the server presents the next one", async || code(&in_context(&place, &["status"])) == 69).await;
    for args in [&["status"][..], &["context", "refresh"]] {
        let refused = text(&in_context(&place, args).stderr);
        assert!(refused.contains("UnknownIssuer") && refused.contains("pki/trusted.pem"), "{refused}");
    }
    let config = place.path("server.toml");
    let looked = in_context(&place, &["doctor", "--server-config", &config]);
    let found = text(&looked.stdout);
    assert!(found.contains("ok       server/port") && found.contains("pki/trusted.pem"), "{found}");
    let (url, data, file) = (place.url(), place.path("data"), place.path("join-token"));
    std::fs::write(&file, token).unwrap();
    let join =
        ["agent", "join", "--server", &url, "--token-file", &file, "--name", "web-1", "--data-dir", &data];
    let refused = text(&place.run(&join).stderr);
    assert!(refused.contains("make a new join token"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_while_its_authority_was_replaced_is_told_to_join_again() {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "");
    let client = place.client();
    wait_for("the node is up", async || {
        client.node("default", "web-1").await.is_ok_and(|node| node.presence.state == PresenceState::Up)
    })
    .await;
    place.stop_agent("web-1");
    done(&place, &["server", "ca", "rotate"]);
    let refused = place.run(&["server", "ca", "activate"]);
    assert!(
        text(&refused.stderr).contains("do not trust it yet: default/web-1"),
        "{}",
        text(&refused.stderr)
    );
    done(&place, &["server", "ca", "activate", "--force"]);
    wait_for("the server presents the next one", async || {
        let retired = place.run(&["server", "ca", "retire", "--force", "--yes"]);
        code(&retired) == 0
    })
    .await;
    place.resume_agent("web-1");
    wait_for("the agent is told", async || {
        let log = std::fs::read_to_string(place.log("web-1")).unwrap();
        log.contains("join the machine again: bellwether agent join --force")
    })
    .await;
    let looked = place.run(&["doctor", "--agent-config", &place.path("web-1/agent.toml")]);
    let found = text(&looked.stdout);
    assert!(
        found.contains("failed   agent/server") && found.contains("failed   agent/connection"),
        "{found}"
    );
    assert_eq!(found.matches("bellwether agent join --force --server").count(), 2, "{found}");
    assert!(!found.contains("trusted.pem"), "{found}");
}
