//! Params that reach nodes without a rollout, over real nginx: the port of each node is its own param, what it says is decided by
//! a live profile, the rollout of its entity, in this order. A value that nginx refuses replaces nothing.

use crate::place::{Setup, done, free_ports, page, text, wait_for};

const CONF: &str = "pid @home@/nginx.pid;\nerror_log @home@/error.log;\nevents {}\nhttp {\n    access_log off;\n\
                    \x20   server {\n        listen 127.0.0.1:{{ params[\"nginx/port\"] }};\n        location / {\n\
                    \x20           default_type text/plain;\n            return 200 '{{ params.greeting }}';\n        }\n    }\n}\n";

/// Starts nginx if it does not run, and else lets it read its files again.
const RELOAD: &str = r#"set -eu
home=$1
if [ -s "$home/nginx.pid" ] && kill -0 "$(cat "$home/nginx.pid")" 2>/dev/null; then
  echo reload >> "$home/reloads"
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf" -s reload
else
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf"
fi
"#;

fn sections(place: &Setup, name: &str) -> String {
    let home = place.path(name);
    std::fs::create_dir_all(&home).unwrap();
    let (conf, script) = (CONF.replace("@home@", &home), place.path("reload.sh"));
    format!(
        "[[entity.web.file]]\npath = \"{home}/nginx.conf\"\ntext = {conf:?}\n\
         check = [\"/usr/sbin/nginx\", \"-t\", \"-p\", \"{home}\", \"-c\", \"{{path}}\"]\n\
         reload = [\"/bin/sh\", {script:?}, {home:?}]\n"
    )
}

async fn serves(port: u16, expected: &str) {
    wait_for(&format!("port {port} answers {expected}"), async || {
        page(port).await == Some((200, expected.to_owned()))
    })
    .await;
}

fn reloads(place: &Setup, name: &str) -> usize {
    std::fs::read_to_string(place.path(&format!("{name}/reloads"))).unwrap_or_default().lines().count()
}

fn stop_nginx(place: &Setup, name: &str) {
    let home = place.path(name);
    let conf = format!("{home}/nginx.conf");
    let args = ["-p", &home, "-c", &conf, "-s", "stop"];
    assert!(std::process::Command::new("/usr/sbin/nginx").args(args).status().unwrap().success());
}

/// Two nodes whose nginx says `hello`, each on its own port.
async fn rolled_out(ports: [u16; 2]) -> Setup {
    let mut place = Setup::new().await;
    std::fs::write(place.path("reload.sh"), RELOAD).unwrap();
    for (name, port) in ["web-1", "web-2"].into_iter().zip(ports) {
        let sections = sections(&place, name);
        place.start_agent(name, &sections);
        wait_for(&format!("{name} has joined"), async || {
            place.run(&["node", "set", name, &format!("nginx/port={port}")]).status.success()
        })
        .await;
    }
    done(&place, &["profile", "set", "web", "greeting=hello"]);
    let set = ["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--batch", "100%"];
    done(&place, &[&set[..], &["--soak", "500ms"]].concat());
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn params_reach_nodes_without_a_rollout_in_their_precedence() {
    let [first, second, moved] = free_ports();
    let place = rolled_out([first, second]).await;
    serves(first, "hello").await;
    serves(second, "hello").await;

    // A profile that is not live changes nothing, and says so; a live one changes the nodes that read it.
    done(&place, &["profile", "set", "season", "greeting=spring"]);
    let listed = place.run(&["node", "profiles", "web-1", "season"]);
    assert!(text(&listed.stderr).contains("profile season is not live"), "{}", text(&listed.stderr));
    let explained = done(&place, &["param", "explain", "web-1", "greeting", "--entity", "web"]);
    assert!(explained.contains("not live: not read"), "{explained}");
    done(&place, &["profile", "live", "season"]);
    serves(first, "spring").await;
    done(&place, &["profile", "set", "season", "greeting=summer"]);
    serves(first, "summer").await;
    serves(second, "hello").await;
    let explained = done(&place, &["param", "explain", "web-1", "greeting", "--entity", "web", "-o", "json"]);
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(
        (&explained[0]["value"], &explained[0]["levels"][1]["decides"]),
        (&"summer".into(), &true.into())
    );
    assert_eq!(explained[0]["levels"][2]["profile"], "web");

    // A rollout changes what nothing above it decides.
    done(&place, &["profile", "set", "web", "greeting=good day"]);
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    serves(second, "good day").await;
    serves(first, "summer").await;

    // The node's own param comes first.
    done(&place, &["node", "set", "web-1", &format!("nginx/port={moved}"), "greeting=mine"]);
    serves(moved, "mine").await;
    done(&place, &["node", "unset", "web-1", "greeting"]);
    serves(moved, "summer").await;

    // The profile of an entity is rolled out, never live.
    let refused = place.run(&["profile", "live", "web"]);
    assert_eq!(refused.status.code(), Some(7), "{}", text(&refused.stderr));
    let refused = place.run(&["entity", "set", "other", "--selector", "role=web", "--profile", "season"]);
    assert_eq!(refused.status.code(), Some(7), "{}", text(&refused.stderr));
    stop_nginx(&place, "web-1");
    stop_nginx(&place, "web-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_param_that_breaks_a_node_replaces_nothing_and_its_agent_keeps_it_through_a_restart() {
    let [first, second] = free_ports();
    let mut place = rolled_out([first, second]).await;
    serves(first, "hello").await;

    // What nginx refuses is not put in place; the node says why, and recovers at once when the param is right.
    done(&place, &["node", "set", "web-1", "greeting=it's broken"]);
    wait_for("the failure is reported", async || {
        let failures = place.run(&["get-failures"]);
        let (failures, why) = (text(&failures.stdout), text(&place.run(&["why", "web-1"]).stdout));
        failures.contains("web-1") && why.contains("the params of the node changed: check of")
            || why.contains("check of")
    })
    .await;
    assert_eq!(page(first).await, Some((200, "hello".to_owned())));
    done(&place, &["node", "set", "web-1", "greeting=mended"]);
    serves(first, "mended").await;
    wait_for("nothing fails", async || !text(&place.run(&["get-failures"]).stdout).contains("web-1")).await;

    // Without the server, and in its next life, the agent has what it had, and reloads nothing for it.
    let before = reloads(&place, "web-1");
    place.kill_server();
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    wait_for("the agent runs", async || {
        let dir = place.path("web-1/data");
        text(&place.run(&["agent", "status", "--data-dir", &dir]).stdout).contains("web@1")
    })
    .await;
    serves(first, "mended").await;
    place.start_server().await;
    done(&place, &["node", "set", "web-1", "greeting=again"]);
    serves(first, "again").await;
    assert_eq!(reloads(&place, "web-1"), before + 1);
    stop_nginx(&place, "web-1");
    stop_nginx(&place, "web-2");
}
