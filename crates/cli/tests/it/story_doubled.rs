//! Two agents on copies of one data directory, as of a machine that was cloned: each finds that another one reports as its node, and says so.

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::registrations::ServiceRegistrations;

use crate::place::{Setup, copied, done, text, wait_for};
use crate::story_workflows::installed;

/// Sets a status by way of the agent whose data are in this directory, once that runs.
fn sets(place: &Setup, home: &str, reason: &str) {
    let data = format!("{home}/data");
    place.run(&["update-status", "disk", "success", "--data-dir", &data, "--reason", reason]);
}

fn told(place: &Setup) -> String {
    text(&place.run(&["get-failures"]).stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_with_one_identity_are_told_of_until_one_of_them_has_another() {
    let mut place = installed(&["web-1"]).await;
    place.stop_agent("web-1");
    let (own, copy) = (place.path("web-1"), place.path("copy"));
    copied(&own, &copy);
    let config = std::fs::read_to_string(format!("{own}/agent.toml")).unwrap();
    std::fs::write(format!("{copy}/agent.toml"), config.replace(&own, &copy)).unwrap();
    place.resume_agent("web-1");
    place.resume_agent("copy");
    let mut round = 0;
    wait_for("both are told of", async || {
        round += 1;
        sets(&place, &own, &format!("own {round}"));
        sets(&place, &copy, &format!("copy {round}"));
        told(&place).contains("another agent reports as this node")
    })
    .await;
    assert!(done(&place, &["node", "list"]).contains("web-1"));
    place.stop_agent("copy");
    place.stop_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it is the only one again", async || !told(&place).contains("another agent")).await;
}

/// A client with the copied key of a node.
fn thief(place: &Setup, node: &str) -> Client {
    let read = |name: &str| std::fs::read_to_string(place.path(&format!("{node}/data/{name}"))).unwrap();
    let identity = Identity::Node { certificate: read("node.pem"), key: Secret::new(read("node.key")) };
    let ca = Some(std::fs::read_to_string(place.ca()).unwrap());
    Client::new(&Access { server: place.url(), ca, identity }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_copied_key_registers_is_set_right_by_the_node_and_told_of() {
    let mut place = Setup::new().await;
    // One that reads the services of others hears of what is registered at once.
    let front = "[[service]]\nname = \"front\"\nport = 8081\nneeds = [\"web\"]\n";
    place.start_agent("web-1", &format!("[[service]]\nname = \"web\"\nport = 8080\n{front}"));
    let client = place.client();
    let registered = async || {
        let view = client.service("default", "web", None, std::time::Duration::ZERO).await;
        let ports = view.map(|view| view.instances.into_iter().map(|instance| instance.port).collect());
        ports.unwrap_or_else(|_| Vec::new())
    };
    wait_for("it is registered", async || registered().await == [Some(8080)]).await;
    let thief = thief(&place, "web-1");
    let lie = ServiceRegistrations { node: "web-1".to_owned(), ..ServiceRegistrations::default() };
    thief.registration("default", &lie).await.unwrap();
    wait_for("the node registers its own again", async || registered().await == [Some(8080)]).await;
    assert!(!told(&place).contains("another agent"), "once may be a restore");
    // Another one counts once the node knows that its own was recorded in between.
    wait_for("it is told of", async || {
        if registered().await == [Some(8080)] {
            thief.registration("default", &lie).await.unwrap();
        }
        told(&place).contains("another agent reports as this node")
    })
    .await;
    wait_for("the node registers its own again", async || registered().await == [Some(8080)]).await;
}
