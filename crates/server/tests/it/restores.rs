//! Restores that are refused or interrupted: nothing is written, or nobody takes what is there for an installation.

use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::check::check;
use bellwether_server::run::{Server, init};
use bellwether_server::transfer::location::AllowedAuthority;
use bellwether_server::transfer::{backup, location, migrate::migrate};
use bellwether_store::{Op, Range, Store, Txn};

use crate::harness::Installation;
use crate::transfer::{at_work, server};

fn put(key: &str, value: &str) -> Txn {
    let put = Op::Put { key: key.to_owned().into(), value: value.to_owned().into(), lease: None };
    Txn { compares: vec![], ops: vec![put] }
}

#[tokio::test]
async fn a_backup_with_a_record_that_no_server_of_this_release_reads_is_refused_before_anything_is_written() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let (dir, now, tasks) = (tempfile::tempdir().unwrap(), Clock::system().now(), Tasks::new());
    let cases = [
        ("/bw/ns/default/entity/shop", r#"{"schema": "entity.v2", "record": {}}"#, "entity.v2"),
        ("/bw/ns/default/wonder/shop", r#"{"schema": "wonder.v1", "record": {}}"#, "no kind that is known"),
    ];
    for (key, value, why) in cases {
        let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
        store.commit(put(key, value)).await.unwrap();
        let (file, mut bytes) = (dir.path().join("backup"), Vec::new());
        backup::take(&store, now, &mut bytes).await.unwrap();
        std::fs::write(&file, &bytes).unwrap();
        let ops = vec![Op::Delete { key: key.to_owned().into() }];
        store.commit(Txn { compares: vec![], ops: ops.clone() }).await.unwrap();
        let to = Store::memory(&tasks);
        let refused = backup::restore(&to, (&server(), now), &file).await.unwrap_err().to_string();
        assert!(refused.contains(key) && refused.contains(why), "{refused}");
        assert!(refused.contains("nothing was written; install the release that wrote it"), "{refused}");
        assert!(to.list(Range::prefix("/bw/"), None, 1).await.unwrap().entries.is_empty());
        // It can be looked at, and says so; so does a check of such a store.
        let contents = backup::inspect(&bytes[..]).await.unwrap();
        assert!(contents.unreadable.is_some_and(|reason| reason.contains(key)));
        store.commit(put(key, value)).await.unwrap();
        store.close().await;
        let findings = check(&installation.config).unwrap().findings;
        assert!(findings.iter().any(|what| what.contains(key) && what.contains(why)), "{findings:?}");
        let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
        store.commit(Txn { compares: vec![], ops }).await.unwrap();
        store.close().await;
    }
    assert_eq!(check(&installation.config).unwrap().findings, Vec::<String>::new());
}

#[tokio::test]
async fn no_server_starts_on_a_restore_that_has_not_ended_and_the_same_restore_begins_anew() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let (dir, now, tasks) = (tempfile::tempdir().unwrap(), Clock::system().now(), Tasks::new());
    let (file, mut bytes) = (dir.path().join("backup"), Vec::new());
    location::back_up(&installation.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    std::fs::remove_dir_all(installation.store_file()).unwrap();
    // What a restore leaves that dies after some records, of which one is in no backup: nobody takes that for the installation.
    let id = backup::inspect(&bytes[..]).await.unwrap().installation;
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    store.commit(put("/bw/moving", &format!("{id} restore"))).await.unwrap();
    store.commit(put("/bw/ns/default/node/web-9", "nonsense")).await.unwrap();
    let to = Store::memory(&tasks);
    store.close().await;
    let refused = Server::start(&installation.config, Clock::system()).await.unwrap_err().to_string();
    let told = format!(
        "a restore of installation {id} into it has not ended; run the same `bellwether server restore` again"
    );
    assert!(refused.contains(&told), "{refused}");
    // A migration does not take the records of a restore for its own.
    location::restore(&installation.config, Clock::system().now(), &file, AllowedAuthority::Own)
        .await
        .unwrap();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    assert!(store.get("/bw/ns/default/node/web-9".into()).await.unwrap().is_none());
    to.commit(put("/bw/moving", &format!("{id} restore"))).await.unwrap();
    let refused = migrate(&store, &to, "memory", |_| {}).await.unwrap_err().to_string();
    assert!(refused.contains(&told), "{refused}");
    store.close().await;
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    assert_eq!(installation.admin().nodes("default", false).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_store_that_was_made_for_a_restore_and_is_empty_is_not_taken_for_a_new_one() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let (dir, now, tasks) = (tempfile::tempdir().unwrap(), Clock::system().now(), Tasks::new());
    let (file, mut bytes) = (dir.path().join("backup"), Vec::new());
    location::back_up(&installation.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    let mark = installation.store_file().join("restoring");
    let restore = async || {
        let now = Clock::system().now();
        location::restore(&installation.config, now, &file, AllowedAuthority::Own).await
    };
    assert!(restore().await.unwrap_err().to_string().contains("it has installation"));
    assert!(!mark.exists(), "nothing was restored");
    std::fs::remove_dir_all(installation.store_file()).unwrap();
    // What a restore leaves that dies once it has made the store, and before it wrote to it.
    Store::embedded(&installation.store_file(), &tasks).unwrap().close().await;
    std::fs::write(&mark, "0190 restore").unwrap();
    let refused = [
        Server::start(&installation.config, Clock::system()).await.unwrap_err().to_string(),
        init(&installation.config).await.unwrap_err().to_string(),
    ];
    for refused in refused {
        assert!(refused.contains("a restore of installation 0190 into it has not ended"), "{refused}");
    }
    restore().await.unwrap();
    assert!(!mark.exists());
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
}

#[tokio::test]
async fn a_restore_onto_an_installation_says_whether_there_is_anything_in_it() {
    let (mut used, mut fresh) = (Installation::new().await, Installation::new().await);
    at_work(&used).await;
    used.server.take().unwrap().stop().await.unwrap();
    fresh.server.take().unwrap().stop().await.unwrap();
    let (dir, now) = (tempfile::tempdir().unwrap(), Clock::system().now());
    let (file, mut bytes) = (dir.path().join("backup"), Vec::new());
    location::back_up(&used.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    let refused = async |config| {
        let now = Clock::system().now();
        let refused = location::restore(config, now, &file, AllowedAuthority::Any).await;
        refused.unwrap_err().to_string()
    };
    let told = refused(&fresh.config).await;
    assert!(told.contains("which is empty: it has tokens and events, and nothing else"), "{told}");
    assert!(told.contains("move the directory `store` away and leave `pki` where it is"), "{told}");
    let told = refused(&used.config).await;
    assert!(told.contains("with 1 node, 1 entity and "), "{told}");
}
