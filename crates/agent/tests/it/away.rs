//! Without the control plane: what runs stays, the agent works from its ledger, and catches up afterwards.

use std::time::Duration;

use bellwether_agent::config::Config;
use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_server::http::{ConcurrencyLimit, ConcurrencyLimits};

use crate::bench::{Agent, Bench, LONG, NS, tracing_entity};
use crate::service::{alive, entity, free_port, kill, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_works_without_the_control_plane_and_catches_up() {
    let mut bench = Bench::new().await;
    let whole = format!("{}{}", tracing_entity(&bench, ""), entity(&bench, free_port()));
    let agent = bench.agent(&whole).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.stop_server().await;
    let status = bench.says("the break", |status| status.problem.is_some()).await;
    assert!(status.connected_since_ms.is_none() && status.last_contact_ms.is_some());
    let first = started(&bench)[0].0;
    assert!(alive(first));

    // The agent keeps the service running by itself.
    kill(first);
    bench.until("a second start", async || (started(&bench).len() == 2).then_some(())).await;

    // An agent that starts without the control plane works from its ledger, and runs nothing twice.
    agent.stop().await;
    let runs = bench.trace().len();
    let second = started(&bench)[1].0;
    let agent = bench.agent_again(&format!("services_on_exit = \"stop\"\n{whole}"));
    let fits = |status: &bellwether_agent::status::AgentStatus| {
        status.problem.is_some() && status.entities.contains_key("web")
    };
    bench.says("the next agent", fits).await;
    assert!(alive(second) && bench.trace().len() <= runs + 3);

    bench.start_server().await;
    bench.roll("v2").await;
    bench.runs("v2").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_refuses_its_order_reports_why_and_stays_connected() {
    let bench = Bench::new().await;
    let config = tracing_entity(&bench, "");
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    agent.stop().await;
    // It has accepted an order of a term that this server does not know.
    let file = bench.data_dir().join("ledger/order.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut order: serde_json::Value = serde_json::from_str(&text).unwrap();
    order["order"]["term"] = 1_000_000_000.into();
    std::fs::write(&file, order.to_string()).unwrap();
    let agent = bench.agent_again(&config);
    bench.sees("it is back", |node| node.presence.state == "up").await;
    bench.roll("v2").await;
    let status = bench.says("the refusal", |status| status.refused.is_some()).await;
    let refused = status.refused.unwrap();
    assert!(refused.contains("the stored order has term 1000000000"), "{refused}");
    // Longer than the time after which a node is suspect.
    let quiet = PresenceLimits::default().suspect.as_millis();
    let first = status.last_contact_ms.unwrap();
    bench
        .says("contact since", |status| status.last_contact_ms.is_some_and(|last| last > first + quiet))
        .await;
    let events = bench.client.events(NS, None, 1_000, Duration::ZERO).await.unwrap().items;
    let ill: Vec<_> = events.iter().filter(|event| event.kind == "node.suspect").collect();
    assert!(ill.is_empty(), "{ill:?}");
    assert_eq!(bench.node().await.running["web"], "v1");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_an_overloaded_server_turns_away_retries_after_the_given_time() {
    let machines = ConcurrencyLimit::whole(1, 0, 300);
    let bench = Bench::with_lanes(ConcurrencyLimits { machines, ..ConcurrencyLimits::default() }).await;
    bench.join().await.unwrap();
    // A client waits for a change that nobody makes, and takes the only permit for agents.
    let (hangs, asks) = (bench.node_client(), bench.node_client());
    // It asks again if the other one, that looks whether the permit is taken, has it just then.
    let hanging = async move {
        while let Err(CallError::Problem(_)) =
            hangs.service(NS, "none", Some(1 << 50), Duration::from_secs(50)).await
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut occupant = tokio::task::JoinSet::new();
    occupant.spawn(hanging);
    bench
        .until("that it has it", async || match asks.service(NS, "none", None, Duration::ZERO).await {
            Err(CallError::Problem(problem)) => (problem.code == Code::Busy).then_some(()),
            Ok(_) | Err(_) => None,
        })
        .await;
    let agent = Agent::start(Config::load(&bench.configure("")).unwrap());
    bench.sees("contact", |node| node.presence.state == "up").await;
    let refused = async || {
        let page = bench.client.text("/metrics", LONG).await.ok()?;
        let counted = "bellwether_requests_refused_total{class=\"machines\"} ";
        page.lines().find_map(|line| line.strip_prefix(counted))?.parse::<u64>().ok()
    };
    // Its report and its registrations are two requests; more were repeated.
    bench.until("calls that came back", async || refused().await.filter(|count| *count > 2)).await;
    assert_eq!(bench.node().await.agent_version, None);
    drop(occupant);
    bench.sees("a report", |node| node.agent_version.is_some()).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_finds_the_one_of_several_servers_that_answers() {
    let bench = Bench::new().await;
    bench.join().await.unwrap();
    let mut config = Config::load(&bench.configure("")).unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    config.servers.insert(0, format!("https://{nobody}"));
    let agent = Agent::start(config);
    bench.sees("contact", |node| node.presence.state == "up").await;
    bench.sees("a report", |node| node.agent_version.is_some()).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_past_half_its_life_is_renewed_and_used() {
    let bench = Bench::new().await;
    bench.join().await.unwrap();
    let (file, certificate) = (bench.data_dir().join("identity.toml"), bench.data_dir().join("node.pem"));
    let (text, first) =
        (std::fs::read_to_string(&file).unwrap(), std::fs::read_to_string(&certificate).unwrap());
    let old: Vec<String> =
        text.lines()
            .map(|line| {
                if line.starts_with("issued_at_ms") { "issued_at_ms = 1".to_owned() } else { line.to_owned() }
            })
            .collect();
    std::fs::write(&file, old.join("\n")).unwrap();
    let agent = bench.agent_again("");
    bench
        .until("a new certificate", async || {
            (std::fs::read_to_string(&certificate).unwrap() != first).then_some(())
        })
        .await;
    agent.stop().await;
    let agent = bench.agent_again("");
    bench.says("contact", |status| status.alive && status.connected_since_ms.is_some()).await;
    assert!(!std::fs::read_to_string(&file).unwrap().contains("issued_at_ms = 1\n"));
    agent.stop().await;
}
