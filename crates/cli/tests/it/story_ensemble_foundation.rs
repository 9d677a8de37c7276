//! The control plane runs on an etcd that it manages itself: an installation moves to the ensemble that it made, with TLS, and then grows it, loses and
//! replaces its members, and is started again, without losing what was acknowledged.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use bellwether_api::v1::ensemble::EnsembleSpec;
use bellwether_api::v1::ensemble::members::EnsembleMember;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensembles::{complete, etcds, installed, spec};

/// The URL at which a member serves clients.
fn client_url(member: &EnsembleMember, port: u16) -> String {
    let peer = member.peer_url.clone().unwrap();
    let (host, _) = peer.rsplit_once(':').unwrap();
    format!("{host}:{port}")
}

/// Moves the installation to the etcd of its own ensemble, which has this one member so far.
async fn moved(place: &mut Setup, endpoint: &str) {
    let certificates = place.path("etcd-client");
    done(place, &["ensemble", "certify", "store", "--out", &certificates, "--valid-for", "90d"]);
    let file = |name: &str| format!("{certificates}/{name}.pem");
    let [ca, certificate, key] = ["ca", "client", "client-key"].map(file);
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read_to_string(place.path("server.toml")).unwrap();
    let table = format!(
        "\nname = \"cp-1\"\n\n[etcd]\nendpoints = [{endpoint:?}]\nca_file = {ca:?}\ncert_file = {certificate:?}\nkey_file = {key:?}\n"
    );
    std::fs::write(place.path("on-etcd.toml"), before + &table).unwrap();
    assert_eq!(place.stop_server().await, Some(0));
    let (from, to) = (place.path("server.toml"), place.path("on-etcd.toml"));
    let migrated = place.run(&["server", "migrate", "--config", &from, "--to", &to]);
    assert!(migrated.status.success(), "{}", text(&migrated.stderr));
    std::fs::rename(to, from).unwrap();
    place.start_server().await;
}

/// The endpoints of etcd that the server uses.
async fn endpoints(place: &Setup) -> Vec<String> {
    let plane = place.client().control_plane().await;
    plane.map(|plane| plane.store.endpoints).unwrap_or_default()
}

/// Sets a param that was not there; whether that was acknowledged.
fn sets(place: &Setup, number: u32) -> bool {
    let param = format!("number-{number}={number}");
    code(&place.run(&["profile", "set", "numbers", &param])) == 0
}

fn has_all(place: &Setup, numbers: &[u32]) {
    let shown = done(place, &["profile", "get", "numbers"]);
    for number in numbers {
        assert!(shown.contains(&format!("number-{number}")), "{number} is lost: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_plane_grows_and_replaces_the_members_of_the_etcd_that_it_runs_on() {
    let mut place = installed().await;
    let ports = free_ports();
    let spec = EnsembleSpec { failover_after: Some("7d".to_owned()), ..spec(1, ports, true) };
    place.client().set_ensemble("default", "store", &spec).await.unwrap();
    let first = complete(&place, 1).await;
    let endpoint = client_url(&first[0], ports[0]);
    assert!(sets(&place, 1));
    moved(&mut place, &endpoint).await;
    assert!(done(&place, &["server", "list"]).contains(&format!("at {endpoint}")));
    assert_eq!(complete(&place, 1).await, first, "the move changed nothing of what runs");
    has_all(&place, &[1]);
    assert!(sets(&place, 2));

    done(&place, &["ensemble", "scale", "store", "3", "--yes"]);
    let three = complete(&place, 3).await;
    wait_for("the server uses all members", async || endpoints(&place).await.len() == 3).await;
    assert!(sets(&place, 3));

    // The member that it began with leaves, and is in no configuration but the server's.
    done(&place, &["ensemble", "replace", "store", "1", "--yes"]);
    let mut members = Vec::new();
    wait_for("member 1 is replaced", async || {
        let status = place.client().ensemble("default", "store").await;
        members = status.ok().and_then(|of| of.status).map(|of| of.members).unwrap_or_default();
        members.len() == 3 && members.iter().all(|member| member.number != 1)
    })
    .await;
    let others = complete(&place, 3).await;
    wait_for("changes are taken", async || sets(&place, 4)).await;
    has_all(&place, &[1, 2, 3, 4]);
    place.kill_server();
    place.start_server().await;
    has_all(&place, &[1, 2, 3, 4]);
    wait_for("it uses the members that there are", async || {
        let used = endpoints(&place).await;
        others.iter().all(|member| used.contains(&client_url(member, ports[0])))
    })
    .await;

    // One more is lost at once.
    let lost = three.iter().find(|member| others.contains(member)).unwrap().clone();
    for pid in etcds(&place, &lost.node) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    wait_for("changes are taken again", async || sets(&place, 5)).await;
    assert_eq!(complete(&place, 3).await, others, "its agent has started it again");
    has_all(&place, &[1, 2, 3, 4, 5]);

    // Nobody deletes it by mistake.
    let refused = place.run(&["ensemble", "delete", "store", "--yes"]);
    let said = text(&refused.stderr);
    assert!(code(&refused) != 0 && said.contains("the control plane has its own records in it"), "{said}");
}
