//! Configuration rolled out and rolled back over real nginx: three nginx instances whose files are rendered from one profile.
//! A good revision goes out in batches; one that fails only the check is rolled back; one that nginx itself refuses
//! replaces nothing.

use std::collections::BTreeMap;

use bellwether_api::v1::rollout::RolloutState;

use crate::place::{Setup, free_port, page, text, wait_for};

const NODES: [&str; 3] = ["web-1", "web-2", "web-3"];

/// The server's file: where it listens is the node's own affair, what it says and how it answers is the profile's.
const SITE: &str = "server {\n    listen 127.0.0.1:@port@;\n    # {{ version }} on {{ node.name }}\n\
                    \x20   location / {\n        default_type text/plain;\n\
                    {% for name, value in params.headers | default({}) | items %}\n\
                    \x20       add_header {{ name }} \"{{ value }}\";\n{% endfor %}\n\
                    \x20       return {{ params.status | default(200) }} '{{ params.greeting }}';\n    }\n}\n";

const MAIN: &str = "pid @home@/nginx.pid;\nerror_log @home@/error.log;\n\
                    events { worker_connections {{ params[\"limits/connections\"] }}; }\n\
                    http {\n    access_log off;\n    include @home@/sites/*.conf;\n}\n";

/// Starts nginx if it does not run, and else lets it read its files again.
const RELOAD: &str = r#"set -eu
home=$1
/usr/sbin/nginx -t -p "$home" -c "$home/nginx.conf"
if [ -s "$home/nginx.pid" ] && kill -0 "$(cat "$home/nginx.pid")" 2>/dev/null; then
  echo reload >> "$home/reloads"
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf" -s reload
else
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf"
fi
"#;

fn sections(place: &Setup, name: &str, port: u16) -> String {
    let home = place.path(name);
    std::fs::create_dir_all(format!("{home}/sites")).unwrap();
    let fill = |text: &str| text.replace("@port@", &port.to_string()).replace("@home@", &home);
    std::fs::write(format!("{home}/site.j2"), fill(SITE)).unwrap();
    let (main, script) = (fill(MAIN), place.path("reload.sh"));
    format!(
        "[entity.web]\ntimeout = \"5s\"\n\n[[entity.web.file]]\npath = \"{home}/nginx.conf\"\ntext = {main:?}\n\
         check = [\"/usr/sbin/nginx\", \"-t\", \"-p\", \"{home}\", \"-c\", \"{{path}}\"]\n\
         reload = [\"/bin/sh\", {script:?}, {home:?}]\n\n\
         [[entity.web.file]]\npath = \"{home}/sites/web.conf\"\ntemplate = \"{home}/site.j2\"\n\
         reload = [\"/bin/sh\", {script:?}, {home:?}]\n\n\
         [[entity.web.check]]\nname = \"page\"\nhttp = \"http://127.0.0.1:{port}/\"\ninterval = \"200ms\"\n\
         timeout = \"2s\"\n"
    )
}

fn ok(place: &Setup, args: &[&str]) -> String {
    let done = place.run(args);
    assert!(done.status.success(), "{args:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout).trim().to_owned()
}

async fn serve(ports: &BTreeMap<&str, u16>, expected: &str) {
    for (name, port) in ports {
        wait_for(&format!("{name} serves {expected}"), async || {
            page(*port).await == Some((200, expected.to_owned()))
        })
        .await;
    }
}

fn files(place: &Setup) -> BTreeMap<&'static str, (String, String)> {
    let read =
        |name: &str, file: &str| std::fs::read_to_string(place.path(&format!("{name}/{file}"))).unwrap();
    NODES.iter().map(|name| (*name, (read(name, "nginx.conf"), read(name, "sites/web.conf")))).collect()
}

