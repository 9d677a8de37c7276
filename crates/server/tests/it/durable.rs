//! Acknowledged changes survive a restart; a damaged store is refused instead of overwritten.

use bellwether_api::client::Identity;
use bellwether_api::client::secret::Secret;
use bellwether_api::v1::report::TargetHealth;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::installation::InstallationError;
use bellwether_server::records::key_text::META;
use bellwether_server::recover::admin_token;
use bellwether_server::run::{RunError, Server, init};
use bellwether_store::{Op, Store, Txn};
use std::time::Duration;

use crate::harness::{Installation, policy, set_entity, until, version};
use crate::hooked::eventually;

#[tokio::test]
async fn a_rollout_continues_after_a_restart_of_the_server() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let nodes = [installation.node("web-1").await, installation.node("web-2").await];
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = nodes[0].assigned("v1").await;
    installation.restart().await;
    let admin = installation.admin();
    let nodes = nodes.map(|node| node.name);
    let view = admin.current_rollout("default", "web", None, Duration::ZERO).await.unwrap();
    assert_eq!((view.rollout.unwrap().number, view.counts.in_flight), (1, 1), "no second batch was opened");
    let assigned = admin.node("default", &nodes[1]).await.unwrap().assigned;
    assert!(assigned.is_empty(), "the second node has no assignment yet");
    assert_eq!(number, 1);
}

