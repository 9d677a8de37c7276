//! A real Redis Sentinel and what it watches: the probe shows which primary it names, that this one is down, and the one that it promotes.

use std::path::PathBuf;

use bellwether_api::v1::cluster::view::ClusterView;
use bellwether_api::v1::probes::{StoreMember, StoreState};

use crate::place::{Setup, done, free_ports, wait_for};
use crate::redis_client::RedisClient;
use crate::story_probes::{redis, start, state, view};

/// What the Sentinel of `db-1` says of the primary `kv`.
fn watched(view: &ClusterView) -> Option<StoreMember> {
    let node = view.nodes.iter().find(|of| of.node == "db-1")?;
    node.stores.get("db")?.facts.members.as_ref()?.get("kv").cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_names_the_primary_that_it_watches_and_the_one_that_it_promotes() {
    let mut place = Setup::new().await;
    let [one, two, sentinel] = free_ports::<3>();
    let mut first = redis(&place, one, None);
    let _second = redis(&place, two, Some(one));
    let file = place.path("sentinel.conf");
    let config = format!(
        "port {sentinel}\nbind 127.0.0.1\nsentinel monitor kv 127.0.0.1 {one} 1\n\
         sentinel down-after-milliseconds kv 2000\nsentinel failover-timeout kv 5000\n"
    );
    std::fs::write(&file, config).unwrap();
    let mut watcher =
        start("redis-server", &[file, "--sentinel".to_owned()], PathBuf::from(place.path("sentinel.log")));
    let probe =
        format!("[probe.db]\nsentinel = \"127.0.0.1:{sentinel}\"\ninterval = \"200ms\"\ntimeout = \"2s\"\n");
    place.start_agent("db-1", &probe);
    done(&place, &["cluster", "create", "shop", "--filter", "role=web"]);

    let names = |port: u16| {
        let address = format!("127.0.0.1:{port}");
        move |view: &ClusterView| {
            watched(view)
                .is_some_and(|of| of.address.as_ref() == Some(&address) && of.connected == Some(true))
        }
    };
    let before = view(&place, "the primary that it watches", names(one)).await;
    assert!(
        before.conditions.is_empty(),
        "it holds no data, so that it misses no primary: {:?}",
        before.conditions
    );
    assert!(before.stores["db"].shards.is_empty() && before.stores["db"].versions.len() == 1);
    wait_for("the Sentinel knows the replica", async || {
        let said =
            RedisClient::connect(("127.0.0.1", sentinel)).and_then(|mut client| client.ask("INFO sentinel"));
        said.is_ok_and(|said| said.contains("slaves=1"))
    })
    .await;

    first.kill();
    view(&place, "the primary that it promoted", names(two)).await;
    watcher.kill();
    let after =
        view(&place, "the Sentinel is down", |view| state(view, "db-1") == Some(StoreState::Down)).await;
    assert_eq!(watched(&after).and_then(|of| of.address), Some(format!("127.0.0.1:{two}")), "it is kept");
}
