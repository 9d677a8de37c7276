//! Servers whose clocks differ: what is wrong is found and shown, moves no time, and gives no lock to two.

use std::time::Duration;

use bellwether_api::problem::Code;
use bellwether_api::v1::slot::AcquireSlot;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::run::Server;
use bellwether_store::testing::etcd::TestEtcd;

use crate::harness::{SOON, problem};
use crate::several::{client, leads, two};

/// A third server beside [`two`].
fn third(configs: &[Config; 2]) -> Config {
    let mut config = configs[1].clone();
    config.name = "cp-3".parse().unwrap();
    config.data_dir.set_file_name("cp-3");
    let (from, to) = (configs[1].data_dir.join("pki"), config.data_dir.join("pki"));
    std::fs::create_dir_all(&to).unwrap();
    for name in ["ca.pem", "ca.key"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    config
}

/// Waits until something holds.
async fn wait_for(what: &str, holds: impl AsyncFn() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON * 3, looking).await.unwrap_or_else(|_| panic!("never {what}"));
}

const THREE_HOURS: Span = Span::from_secs(3 * 3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_three_hours_ahead_that_starts_alone_moves_no_time_once_two_others_are_there() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let right = Clock::of_server();
    let wrong = right.set_to(right.now().plus(THREE_HOURS));
    let first = Server::start(&configs[0], wrong).await.unwrap();
    let one = client(&first, &identity);
    leads(&one, "cp-1").await;
    let second = Server::start(&configs[1], Clock::of_server()).await.unwrap();
    let third = Server::start(&third(&configs), Clock::of_server()).await.unwrap();
    let clients = [one, client(&second, &identity), client(&third, &identity)];
    wait_for("is the wrong clock found by all", async || {
        let mut found = 0;
        for client in &clients {
            let warnings = client.overview("default").await.unwrap().warnings;
            let says = |text: &str| warnings.iter().any(|warning| warning.contains(text));
            found += usize::from(
                says("the system clock of server cp-1 is 3h") && says("the control plane's time is"),
            );
        }
        found == clients.len()
    })
    .await;
    // All have the same time, which goes on where it was: slower, and not back.
    let mut before = 0;
    for client in clients.iter().cycle().take(12) {
        let now = client.time(SOON).await.unwrap().now_ms;
        assert!(now + 1_000 >= before, "{now} after {before}");
        assert!(now > right.now().plus(THREE_HOURS).as_millis() - 600_000, "it was set back");
        before = before.max(now);
        assert_eq!(client.control_plane().await.unwrap().leader.unwrap().server, "cp-1");
    }
    for server in [first, second, third] {
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_beyond_the_bound_neither_leads_nor_grants_and_says_so() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let clock = Clock::of_server();
    let first = Server::start(&configs[0], clock.clone()).await.unwrap();
    let one = client(&first, &identity);
    leads(&one, "cp-1").await;
    let second = Server::start(&configs[1], Clock::of_server()).await.unwrap();
    let third = Server::start(&third(&configs), Clock::of_server()).await.unwrap();
    let two = client(&second, &identity);
    wait_for("do they know each other's clocks", async || {
        one.control_plane().await.unwrap().clocks.len() == 3
            && two.control_plane().await.unwrap().clocks.len() == 3
    })
    .await;
    let acquire = AcquireSlot { holder: "me".to_owned(), ..AcquireSlot::default() };
    one.acquire_slot("default", "one", &acquire).await.unwrap();

    clock.set(clock.now().plus(Span::from_secs(30)));
    wait_for("does another lead", async || {
        two.control_plane().await.unwrap().leader.is_some_and(|leader| leader.server != "cp-1")
    })
    .await;
    let (code, detail) = problem(one.acquire_slot("default", "one", &acquire).await);
    assert_eq!(code, Code::Store, "{detail}");
    two.acquire_slot("default", "one", &acquire).await.unwrap();
    wait_for("do others see it", async || !two.control_plane().await.unwrap().clocks["cp-1"].takes_part)
        .await;
    let events = async || two.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let clocks = async || {
        let all = events().await;
        all.into_iter()
            .filter(|event| event.kind == "server.clock")
            .map(|event| event.cause)
            .collect::<Vec<_>>()
    };
    wait_for("is it an event", async || clocks().await.len() == 1).await;
    assert!(clocks().await[0].contains("ahead of that of the others"), "{:?}", clocks().await);
    let page = one.text("/metrics", SOON).await.unwrap();
    assert!(page.contains("bellwether_takes_part 0"), "{page}");

    // Behind the others it is set forward, and takes part again.
    clock.set(clock.now().minus(Span::from_secs(60)));
    wait_for("does it take part again", async || clocks().await.len() == 2).await;
    one.acquire_slot("default", "one", &acquire).await.unwrap();
    for server in [first, second, third] {
        server.stop().await.unwrap();
    }
}
