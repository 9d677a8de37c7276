//! Backups of a server that runs: of one revision while records are written, for those with every right, and with all that a start needs.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bellwether_api::client::{AnswerBody, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::{ApplyRequest, Document, ProfileDocument};
use bellwether_api::v1::backup::NewBackup;
use bellwether_api::v1::profile::Params;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use bellwether_server::secrets::keyring::{KEYRING_FILE, Keyring};
use bellwether_server::transfer::location::AllowedAuthority;
use bellwether_server::transfer::{TransferError, backup, location};
use serde_json::json;

use crate::harness::{Installation, SOON, problem, version};
use crate::rights::with;
use crate::transfer::at_work;

const RECORDS: NewBackup = NewBackup { keys: false };
const WITH_KEYS: NewBackup = NewBackup { keys: true };

/// Profiles between the first and the last: more than one page of a list, and more bytes than a client takes unasked.
const BETWEEN: usize = 600;

pub(crate) fn profile(name: String, params: &[(&str, serde_json::Value)]) -> Document {
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Document::Profile(ProfileDocument { name, params, ..ProfileDocument::default() })
}

pub(crate) async fn apply(admin: &Client, documents: Vec<Document>) -> u32 {
    let request = ApplyRequest { documents, ..ApplyRequest::default() };
    admin.apply("default", &request).await.unwrap().transactions
}

/// Sets the first and the last profile to the same number, in one transaction.
pub(crate) async fn count(admin: &Client, number: u64) {
    let pair = ["a", "z"].map(|name| profile(name.to_owned(), &[("count", json!(number))]));
    assert!(apply(admin, pair.to_vec()).await <= 1);
}

pub(crate) async fn whole(mut body: AnswerBody) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(part) = body.next().await.unwrap() {
        text.extend_from_slice(&part);
    }
    text
}

/// The revision of a profile in a backup: how often it was written.
pub(crate) fn revision(text: &[u8], name: &str) -> u64 {
    let key = format!("{{\"key\":\"/bw/ns/default/profile/{name}\"");
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| line.starts_with(&key)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let value: serde_json::Value = serde_json::from_str(line["value"].as_str().unwrap()).unwrap();
    value["record"]["revision"].as_u64().unwrap()
}

async fn busy(admin: &Client) -> bool {
    match admin.backup(RECORDS).await {
        Ok(body) => {
            whole(body).await;
            false
        }
        Err(error) => {
            let (code, detail) = problem::<()>(Err(error));
            assert!(code == Code::Busy && detail.contains("another one"), "{code:?} {detail}");
            true
        }
    }
}