#[tokio::test]
async fn events_and_tokens_survive_a_restart() {
    let mut installation = Installation::new().await;
    let node = installation.node("web-1").await;
    node.runs("v1", 0, TargetHealth::Healthy).await;
    let before = installation.admin().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    installation.restart().await;
    let after = installation.admin().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    assert_eq!(after.get(..before.len()), Some(before.as_slice()));
    let page = installation.admin().events("default", Some(1), 1, Duration::ZERO).await.unwrap();
    assert_eq!(page.items.first().map(|event| event.seq), Some(2));
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_left_as_it_is() {
    let mut installation = Installation::new().await;
    set_entity(&installation.admin(), policy("1", "0s")).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let store = installation.store_file();
    let mut damaged = Vec::new();
    for entry in std::fs::read_dir(&store).unwrap() {
        let path = entry.unwrap().path();
        if path.metadata().unwrap().len() > 0 {
            std::fs::write(&path, b"this is no store").unwrap();
            damaged.push(path);
        }
    }
    let error = Server::start(&installation.config, Clock::system()).await.unwrap_err();
    assert!(matches!(error, RunError::Open(_)), "{error}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
    for path in damaged {
        assert_eq!(std::fs::read(&path).unwrap(), b"this is no store", "{} was overwritten", path.display());
    }
}

#[tokio::test]
async fn an_installation_is_made_once_and_served_by_one_process() {
    let mut installation = Installation::new().await;
    let again = init(&installation.config).await.unwrap_err();
    assert!(again.to_string().contains("another process has this store open"), "{again}");
    installation.server.take().unwrap().stop().await.unwrap();
    let again = init(&installation.config).await.unwrap_err();
    assert!(matches!(again, RunError::Installation(InstallationError::Present { .. })), "{again}");
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    let second = Server::start(&installation.config, Clock::system()).await.unwrap_err();
    assert!(second.to_string().contains("another process has this store open"), "{second}");
    until_listening(&installation).await;
}

async fn until_listening(installation: &Installation) {
    set_entity(&installation.admin(), policy("1", "0s")).await;
    until(&installation.admin(), |view| view.progress.last_rollout == 0).await;
}

#[tokio::test]
async fn a_plain_listener_is_for_loopback_alone() {
    let mut installation = Installation::new().await;
    installation.server.take().unwrap().stop().await.unwrap();
    installation.config.plain_listen = Some("0.0.0.0:0".parse().unwrap());
    let error = Server::start(&installation.config, Clock::system()).await.unwrap_err();
    assert!(matches!(error, RunError::Plain { .. }), "{error}");
}

#[tokio::test]
async fn an_init_that_was_interrupted_is_finished_by_the_next_one() {
    let mut installation = Installation::new().await;
    let old = installation.admin_token.clone();
    installation.server.take().unwrap().stop().await.unwrap();
    // As if the process had died before it wrote the record of the installation.
    let tasks = Tasks::new();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    let forget = Op::Delete { key: META.into() };
    store.commit(Txn { compares: vec![], ops: vec![forget] }).await.unwrap();
    store.close().await;
    installation.admin_token = init(&installation.config).await.unwrap().token;
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    assert_eq!(installation.admin().who_am_i().await.unwrap().actor, "admin");
    let shown_to_nobody = installation.client(bellwether_api::client::Identity::Token(old));
    assert!(shown_to_nobody.who_am_i().await.is_err());
}

#[tokio::test]
async fn a_long_event_log_is_read_from_where_it_begins_to_where_it_ends() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    for number in 0..2_200 {
        set_entity(&admin, policy(&format!("{}", 1 + number % 2), "0s")).await;
    }
    installation.node("web-1").await;
    for number in 0..1_100 {
        admin.pause_node("default", "web-1", &format!("{number}")).await.unwrap();
        admin.resume_node("default", "web-1").await.unwrap();
    }
    let last = installation.admin().overview("default").await.unwrap().last_event;
    assert!(last > 4_300, "{last}");
    installation.restart().await;
    let admin = installation.admin();
    // A server that begins to lead is told of.
    let last = last + 1;
    eventually("it leads", async || {
        (admin.overview("default").await.unwrap().last_event == last).then_some(())
    })
    .await;
    let oldest = admin.events("default", Some(0), 2, Duration::ZERO).await.unwrap().items;
    assert_eq!(oldest.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
    let newest = admin.events("default", None, 3, Duration::ZERO).await.unwrap().items;
    assert_eq!(newest.last().unwrap().seq, last);
}

#[tokio::test]
async fn another_authoritys_store_and_a_newer_one_are_refused_and_left_alone() {
    let (mut one, mut other) = (Installation::new().await, Installation::new().await);
    one.server.take().unwrap().stop().await.unwrap();
    other.server.take().unwrap().stop().await.unwrap();
    let (store, theirs) = (one.store_file(), other.store_file());
    let aside = one.config.data_dir.join("aside");
    std::fs::rename(&store, &aside).unwrap();
    std::fs::rename(&theirs, &store).unwrap();
    let error = Server::start(&one.config, Clock::system()).await.unwrap_err().to_string();
    assert!(error.contains("has the authority") && error.contains("server join"), "{error}");
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&aside, &store).unwrap();

    let tasks = Tasks::new();
    let kept = Store::embedded(&store, &tasks).unwrap();
    let newer = Op::Put { key: META.into(), value: r#"{"format":2,"shape":"other"}"#.into(), lease: None };
    kept.commit(Txn { compares: vec![], ops: vec![newer] }).await.unwrap();
    kept.close().await;
    let error = Server::start(&one.config, Clock::system()).await.unwrap_err().to_string();
    assert!(error.contains("its format is 2") && error.contains("newer release"), "{error}");
}

#[tokio::test]
async fn a_server_whose_store_is_gone_does_not_start_as_a_new_control_plane() {
    let mut installation = Installation::new().await;
    let node = installation.node("web-1").await;
    installation.server.take().unwrap().stop().await.unwrap();
    let (store, aside) = (installation.store_file(), installation.config.data_dir.join("aside"));
    std::fs::rename(&store, &aside).unwrap();
    for error in [
        bellwether_server::run::check(&installation.config).await.unwrap_err(),
        Server::start(&installation.config, Clock::system()).await.unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(said.contains("find the store in") && said.contains("server restore"), "{said}");
    }
    assert!(!store.exists(), "an empty store was made");
    // As an empty directory, on which nothing is mounted.
    std::fs::create_dir(&store).unwrap();
    let said = Server::start(&installation.config, Clock::system()).await.unwrap_err().to_string();
    assert!(said.contains("find an installation in the store, which is empty"), "{said}");
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&aside, &store).unwrap();
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    assert_eq!(installation.admin().node("default", &node.name).await.unwrap().node.name, "web-1");
}

#[tokio::test]
async fn an_admin_who_lost_every_token_is_let_in_again() {
    let mut installation = Installation::new().await;
    let lost = installation.admin();
    let in_use = admin_token(&installation.config).await.unwrap_err();
    assert!(in_use.is_in_use(), "{in_use}");
    installation.server.take().unwrap().stop().await.unwrap();
    let made = admin_token(&installation.config).await.unwrap();
    let again = admin_token(&installation.config).await.unwrap();
    assert_eq!((made.name.as_str(), again.name.as_str()), ("recovery", "recovery-2"));
    let secret = std::fs::read_to_string(&again.token_file).unwrap();
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    let admin = installation.client(Identity::Token(Secret::new(secret.trim().to_owned())));
    let names = admin.tokens().await.unwrap();
    assert_eq!(names.items.len(), 3, "{names:?}");
    let events = admin.events("default", Some(0), 100, Duration::ZERO).await.unwrap().items;
    let told: Vec<_> = events.iter().filter(|event| event.kind == "token.created").collect();
    assert!(told.iter().all(|event| event.actor == "recovery") && told.len() == 2, "{told:?}");
    drop(lost);
}
