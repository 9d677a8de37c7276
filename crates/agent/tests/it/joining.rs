//! Joining, and the refusals around it.

use bellwether_agent::run::RunError;
use bellwether_agent::status;
use bellwether_api::client::secret::Secret;
use bellwether_api::v1::access::NewJoinToken;

use crate::bench::{Bench, NODE, NS};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_joins_once_and_reports() {
    let bench = Bench::new().await;
    let joined = bench.join().await.unwrap();
    assert_eq!((joined.node.as_str(), joined.already), (NODE, false));
    assert!(bench.join().await.unwrap().already);
    for name in ["node.key", "node.pem", "ca.pem", "identity.toml"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(bench.data_dir().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let agent = bench.agent_again("");
    let node = bench.sees("a report", |node| node.agent_version.is_some()).await;
    assert_eq!(node.node.labels["role"], "web");
    bench.sees("contact", |node| node.presence.state == "up").await;
    let status = bench.says("contact", |status| status.connected_since_ms.is_some()).await;
    assert!(status.alive && status.node == NODE && status.server.contains(&bench.address.to_string()));
    agent.stop().await;
    assert!(!status::read(&bench.data_dir()).unwrap().alive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_join_has_the_servers_reason() {
    let bench = Bench::new().await;
    let token = bench.token().await;
    let refused = async |name: &str, token: &Secret| {
        let mut request = bench.request(token.clone());
        request.data_dir = bench.path(name);
        request.node = name.to_owned();
        bellwether_agent::join::join(request).await.unwrap_err().to_string()
    };
    let first = bench.request(token.clone());
    bellwether_agent::join::join(first).await.unwrap();
    let error = refused("another", &token).await;
    assert!(
        error.contains("the join token was used already") && error.contains("join-token create"),
        "{error}"
    );
    let expires_in = Some("1ms".to_owned());
    let short = NewJoinToken { expires_in, labels: vec!["*".to_owned()], ..NewJoinToken::default() };
    let short = Secret::new(bench.client.create_join_token(&short).await.unwrap().secret);
    let error = refused("late", &short).await;
    assert!(error.contains("the join token has expired"), "{error}");
    let (_, fingerprint) = token.expose().split_once('.').unwrap();
    let error = refused("unknown", &Secret::new(format!("bwj_00.{fingerprint}"))).await;
    assert!(error.contains("unknown or was revoked"), "{error}");
    let error = refused("impostor", &Secret::new(format!("bwj_00.{}", "0".repeat(64)))).await;
    assert!(error.contains("the server's CA is not the one in the join token"), "{error}");
    let mut other = bench.request(bench.token().await);
    other.node = "web-2".to_owned();
    let error = bellwether_agent::join::join(other).await.unwrap_err().to_string();
    assert!(error.contains("this node has joined as default/web-1"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upper_case_node_name_becomes_lower_case() {
    let bench = Bench::new().await;
    let mut request = bench.request(bench.token().await);
    request.node = "Web-1.Example.org".to_owned();
    let joined = bellwether_agent::join::join(request.clone()).await.unwrap();
    assert_eq!(joined.node.as_str(), "web-1.example.org");
    assert!(bellwether_agent::join::join(request.clone()).await.unwrap().already);
    request.node = "web_1".to_owned();
    let error = bellwether_agent::join::join(request).await.unwrap_err().to_string();
    assert!(error.contains("'_' is not allowed in host names; use \"web-1\""), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_an_identity_a_free_directory_or_a_valid_ledger_does_not_start() {
    let bench = Bench::new().await;
    let error = bench.agent_again("").ends().await.unwrap_err();
    assert!(matches!(error, RunError::NotJoined { .. }), "{error}");
    let agent = bench.agent("").await;
    bench.says("the agent running", |status| status.alive).await;
    let error = bench.agent_again("").ends().await.unwrap_err().to_string();
    assert!(error.contains("another agent (process ") && error.contains("is using it"), "{error}");
    agent.stop().await;
    let ledger = bench.data_dir().join("ledger/entities/web.json");
    std::fs::write(&ledger, "{\"schema\":1").unwrap();
    let error = bench.agent_again("").ends().await.unwrap_err().to_string();
    assert!(error.contains("web.json") && error.contains("remove it"), "{error}");
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "{\"schema\":1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decommissioned_agent_ends_and_joins_anew_when_forced() {
    let bench = Bench::new().await;
    let agent = bench.agent("[entity.web]\nstatic = [\"true\"]\n").await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.client.decommission_node(NS, NODE, "disk died").await.unwrap();
    let error = agent.ends().await.unwrap_err();
    assert!(matches!(error, RunError::Decommissioned { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("decommissioned by admin: disk died") && error.contains("--force"), "{error}");
    let status = bellwether_agent::status::read(&bench.data_dir()).unwrap();
    let said = status.decommissioned.unwrap();
    assert!(said.contains("decommissioned by admin: disk died"), "{said}");
    assert_eq!(status.connected_since_ms, None);
    assert!(bench.join().await.unwrap().already, "without force nothing changes");
    // Whoever has copied its key has nothing of the next one.
    let thief = bench.node_client();
    let mut request = bench.request(bench.token().await);
    request.force = true;
    assert!(!bellwether_agent::join::join(request).await.unwrap().already);
    let stolen = thief.sync(NS, NODE, (0, None), std::time::Duration::from_millis(1)).await;
    assert!(stolen.unwrap_err().to_string().contains("authentication failed"));
    assert!(!bench.data_dir().join("node.key.join").exists());
    let gone = bellwether_agent::status::read(&bench.data_dir());
    assert!(gone.is_err(), "what is said of the node before is over: {gone:?}");
    let agent = bench.agent_again("[entity.web]\nstatic = [\"true\"]\n");
    bench.runs("v1").await;
    bench.sees("contact", |node| node.presence.state == "up").await;
    agent.stop().await;
}
