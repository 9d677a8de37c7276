//! Ensembles of members that are independent of each other, as a person has them: copies of a real program, and something that executables of the
//! nodes start and stop. They move when a node is drained, are started again where they end, outlive their agents, and stop once the ensemble
//! is deleted.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::service::InstanceStatus;

use crate::place::{Setup, code, done, free_ports, text, wait_for};

const NODES: usize = 4;

fn address(number: usize) -> String {
    format!("127.0.36.{number}")
}

/// Nodes `n-1` to `n-4`, of which all but the last have what ensembles run.
async fn installed(sections: &str) -> Setup {
    let mut place = Setup::new().await;
    for number in 1..=NODES {
        let own = if number < NODES { sections } else { "" };
        let all = format!("addresses = {{ lo = [{:?}] }}\n\n[ensembles]\n{own}\n", address(number));
        place.start_agent(&format!("n-{number}"), &all);
    }
    place
}

/// The members of an ensemble, once there are so many, all of them serve, and nothing is left to be done.
pub(crate) async fn serving(place: &Setup, name: &str, size: usize) -> Vec<EnsembleMember> {
    let client = place.client();
    let mut members = Vec::new();
    wait_for(&format!("{size} members of {name} serve"), async || {
        let status = client.ensemble("default", name).await.unwrap().status.unwrap();
        members = status.members;
        status.is_complete
            && members.len() == size
            && members.iter().all(|member| member.state == MemberPhase::Serving)
    })
    .await;
    members
}

/// The processes whose command line has these words.
pub(crate) fn processes(words: &str) -> Vec<String> {
    let found = Command::new("pgrep").args(["-f", words]).output().unwrap();
    text(&found.stdout).lines().map(str::to_owned).collect()
}

fn why(place: &Setup, name: &str) -> String {
    text(&place.run(&["why", &format!("ensemble/{name}")]).stdout)
}

/// So many instances of a service are found by its name, all of them well.
async fn are_found(place: &Setup, name: &str, number: usize) {
    wait_for(&format!("{number} instances of {name} are found"), async || {
        let all = place.client().service("default", name, None, Duration::ZERO).await;
        let all = all.map(|service| service.instances).unwrap_or_default();
        all.len() == number && all.iter().all(|instance| instance.status == InstanceStatus::Passing)
    })
    .await;
}

/// What the command says that creates an ensemble of copies of a program.
fn create(place: &Setup, port: u16, more: &[&str]) -> (i32, String) {
    let port = port.to_string();
    let flags = ["--service", "process", "--port", &port, "-l", "all", "--failover-after", "30s"];
    let args: Vec<&str> = ["ensemble", "create", "web"].iter().chain(&flags).chain(more).copied().collect();
    let said = place.run(&args);
    (code(&said), text(&said.stderr))
}

/// What makes no sense is refused, by its name.
fn refused(place: &Setup, port: u16) {
    for (bad, expected) in [
        (&[][..], "--program is missing"),
        (&["--program", "web", "--client-port", "1"], "use --client-port: it is a setting of etcd"),
        (
            &["--program", "web", "--size", "quorum"],
            "quorum is for members that vote or replicate; write 1 to 64",
        ),
        (&["--program", "web", "--size", "65"], "65; write 1 to 64"),
        (&["--program", "Web"], "\"Web\" is not a valid program name"),
        (
            &["--program", "web", "--snapshot-every", "1h"],
            "snapshots are there for etcd, and not for process yet",
        ),
    ] {
        let (exit, said) = create(place, port, bad);
        assert!(exit != 0 && said.contains(expected), "{bad:?}: {said}");
    }
}

/// The words by which the process of a member is found.
fn words(port: u16, member: &EnsembleMember) -> String {
    let address = member.peer_url.as_ref().unwrap().replace("tcp://", "");
    format!("http.server {port} --bind {}", address.split(':').next().unwrap())
}

