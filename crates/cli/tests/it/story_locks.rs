//! Locks: real processes that take turns, however they end and whatever becomes of the server.

use std::io::Read;
use std::process::{Child, Output, Stdio};

use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::place::{Setup, text, wait_for};

/// Begins `lock run` with these words.
pub(crate) fn begin(place: &Setup, words: &[&str]) -> Child {
    let mut command = place.command(&["lock", "run"]);
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) async fn end(child: Child) -> Output {
    tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The process number that a command wrote here, once it has.
pub(crate) async fn pid_in(path: &str) -> Pid {
    let mut found = None;
    wait_for("the command runs", async || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        found = text.trim().parse().ok().and_then(Pid::from_raw);
        found.is_some()
    })
    .await;
    found.unwrap()
}

/// Whether it still does anything: what nobody has reaped yet does not.
pub(crate) fn lives(pid: Pid) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    about.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

/// A command that fails while one of these still does something.
pub(crate) fn alone(others: &[Pid]) -> String {
    let each = others.iter().map(|pid| format!("/proc/{}/status", pid.as_raw_nonzero()));
    let each: Vec<String> = each.collect();
    format!("! grep -qs '^State:.[^Z]' {} && echo $BELLWETHER_FENCE", each.join(" "))
}

pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap()).unwrap()
}

fn events(place: &Setup, slot: &str) -> Vec<(String, String)> {
    let output = place.run(&["events", "--about", &format!("slot/{slot}"), "--limit", "1000", "-o", "json"]);
    let word = |line: &str, key: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event.get(key).and_then(Value::as_str).unwrap().to_owned()
    };
    text(&output.stdout).lines().map(|line| (word(line, "kind"), word(line, "cause"))).collect()
}

/// A way to the server that can be cut, by cancelling it.
pub(crate) async fn way_to(port: u16) -> (u16, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let (way, level) = (Tasks::new(), Tasks::new());
    let inside = level.clone();
    way.spawn("way", async move {
        let through = |(near, _)| pass(near, port, inside.clone());
        let acceptor = Acceptor { name: "passage", limit: 64 };
        acceptor.run(&inside, |context| listener.poll_accept(context), through).await;
    });
    (own, level)
}

async fn pass(mut near: TcpStream, port: u16, way: Tasks) {
    let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    tokio::select! {
        () = way.cancelled() => {}
        _ = copy_bidirectional(&mut near, &mut far) => {}
    }
}

/// One turn: nobody else is inside, and the number is written down.
const TURN: &str =
    "mkdir HOME/inside || exit 9; echo $BELLWETHER_LOCK $BELLWETHER_FENCE >> HOME/turns; rmdir HOME/inside";

