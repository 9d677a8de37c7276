//! An etcd that lost two of three members for good: a person founds the store anew from the last one, the control plane believes the store, and it
//! grows again.

use std::process::Command;

use crate::place::{Setup, code, free_ports, text, wait_for};
use crate::story_ensembles::{complete, etcds, installed, post, spec};

/// Ends the programs of members on a node as by a power failure.
fn end_etcd(place: &Setup, node: &str) {
    for pid in etcds(place, node) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
}

/// Founds a store anew from the member of a node, by hand, with the arguments that it has.
async fn found_anew(place: &mut Setup, node: &str, client: &str) {
    let pid = etcds(place, node).pop().unwrap();
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let arguments: Vec<&str> = std::str::from_utf8(&arguments).unwrap().split_terminator('\0').collect();
    place.kill_agent(node);
    end_etcd(place, node);
    let (program, arguments) = arguments.split_first().unwrap();
    let mut etcd = Command::new(program);
    etcd.args(arguments).arg("--force-new-cluster");
    let log = std::fs::File::create(place.path("founded-anew.log")).unwrap();
    let mut etcd = etcd.stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap();
    wait_for("it serves alone", async || post(client, "/v3/kv/range", r#"{"key": "AAAA"}"#).is_some()).await;
    etcd.kill().unwrap();
    etcd.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lost_its_quorum_for_good_is_founded_anew_by_hand_and_grows_again() {
    let mut place = installed().await;
    let ports = free_ports();
    place.client().set_ensemble("default", "store", &spec(3, ports, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let host = members[0].peer_url.clone().unwrap();
    let host = host.trim_start_matches("http://").split(':').next().unwrap().to_owned();
    let client = format!("{host}:{}", ports[0]);
    assert!(post(&client, "/v3/kv/put", r#"{"key": "AAAA", "value": "AAAA"}"#).is_some());
    for lost in members.iter().skip(1) {
        place.kill_agent(&lost.node);
        end_etcd(&place, &lost.node);
        std::fs::remove_dir_all(place.path(&format!("{}/data/ensembles/store", lost.node))).unwrap();
    }
    let why = ["why", "ensemble/store"];
    wait_for("quorum is lost", async || text(&place.run(&why).stdout).contains("quorum is lost")).await;
    for lost in members.iter().skip(1) {
        wait_for("its machine is given up", async || {
            code(&place.run(&["node", "decommission", &lost.node, "--yes"])) == 0
        })
        .await;
    }

    let own = members[0].node.clone();
    found_anew(&mut place, &own, &client).await;
    place.resume_agent(&own);
    wait_for("the store is believed", async || {
        let said = text(&place.run(&why).stdout);
        !said.contains("member 2 ") && !said.contains("member 3 ")
    })
    .await;
    let grown = complete(&place, 3).await;
    assert!(grown.iter().any(|member| member.number == 1), "{grown:?}");
    assert!(grown.iter().all(|member| !["2", "3"].contains(&&*member.number.to_string())), "{grown:?}");
    assert!(
        post(&client, "/v3/kv/range", r#"{"key": "AAAA"}"#)
            .is_some_and(|found| found.contains(r#""count":"1""#))
    );
}
