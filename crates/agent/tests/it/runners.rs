//! Runners: real puppet, systemd units, and a directory of validators.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::bench::{Bench, lines};

/// Writes a program.
fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puppet_applies_a_manifest_and_its_errors_are_the_evidence() {
    let bench = Bench::new().await;
    let (site, made) = (bench.path("site.pp"), bench.path("made"));
    // 0 and 2 differ in whether anything changed; an impossible resource is 4, and 6 beside possible ones.
    let manifest = format!(
        "file {{ '{}': content => \"${{facts['bellwether_version']}}\\n\" }}\n\
         if $facts['bellwether_version'] == 'v2' {{ file {{ '/no/such/directory/file': content => 'x' }} }}\n",
        made.display()
    );
    fs::write(&site, manifest).unwrap();
    let home = bench.path("puppet").display().to_string();
    let options =
        ["confdir", "vardir", "publicdir", "rundir", "logdir"].map(|dir| format!("\"--{dir}={home}/{dir}\""));
    let entity = format!(
        "[entity.web]\nstatic = {{ puppet = {site:?}, modulepath = \"/nowhere\", options = [{}] }}\n",
        options.join(", ")
    );
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    assert_eq!(lines(&made), ["v1"], "the version is a fact");
    bench.roll("v2").await;
    let evidence = bench.failure().await;
    let summary = &evidence.summary;
    assert!(
        summary.starts_with("static: puppet: exit code 6, some resources changed and others failed"),
        "{summary}"
    );
    assert!(
        evidence.tail.contains("/no/such/directory") && !evidence.tail.contains("Facter"),
        "{evidence:?}"
    );
    assert_eq!(bench.node().await.running["web"], "v1");
    fs::write(&site, "file { oops").unwrap();
    bench.roll("v3").await;
    let evidence = bench
        .until("a manifest that is none", async || {
            bench.target().await?.evidence.filter(|evidence| evidence.exit_code == Some(1))
        })
        .await;
    assert!(evidence.summary.contains("Syntax error"), "{evidence:?}");
    agent.stop().await;
}

/// `systemctl` as this machine has it. Without systemd it fails, and the evidence must say that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_systemd_reports_that() {
    if Path::new("/run/systemd/system").exists() {
        // This machine runs systemd: the real one refuses a unit that does not exist.
        return real_systemd_refuses_a_unit_that_does_not_exist().await;
    }
    let bench = Bench::new().await;
    let agent =
        bench.agent("[entity.web]\ndynamic = { systemd = \"web.service\", action = \"restart\" }\n").await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    let without = "dynamic: web.service: systemd is not running on this node";
    let missing = "dynamic: web.service: systemctl restart: cannot start: systemctl";
    assert!(evidence.summary == without || evidence.summary.starts_with(missing), "{evidence:?}");
    agent.stop().await;
}

async fn real_systemd_refuses_a_unit_that_does_not_exist() {
    let bench = Bench::new().await;
    let entity =
        "[entity.web]\ndynamic = { systemd = \"bellwether-no-such.service\", action = \"restart\" }\n";
    let agent = bench.agent(entity).await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    assert!(evidence.tail.contains("bellwether-no-such.service"), "{evidence:?}");
    agent.stop().await;
}

/// A fake `systemctl`: systemd cannot run inside the containers these tests run in. It keeps a unit's state in a
/// file, takes a moment to become active, and fails on request.
fn fake_systemctl(bench: &Bench) -> String {
    let home = bench.path("systemd");
    let script = r#"
cd HOME
echo "$*" >> calls
case "$*" in
  *restart*) if [ -e broken ]; then echo failed > state; else echo activating > state; echo 0 > looks; fi ;;
  *show*)
    state=$(cat state)
    if [ "$state" = activating ]; then
      looks=$(($(cat looks) + 1)); echo $looks > looks
      [ $looks -ge 3 ] && state=active && echo active > state
    fi
    echo "Type=notify"; echo "ActiveState=$state"; echo "SubState=x"
    [ "$state" = failed ] && echo "Result=exit-code" || echo "Result=success" ;;
  *status*) echo "web.service - web"; echo "web[7]: cannot bind to port 80"; exit 3 ;;
