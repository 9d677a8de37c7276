//! Several servers on one etcd, in one process: one leads, the others take over when it stops, and all have one time.

use std::time::Duration;

use bellwether_api::client::{Access, Client, Identity, NodeKnowledge};
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::profile::ParamsSpec;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::server::LiveServers;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::run::{Server, ServerFault, init};
use bellwether_server::store_rules::StoreRules;
use bellwether_server::transfer::{TransferError, set_back};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{EtcdSettings, Op, Store, Txn};

use crate::harness::{Installation, SOON, policy, problem, set_entity, until, version};

/// The configuration of a server on an etcd.
pub(crate) fn config_on(etcd: &TestEtcd, dir: &std::path::Path, name: &str) -> Config {
    let store = etcd.settings();
    let mut config = Config::load(None).unwrap();
    config.data_dir = dir.join(name);
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.name = name.parse().unwrap();
    config.rules = StoreRules::of(true);
    config.etcd = Some(Etcd {
        endpoints: store.endpoints.clone(),
        prefix: String::from_utf8(store.prefix.to_vec()).unwrap(),
        ca_file: None,
        identity: None,
        call_timeout: None,
        follow_members: true,
    });
    config
}

/// Two servers' configurations on one etcd, the first of them initialised.
pub(crate) async fn two(etcd: &TestEtcd, dir: &std::path::Path) -> ([Config; 2], Identity) {
    let of = |name: &str| config_on(etcd, dir, name);
    let configs = [of("cp-1"), of("cp-2")];
    let made = init(&configs[0]).await.unwrap();
    let refused = Server::start(&configs[1], Clock::system()).await.unwrap_err();
    assert!(refused.to_string().contains("bellwether server join"), "{refused}");
    let (from, to) = (configs[0].data_dir.join("pki"), configs[1].data_dir.join("pki"));
    std::fs::create_dir_all(&to).unwrap();
    for name in ["ca.pem", "ca.key"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    (configs, Identity::Token(made.token))
}

pub(crate) fn client(server: &Server, identity: &Identity) -> Client {
    let ca = Some(server.ca_pem.clone());
    let access = Access { server: format!("https://{}", server.address), ca, identity: identity.clone() };
    Client::new(&access).unwrap()
}

/// Waits until a server reports that this one leads; returns its term.
pub(crate) async fn leads(client: &Client, name: &str) -> u64 {
    let wait = async {
        loop {
            let plane = client.control_plane().await.unwrap();
            if plane.leader.as_ref().is_some_and(|leader| leader.server == name) {
                return plane.term.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_hands_over_and_the_next_leader_continues_with_the_same_time() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    let one = client(&first, &identity);
    let before = leads(&one, "cp-1").await;
    // A machine whose clock is an hour ahead adopts the time of the others.
    let wrong = Clock::system();
    let wrong = wrong.set_to(wrong.now().plus(Span::from_secs(3_600)));
    let second = Server::start(&configs[1], wrong).await.unwrap();
    let two = client(&second, &identity);
    assert_eq!(leads(&two, "cp-1").await, before);
    let soon = SOON;
    let (here, there) = (one.time(soon).await.unwrap().now_ms, two.time(soon).await.unwrap().now_ms);
    assert!(there.abs_diff(here) < 60_000, "{here} {there}");

    let installation = Installation::of(configs[1].clone(), second, identity.clone());
    set_entity(&two, policy("1", "0s")).await;
    let node = installation.node("web-1").await;
    two.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    first.stop().await.unwrap();
    let after = leads(&two, "cp-2").await;
    assert!(after > before, "{after} {before}");
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&two, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    let plane = two.control_plane().await.unwrap();
    assert_eq!(plane.servers.len(), 1, "{plane:?}");
    assert_eq!((plane.store.engine.as_str(), plane.store.condition.as_str()), ("etcd", "writable"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_its_agents_go_once_another_one_leads() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    leads(&client(&first, &identity), "cp-1").await;
    let second = Server::start(&configs[1], Clock::system()).await.unwrap();
    let two = client(&second, &identity).consistent();
    let installation = Installation::of(configs[1].clone(), second, identity.clone());
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    let hangs = client(&first, &node.identity);
    let (held, stopping) = tokio::sync::oneshot::channel();
    let agent = async {
        // The first poll establishes the session; the second one waits until the server stops.
        hangs.sync("default", "web-1", NodeKnowledge::default(), Duration::from_millis(1)).await.unwrap();
        held.send(()).unwrap();
        let answer = hangs.sync("default", "web-1", NodeKnowledge::default(), Duration::from_secs(60)).await;
        (answer, two.control_plane().await.unwrap().leader.unwrap().server)
    };
    let server = async {
        stopping.await.unwrap();
        first.stop().await.unwrap();
    };
    let ((_, leader), ()) = tokio::join!(agent, server);
    assert_eq!(leader, "cp-2", "an agent was released before there was another leader");
}

/// Waits until it is recorded that the node is in contact: a server records what it was told a moment later.
async fn recorded_up(client: &Client) {
    let recorded = async {
        while client.node("default", "web-1").await.unwrap().presence.state != PresenceState::Up {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, recorded).await.expect("the contact is recorded");
}

/// Deletes a key of the installation, as anybody with access to etcd can.
async fn delete(store: &Store, key: &'static str) {
    store.commit(Txn { compares: vec![], ops: vec![Op::Delete { key: key.into() }] }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_key_was_deleted_leads_again_in_another_term() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    let one = client(&first, &identity);
    let before = leads(&one, "cp-1").await;
    let installation = Installation::of(configs[0].clone(), first, identity.clone());
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    node.client.sync("default", "web-1", NodeKnowledge::default(), Duration::from_millis(1)).await.unwrap();

    let tasks = Tasks::new();
    let store = etcd.store(&tasks).await;
    delete(&store, "/bw/leader").await;
    let again = async {
        while leads(&one, "cp-1").await <= before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, again).await.expect("it leads in another term");
    // It decides as well: a rollout reaches the node.
    set_entity(&one, policy("1", "0s")).await;
    one.start_rollout("default", "web", &version("v1")).await.unwrap();
    node.assigned("v1").await;

    let since = one.control_plane().await.unwrap().servers[0].since_ms;
    delete(&store, "/bw/server/cp-1").await;
    let shown = async {
        loop {
            let plane = one.control_plane().await.unwrap();
            if plane.servers.first().is_some_and(|server| server.since_ms > since) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, shown).await.expect("its membership is acquired anew");
    node.client.sync("default", "web-1", NodeKnowledge::default(), Duration::from_millis(1)).await.unwrap();
    recorded_up(&one).await;
    tasks.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leadership_is_handed_over_when_asked_and_its_server_stays() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    let one = client(&first, &identity);
    let before = leads(&one, "cp-1").await;
    let (code, detail) = problem(one.step_down("").await);
    assert_eq!((code, detail.as_str()), (Code::Refused, "cannot step down: no other server is live"));
    let second = Server::start(&configs[1], Clock::system()).await.unwrap();
    let two = client(&second, &identity).consistent();
    let installation = Installation::of(configs[0].clone(), first, identity.clone());
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    node.client.sync("default", "web-1", NodeKnowledge::default(), Duration::from_millis(1)).await.unwrap();
    recorded_up(&one).await;
    let plane = two.control_plane().await.unwrap();
    assert_eq!(plane.servers.len(), 2);
    let (code, detail) = problem(two.step_down("").await);
    let address = format!("https://{}", installation.server().address);
    let elsewhere = format!("cannot step down: this server does not lead; cp-1 does, at {address}");
    assert_eq!((code, detail), (Code::Refused, elsewhere));

    let holds = node.client.sync("default", "web-1", NodeKnowledge::default(), Duration::from_secs(60));
    let (_, done) = tokio::select! {
        _ = holds => panic!("the session ended with the leadership"),
        done = async { (leads(&one, "cp-1").await, one.step_down("upgrade").await.unwrap()) } => done,
    };
    assert_eq!((done.before.as_str(), done.leader.as_str()), ("cp-1", "cp-2"));
    assert!(leads(&two, "cp-2").await > before);
    let after = two.control_plane().await.unwrap();
    assert_eq!(after.servers, plane.servers, "both are servers as before");
    assert_eq!(two.node("default", "web-1").await.unwrap().presence.state, PresenceState::Up);
    let events = two.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert!(!kinds.contains(&"node.suspect"), "{kinds:?}");
    let told = events.iter().find(|event| event.kind == "leader.stepped_down").expect("it is an event");
    assert_eq!((told.subject.as_str(), told.cause.as_str()), ("server/cp-1", "upgrade"));
    assert!(!told.actor.starts_with("bellwether"), "{told:?}");

    // It is asked back: the first server tries to lead again.
    assert_eq!(two.step_down("").await.unwrap().leader, "cp-1");
    leads(&one, "cp-1").await;
}

#[tokio::test]
async fn a_node_receives_the_live_servers_only_if_its_list_differs() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, admin) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    let address = format!("https://{}", first.address);
    let installation = Installation::of(configs[0].clone(), first, admin);
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    let ask = async |tag: Option<&str>| {
        let known = NodeKnowledge { servers: tag.map(str::to_owned), ..NodeKnowledge::default() };
        node.client.sync("default", "web-1", known, Duration::from_millis(1)).await.unwrap().servers
    };
    let names = |assigned: &LiveServers| {
        assigned.servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>()
    };
    let alone = ask(Some("")).await.unwrap();
    assert_eq!(names(&alone), ["cp-1"]);
    assert_eq!(alone.servers[0].address, address);
    assert_eq!(ask(Some(&alone.tag)).await, None, "it knows");
    assert_eq!(ask(None).await, None, "it did not ask");

    let second = Server::start(&configs[1], Clock::system()).await.unwrap();
    let until = async |tag: &str| {
        let asking = async {
            loop {
                match ask(Some(tag)).await {
                    Some(assigned) => return assigned,
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        tokio::time::timeout(SOON, asking).await.unwrap()
    };
    let both = until(&alone.tag).await;
    assert_eq!(names(&both), ["cp-1", "cp-2"]);
    assert_eq!(both.servers[1].address, format!("https://{}", second.address));
    // An agent that learns of another server has the same identity there, and calls it with TLS or not at all.
    let there = node.client.towards(&both.servers[1].address).unwrap();
    there.sync("default", "web-1", NodeKnowledge::default(), Duration::from_millis(1)).await.unwrap();
    let refused = node.client.towards("http://127.0.0.1:7420").unwrap_err().to_string();
    assert!(refused.contains("does not start with https://"), "{refused}");
    second.stop().await.unwrap();
    let left = until(&both.tag).await;
    assert_eq!((names(&left), &left.tag), (vec!["cp-1".to_owned()], &alone.tag));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn linearizable_reads_work_while_other_programs_write_to_the_same_etcd() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let servers = [
        Server::start(&configs[0], Clock::system()).await.unwrap(),
        Server::start(&configs[1], Clock::system()).await.unwrap(),
    ];
    let clients = [client(&servers[0], &identity), client(&servers[1], &identity).consistent()];
    let tasks = Tasks::new();
    let others = EtcdSettings { prefix: "others/".into(), ..etcd.settings() };
    let others = Store::etcd(others, &tasks).await.unwrap();
    for round in 0..5 {
        // Their commits advance the revision, and no watch of ours delivers them.
        let put = Op::Put { key: "a".into(), value: format!("{round}").into(), lease: None };
        others.commit(Txn { compares: vec![], ops: vec![put] }).await.unwrap();
        clients[1].control_plane().await.unwrap();
        // Written through one server, and read from the other at once.
        let name = format!("app-{round}");
        let spec = EntitySpec { selector: "all".to_owned(), ..EntitySpec::default() };
        clients[0].set_entity("default", &name, &spec).await.unwrap();
        clients[1].entity("default", &name).await.unwrap();
    }
    tasks.cancel();
    for server in servers {
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_store_is_set_back_ends_and_starts_again_only_in_a_new_epoch() {
    let (mut etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let server = Server::start(&configs[0], Clock::system()).await.unwrap();
    let people = client(&server, &identity);
    let before = leads(&people, "cp-1").await;
    let snapshot = dir.path().join("snapshot");
    etcd.snapshot(&snapshot);
    for number in 0..20 {
        let spec = ParamsSpec { params: [("n".to_owned(), number.into())].into(), ..ParamsSpec::default() };
        people.set_profile("default", "web", &spec).await.unwrap();
    }
    etcd.set_back(&snapshot);
    let fault = tokio::time::timeout(SOON, server.broken()).await.unwrap();
    assert!(matches!(fault, ServerFault::SetBack { was, is } if is < was), "{fault:?}");
    server.stop().await.unwrap();
    let refused = Server::start(&configs[0], Clock::system()).await.unwrap_err().to_string();
    assert!(refused.contains("server restore --in-place"), "{refused}");
    // A check says what a start would.
    assert_eq!(bellwether_server::run::check(&configs[0]).await.unwrap_err().to_string(), refused);

    let tasks = Tasks::new();
    let store = Store::etcd(
        EtcdSettings { prefix: configs[0].etcd.as_ref().unwrap().prefix.clone().into(), ..etcd.settings() },
        &tasks,
    )
    .await
    .unwrap();
    // Not while the membership of the server that ended may be one of a server that runs.
    let raising = async {
        while let Err(error) = set_back::note(&store, (&configs[0].name, Clock::system().now())).await {
            assert!(matches!(error, TransferError::InUse { .. }), "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(SOON, raising).await.unwrap();
    let server = Server::start(&configs[0], Clock::system()).await.unwrap();
    let people = client(&server, &identity);
    let after = leads(&people, "cp-1").await;
    assert!(after > before + 1_000_000, "{after} {before}");
    // The number of a revision that was issued and is not known any more is not issued again.
    let spec = ParamsSpec { params: [("n".to_owned(), 99.into())].into(), ..ParamsSpec::default() };
    let set = people.set_profile("default", "web", &spec).await.unwrap();
    assert!(set.revision > 1_000_000, "{set:?}");
    server.stop().await.unwrap();
}
