//! Moving all records to another store, and to a file and back: nothing is lost, nothing is overwritten.

use bellwether_api::v1::profile::ParamsSpec;
use bellwether_api::v1::report::TargetHealth;
use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::zone::rfc3339;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::installation::Installation as InstallationRecord;
use bellwether_server::run::Server;
use bellwether_server::store_rules::StoreRules;
use bellwether_server::transfer::location::AllowedAuthority;
use bellwether_server::transfer::{TransferError, backup, location, migrate::migrate, set_back};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{Op, Range, Store, Txn};

use crate::harness::{Installation, policy, set_entity, until, version};

pub(crate) async fn at_work(installation: &Installation) -> crate::harness::Node {
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let node = installation.node("web-1").await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    let spec = ParamsSpec { params: [("a".to_owned(), 1.into())].into(), ..ParamsSpec::default() };
    admin.set_profile("default", "shared", &spec).await.unwrap();
    node
}

async fn dump(store: &Store) -> Vec<(String, String)> {
    let page = store.list(Range::prefix("/bw/"), None, 1_000).await.unwrap();
    assert!(!page.more);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = page.entries.iter().map(|entry| (text(&entry.key), text(&entry.value)));
    all.filter(|(key, _)| key != "/bw/meta" && key != "/bw/leader" && !key.starts_with("/bw/server/"))
        .collect()
}

/// The number of the last event.
const SEQUENCE: &str = "/bw/ns/default/sequence";

pub(crate) fn server() -> ServerName {
    ServerName::parse("server-1").unwrap()
}

