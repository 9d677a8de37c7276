//! Machines whose clocks are an hour apart: they join, roll out, serve and are found, and what is told of them has the times
//! of the server. Only the wall clock is another one; what counts time goes on as it does.

use std::process::Command;

use bellwether_api::v1::node::NodeView;
use bellwether_rt::clock::Clock;

use crate::place::{Setup, free_port, text, wait_for};

/// What a command is begun with to see another time of day.
pub(crate) fn by_clock(offset: &str) -> Vec<String> {
    let found = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let library =
        found.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    let library = library.expect("the package faketime is installed").display().to_string();
    let preload = format!("LD_PRELOAD={library}");
    ["env", &preload, &format!("FAKETIME={offset}"), "DONT_FAKE_MONOTONIC=1"].map(str::to_owned).to_vec()
}

fn now_ms() -> u64 {
    Clock::system().now().as_millis()
}

/// Every time that is shown about a node.
fn times(view: &NodeView) -> Vec<(String, u64)> {
    let mut times = vec![
        ("joined".to_owned(), view.node.joined_at_ms),
        ("presence".to_owned(), view.presence.since_ms),
        ("reported".to_owned(), view.reported_at_ms.unwrap()),
    ];
    times.extend(view.statuses.iter().map(|(category, status)| (category.clone(), status.since_ms)));
    times
}

/// A machine with another time of day than the server's.
struct Machine {
    name: &'static str,
    on: Vec<String>,
    dns: u16,
}

impl Machine {
    /// Joins it and starts its agent, with a service and a table for DNS.
    fn start(place: &mut Setup, (name, offset, apart_s): (&'static str, &str, i64), address: &str) -> Self {
        let (on, dns) = (by_clock(offset), free_port());
        let (program, words) = on.split_first().unwrap();
        let date = Command::new(program).args(words).args(["date", "+%s"]).output().unwrap();
        let there: i64 = text(&date.stdout).trim().parse().unwrap();
        let here = i64::try_from(now_ms() / 1_000).unwrap();
        assert!((there - here - apart_s).abs() < 60, "{name} must see another time: {there} at {here}");
        let sections = format!(
            "addresses = {{ eth0 = [\"{address}\"] }}\n[dns]\nlisten = [\"127.0.0.1:{dns}\"]\n\
             [entity.web]\nstatic = [\"true\"]\n[[entity.web.check]]\nname = \"ok\"\nexec = [\"true\"]\n\
             interval = \"200ms\"\n\
             [[service]]\nname = \"web\"\nentity = \"web\"\n[[service.check]]\nname = \"ok\"\nexec = [\"true\"]\n\
             interval = \"100ms\"\n"
        );
        place.start_agent_on(&on, name, &sections);
        Self { name, on, dns }
    }

    /// What a name resolves to there.
    fn finds(&self, name: &str) -> String {
        let port = self.dns.to_string();
        text(&Command::new("dig").args(["+short", "@127.0.0.1", "-p", &port, name]).output().unwrap().stdout)
    }

    /// Sets a status there, which holds for so long.
    fn says(&self, place: &Setup, category: &str, lifetime: &str) {
        let here = place.path(&format!("{}/data", self.name));
        let words = ["update-status", category, "success", "--ttl", lifetime];
        let set = place.command(&words).env("BELLWETHER_AGENT_DIR", here).output().unwrap();
        assert!(set.status.success(), "{}", text(&set.stderr));
    }
}

fn done(place: &Setup, args: &[&str]) {
    let done = place.run(args);
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_whose_clocks_are_an_hour_apart_join_roll_out_serve_and_have_sane_ages() {
    let mut place = Setup::new().await;
    let began = now_ms();
    let machines = [
        Machine::start(&mut place, ("ahead", "+1h", 3_600), "10.9.0.1"),
        Machine::start(&mut place, ("behind", "-1h", -3_600), "10.9.0.2"),
    ];
    done(&place, &["entity", "set", "web", "--selector", "all", "--soak", "1s", "--batch", "1"]);
    done(&place, &["rollout", "start", "web", "v1", "-w", "--timeout", "60s"]);
    for machine in &machines {
        wait_for("both are found by both", async || {
            let found = machine.finds("web.service.bw.internal");
            found.contains("10.9.0.1") && found.contains("10.9.0.2")
        })
        .await;
        // A status holds for as long as it was said to, counted from when it was said.
        machine.says(&place, "lasting", "30m");
        machine.says(&place, "short", "1s");
    }
    let client = place.client();
    for Machine { name, .. } in &machines {
        let said =
            |node: &NodeView, category: &str| node.statuses.get(category).map(|one| one.state.as_str());
        wait_for("the short one is silent", async || {
            let node = client.node("default", name).await.unwrap();
            said(&node, "short") == Some("unknown")
        })
        .await;
        let node = client.node("default", name).await.unwrap();
        assert_eq!((said(&node, "lasting"), node.presence.state.as_str()), (Some("success"), "up"));
        let known = began - 5_000..=now_ms() + 5_000;
        for (what, at) in times(&node) {
            assert!(known.contains(&at), "{what} of {name}: {at} in {known:?}");
        }
    }
    let view = client.service("default", "web", None, std::time::Duration::ZERO).await.unwrap();
    let view: Vec<_> =
        view.instances.iter().map(|one| (one.status.as_str(), one.since_ms >= began)).collect();
    assert_eq!(view, [("passing", true), ("passing", true)]);
    let targets = client.targets("default", "web", None, None).await.unwrap().items;
    assert!(targets.iter().all(|target| target.phase == "succeeded"), "{targets:?}");

    // A restart of all of them, and another version.
    place.kill_server();
    place.start_server().await;
    for machine in &machines {
        place.kill_agent(machine.name);
        place.resume_agent_on(&machine.on, machine.name);
    }
    done(&place, &["rollout", "start", "web", "v2", "-w", "--timeout", "60s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_five_years_ahead_waits_and_changes_nothing_until_the_clock_is_believed() {
    let mut place = Setup::new().await;
    let (config, synchronized) = (place.path("server.toml"), place.path("synchronized"));
    let written = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("clock_synchronized_file = {synchronized:?}\n{written}")).unwrap();
    done(&place, &["token", "create", "kim", "--role", "viewer", "--expires-in", "30d"]);
    place.kill_server();
    let ahead = by_clock("+1826d");
    let variables: Vec<(&str, &str)> = ahead.iter().filter_map(|word| word.split_once('=')).collect();
    place.begin_server(&variables);
    let log = place.log("server");
    wait_for("it says what it waits for", async || {
        std::fs::read_to_string(&log).is_ok_and(|said| said.contains("--accept-clock"))
    })
    .await;
    let refused = text(&place.run(&["token", "list"]).stderr);
    assert!(refused.contains("refused"), "nothing listens that would not answer: {refused}");
    // Asked to stop, it does: nothing is in its way.
    assert_eq!(place.stop_server().await, Some(0));
    place.start_server().await;
    let listed = text(&place.run(&["token", "list"]).stdout);
    assert!(listed.contains("kim") && !listed.contains("expired"), "{listed}");
    place.kill_server();
    std::fs::write(&synchronized, "").unwrap();
    let served = || std::fs::read_to_string(&log).unwrap().matches(" serving ").count();
    let before = served();
    place.begin_server(&variables);
    wait_for("what is said to be synchronised is believed", async || served() > before).await;
}
