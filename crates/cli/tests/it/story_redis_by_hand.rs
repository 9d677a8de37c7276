//! The same failover and handover as of an ensemble, made by hand with redis-cli under the same client: what there is to compare with.

use std::net::SocketAddr;

use crate::place::{free_ports, wait_for};
use crate::redis_client::RedisClient;
use crate::story_probes::start;
use crate::story_redis_ensemble::Writer;

fn ask(address: &str, words: &str) -> String {
    let address: SocketAddr = address.parse().unwrap();
    RedisClient::connect(address).and_then(|mut redis| redis.ask(words)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_is_failed_over_and_handed_over_by_hand() {
    let (dir, [port]) = (tempfile::tempdir().unwrap(), free_ports::<1>());
    let addresses: Vec<String> = (1..=3).map(|number| format!("127.0.35.{number}:{port}")).collect();
    let mut programs = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        let home = dir.path().join(index.to_string());
        std::fs::create_dir(&home).unwrap();
        let host = address.split(':').next().unwrap();
        let words = format!(
            "--bind {host} --port {port} --dir {} --appendonly yes --replica-announce-ip {host} --min-replicas-to-write 1 --repl-diskless-sync-delay 0 \
             --protected-mode no",
            home.display()
        );
        let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        if index > 0 {
            words.extend(["--replicaof", "127.0.35.1", &port.to_string()].map(str::to_owned));
        }
        programs.push(start("redis-server", &words, home.join("log")));
    }
    let [first, second, third] = [0, 1, 2].map(|index: usize| addresses.get(index).unwrap().clone());
    let has_replicas = async |primary: &str, number: usize| {
        ask(primary, "INFO replication").matches("state=online").count() == number
    };
    wait_for("both follow", async || has_replicas(&first, 2).await).await;

    let writer = Writer::start(addresses.clone());
    writer.goes_on().await;
    programs.remove(0).kill();
    // Whoever takes the first one that comes loses what only the other one has.
    let position = |address: &str| {
        assert_eq!(ask(address, "REPLICAOF 127.0.0.1 1"), "+OK");
        let said = ask(address, "INFO replication");
        let line = said.lines().find_map(|line| line.strip_prefix("slave_repl_offset:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let (of_second, of_third) = (position(&second), position(&third));
    let (next, other) = if of_second >= of_third { (second, third) } else { (third, second) };
    assert_eq!(ask(&next, "REPLICAOF NO ONE"), "+OK");
    let follow = |address: &str| format!("REPLICAOF {}", address.replace(':', " "));
    assert_eq!(ask(&other, &follow(&next)), "+OK");
    writer.all_is_at(&next, "by hand: failover, by somebody who waits for it").await;

    let writer = Writer::start(addresses.clone());
    writer.goes_on().await;
    wait_for("it follows", async || has_replicas(&next, 1).await).await;
    assert_eq!(ask(&next, &format!("FAILOVER TO {} TIMEOUT 5000", other.replace(':', " "))), "+OK");
    wait_for("it leads", async || has_replicas(&other, 1).await).await;
    writer.all_is_at(&other, "by hand: handover").await;
}
