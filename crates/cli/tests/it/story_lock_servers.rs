//! Clients of several servers: they go on while any of them answers.

use std::process::{Child, Command, Stdio};

use crate::bed::{Bed, options};
use crate::place::{text, wait_for};
use crate::story_locks::{end, said};

/// The command line as an admin of all servers of a bed, in this order.
fn command(bed: &Bed, servers: &[usize], args: &[&str]) -> Command {
    let urls: Vec<String> = servers.iter().map(|server| bed.inner.url(*server).unwrap()).collect();
    let mut command = bed.inner.command(1, args).unwrap();
    command.env("BELLWETHER_SERVER", urls.join(","));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn begin(bed: &Bed, servers: &[usize], args: &[&str]) -> Child {
    command(bed, servers, args).spawn().unwrap()
}

async fn bed(servers: usize) -> Bed {
    Bed::start(bellwether_testbed::Options { etcd: 1, servers, agents: 0, ..options() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_outlives_the_server_that_granted_it_while_another_answers() {
    let mut bed = bed(2).await;
    let mark = |name: &str| bed.inner.dir().join(name).display().to_string();
    let (inside, done, order) = (mark("inside"), mark("done"), mark("order"));
    let script = format!(
        "echo begin >> {order}; touch {inside}; until test -e {done}; do sleep 0.05; done; echo end >> {order}"
    );
    let run = |bed: &Bed, script: &str| {
        begin(bed, &[1, 2], &["lock", "run", "both", "--lease", "10s", "--", "sh", "-c", script])
    };
    let holder = run(&bed, &script);
    wait_for("the command runs", async || std::fs::exists(&inside).unwrap()).await;
    bed.obey("kill server-1");
    let next = run(&bed, &format!("echo next >> {order}"));

    // Renewed so often, by the other server alone, that its first lease is over.
    let renewed_to = async |bed: &Bed| {
        let view = bed.client(2).slot("default", "both", None, std::time::Duration::ZERO).await;
        view.ok().and_then(|view| view.slot.holders.values().next().map(|holder| holder.ends_ms))
    };
    let mut first = None;
    bed.wait_for("the other server tells the lease", async || {
        first = renewed_to(&bed).await;
        first.is_some()
    })
    .await;
    let first = first.unwrap();
    bed.wait_for("the lock is held beyond its lease", async || {
        renewed_to(&bed).await.is_some_and(|ends| ends >= first + 15_000)
    })
    .await;
    assert_eq!(std::fs::read_to_string(&order).unwrap(), "begin\n");
    std::fs::write(&done, "").unwrap();
    for runner in [holder, next] {
        let output = end(runner).await;
        assert!(output.status.success(), "{}", said(&output));
    }
    assert_eq!(std::fs::read_to_string(&order).unwrap(), "begin\nend\nnext\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_find_a_server_that_answers_and_name_each_that_does_not() {
    let mut bed = bed(3).await;
    // One that stands still accepts connections, and answers nothing.
    bed.obey("pause server-1");
    bed.obey("kill server-2");
    let all = [1, 2, 3];
    let set = end(begin(&bed, &all, &["slot", "set", "printer", "--capacity", "2"])).await;
    assert!(set.status.success(), "{}", said(&set));
    // A command that follows something moves on when its server dies.
    let seen = bed.inner.dir().join("seen");
    let mut follow = command(&bed, &all, &["events", "-w"]);
    let mut follower = follow.stdout(std::fs::File::create(&seen).unwrap()).spawn().unwrap();
    let has_seen = |name: &str| std::fs::read_to_string(&seen).unwrap().contains(name);
    wait_for("the change is followed", async || has_seen("slot/printer")).await;
    let token = bed.inner.dir().join("any-token");
    std::fs::write(&token, "bwt_of-nobody\n").unwrap();
    let token = token.display().to_string();
    let context = end(begin(&bed, &all, &["context", "set", "main", "--token-file", &token])).await;
    assert!(context.status.success(), "{}", said(&context));
    let list = text(&end(begin(&bed, &all, &["context", "list", "-o", "json"])).await.stdout);
    let urls: Vec<String> = all.iter().map(|server| bed.inner.url(*server).unwrap()).collect();
    assert!(list.contains(&urls.join(",")), "{list}");

    bed.obey("resume server-1");
    bed.obey("start server-2");
    bed.obey("kill server-3");
    bed.run(2, &["slot", "set", "scanner", "--capacity", "1"]);
    wait_for("another change is followed", async || has_seen("slot/scanner")).await;
    follower.kill().unwrap();
    follower.wait().unwrap();

    for server in [1, 2] {
        bed.obey(&format!("kill server-{server}"));
    }
    let none = end(begin(&bed, &all, &["status"])).await;
    assert_eq!(none.status.code(), Some(69), "{}", said(&none));
    for url in &urls {
        assert!(said(&none).contains(&format!("{url}: ")), "{}", said(&none));
    }
}