fn settings(etcd: &TestEtcd) -> Etcd {
    let store = etcd.settings();
    Etcd {
        endpoints: store.endpoints,
        prefix: String::from_utf8(store.prefix.to_vec()).unwrap(),
        ca_file: store.ca_file,
        identity: None,
        call_timeout: None,
        follow_members: true,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_moves_to_etcd_and_back_and_its_terms_go_on() {
    let mut installation = Installation::new().await;
    let node = at_work(&installation).await;
    let before = node.client.sync("default", "web-1", (0, None), std::time::Duration::ZERO).await.unwrap();
    installation.server.take().unwrap().stop().await.unwrap();

    let (etcd, tasks) = (TestEtcd::one().await, Tasks::new());
    let (from, to) = (Store::embedded(&installation.store_file(), &tasks).unwrap(), etcd.store(&tasks).await);
    let kept = dump(&from).await;
    let moved = migrate(&from, &to, "etcd", |_| {}).await.unwrap();
    assert_eq!((moved.records, moved.before), (kept.len() as u64, 0));
    assert_eq!(dump(&to).await, kept);
    let again = migrate(&from, &to, "etcd", |_| {}).await.unwrap_err();
    assert!(again.to_string().contains("it has installation"), "{again}");
    from.close().await;
    to.close().await;

    let gone = Server::start(&installation.config, Clock::system()).await.unwrap_err();
    assert!(gone.to_string().contains("were moved to etcd"), "{gone}");
    installation.config.etcd = Some(settings(&etcd));
    installation.config.rules = StoreRules::of(true);
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
    let node = installation.node_again(node);
    installation.admin().start_rollout("default", "web", &version("v2")).await.unwrap();
    let number = node.assigned("v2").await;
    node.runs("v2", number, TargetHealth::Healthy).await;
    until(&installation.admin(), |view| view.progress.last_known_good.as_deref() == Some("v2")).await;
    let after = node.client.sync("default", "web-1", (0, None), std::time::Duration::ZERO).await.unwrap();
    let (before, after) = (before.order.unwrap(), after.order.unwrap());
    assert!(after.term > before.term && after.generation > before.generation, "{before:?} {after:?}");

    // The records of a store in use are not moved.
    let (from, aside) = (etcd.store(&tasks).await, tempfile::tempdir().unwrap());
    let to = Store::embedded(aside.path(), &tasks).unwrap();
    let used = migrate(&from, &to, "a file", |_| {}).await.unwrap_err();
    assert!(matches!(used, TransferError::InUse { .. }), "{used}");
    installation.server.take().unwrap().stop().await.unwrap();
    migrate(&from, &to, "a file", |_| {}).await.unwrap();
    assert_eq!(dump(&to).await, dump(&from).await);
}

#[tokio::test]
async fn an_interrupted_migration_resumes_and_one_into_other_content_is_refused() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let tasks = Tasks::new();
    let from = Store::embedded(&installation.store_file(), &tasks).unwrap();
    let to = Store::memory(&tasks);
    // What an attempt leaves that died after some records: the mark of the installation, and the first records.
    let meta = from.get("/bw/meta".into()).await.unwrap().unwrap().value;
    let id = serde_json::from_slice::<serde_json::Value>(&meta).unwrap()["id"].as_str().unwrap().to_owned();
    let kept = dump(&from).await;
    let mut ops = vec![Op::Put { key: "/bw/moving".into(), value: id.into(), lease: None }];
    for (key, value) in kept.iter().take(3) {
        ops.push(Op::Put { key: key.clone().into(), value: value.clone().into(), lease: None });
    }
    to.commit(Txn { compares: vec![], ops }).await.unwrap();
    // No installation is made of what is there, by nobody.
    let refused = InstallationRecord::check_uninitialised(&to).await.unwrap_err().to_string();
    assert!(refused.contains("has not ended; run the same command again"), "{refused}");
    let moved = migrate(&from, &to, "memory", |_| {}).await.unwrap();
    assert_eq!((moved.records, moved.before), (kept.len() as u64, 3));
    assert_eq!(dump(&to).await, kept);

    let other = Store::memory(&tasks);
    let ops = vec![Op::Put { key: "/bw/something".into(), value: "else".into(), lease: None }];
    other.commit(Txn { compares: vec![], ops }).await.unwrap();
    let refused = migrate(&from, &other, "memory", |_| {}).await.unwrap_err();
    assert!(refused.to_string().contains("/bw/something"), "{refused}");
}

#[tokio::test]
async fn a_backup_restored_gives_the_same_records_and_a_damaged_one_none() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let tasks = Tasks::new();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (file, damaged) = (dir.path().join("backup"), dir.path().join("damaged"));
    let mut bytes = Vec::new();
    let count = backup::take(&store, Clock::system().now(), &mut bytes).await.unwrap().records;
    std::fs::write(&file, &bytes).unwrap();
    let contents = backup::inspect(&bytes[..]).await.unwrap();
    assert_eq!((contents.records, contents.kinds["default node"]), (count, 1));

    let (to, now) = (Store::memory(&tasks), Clock::system().now());
    let cases: [(&[u8], &str); 4] = [
        (&bytes[..bytes.len() / 2], "its last line is incomplete"),
        (b"", "it is empty"),
        (b"{\"backup\":9}\n", "its format is 9"),
        (b"something else\n", "it is not a backup"),
    ];
    for (bad, reason) in cases {
        std::fs::write(&damaged, bad).unwrap();
        let error = backup::restore(&to, (&server(), now), &damaged).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let mut flipped = String::from_utf8(bytes.clone()).unwrap();
    flipped = flipped.replacen("web-1", "web-2", 1);
    std::fs::write(&damaged, flipped).unwrap();
    let error = backup::restore(&to, (&server(), now), &damaged).await.unwrap_err().to_string();
    assert!(error.contains("the count or the checksum does not match"), "{error}");
    assert!(dump(&to).await.is_empty(), "a damaged backup wrote something");

    let behind = backup::restore(&to, (&server(), Timestamp::from_millis(1)), &file).await.unwrap_err();
    assert!(behind.to_string().contains("behind the time of the records; set the clock"), "{behind}");
    assert!(dump(&to).await.is_empty(), "a machine with a wrong clock wrote something");

    backup::restore(&to, (&server(), now), &file).await.unwrap();
    let again = backup::restore(&to, (&server(), now), &file).await.unwrap_err().to_string();
    assert!(
        again.contains("write this installation again to the store")
            && again.contains("already, with 1 node"),
        "{again}"
    );
    let (restored, mut kept) = (dump(&to).await, dump(&store).await);
    let last = |of: &[(String, String)]| {
        let sequence = of.iter().find(|(key, _)| key == SEQUENCE).map(|(_, value)| value.parse::<u64>());
        sequence.unwrap().unwrap()
    };
    // And one event, as the last one of the namespace.
    let number = last(&kept) + 1;
    assert_eq!(last(&restored), number);
    let key = format!("/bw/ns/default/event/{number:020}");
    let event = restored.iter().find(|(found, _)| *found == key).unwrap().1.clone();
    assert!(event.contains("server.restored") && event.contains("server/server-1"), "{event}");
    let told = format!("a backup of {} was restored", rfc3339(Timestamp::from_millis(contents.taken_ms)));
    assert!(event.contains(&told), "{event}");
    kept.retain(|(key, _)| key != SEQUENCE);
    kept.extend([(key, event), (SEQUENCE.to_owned(), number.to_string())]);
    kept.sort();
    assert_eq!(restored, kept);
    let again = backup::restore(&to, (&server(), now), &file).await.unwrap_err();
    assert!(again.to_string().contains("it has installation"), "{again}");
}

#[tokio::test]
async fn each_restore_of_a_backup_counts_from_above_the_one_before() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let tasks = Tasks::new();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    let (mut bytes, taken) = (Vec::new(), Clock::system().now());
    backup::take(&store, taken, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();

    let mut known = record(&store).await;
    assert_eq!(known.epoch, 0);
    for later in 1..4 {
        let to = Store::memory(&tasks);
        backup::restore(&to, (&server(), taken.plus(Span::from_millis(later))), &file).await.unwrap();
        let there = record(&to).await;
        assert!(there.epoch > known.epoch && there.term_base > known.term_base, "{there:?} after {known:?}");
        // A store that was set back with other means gets there, too, and a clock that stands still is no way back.
        let raised = set_back::note(&to, (&server(), taken.plus(Span::from_secs(later)))).await.unwrap();
        assert!(
            raised.epoch > there.epoch && raised.term_base > there.term_base,
            "{raised:?} after {there:?}"
        );
        let refused = set_back::note(&to, (&server(), taken.plus(Span::from_secs(later)))).await.unwrap_err();
        assert!(refused.to_string().contains("set the clock"), "{refused}");
        known = there;
    }
}

/// Longest time for which a start is watched that is to wait.
const WATCHED: std::time::Duration = std::time::Duration::from_secs(1);

#[tokio::test]
async fn a_restore_by_a_clock_that_nothing_speaks_for_is_refused_and_a_start_by_one_that_is_behind_it_waits()
{
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (file, last_time) = (dir.path().join("backup"), installation.config.data_dir.join("last-time"));
    let (mut bytes, right) = (Vec::new(), Clock::system());
    location::back_up(&installation.config, right.now(), &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    std::fs::remove_dir_all(installation.store_file()).unwrap();
    std::fs::remove_file(&last_time).unwrap();
    installation.config.clock_synchronized_file = Some(dir.path().join("synchronized"));

    let years = Span::from_secs(3 * 365 * 24 * 3_600);
    let wrong = right.now().plus(years);
    let refused =
        location::restore(&installation.config, wrong, &file, AllowedAuthority::Own).await.unwrap_err();
    assert!(matches!(refused, TransferError::Clock { .. }), "{refused}");
    assert!(refused.to_string().contains("add --accept-clock"), "{refused}");
    assert!(!installation.store_file().exists(), "something was written");

    let accepted = installation.config.clone().accepting_clock(true);
    location::restore(&accepted, wrong, &file, AllowedAuthority::Own).await.unwrap();
    assert_eq!(std::fs::read_to_string(&last_time).unwrap().trim(), wrong.as_millis().to_string());
    let back = location::note_set_back(&accepted, right.now()).await.unwrap_err();
    assert!(back.to_string().contains("set the clock"), "{back}");
    let config = installation.config.clone();
    let mut start = Server::start(&config, Clock::system());
    let waits = tokio::time::timeout(WATCHED, &mut start).await.is_err();
    assert!(waits, "it started by a clock that is years behind");
    std::fs::write(config.clock_synchronized_file.as_ref().unwrap(), "").unwrap();
    installation.server = Some(start.await.unwrap());
}

#[tokio::test]
async fn a_restore_knows_the_newest_event_of_a_backup_and_leaves_it_to_the_next_start() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    let hour = Span::from_secs(3_600);
    let ahead = Clock::system();
    ahead.set(ahead.now().plus(hour));
    installation.restart_at(ahead).await;
    set_entity(&installation.admin(), policy("2", "0s")).await;
    installation.server.take().unwrap().stop().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (file, mut bytes, now) = (dir.path().join("backup"), Vec::new(), Clock::system().now());
    location::back_up(&installation.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    let contents = backup::inspect(&bytes[..]).await.unwrap();
    assert!(contents.newest_ms > now.plus(Span::from_secs(3_000)).as_millis(), "{contents:?}");
    std::fs::remove_dir_all(installation.store_file()).unwrap();
    location::restore(&installation.config, Clock::system().now(), &file, AllowedAuthority::Own)
        .await
        .unwrap();
    let noted = std::fs::read_to_string(installation.config.data_dir.join("last-time")).unwrap();
    assert_eq!(noted.trim(), contents.newest_ms.to_string());
}

#[tokio::test]
async fn a_backup_is_not_restored_beside_the_authority_of_another_installation_unless_that_is_wanted() {
    let (mut one, mut other) = (Installation::new().await, Installation::new().await);
    one.server.take().unwrap().stop().await.unwrap();
    other.server.take().unwrap().stop().await.unwrap();
    let (dir, now) = (tempfile::tempdir().unwrap(), Clock::system().now());
    let (file, mut bytes) = (dir.path().join("backup"), Vec::new());
    location::back_up(&one.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();
    std::fs::remove_dir_all(other.store_file()).unwrap();
    let now = Clock::system().now();
    let refused = location::restore(&other.config, now, &file, AllowedAuthority::Own).await.unwrap_err();
    assert!(refused.to_string().contains("has the authority of another installation"), "{refused}");
    assert!(refused.to_string().contains("add --any-authority"), "{refused}");
    assert!(!other.store_file().exists(), "something was written");
    location::restore(&other.config, now, &file, AllowedAuthority::Any).await.unwrap();
    // Beside its own, or where there is none yet, it needs no word.
    for dir in [one.store_file(), other.store_file()] {
        std::fs::remove_dir_all(dir).unwrap();
    }
    std::fs::remove_dir_all(other.config.data_dir.join("pki")).unwrap();
    for config in [&one.config, &other.config] {
        location::restore(config, Clock::system().now(), &file, AllowedAuthority::Own).await.unwrap();
    }
}

async fn record(store: &Store) -> InstallationRecord {
    InstallationRecord::read(store).await.unwrap().unwrap()
}