esac
"#;
    program(&home.join("systemctl"), &script.replace("HOME", &home.display().to_string()));
    format!("{}:/usr/bin:/bin", home.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_is_restarted_and_waited_for_and_its_journal_is_the_evidence() {
    let bench = Bench::new().await;
    let path = fake_systemctl(&bench);
    let entity = format!(
        "[entity.web]\nenv = {{ PATH = {path:?} }}\n\
         dynamic = {{ systemd = \"web.service\", action = \"restart\" }}\n\
         validate = {{ systemd = \"web.service\", action = \"active\" }}\n"
    );
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    let calls = lines(&bench.path("systemd/calls"));
    assert_eq!(calls[0], "--no-ask-password restart web.service");
    assert_eq!(calls.iter().filter(|call| call.starts_with("show ")).count(), 4, "{calls:?}");
    fs::write(bench.path("systemd/broken"), "").unwrap();
    bench.roll("v2").await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.summary, "dynamic: web.service is failed (x, exit-code)");
    assert!(evidence.tail.contains("cannot bind to port 80"), "{evidence:?}");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_validators_stops_at_the_first_failure_and_the_version_is_applied_again() {
    let bench = Bench::new().await;
    let (dir, trace, broken) = (bench.path("validate.d"), bench.path("trace"), bench.path("broken"));
    let says = |name: &str| format!("echo {name} $BELLWETHER_VERSION >> {}", trace.display());
    program(&dir.join("10-first"), &says("first"));
    program(&dir.join("20-second"), &format!("{}; test ! -e {}", says("second"), broken.display()));
    program(&dir.join("30-third"), &says("third"));
    fs::write(dir.join("15-notes"), "not a program").unwrap();
    fs::write(&broken, "").unwrap();
    // The second attempt repairs what validation found broken.
    let mend = format!(
        "{}; [ $(grep -c static {}) -lt 2 ] || rm -f {}",
        says("static"),
        trace.display(),
        broken.display()
    );
    let entity = format!(
        "[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {mend:?}]\nvalidate = {{ directory = {dir:?} }}\n"
    );
    let agent = bench.agent(&entity).await;
    bench.roll("v1").await;
    let failed = bench
        .sees("a failed validation", |node| {
            node.statuses.get("validate").is_some_and(|status| status.state == "failed")
        })
        .await;
    let wanted = format!("web: validate: {}: exit code 1", dir.join("20-second").display());
    assert_eq!(failed.statuses["validate"].reason, wanted);
    assert!(!failed.running.contains_key("web"), "nothing runs before validation passed on it");
    bench.runs("v1").await;
    let wanted = ["static v1", "first v1", "second v1", "static v1", "first v1", "second v1", "third v1"];
    assert_eq!(bench.trace(), wanted);
    agent.stop().await;
}

/// An entity whose repeated validation checks whether a file exists.
fn validated_often(bench: &Bench) -> String {
    let (trace, broken) = (bench.path("trace"), bench.path("broken"));
    let line = |part: &str| format!("echo {part} >> {}", trace.display());
    let sh = |script: String| format!("[\"/bin/sh\", \"-c\", {script:?}]");
    // The dynamic part repairs what validation found broken, unless that is impossible.
    let mend = format!("{}; test -s {1} || rm -f {1}", line("dynamic"), broken.display());
    let validate = format!("test ! -e {}", broken.display());
    format!(
        "[entity.web]\nstatic = {}\ndynamic = {}\nvalidate = {}\nvalidate_every = \"50ms\"\n",
        sh(line("static")),
        sh(mend),
        sh(validate)
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_fails_a_later_validation_is_applied_again() {
    let bench = Bench::new().await;
    let agent = bench.agent(&validated_often(&bench)).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    assert_eq!(bench.trace(), ["static", "dynamic"]);
    fs::write(bench.path("broken"), "").unwrap();
    bench.until("both parts again", async || (bench.trace().len() >= 4).then_some(())).await;
    let node = bench.sees("success", |node| node.statuses["validate"].state == "success").await;
    assert_eq!(node.running["web"], "v1");
    // It cannot be repaired: it is retried with backoff, and the failure stays visible.
    fs::write(bench.path("broken"), "for good").unwrap();
    bench.sees("failure", |node| node.statuses["validate"].state == "failed").await;
    bench.until("it is tried again", async || (bench.trace().len() >= 8).then_some(())).await;
    fs::remove_file(bench.path("broken")).unwrap();
    bench.sees("success", |node| node.statuses["validate"].state == "success").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_still_validates_and_applies_nothing() {
    let bench = Bench::new().await;
    let agent = bench.agent(&validated_often(&bench)).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.client.pause_node(super::bench::NS, super::bench::NODE, "looking at it").await.unwrap();
    bench.says("the pause", |status| status.paused.is_some()).await;
    fs::write(bench.path("broken"), "").unwrap();
    let node = bench.sees("failure", |node| node.statuses["validate"].state == "failed").await;
    assert_eq!(node.statuses["validate"].reason, "web: validate: exit code 1");
    fs::remove_file(bench.path("broken")).unwrap();
    bench.sees("success by itself", |node| node.statuses["validate"].state == "success").await;
    fs::write(bench.path("broken"), "").unwrap();
    bench.sees("failure", |node| node.statuses["validate"].state == "failed").await;
    assert_eq!(bench.trace(), ["static", "dynamic"], "nothing is configured while the node is paused");
    bench.client.resume_node(super::bench::NS, super::bench::NODE).await.unwrap();
    bench.sees("success", |node| node.statuses["validate"].state == "success").await;
    assert_eq!(bench.trace(), ["static", "dynamic", "static", "dynamic"]);
    agent.stop().await;
}