#[tokio::test(flavor = "multi_thread")]
async fn of_many_runners_one_is_inside_at_a_time_and_their_numbers_only_grow() {
    let mut place = Setup::new().await;
    let turn = TURN.replace("HOME", &place.path(""));
    for round in 0..2 {
        let words =
            ["turns", "--lease", "20s", "--timeout", "60s", "--reason", "a turn", "--", "sh", "-c", &turn];
        let runners: Vec<Child> = (0..8).map(|_| begin(&place, &words)).collect();
        for runner in runners {
            let output = end(runner).await;
            assert!(output.status.success(), "{}", said(&output));
        }
        if round == 0 {
            // What the numbers were outlives the server.
            place.kill_server();
            place.start_server().await;
        }
    }
    let turns = std::fs::read_to_string(place.path("turns")).unwrap();
    let numbers: Vec<u64> =
        turns.lines().map(|line| line.strip_prefix("turns ").unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<u64>>(), "each has the next number");
    let list = text(&place.run(&["lock", "list"]).stdout);
    assert!(!list.contains("turns"), "{list}");
    assert!(text(&place.run(&["lock", "list", "--all"]).stdout).contains("16"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_holders_share_a_slot_of_two_and_another_capacity_is_refused() {
    let place = Setup::new().await;
    let (one, two) = (place.path("one"), place.path("two"));
    let inside =
        |mine: &str, other: &str| format!("touch {mine}; until test -e {other}; do sleep 0.05; done");
    // Each ends only once the other is inside too.
    let (first, second) = (inside(&one, &two), inside(&two, &one));
    let words = |script| ["pair", "--capacity", "2", "--", "sh", "-c", script];
    let runners = [begin(&place, &words(&first)), begin(&place, &words(&second))];
    for runner in runners {
        let output = end(runner).await;
        assert!(output.status.success(), "{}", said(&output));
    }
    let three = end(begin(&place, &["pair", "--capacity", "3", "--timeout", "60s", "--", "true"])).await;
    assert_eq!(three.status.code(), Some(7), "{}", said(&three));
    assert!(
        said(&three).contains("capacity is 2, not 3") && said(&three).contains("slot set pair"),
        "{}",
        said(&three)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_as_it_would_without_a_lock_and_is_told_signals() {
    let place = Setup::new().await;
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let output = end(begin(&place, &["plain", "--", "sh", "-c", script])).await;
        assert_eq!(output.status.code(), Some(code), "{script}: {}", said(&output));
    }
    let none = end(begin(&place, &["plain", "--", "/nowhere/at/all"])).await;
    assert_eq!(none.status.code(), Some(127), "{}", said(&none));
    assert_eq!(place.run(&["lock", "run", "plain", "--lease", "10ms", "--", "true"]).status.code(), Some(64));

    let pid = place.path("pid");
    let script = format!("trap 'echo told; exit 3' USR1 TERM; echo $$ > {pid}; while :; do sleep 0.05; done");
    for signal in [Signal::USR1, Signal::TERM] {
        let runner = begin(&place, &["plain", "--", "sh", "-c", &script]);
        pid_in(&pid).await;
        std::fs::remove_file(&pid).unwrap();
        kill_process(pid_of(&runner), signal).unwrap();
        let output = end(runner).await;
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(3), "told\n"),
            "{}",
            said(&output)
        );
    }
    // All of them gave it back.
    let after = end(begin(&place, &["plain", "--timeout", "0s", "--", "true"])).await;
    assert!(after.status.success(), "{}", said(&after));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_reads_who_holds_it_and_gives_up_in_time() {
    let place = Setup::new().await;
    let pid = place.path("pid");
    let script = format!("echo $$ > {pid}; exec sleep 1000");
    let words = ["shared", "--reason", "the big migration", "--holder", "ann", "--", "sh", "-c", &script];
    let holder = begin(&place, &words);
    pid_in(&pid).await;
    let late = end(begin(&place, &["shared", "--timeout", "300ms", "--", "true"])).await;
    assert_eq!(late.status.code(), Some(3), "{}", said(&late));
    let line = "waiting for lock shared: held by ann since ";
    assert!(said(&late).contains(line) && said(&late).contains("the big migration"), "{}", said(&late));
    for args in [&["lock", "describe", "shared"][..], &["why", "slot/shared"], &["describe", "slot/shared"]] {
        let output = place.run(args);
        assert!(
            output.status.success() && said(&output).contains("the big migration"),
            "{args:?}: {}",
            said(&output)
        );
        assert!(said(&output).contains("ann"), "{}", said(&output));
    }
    // Somebody who waits is asked to stop, and has nothing.
    let mut waiting = begin(&place, &["shared", "--holder", "bob", "--", "true"]);
    let mut first = vec![0; line.len()];
    waiting.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(text(&first), line);
    kill_process(pid_of(&waiting), Signal::INT).unwrap();
    assert_eq!(end(waiting).await.status.code(), Some(130));
    kill_process(pid_of(&holder), Signal::TERM).unwrap();
    assert_eq!(end(holder).await.status.code(), Some(143));
    let kinds: Vec<String> = events(&place, "shared").into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["slot.acquired", "slot.released"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_a_holder_that_is_killed_is_gone_before_the_next_one_begins() {
    let place = Setup::new().await;
    let pid = place.path("pid");
    let script = format!("echo $$ > {pid}; trap '' TERM; while :; do sleep 0.05; done");
    let mut holder = begin(&place, &["mine", "--lease", "2s", "--", "sh", "-c", &script]);
    let command = pid_in(&pid).await;
    let next = begin(&place, &["mine", "--lease", "2s", "--", "sh", "-c", &alone(&[command])]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let output = end(next).await;
    assert!(output.status.success() && text(&output.stdout) == "2\n", "{}", said(&output));
    let events = events(&place, "mine");
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["slot.acquired", "slot.expired", "slot.acquired", "slot.released"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_cannot_renew_stops_its_command_before_another_has_the_lock() {
    let place = Setup::new().await;
    let (way, cut) = way_to(place.port).await;
    let (pid, inner) = (place.path("pid"), place.path("inner"));
    // Neither the command nor what it started ends when it is asked to.
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $! > {inner}; echo $$ > {pid}; wait"
    );
    let mut command = place.command(&["lock", "run", "far", "--lease", "3s", "--", "sh", "-c", &script]);
    command.env("BELLWETHER_SERVER", format!("https://127.0.0.1:{way}"));
    let holder = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (command, inner) = (pid_in(&pid).await, pid_in(&inner).await);
    let next = begin(&place, &["far", "--lease", "3s", "--", "sh", "-c", &alone(&[command, inner])]);
    cut.cancel();
    let output = end(next).await;
    assert!(output.status.success(), "{}", said(&output));
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("renew lock far in time"), "{}", said(&output));
    assert!(!lives(command) && !lives(inner));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_for_a_moment_costs_nobody_the_lock_and_one_that_stays_away_the_command() {
    let mut place = Setup::new().await;
    let (pid, done) = (place.path("pid"), place.path("done"));
    let script = format!("echo $$ > {pid}; until test -e {done}; do sleep 0.05; done");
    let holder = begin(&place, &["steady", "--lease", "20s", "--", "sh", "-c", &script]);
    pid_in(&pid).await;
    place.kill_server();
    place.start_server().await;
    std::fs::write(&done, "").unwrap();
    let output = end(holder).await;
    assert!(output.status.success(), "{}", said(&output));

    std::fs::remove_file(&pid).unwrap();
    std::fs::remove_file(&done).unwrap();
    let holder = begin(&place, &["steady", "--lease", "1s", "--", "sh", "-c", &script]);
    let command = pid_in(&pid).await;
    place.kill_server();
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(!lives(command));
    place.start_server().await;
    let next = end(begin(&place, &["steady", "--", "sh", "-c", "echo $BELLWETHER_FENCE"])).await;
    assert_eq!(text(&next.stdout), "3\n", "{}", said(&next));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_taken_away_stops_its_command_and_says_who_did() {
    let place = Setup::new().await;
    let pid = place.path("pid");
    let script = format!("echo $$ > {pid}; exec sleep 1000");
    let holder = begin(&place, &["stuck", "--lease", "3s", "--holder", "ann", "--", "sh", "-c", &script]);
    let command = pid_in(&pid).await;
    let unmeant = place.run(&["lock", "release", "stuck", "--holder", "ann", "--reason", "x"]);
    assert_eq!(unmeant.status.code(), Some(64), "{}", said(&unmeant));
    let words = ["lock", "release", "stuck", "--holder", "ann", "--force", "--reason", "it hangs"];
    let taken = place.run(&words);
    assert!(taken.status.success(), "{}", said(&taken));
    let output = end(holder).await;
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("lock stuck was released by admin: it hangs"), "{}", said(&output));
    assert!(!lives(command));
    let events = events(&place, "stuck");
    assert!(
        events.contains(&("slot.forced".to_owned(), "taken from ann: it hangs".to_owned())),
        "{events:?}"
    );
}
