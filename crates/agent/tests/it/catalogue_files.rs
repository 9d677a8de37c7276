//! Files written from the catalogue: in every form, unchanged with a reason after a failure, and reloaded.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use bellwether_agent::local::client::{call, catalogue};
use bellwether_agent::status::FileStatus;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition, TtlUpdate};
use http::Method;

use crate::bench::{Bench, NS, lines};

const HEAD: &str = "addresses = { eth0 = [\"10.0.0.7\"], eth1 = [\"10.1.0.7\"] }\n";

/// Registers a service with a TTL check in this state.
async fn registration(bench: &Bench, name: &str, level: &str) {
    let ttl = Some("10m".to_owned());
    let check = CheckDefinition { name: "alive".to_owned(), ttl, ..CheckDefinition::default() };
    let definition = ServiceDefinition {
        name: name.to_owned(),
        port: Some(3306),
        checks: vec![check],
        ..ServiceDefinition::default()
    };
    bench
        .until("the socket answers", async || {
            let put = Method::PUT;
            let path = paths::AGENT_SERVICES;
            call::<_, serde_json::Value>(&bench.data_dir(), put, path, Some(&definition)).await.ok()
        })
        .await;
    say(bench, name, level).await;
}

async fn say(bench: &Bench, name: &str, level: &str) {
    let update_check = TtlUpdate { status: level.parse().unwrap(), note: String::new() };
    let path = fill(paths::AGENT_TTL_UPDATE, &[name]);
    call::<_, serde_json::Value>(&bench.data_dir(), Method::PUT, &path, Some(&update_check)).await.unwrap();
}

/// Waits until the agent reports this of a file.
async fn stands(bench: &Bench, path: &str, state: &str, reason: &str) -> FileStatus {
    let path = bench.path(path).display().to_string();
    let fits = |file: &&FileStatus| file.state == state && file.reason.contains(reason);
    let what = format!("{path} {state}, {reason}");
    let status = bench.says(&what, |status| status.files.get(&path).as_ref().is_some_and(fits)).await;
    status.files.get(&path).unwrap().clone()
}

async fn says(bench: &Bench, path: &str, wanted: &str) {
    let path = bench.path(path);
    let look = async || fs::read_to_string(&path).is_ok_and(|text| text == wanted).then_some(());
    bench.until(&format!("{} says {wanted:?}", path.display()), look).await;
}

/// A file of the catalogue in the bench's directory.
fn file(bench: &Bench, name: &str, more: &str) -> String {
    format!("[[file]]\npath = {:?}\ndebounce = \"50ms\"\n{more}\n", bench.path(name))
}

fn script(bench: &Bench, key: &str, script: &str) -> String {
    let script = script.replace('@', &bench.dir.path().display().to_string());
    format!("{key} = [\"/bin/sh\", \"-c\", {script:?}]\n")
}