fn listed(dir: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_of_one_revision_while_records_are_written_and_one_is_given_at_a_time() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let filler = json!("x".repeat(6_000));
    let between = (0..BETWEEN).map(|number| profile(format!("m-{number}"), &[("text", filler.clone())]));
    apply(&admin, between.collect()).await;
    count(&admin, 0).await;
    let before = listed(&installation.config.data_dir);

    let (stop, writer) = (tokio_util::sync::CancellationToken::new(), installation.admin());
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn({
        let stop = stop.clone();
        async move {
            let mut number = 0;
            while !stop.is_cancelled() {
                number += 1;
                count(&writer, number).await;
            }
            number
        }
    });
    let mut seen = Vec::new();
    for _ in 0..5 {
        let text = whole(admin.backup(RECORDS).await.unwrap()).await;
        let contents = backup::inspect(&text[..]).await.unwrap();
        assert!(contents.keys.is_empty() && contents.kinds["default profile"] >= 602, "{contents:?}");
        assert!(text.starts_with(b"{\"backup\":1,"));
        let first = revision(&text, "a");
        assert_eq!(first, revision(&text, "z"), "both were written together");
        seen.push(first);
    }

    // While one is not taken, nobody else gets one; a client that goes away ends its own.
    let held = admin.backup(RECORDS).await.unwrap();
    assert!(busy(&installation.admin()).await);
    assert_eq!(listed(&installation.config.data_dir), before, "there is nothing to see of it");
    drop(held);
    let gone = async {
        while busy(&installation.admin()).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.unwrap();
    stop.cancel();
    let last = writing.join_next().await.unwrap().unwrap();
    assert!(last > 1 && seen.first() != seen.last(), "nothing was written meanwhile: {seen:?} of {last}");
    assert_eq!(listed(&installation.config.data_dir), before, "and nothing is left");
    let audited = admin.audit(Some("path=/v1/backup"), None, 100, Duration::ZERO).await.unwrap().items;
    assert!(audited.len() >= 7 && audited.iter().all(|entry| entry.actor == "admin"), "{audited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_may_do_everything_gets_a_backup() {
    let installation = Installation::new().await;
    let nearly = with(&installation, "nearly", &["get,update,delete *"]).await;
    for client in [installation.token("viewer").await, installation.token("operator").await, nearly] {
        for request in [RECORDS, WITH_KEYS] {
            let (code, _) = problem(client.backup(request).await.map(|_| ()));
            assert_eq!(code, Code::Forbidden);
        }
    }
}

/// A configuration like another one, with a data directory of its own.
fn elsewhere(config: &Config, dir: &std::path::Path) -> Config {
    Config { data_dir: dir.join("new/server"), ..config.clone() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_with_keys_is_all_that_another_server_needs() {
    let mut installation = Installation::new().await;
    at_work(&installation).await;
    // One that was added while the server runs is in it too.
    Keyring::add_key(&installation.config.data_dir.join(KEYRING_FILE)).unwrap();
    let text = whole(installation.admin().backup(WITH_KEYS).await.unwrap()).await;
    let contents = backup::inspect(&text[..]).await.unwrap();
    assert_eq!(contents.keys, [KEYRING_FILE, "pki/ca.key", "pki/ca.pem"]);
    assert!(text.starts_with(b"{\"backup\":2,"));
    let shown = format!("{contents:?}{}", serde_json::to_string(&contents).unwrap());
    assert!(!shown.contains("PRIVATE"), "{shown}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.backup");
    std::fs::write(&file, &text).unwrap();

    let (config, now) = (elsewhere(&installation.config, dir.path()), Clock::system().now());
    let restored = location::restore(&config, now, &file, AllowedAuthority::Own).await.unwrap();
    assert!(restored.has_keys);
    for name in ["pki/ca.pem", "pki/ca.key", KEYRING_FILE] {
        let read = |config: &Config| std::fs::read_to_string(config.data_dir.join(name)).unwrap();
        assert_eq!(read(&config), read(&installation.config), "{name}");
        let mode = std::fs::metadata(config.data_dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mode = std::fs::metadata(config.data_dir.join("pki")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let token = installation.admin_token.clone();
    installation.server.take().unwrap().stop().await.unwrap();
    let server = Server::start(&config, Clock::system()).await.unwrap();
    let other = Installation::of(config, server, bellwether_api::client::Identity::Token(token));
    assert_eq!(other.admin().nodes("default", false).await.unwrap().items.len(), 1);
    other.admin().start_rollout("default", "web", &version("v2")).await.unwrap();

    // The command that opens the store itself writes the same lines of keys.
    let mut offline = Vec::new();
    location::back_up_with_keys(&installation.config, now, &mut offline).await.unwrap();
    let keys = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        text.lines().skip(1).take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(&offline), keys(&text));
}

#[tokio::test]
async fn keys_of_a_backup_replace_no_others_and_are_removed_if_the_records_are_not_restored() {
    let mut installation = Installation::new().await;
    Keyring::add_key(&installation.config.data_dir.join(KEYRING_FILE)).unwrap();
    installation.server.take().unwrap().stop().await.unwrap();
    let (dir, now) = (tempfile::tempdir().unwrap(), Clock::system().now());
    let (file, mut bytes) = (dir.path().join("all.backup"), Vec::new());
    location::back_up_with_keys(&installation.config, now, &mut bytes).await.unwrap();
    std::fs::write(&file, &bytes).unwrap();

    // Other keys for secrets beside the same authority.
    let ours = &installation.config;
    std::fs::remove_dir_all(installation.store_file()).unwrap();
    let kept = std::fs::read_to_string(ours.data_dir.join(KEYRING_FILE)).unwrap();
    Keyring::add_key(&ours.data_dir.join(KEYRING_FILE)).unwrap();
    let refused = location::restore(ours, now, &file, AllowedAuthority::Own).await.unwrap_err();
    assert!(
        matches!(&refused, TransferError::KeysPresent { path } if path.ends_with(KEYRING_FILE)),
        "{refused}"
    );
    assert!(!installation.store_file().exists(), "something was written");
    // What is there already, as it is in the backup, is no obstacle, and what is missing is added.
    std::fs::write(ours.data_dir.join(KEYRING_FILE), &kept).unwrap();
    std::fs::remove_file(ours.data_dir.join("pki/ca.key")).unwrap();
    assert!(location::restore(ours, now, &file, AllowedAuthority::Own).await.unwrap().has_keys);
    assert!(ours.data_dir.join("pki/ca.key").exists());

    // A store that is not empty: the keys that were written for it are gone again.
    std::fs::remove_file(ours.data_dir.join("pki/ca.key")).unwrap();
    let refused = location::restore(ours, now, &file, AllowedAuthority::Own).await.unwrap_err();
    assert!(refused.to_string().contains("it has installation"), "{refused}");
    assert!(!ours.data_dir.join("pki/ca.key").exists() && ours.data_dir.join("pki/ca.pem").exists());

    // Beside another authority it is restored by request, and that is left as it is.
    let other = elsewhere(ours, dir.path());
    init(&other).await.unwrap();
    std::fs::remove_dir_all(other.data_dir.join("store")).unwrap();
    let there = std::fs::read_to_string(other.data_dir.join("pki/ca.key")).unwrap();
    let refused = location::restore(&other, now, &file, AllowedAuthority::Own).await.unwrap_err();
    assert!(matches!(refused, TransferError::Authority { .. }), "{refused}");
    assert!(!location::restore(&other, now, &file, AllowedAuthority::Any).await.unwrap().has_keys);
    assert_eq!(std::fs::read_to_string(other.data_dir.join("pki/ca.key")).unwrap(), there);
    // Its keys are not those of these records.
    let refused = location::back_up_with_keys(&other, now, &mut Vec::new()).await.unwrap_err();
    assert!(matches!(refused, TransferError::OtherKeys { .. }), "{refused}");
}