/// A node whose member has nowhere to go is waited for until somebody uncordons it.
fn a_drain_that_somebody_ends(place: &Setup) {
    let mut drain = place.command(&["node", "drain", "n-1", "--reason", "a new disk", "--yes", "-w"]);
    let mut drain = drain.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(drain.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("of ensemble web stays on node n-1")));
    done(place, &["node", "uncordon", "n-1"]);
    let rest: Vec<String> = lines.collect();
    let said = rest.join("\n");
    assert_eq!(drain.wait().unwrap().code(), Some(1), "{said}");
    assert!(
        said.contains("node n-1: not drained: uncordoned meanwhile; what it has of ensembles stays"),
        "{said}"
    );
}

/// A document that makes an ensemble smaller is a question, and says which members leave; what only looks at it asks nothing.
fn fewer_by_a_document(place: &Setup, port: u16) {
    let document = format!(
        "kind: ensemble\nname: web\nservice:\n  process:\n    program: web\n    port: {port}\nfilter: all\nsize: 2\nfailover_after: 30s\n"
    );
    let run = |args: &[&str]| {
        let output = place.run_with(args, &document);
        (code(&output), text(&output.stdout) + &text(&output.stderr))
    };
    let size = || done(place, &["ensemble", "get", "web"]).contains("size            4\n");
    let (exit, said) = run(&["diff", "-f", "-"]);
    assert!(exit == 1 && said.contains("size: 4 → 2") && !said.contains("confirm"), "{said}");
    let (exit, said) = run(&["apply", "-f", "-", "--dry-run"]);
    assert!(exit == 0 && !said.contains("confirm"), "{said}");
    let (exit, said) = run(&["apply", "-f", "-"]);
    let asks = said.contains("is removed: there are more members than are wanted")
        && said.contains("change ensemble/web?");
    assert!(exit == 64 && asks && size(), "{said}");
    let (exit, said) = run(&["apply", "-f", "-", "--yes"]);
    assert!(exit == 0 && said.contains("ensemble/web: member ") && said.contains("is removed"), "{said}");
    let (exit, said) = run(&["apply", "-f", "-"]);
    assert!(exit == 0 && said.contains("ensemble/web unchanged"), "{said}");
}

/// Whoever waits for a deletion can use the name and the ports at once; a node that is away is waited for as long as was said.
async fn deleted_and_waited_for(place: &mut Setup, port: u16) {
    done(place, &["ensemble", "delete", "web", "--yes", "-w"]);
    assert!(processes(&format!("http.server {port} ")).is_empty());
    let (exit, said) = create(place, port, &["--program", "web", "--size", "2"]);
    assert_eq!(exit, 0, "{said}");
    let away = serving(place, "web", 2).await.remove(0).node;
    place.kill_agent(&away);
    let late = place.run(&["ensemble", "delete", "web", "--yes", "-w", "--timeout", "1s"]);
    let said = text(&late.stderr);
    let waits = said.contains("waiting: ") && said.contains(&format!("on node {away} is removed"));
    assert!(code(&late) == 3 && waits && said.contains("they continue to leave"), "{said}");
    place.resume_agent(&away);
    wait_for("all stop", async || processes(&format!("http.server {port} ")).is_empty()).await;
}