const SERVERS: &str =
    "text = '''{% for it in services.db.functional %}{{ it.node }} {{ it.address }}:{{ it.port }}
{% endfor %}'''
services = [\"db\"]
";

#[tokio::test(flavor = "multi_thread")]
async fn files_follow_the_catalogue_in_every_form_and_changes_at_once_are_one_reload() {
    let bench = Bench::new().await;
    let reload = script(&bench, "reload", "echo read >> @/reloads");
    let config = [
        HEAD.to_owned(),
        file(&bench, "services.yaml", "format = \"hiera\"\nrequired = [\"db\"]\nmode = \"0600\""),
        file(&bench, "db.conf", &format!("{SERVERS}{reload}")),
        file(&bench, "services.env", &format!("format = \"env\"\n{reload}")),
        file(&bench, "services.json", "format = \"json\"\nrequired = [\"db\"]"),
        file(&bench, "about", "text = \"{{ node.name }} {{ node.addresses.eth1[0] }} {{ facts.os }}\""),
    ];
    let agent = bench.agent(&config.concat()).await;
    stands(&bench, "services.yaml", "pending", "waiting for 1 addressable of db: no node ever registered it")
        .await;
    says(&bench, "db.conf", "").await;
    says(&bench, "about", "web-1 10.1.0.7 linux").await;
    let pending = bench.sees("the status", |node| node.statuses.contains_key("files")).await;
    assert_eq!(pending.statuses["files"].state, "pending");
    bench.until("both are read", async || (lines(&bench.path("reloads")).len() == 1).then_some(())).await;

    // A registered instance is enough for hiera, and for nothing else.
    registration(&bench, "db", "failing").await;
    let body = "---\nservices::db::eth0: [10.0.0.7]\nservices::db::eth1: [10.1.0.7]\n";
    let notice = "# Written by bellwether from the catalogue of services; manual changes are lost.\n";
    says(&bench, "services.yaml", &format!("{notice}{body}")).await;
    assert_eq!(fs::metadata(bench.path("services.yaml")).unwrap().permissions().mode() & 0o777, 0o600);
    stands(&bench, "services.json", "pending", "waiting for 1 functional of db: ").await;

    say(&bench, "db", "passing").await;
    says(&bench, "db.conf", "web-1 10.0.0.7:3306\n").await;
    stands(&bench, "services.json", "success", "").await;
    assert!(fs::read_to_string(bench.path("services.json")).unwrap().contains("\"level\": \"passing\""));
    // Each file is written by itself.
    let says_it = || {
        let variables = fs::read_to_string(bench.path("services.env")).unwrap_or_default();
        variables.contains("SERVICE_DB_ENDPOINTS=\"10.0.0.7:3306\"\n").then_some(())
    };
    bench.until("the variables say it", async || says_it()).await;
    bench.sees("all files are written", |node| node.statuses["files"].state == "success").await;

    // An unchanged file is not written again.
    let before = fs::metadata(bench.path("services.yaml")).unwrap().ino();
    // The files are written before they are read.
    bench
        .until("both are read again", async || (lines(&bench.path("reloads")).len() > 1).then_some(()))
        .await;
    let reloads = lines(&bench.path("reloads")).len();
    say(&bench, "db", "failing").await;
    says(&bench, "db.conf", "").await;
    stands(&bench, "services.json", "pending", "1 functional of db").await;
    assert!(fs::read_to_string(bench.path("services.json")).unwrap().contains("passing"), "it was kept");
    bench
        .until("they are read again", async || (lines(&bench.path("reloads")).len() > reloads).then_some(()))
        .await;
    assert_eq!(lines(&bench.path("reloads")).len(), reloads + 1);
    assert_eq!(fs::metadata(bench.path("services.yaml")).unwrap().ino(), before);
    assert!(catalogue(&bench.data_dir()).await.unwrap().service(&"db".parse().unwrap()).is_some());
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_stays_unchanged_with_a_reason() {
    let bench = Bench::new().await;
    for name in ["wrong", "refused", "link-to", "long"] {
        fs::write(bench.path(name), "old").unwrap();
    }
    std::os::unix::fs::symlink(bench.path("link-to"), bench.path("link")).unwrap();
    let template = bench.path("wrong.j2");
    fs::write(&template, "a\n{{ services.nope.functional }}\n").unwrap();
    let check = script(&bench, "check", "grep -q new \"$0\" && test -e @/go || { echo not so; exit 3; }")
        .replace("]\n", ", \"{path}\"]\n");
    let long =
        "text = '{% for i in range(9999) %}{% for j in range(9) %}{{ \"x\" * 100 }}{% endfor %}{% endfor %}'";
    let config = [
        HEAD.to_owned(),
        file(&bench, "wrong", &format!("template = {template:?}")),
        file(&bench, "refused", &format!("text = \"new\"\n{check}")),
        file(&bench, "link", "text = \"new\""),
        file(&bench, "no/such", "text = \"new\""),
        file(&bench, "long", long),
        "[[file]]\npath = \"/proc/bellwether\"\ntext = \"new\"\n".to_owned(),
    ];
    let agent = bench.agent(&config.concat()).await;
    for (name, reason) in [
        ("wrong", "wrong.j2, line 2: `services.nope.functional` is undefined: no such service"),
        ("refused", "check: exit code 3: not so"),
        ("link", "it is a link to"),
        ("no/such", "cannot write to the directory"),
        ("/proc/bellwether", "cannot write /proc/.bellwether.bellwether-new"),
        ("long", "the rendered text has more than 4194304 bytes"),
    ] {
        stands(&bench, name, "failed", reason).await;
    }
    for name in ["wrong", "refused", "link-to", "long"] {
        assert_eq!(fs::read_to_string(bench.path(name)).unwrap(), "old", "{name}");
    }
    assert!(!fs::exists(bench.path(".refused.bellwether-new")).unwrap());
    // The status names the first failed file by name: until all were tried it is another one's.
    let first = "/proc/bellwether: cannot write";
    bench
        .sees("a failed status", |node| {
            let files = node.statuses.get("files");
            files.is_some_and(|status| status.state == "failed" && status.reason.starts_with(first))
        })
        .await;
    let failures = bench.client.failures(NS).await.unwrap().failed;
    assert!(failures.iter().any(|failure| failure.category == "files"), "{failures:?}");

    // After the obstacle is removed, the agent succeeds by itself.
    fs::write(&template, "mended").unwrap();
    fs::write(bench.path("go"), "").unwrap();
    fs::create_dir(bench.path("no")).unwrap();
    says(&bench, "wrong", "mended").await;
    says(&bench, "refused", "new").await;
    says(&bench, "no/such", "new").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_reload_is_reported_and_retried_also_by_the_next_agent() {
    let bench = Bench::new().await;
    let reload = script(&bench, "reload", "echo tried >> @/tries; test -e @/go || { echo no pid; exit 1; }");
    let config = format!("{HEAD}{}", file(&bench, "db.conf", &format!("{SERVERS}{reload}")));
    let agent = bench.agent(&config).await;
    let file =
        stands(&bench, "db.conf", "failed", "reload: exit code 1: no pid; the file was replaced").await;
    assert!(file.failed >= 1);
    bench.until("a second try", async || (lines(&bench.path("tries")).len() >= 2).then_some(())).await;
    agent.stop().await;
    let tries = lines(&bench.path("tries")).len();
    fs::write(bench.path("go"), "").unwrap();
    let agent = bench.agent_again(&config);
    stands(&bench, "db.conf", "success", "").await;
    assert_eq!(lines(&bench.path("tries")).len(), tries + 1, "the next agent reads it once");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_cut_off_leaves_files_unchanged_and_writes_missing_ones() {
    let mut bench = Bench::new().await;
    let config = [HEAD.to_owned(), file(&bench, "kept", SERVERS), file(&bench, "gone", SERVERS)];
    let agent = bench.agent(&config.concat()).await;
    registration(&bench, "db", "passing").await;
    says(&bench, "gone", "web-1 10.0.0.7:3306\n").await;
    bench
        .until("the catalogue is kept", async || {
            let kept = fs::read_to_string(bench.data_dir().join("catalogue.json"));
            kept.is_ok_and(|text| text.contains("passing")).then_some(())
        })
        .await;
    agent.stop().await;
    bench.stop_server().await;
    fs::write(bench.path("kept"), "newer than the kept catalogue").unwrap();
    fs::remove_file(bench.path("gone")).unwrap();
    let agent = bench.agent_again(&config.concat());
    says(&bench, "gone", "web-1 10.0.0.7:3306\n").await;
    stands(&bench, "kept", "success", "").await;
    says(&bench, "kept", "newer than the kept catalogue").await;
    bench.start_server().await;
    says(&bench, "kept", "web-1 10.0.0.7:3306\n").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dynamic_part_waits_for_the_file_it_reads() {
    let bench = Bench::new().await;
    let dynamic = script(&bench, "dynamic", "cat @/db.conf > @/seen");
    let config = format!(
        "{HEAD}[entity.web]\n{dynamic}{}",
        file(&bench, "db.conf", &format!("{SERVERS}required = [\"db\"]\nbefore = [\"web\"]"))
    );
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    let waits = |node: &bellwether_api::v1::node::NodeView| {
        node.statuses.get("configure").is_some_and(|status| {
            status.state == "pending" && status.reason.contains("db.conf: waiting for 1 functional of db")
        })
    };
    bench.sees("it waits", waits).await;
    registration(&bench, "db", "passing").await;
    bench.runs("v1").await;
    says(&bench, "seen", "web-1 10.0.0.7:3306\n").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_a_catalogue_fetches_one_on_request() {
    let bench = Bench::new().await;
    let agent = bench.agent(HEAD).await;
    registration(&bench, "db", "passing").await;
    let name = "db".parse().unwrap();
    bench
        .until("it is known here", async || {
            let found = catalogue(&bench.data_dir()).await.unwrap();
            found.service(&name).is_some_and(|service| service.functional() == 1).then_some(())
        })
        .await;
    let kept: PathBuf = bench.data_dir().join("catalogue.json");
    bench.until("it is kept up to date", async || kept.exists().then_some(())).await;
    agent.stop().await;
}