fn reloads(place: &Setup, name: &str) -> usize {
    std::fs::read_to_string(place.path(&format!("{name}/reloads"))).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_is_rolled_out_and_rolled_back_over_real_nginx() {
    let mut place = Setup::new().await;
    std::fs::write(place.path("reload.sh"), RELOAD).unwrap();
    let ports: BTreeMap<&str, u16> = NODES.into_iter().map(|name| (name, free_port())).collect();
    for (name, port) in &ports {
        let sections = sections(&place, name, *port);
        place.start_agent(name, &sections);
    }
    let first = ok(
        &place,
        &["profile", "set", "web", "greeting=hello", "limits/connections=64", "--if-revision", "0"],
    );
    assert_eq!(first, "web@1");
    ok(&place, &["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--batch", "100%"]);
    ok(&place, &["entity", "set", "web", "--soak", "500ms"]);
    ok(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    serve(&ports, "hello").await;

    // A good one, one node at a time, and only once it is asked for.
    ok(&place, &["entity", "set", "web", "--batch", "1"]);
    assert_eq!(ok(&place, &["profile", "set", "web", "greeting=good day"]), "web@2");
    serve(&ports, "hello").await;
    ok(&place, &["rollout", "start", "web", "web@2", "-w", "--timeout", "60s"]);
    serve(&ports, "good day").await;
    let view = place.ended().await;
    assert_eq!(view.rollout.unwrap().batches.len(), 3);
    assert_eq!(NODES.map(|name| reloads(&place, name)), [1, 1, 1]);
    let second = files(&place);

    // One that nginx takes and that only the check sees through: the first node fails, and goes back.
    let third =
        ok(&place, &["profile", "set", "web", "status=503", "greeting=closed", "--reason", "inventory"]);
    assert_eq!(third, "web@3");
    let started = place.run(&["rollout", "start", "web", "-w", "--timeout", "60s"]);
    assert_eq!(started.status.code(), Some(1), "{}", text(&started.stdout));
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("web@2"));
    let rollout = view.rollout.unwrap();
    assert_eq!(rollout.status.state, RolloutState::RolledBack);
    assert_eq!(rollout.failures[0].evidence.failing_checks, ["page"]);
    serve(&ports, "good day").await;
    assert_eq!(files(&place), second);
    assert_eq!(NODES.map(|name| reloads(&place, name)), [3, 1, 1]);

    // One that nginx itself refuses: nothing is replaced, not even where it was tried.
    ok(&place, &["profile", "remove", "web", "status"]);
    let broken = ok(&place, &["profile", "set", "web", "limits/connections=plenty", "greeting=good day"]);
    assert_eq!(broken, "web@5");
    let started = place.run(&["rollout", "start", "web", "web@5", "-w", "--timeout", "60s"]);
    assert_eq!(started.status.code(), Some(1), "{}", text(&started.stdout));
    let rollout = place.ended().await.rollout.unwrap();
    assert_eq!(rollout.failures.len(), 1);
    let failure = rollout.failures.first().unwrap();
    assert_eq!(failure.target, "web-1");
    let evidence = &failure.evidence;
    assert!(evidence.summary.contains("nginx.conf: exit code 1"), "{}", evidence.summary);
    assert!(evidence.tail.contains("invalid number \"plenty\""), "{}", evidence.tail);
    serve(&ports, "good day").await;
    assert_eq!(files(&place), second);
    assert_eq!(NODES.map(|name| reloads(&place, name)), [3, 1, 1]);

    // What is known bad stays so, and what changed between revisions can be read.
    let again = place.run(&["rollout", "start", "web", "web@3"]);
    assert_eq!(again.status.code(), Some(7), "{}", text(&again.stderr));
    let diff = ok(&place, &["profile", "diff", "web", "2", "3"]);
    assert_eq!(diff, "- greeting=\"good day\"\n+ greeting=\"closed\"\n+ status=503");
    let lost = place.run(&["profile", "set", "web", "greeting=late", "--if-revision", "4"]);
    assert_eq!(lost.status.code(), Some(6));
    assert!(text(&lost.stderr).contains("it is at revision 5"), "{}", text(&lost.stderr));
}
