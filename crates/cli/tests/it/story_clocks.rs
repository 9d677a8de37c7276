//! Machines whose clocks are an hour apart: they join, roll out, serve and are found, and what is told of them has the times
//! of the server. Only the wall clock is another one; what counts time goes on as it does.

use std::time::{SystemTime, UNIX_EPOCH};

use bellwether_api::v1::node::NodeView;

use crate::place::{Place, free_port, text, wait_for};

/// What a command is begun with to see another time of day.
fn by_clock(offset: &str) -> Vec<String> {
    let found = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let library =
        found.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    let library = library.expect("the package faketime is installed").display().to_string();
    let preload = format!("LD_PRELOAD={library}");
    ["env", &preload, &format!("FAKETIME={offset}"), "DONT_FAKE_MONOTONIC=1"].map(str::to_owned).to_vec()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

/// Every time that is told of a node.
fn times(view: &NodeView) -> Vec<(String, u64)> {
    let mut times = vec![
        ("joined".to_owned(), view.node.joined_at_ms),
        ("presence".to_owned(), view.presence.since_ms),
        ("reported".to_owned(), view.reported_at_ms.unwrap()),
    ];
    times.extend(view.statuses.iter().map(|(category, status)| (category.clone(), status.since_ms)));
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_whose_clocks_are_an_hour_apart_join_roll_out_serve_and_have_sane_ages() {
    let mut place = Place::new().await;
    let began = now_ms();
    let clocks = [("ahead", "+1h", 3_600_000_i64), ("behind", "-1h", -3_600_000)];
    let mut ports = Vec::new();
    for (index, (name, offset, apart)) in clocks.into_iter().enumerate() {
        let (on, port) = (by_clock(offset), free_port());
        let date =
            std::process::Command::new(on.first().unwrap()).args(&on[1..]).args(["date", "+%s"]).output();
        let there: i64 = text(&date.unwrap().stdout).trim().parse().unwrap();
        let here = i64::try_from(now_ms() / 1_000).unwrap();
        assert!((there - here - apart / 1_000).abs() < 60, "{name} must see another time: {there} at {here}");
        let sections = format!(
            "addresses = {{ eth0 = [\"10.9.0.{index}\"] }}\n[dns]\nlisten = [\"127.0.0.1:{port}\"]\n\
             [entity.web]\nstatic = [\"true\"]\n[[entity.web.check]]\nname = \"ok\"\nexec = [\"true\"]\ninterval = \"200ms\"\n\
             [[service]]\nname = \"web\"\nentity = \"web\"\n[[service.check]]\nname = \"ok\"\nexec = [\"true\"]\n\
             interval = \"100ms\"\n"
        );
        place.start_agent_on(&on, name, &sections);
        ports.push(port);
    }
    for args in [
        &["entity", "set", "web", "--selector", "all", "--soak", "1s", "--batch", "1"][..],
        &["rollout", "start", "web", "v1", "-w", "--timeout", "60s"][..],
    ] {
        let done = place.run(args);
        assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    }
    for port in &ports {
        wait_for("both are found by both", async || {
            let dig = ["+short", "@127.0.0.1", "-p", &port.to_string(), "web.service.bw.internal"];
            let found = std::process::Command::new("dig").args(dig).output().unwrap();
            let found = text(&found.stdout);
            found.contains("10.9.0.0") && found.contains("10.9.0.1")
        })
        .await;
    }

    // A status holds for as long as it was said to, counted from when it was said.
    for (name, ..) in clocks {
        let here = |args: &[&str]| {
            let here = place.path(&format!("{name}/data"));
            let set = place.command(args).env("BELLWETHER_AGENT_DIR", here).output().unwrap();
            assert!(set.status.success(), "{}", text(&set.stderr));
        };
        here(&["update-status", "lasting", "success", "--lifetime", "30m"]);
        here(&["update-status", "short", "success", "--lifetime", "1s"]);
    }
    let client = place.client();
    for (name, ..) in clocks {
        wait_for("the short one is silent", async || {
            let node = client.node("default", name).await.unwrap();
            node.statuses.get("short").is_some_and(|status| status.state == "unknown")
        })
        .await;
        let node = client.node("default", name).await.unwrap();
        assert_eq!(node.statuses["lasting"].state, "success", "{node:?}");
        assert_eq!(node.presence.contact, "up");
        let ended = now_ms();
        for (what, at) in times(&node) {
            assert!(
                (began - 5_000..=ended + 5_000).contains(&at),
                "{what} of {name}: {at} in {began}..{ended}"
            );
        }
    }
    let view = client.service("default", "web", None, std::time::Duration::ZERO).await.unwrap();
    let view: Vec<_> = view.instances.iter().map(|one| (one.level.as_str(), one.since_ms >= began)).collect();
    assert_eq!(view, [("passing", true), ("passing", true)]);
    let targets = client.targets("default", "web", None, None).await.unwrap().items;
    assert!(targets.iter().all(|target| target.phase == "succeeded"), "{targets:?}");

    // A restart of all of them, and another version.
    place.kill_server();
    place.start_server().await;
    for (name, offset, _) in clocks {
        place.kill_agent(name);
        place.resume_agent_on(&by_clock(offset), name);
    }
    let done = place.run(&["rollout", "start", "web", "v2", "-w", "--timeout", "60s"]);
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
}
