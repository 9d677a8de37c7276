//! A Redis that replicates from a replica: the cluster says so until it follows the primary again.

use crate::place::done;
use crate::redis_client::RedisClient;
use crate::story_handover::{roll, set_policy, three_redis_members, together};
use crate::story_probes::view;

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_follows_a_replica_is_a_condition_of_its_cluster_until_it_follows_the_primary() {
    let (place, [primary, replica, other]) = three_redis_members("").await;
    set_policy(&place, "--order followers-first --quorum true");
    roll(&place, "v1");
    view(&place, "the primary and its replicas", together).await;
    let follow = |of: u16| {
        let mut client = RedisClient::connect(("127.0.0.1", other)).unwrap();
        assert_eq!(client.ask(&format!("REPLICAOF 127.0.0.1 {of}")).unwrap(), "+OK");
    };
    follow(replica);
    let chained = format!("db-3 replicates from 127.0.0.1:{replica}, a replica of the primary db-1");
    view(&place, "the condition", |view| view.conditions.iter().any(|is| is.reason == chained)).await;
    let shown = done(&place, &["cluster", "view", "shop"]);
    assert!(shown.contains(&chained), "{shown}");
    let told = done(&place, &["events", "--about", "cluster/shop"]);
    assert!(told.contains("upstream_not_primary"), "{told}");
    follow(primary);
    view(&place, "its end", |view| together(view) && view.conditions.is_empty()).await;
}
