//! A server is backed up while its fleet works, and another one starts elsewhere from the backup alone.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::apply::{ApplyRequest, Document, ProfileDocument};
use serde_json::json;

use crate::place::{Setup, code, done, free_port, text, wait_for};

/// An agent's section: an entity that writes a param of its profile to a file.
fn sections(place: &Setup) -> String {
    let file = place.path("web-1.web");
    format!("[[entity.web.file]]\npath = {file:?}\ntext = \"{{{{ params.number }}}}\"\n")
}

async fn fleet() -> Setup {
    let mut place = Setup::new().await;
    let sections = sections(&place);
    place.start_agent("web-1", &sections);
    done(&place, &["profile", "set", "web", "number=0"]);
    let entity = ["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--soak", "0s"];
    done(&place, &[&entity[..], &["--batch", "100%"]].concat());
    place
}

async fn roll(place: &Setup, number: u32) {
    done(place, &["profile", "set", "web", &format!("number={number}")]);
    done(place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    let (file, expected) = (place.path("web-1.web"), number.to_string());
    wait_for("the node has it", async || std::fs::read_to_string(&file).is_ok_and(|found| found == expected))
        .await;
}

/// Writes the same number to two records in one transaction, again and again, until told to stop; answers how often.
async fn count(client: Client, stop: Arc<AtomicBool>) -> u64 {
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let pair = ["first", "second"].map(|name| {
            let params = [("count".to_owned(), json!(number))].into();
            Document::Profile(ProfileDocument { name: name.to_owned(), params, ..ProfileDocument::default() })
        });
        let request = ApplyRequest { documents: pair.to_vec(), ..ApplyRequest::default() };
        assert_eq!(client.apply("default", &request).await.unwrap().transactions, 1);
    }
    number
}

async fn counted(client: &Client, name: &str) -> serde_json::Value {
    let path = format!("/v1/namespaces/default/profiles/{name}");
    let profile: serde_json::Value = client.get(&path, std::time::Duration::from_secs(10)).await.unwrap();
    profile.pointer("/params/count").unwrap().clone()
}

/// A server of another data directory, and a client of it.
async fn start_other(place: &Setup, config: &str, port: u16) -> (std::process::Child, Client) {
    let log = std::fs::File::create(place.log("other")).unwrap();
    let mut command = place.command(&["server", "run", "--config", config]);
    let server = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let access = Access {
        server: format!("https://127.0.0.1:{port}"),
        // As agents know it: that of the first server.
        ca: Some(read("server/pki/ca.pem")),
        identity: Identity::Token(Secret::new(read("server/admin-token").trim())),
    };
    let client = Client::new(&access).unwrap();
    wait_for("the other server answers", async || client.ready().await.is_ok()).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_backed_up_while_it_works_and_another_one_starts_from_the_backup_alone() {
    let place = fleet().await;
    roll(&place, 1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(count(place.client(), Arc::clone(&stop)));
    let client = place.client();
    wait_for("it writes", async || {
        client
            .get::<serde_json::Value>("/v1/namespaces/default/profiles/second", crate::place::SOON)
            .await
            .is_ok()
    })
    .await;

    let file = place.path("all.backup");
    let taken =
        tokio::task::block_in_place(|| place.run(&["server", "backup", "--online", "--with-keys", &file]));
    assert_eq!(code(&taken), 0, "{}", text(&taken.stderr));
    assert!(text(&taken.stdout).contains("a restore needs nothing else"), "{}", text(&taken.stdout));
    assert!(text(&taken.stderr).contains("is not encrypted"), "{}", text(&taken.stderr));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::path::Path::new(&place.path("all.backup.part")).exists());
    let looked = done(&place, &["server", "inspect", &file]);
    assert!(looked.contains("pki/secrets.key") || looked.contains("pki/ca.key"), "{looked}");
    assert!(!looked.contains("PRIVATE"), "{looked}");

    // Elsewhere, with nothing but the file.
    let (port, other) = (free_port(), place.path("other.toml"));
    let data_dir = place.path("elsewhere/server");
    std::fs::write(&other, format!("data_dir = {data_dir:?}\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
    let restored = done(&place, &["server", "restore", "--config", &other, &file]);
    assert!(restored.contains("nothing else is needed for a start"), "{restored}");
    let (mut server, second) = start_other(&place, &other, port).await;
    let (one, two) = (counted(&second, "first").await, counted(&second, "second").await);
    assert_eq!(one, two, "both were written together");

    // The first one's fleet has noticed nothing.
    roll(&place, 2).await;
    stop.store(true, Ordering::Relaxed);
    let written = writing.join_next().await.unwrap().unwrap();
    assert_eq!(counted(&client, "first").await, json!(written));
    assert!(one.as_u64().unwrap() < written, "it was written on meanwhile: {one} of {written}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_and_what_is_there_is_refused_and_a_backup_without_keys_says_what_is_missing() {
    let place = Setup::new().await;
    let file = place.path("all.backup");
    let viewer = done(&place, &["token", "create", "looks", "--role", "viewer"]);
    let viewer = viewer.trim();
    for words in [&["server", "backup", "--online"][..], &["server", "backup", "--online", "--with-keys"]] {
        let mut command = place.command(&[words, &[&file]].concat());
        let refused = command.env("BELLWETHER_TOKEN", viewer).output().unwrap();
        assert!(!refused.status.success());
        let said = text(&refused.stderr);
        assert!(said.contains("token looks has role viewer; this needs the right update server"), "{said}");
    }
    let left = |name: &str| std::path::Path::new(&place.path(name)).exists();
    assert!(!left("all.backup") && !left("all.backup.part"));

    let said = done(&place, &["server", "backup", "--online", &file]);
    assert!(said.contains("ca.pem, ca.key and secrets.key"), "{said}");
    let before = std::fs::read(&file).unwrap();
    let again = place.run(&["server", "backup", "--online", &file]);
    assert_eq!(code(&again), 7, "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("the file exists"), "{}", text(&again.stderr));
    assert!(std::fs::read(&file).unwrap() == before && !left("all.backup.part"));

    // To stdout, as for a pipe into a program that encrypts.
    let piped = place.run(&["server", "backup", "--online", "-"]);
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    let looked = place.run_with(&["server", "inspect", "-"], &text(&piped.stdout));
    assert!(looked.status.success() && !text(&looked.stdout).contains("keys"), "{}", text(&looked.stdout));

    // The command that opens the store itself names the way.
    let busy = place.run(&["server", "backup", "--config", &place.path("server.toml"), &place.path("more")]);
    assert_eq!(code(&busy), 7, "{}", text(&busy.stderr));
    assert!(text(&busy.stderr).contains("server backup --online"), "{}", text(&busy.stderr));
}
