//! Backups of a server on etcd: of one revision, also while others write and the history is compacted.

use bellwether_api::client::{Client, Identity};
use bellwether_api::v1::backup::NewBackup;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::run::{Server, init};
use bellwether_server::transfer::backup;
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{Range, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::backups::{apply, count, profile, revision, whole};
use crate::harness::SOON;
use crate::several::{client, config_on};

/// Writes until it is stopped, and has the history compacted again and again; answers how often it wrote.
async fn writes(writer: Client, store: Store, stop: CancellationToken) -> u64 {
    let mut number = 0;
    while !stop.is_cancelled() {
        number += 1;
        count(&writer, number).await;
        if number % 20 == 0 {
            let newest = store.list(Range::all(), None, 1).await.unwrap().revision;
            store.compact(newest).await.unwrap();
        }
    }
    number
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_server_on_etcd_is_of_one_revision_though_history_is_compacted_meanwhile() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let dir = tempfile::tempdir().unwrap();
    let config = config_on(&etcd, dir.path(), "cp-1");
    let token = init(&config).await.unwrap().token;
    let server = Server::start(&config, Clock::system()).await.unwrap();
    let identity = Identity::Token(token);
    let admin = client(&server, &identity);
    let filler = json!("x".repeat(6_000));
    apply(
        &admin,
        (0..600).map(|number| profile(format!("m-{number}"), &[("text", filler.clone())])).collect(),
    )
    .await;
    count(&admin, 0).await;

    let stop = CancellationToken::new();
    let mut others = tokio::task::JoinSet::new();
    others.spawn({
        let (stop, writer, store) = (stop.clone(), client(&server, &identity), etcd.store(&tasks).await);
        writes(writer, store, stop)
    });
    let mut seen = Vec::new();
    let backups = async {
        while seen.len() < 3 {
            // Where every attempt was too slow, the caller is told, and asks again.
            let Ok(body) = admin.backup(NewBackup { keys: false }).await else { continue };
            let text = whole(body).await;
            let contents = backup::inspect(&text[..]).await.unwrap();
            assert!(contents.kinds["default profile"] >= 602, "{contents:?}");
            assert_eq!(revision(&text, "a"), revision(&text, "z"), "both were written together");
            seen.push(revision(&text, "a"));
        }
    };
    tokio::time::timeout(SOON, backups).await.unwrap();
    stop.cancel();
    assert!(
        others.join_next().await.unwrap().unwrap() > 1 && seen.first() != seen.last(),
        "nothing was written: {seen:?}"
    );
    server.stop().await.unwrap();
}