/// The fourth node does not have the program, and says so; what a drained node had moves.
async fn without_room_and_drained(place: &Setup, port: u16) {
    done(place, &["ensemble", "scale", "web", "4", "--yes"]);
    wait_for("it is said why there is no fourth one", async || {
        let why = why(place, "web");
        why.contains("program web, which is not in [ensembles.programs] of its agent")
            && why.contains("1 more member is needed")
    })
    .await;
    are_found(place, "web", 3).await;
    a_drain_that_somebody_ends(place);
    fewer_by_a_document(place, port);
    let members = serving(place, "web", 2).await;
    let drained = members.first().unwrap().clone();
    let said = place.run(&["node", "drain", &drained.node, "--reason", "a new kernel", "--yes", "-w"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let members = async || place.client().ensemble("default", "web").await.unwrap().status.unwrap().members;
    let is_there =
        |member: &EnsembleMember| member.node == drained.node && member.state != MemberPhase::Removed;
    assert!(!members().await.iter().any(is_there), "the command waits for that: {}", text(&said.stderr));
    wait_for("it has moved", async || {
        let members = members().await;
        members.len() == 2 && members.iter().all(|member| member.node != drained.node)
    })
    .await;
    are_found(place, "web", 2).await;
    assert!(processes(&words(port, &drained)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_program_are_spread_started_again_moved_and_stopped() {
    let [port] = free_ports::<1>();
    let program = "[ensembles.programs.web]\n\
        argv = [\"/usr/bin/python3\", \"-m\", \"http.server\", \"{port}\", \"--bind\", \"{address}\", \"--directory\", \"{data}\"]\n\
        http = \"/\"\n";
    let mut place = installed(program).await;
    refused(&place, port);
    let (created, said) = create(&place, port, &["--program", "web", "--size", "2"]);
    assert_eq!(created, 0, "{said}");
    let members = serving(&place, "web", 2).await;
    are_found(&place, "web", 2).await;
    let shown = done(&place, &["ensemble", "get", "web"]);
    assert!(shown.contains(&format!("process web on port {port}")), "{shown}");
    assert!(shown.contains("2 of 2 members serve"), "{shown}");

    let words = |member: &EnsembleMember| words(port, member);
    let first = members.first().unwrap().clone();
    let before = processes(&words(&first));
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(Command::new("kill").args(["-9", &before[0]]).status().unwrap().success());
    wait_for("it is started again where it was", async || {
        let now = processes(&words(&first));
        now.len() == 1 && now != before
    })
    .await;
    serving(&place, "web", 2).await;

    place.kill_agent(&first.node);
    let kept = processes(&words(&first));
    place.resume_agent(&first.node);
    are_found(&place, "web", 2).await;
    assert_eq!(processes(&words(&first)), kept, "it outlives its agent");

    let all = || processes(&format!("http.server {port} "));
    let former = all();
    done(&place, &["ensemble", "restart", "web", "--yes", "--reason", "another release"]);
    wait_for("all are restarted", async || {
        let now = all();
        let is_over = !why(&place, "web").contains("restarted");
        is_over && now.len() == 2 && now.iter().all(|pid| !former.contains(pid))
    })
    .await;
    are_found(&place, "web", 2).await;
    without_room_and_drained(&place, port).await;
    deleted_and_waited_for(&mut place, port).await;
}

/// A service agent in a shell: a server in the background, whose process number is in the member's directory.
fn service_agent(place: &Setup) -> String {
    let dir = place.path("service-agents");
    let read = "read -r order\n\
        of() { printf '%s' \"$order\" | /usr/bin/python3 -c \"import json, sys; print(json.load(sys.stdin)['$1'])\"; }\n\
        data=$(of data)\n\
        runs() { test -s \"$data/pid\" && kill -0 \"$(cat \"$data/pid\")\" 2>/dev/null; }\n";
    let scripts = [
        ("initialize", "mkdir -p \"$data/files\"\n"),
        (
            "configure_local",
            "runs && exit 0\n\
             while test -e \"$data/hang\"; do sleep 0.1; done\n\
             test -e \"$data/refuse\" && { echo 'the licence has run out' >&2; exit 1; }\n\
             cd \"$data/files\"\n\
             setsid /usr/bin/python3 -m http.server \"$(of port)\" --bind \"$(of address)\" </dev/null >/dev/null 2>&1 &\n\
             echo $! > \"$data/pid\"\n",
        ),
        ("destroy_local", "runs && kill \"$(cat \"$data/pid\")\"\nrm -f \"$data/pid\"\n"),
        (
            "status",
            "if runs; then echo '{\"state\": \"working\"}'; else echo '{\"state\": \"stopped\", \"reason\": \"nothing runs\"}'; fi\n",
        ),
    ];
    for (name, script) in scripts {
        let path = format!("{dir}/toy/{name}");
        std::fs::create_dir_all(format!("{dir}/toy")).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{read}{script}")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    dir
}

/// What was started is known beside its data, too: an agent whose ledger was lost stops it.
async fn without_its_ledger_and_deleted(place: &mut Setup, words: &str) {
    let next = serving(place, "toy", 1).await.remove(0);
    place.kill_agent(&next.node);
    std::fs::remove_file(place.path(&format!("{}/data/ledger/members/toy.json", next.node))).unwrap();
    place.resume_agent(&next.node);
    are_found(place, "toy", 1).await;
    done(place, &["ensemble", "delete", "toy", "--yes"]);
    wait_for("it is stopped", async || processes(words).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_executables_start_is_asked_started_again_and_stopped_by_them() {
    let [port] = free_ports::<1>();
    let mut place = Setup::new().await;
    let dir = service_agent(&place);
    for number in 1..=2 {
        let sections = format!(
            "addresses = {{ lo = [{:?}] }}\n\n[ensembles]\nservice_agents = {dir:?}\n",
            format!("127.0.37.{number}")
        );
        place.start_agent(&format!("n-{number}"), &sections);
    }
    let port = port.to_string();
    let flags = ["-l", "all", "--agent", "toy", "--port", &port, "--failover-after", "30s"];
    let args: Vec<&str> =
        ["ensemble", "create", "toy", "--service", "exec"].iter().chain(&flags).copied().collect();
    done(&place, &args);
    let first = serving(&place, "toy", 1).await.remove(0);
    are_found(&place, "toy", 1).await;
    let words = format!("http.server {port} --bind");
    let before = processes(&words);
    assert_eq!(before.len(), 1, "{before:?}");

    // It ends, and is started again by its executable; one that fails says why.
    let data = place.path(&format!("{}/data/ensembles/toy/data", first.node));
    std::fs::write(format!("{data}/refuse"), "").unwrap();
    assert!(Command::new("kill").arg(&before[0]).status().unwrap().success());
    wait_for("it is said why it is not started", async || {
        why(&place, "toy").contains("configure_local: exit code 1: the licence has run out")
    })
    .await;
    std::fs::remove_file(format!("{data}/refuse")).unwrap();
    wait_for("it runs again", async || processes(&words).len() == 1 && processes(&words) != before).await;
    are_found(&place, "toy", 1).await;
    let kept = processes(&words);

    place.kill_agent(&first.node);
    place.resume_agent(&first.node);
    are_found(&place, "toy", 1).await;
    assert_eq!(processes(&words), kept, "it outlives its agent");

    // What an agent that was killed has begun ends before the next one begins anything.
    std::fs::write(format!("{data}/hang"), "").unwrap();
    assert!(Command::new("kill").arg(&kept[0]).status().unwrap().success());
    let executing = || processes("toy/configure_local");
    wait_for("it is being started", async || executing().len() == 1).await;
    wait_for("it is said", async || why(&place, "toy").contains("is to run")).await;
    let begun = executing();
    place.kill_agent(&first.node);
    place.resume_agent(&first.node);
    wait_for("it is being started anew", async || executing().len() == 1 && executing() != begun).await;
    std::fs::remove_file(format!("{data}/hang")).unwrap();
    are_found(&place, "toy", 1).await;
    let kept = processes(&words);
    assert_eq!(kept.len(), 1, "{kept:?}");
    done(&place, &["node", "drain", &first.node, "--reason", "a new disk", "--yes"]);
    wait_for("it has moved, and runs once", async || {
        let members = place.client().ensemble("default", "toy").await.unwrap().status.unwrap().members;
        let has_moved = members.len() == 1 && members.iter().all(|member| member.node != first.node);
        has_moved && processes(&words).len() == 1 && processes(&words) != kept
    })
    .await;
    without_its_ledger_and_deleted(&mut place, &words).await;
}
