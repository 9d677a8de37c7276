//! A server on an etcd that grows and loses the member that it began with, while the server runs and when it is started again.

use std::time::Duration;

use bellwether_api::v1::entity::EntitySpec;
use bellwether_rt::clock::Clock;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::run::{Server, init};
use bellwether_store::testing::etcd::TestEtcd;

use crate::harness::{policy, set_entity};
use crate::several::{client, config_on, leads};

/// Several intervals at which members are looked for, on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Waits until something holds.
async fn comes(mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_on_with_the_members_that_its_etcd_has_now() {
    let (mut etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let mut config = config_on(&etcd, dir.path(), "cp-1");
    let only = vec![etcd.endpoint(0)];
    config.etcd = config.etcd.map(|of| Etcd { endpoints: only.clone(), ..of });
    let identity = bellwether_api::client::Identity::Token(init(&config).await.unwrap().token);
    let server = Server::start(&config, Clock::system()).await.unwrap();
    let before = client(&server, &identity);
    leads(&before, "cp-1").await;
    set_entity(&before, policy("1", "0s")).await;
    assert_eq!((etcd.grow().await, etcd.grow().await), (1, 2));
    comes(async || before.control_plane().await.unwrap().store.endpoints.len() == 3).await;

    etcd.remove(0).await;
    let (one, two) = (etcd.endpoint(1), etcd.endpoint(2));
    leads(&before, "cp-1").await;
    let spec = EntitySpec { selector: "role=db".to_owned(), ..EntitySpec::default() };
    comes(async || before.set_entity("default", "later", &spec).await.is_ok()).await;
    server.stop().await.unwrap();

    // None of the configured endpoints is there any more.
    let server = Server::start(&config, Clock::system()).await.unwrap();
    let after = client(&server, &identity);
    leads(&after, "cp-1").await;
    after.entity("default", "later").await.unwrap();
    let shown = after.control_plane().await.unwrap().store.endpoints;
    assert!([one, two].iter().all(|of| shown.contains(of)), "{shown:?}");
    set_entity(&after, policy("2", "0s")).await;
    server.stop().await.unwrap();
}
