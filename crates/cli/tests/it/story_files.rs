//! Files from the catalogue, over real nginx: its upstreams are a template, and it is reloaded when one of them stops or
//! begins to serve. And the verbs by which programs on a machine ask its agent.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::place::{PROGRAM, Setup, free_port, page, text, wait_for};

const NODES: [&str; 2] = ["app-1", "app-2"];

const UPSTREAMS: &str = "pid @home@/nginx.pid;\nerror_log @home@/error.log;\nevents {}\nhttp {\n    access_log off;\n\
    \x20   upstream app {\n        random;\n{% for it in services.app.functional %}\n\
    \x20       server {{ it.address }}:{{ it.port }}; # {{ it.node }}\n{% endfor %}\n    }\n\
    \x20   server { listen 127.0.0.1:@port@; location / { proxy_pass http://app; } }\n}\n";

/// Starts nginx if it does not run, and else lets it read its file again.
const RELOAD: &str = r#"set -eu
home=$1
if [ -s "$home/nginx.pid" ] && kill -0 "$(cat "$home/nginx.pid")" 2>/dev/null; then
  echo reload >> "$home/reloads"
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf" -s reload
else
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf"
fi
"#;

/// What agents here have in common: where they are reached, and a service that is well while a file is there.
fn app(place: &Setup, name: &str, port: u16) -> String {
    std::fs::create_dir_all(place.path(name)).unwrap();
    std::fs::write(place.path(&format!("{name}/well")), "").unwrap();
    let well = place.path(&format!("{name}/well"));
    format!(
        "addresses = {{ lo = [\"127.0.0.1\"] }}\n[[service]]\nname = \"app\"\nport = {port}\n\
         [[service.check]]\nname = \"well\"\nexec = [\"test\", \"-e\", {well:?}]\ninterval = \"100ms\"\n\
         fall = 1\nrise = 1\n"
    )
}

fn balancer(place: &Setup, port: u16) -> String {
    let home = place.path("lb");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(place.path("reload.sh"), RELOAD).unwrap();
    let template = UPSTREAMS.replace("@home@", &home).replace("@port@", &port.to_string());
    std::fs::write(format!("{home}/nginx.j2"), template).unwrap();
    let script = place.path("reload.sh");
    format!(
        "[[file]]\npath = \"{home}/nginx.conf\"\ntemplate = \"{home}/nginx.j2\"\nrequired = [\"app\"]\n\
         check = [\"/usr/sbin/nginx\", \"-t\", \"-p\", \"{home}\", \"-c\", \"{{path}}\"]\n\
         reload = [\"/bin/sh\", {script:?}, {home:?}]\ndebounce = \"100ms\"\n"
    )
}

/// A program that says its name to whoever asks.
fn serve(place: &Setup, name: &str, port: u16) -> Child {
    Command::new(PROGRAM)
        .args(["demo-service", "--port", &port.to_string(), "--version-served", name])
        .env("PLACE", place.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until pages come from these programs and no others, forty times in a row: nginx draws one each time.
async fn expect(port: u16, names: &[&str]) {
    let wanted: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    wait_for(&format!("pages come from {wanted:?}"), async || {
        let mut seen = BTreeSet::new();
        for _ in 0..40 {
            seen.extend(page(port).await.filter(|(status, _)| *status == 200).map(|(_, body)| body));
        }
        seen == wanted
    })
    .await;
}

fn reloads(place: &Setup) -> usize {
    std::fs::read_to_string(place.path("lb/reloads")).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_follows_the_catalogue_and_no_request_is_lost() {
    let mut place = Setup::new().await;
    let (front, ports) = (free_port(), [free_port(), free_port()]);
    let mut programs: Vec<Child> =
        NODES.iter().zip(ports).map(|(name, port)| serve(&place, name, port)).collect();
    for port in ports {
        wait_for("the program answers", async || page(port).await.is_some()).await;
    }
    for (name, port) in NODES.iter().zip(ports) {
        let sections = app(&place, name, port);
        place.start_agent(name, &sections);
    }
    let sections = balancer(&place, front);
    place.start_agent("lb", &sections);
    expect(front, &NODES).await;
    let first = reloads(&place);

    let stop = Arc::<AtomicBool>::default();
    let watcher = watch(front, stop.clone());
    // One stops to serve: nobody is sent to it any more, and then its program may go.
    std::fs::remove_file(place.path("app-1/well")).unwrap();
    expect(front, &["app-2"]).await;
    programs[0].kill().unwrap();
    programs[0].wait().unwrap();
    let health = place.run(&["local-health", "--data-dir", &place.path("app-1/data")]);
    let written = std::fs::read_to_string(place.path("lb/nginx.conf")).unwrap();
    assert_eq!(health.status.code(), Some(1), "{}{written}", text(&health.stdout));
    assert!(text(&health.stdout).contains("check well"), "{}", text(&health.stdout));
    expect(front, &["app-2"]).await;

    // It is back.
    programs[0] = serve(&place, "app-1", ports[0]);
    wait_for("the program answers", async || page(ports[0]).await.is_some()).await;
    std::fs::write(place.path("app-1/well"), "").unwrap();
    expect(front, &NODES).await;
    stop.store(true, Ordering::SeqCst);
    let (fetched, failed) = watcher.await.unwrap();
    assert!(fetched > 20, "hardly anything was fetched");
    assert_eq!(failed, Vec::<String>::new(), "of {fetched} requests");
    assert_eq!(reloads(&place), first + 2);
    let status = place.run(&["agent", "status", "--data-dir", &place.path("lb/data")]);
    assert!(text(&status.stdout).contains("nginx.conf  success"), "{}", text(&status.stdout));

    // A template that is broken leaves nginx alone, and the fleet knows.
    std::fs::write(place.path("lb/nginx.j2"), "{{ services.app.functionl }}").unwrap();
    std::fs::remove_file(place.path("app-2/well")).unwrap();
    wait_for("it is a failure", async || {
        let failures = place.run(&["get-failures"]);
        failures.status.code() == Some(1)
            && text(&failures.stdout).contains("line 1: `services.app.functionl`")
    })
    .await;
    expect(front, &NODES).await;
    assert_eq!(reloads(&place), first + 2);
    for mut program in programs {
        program.kill().unwrap();
        program.wait().unwrap();
    }
}

/// Fetches pages until it is stopped; answers how many, and those that were wrong.
#[expect(clippy::disallowed_methods, reason = "a test's own watcher, joined by the test")]
fn watch(port: u16, stop: Arc<AtomicBool>) -> tokio::task::JoinHandle<(usize, Vec<String>)> {
    tokio::spawn(async move {
        let (mut fetched, mut failed) = (0, Vec::new());
        while !stop.load(Ordering::SeqCst) {
            let answer = page(port).await;
            let right = |(status, body): &(u16, String)| *status == 200 && NODES.contains(&body.as_str());
            if !answer.as_ref().is_some_and(right) {
                failed.push(format!("{answer:?}"));
            }
            fetched += 1;
        }
        (fetched, failed)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_publish_services_and_write_down_what_the_fleet_offers() {
    let mut place = Setup::new().await;
    let (data, file) = (place.path("db-1/data"), place.path("services.yaml"));
    let here = |verb: &[&str]| place.run(&[verb, &["--data-dir", data.as_str()]].concat());
    let away = here(&["cache-services"]);
    assert_eq!(away.status.code(), Some(69), "{}", text(&away.stderr));
    assert_eq!(here(&["local-health"]).status.code(), Some(69));
    place.start_agent("db-1", "addresses = { eth0 = [\"10.7.0.5\", \"10.7.0.4\"] }\n");
    let here = |verb: &[&str]| place.run(&[verb, &["--data-dir", data.as_str()]].concat());
    let publish = ["publish-service", "mysql", "--port", "3306", "--tag", "main", "--ttl", "10m"];
    wait_for("it is published", async || here(&publish).status.success()).await;
    // To publish again is to say that it still serves.
    assert!(here(&publish).status.success());
    wait_for("it is written down", async || {
        let cached = here(&["cache-services", "--file", &file]);
        assert!(cached.status.success(), "{}", text(&cached.stderr));
        std::fs::read_to_string(&file).unwrap().contains("services::mysql::eth0: [10.7.0.4, 10.7.0.5]\n")
    })
    .await;
    assert!(text(&here(&["cache-services", "--file", &file]).stderr).contains(": unchanged"));
    let variables = here(&["cache-services", "--format", "env"]);
    assert!(text(&variables.stdout).contains("SERVICE_MYSQL_ENDPOINTS=\"10.7.0.5:3306\""));
    assert_eq!(here(&["cache-services", "--format", "xml"]).status.code(), Some(64));
    let nowhere = here(&["cache-services", "--file", &place.path("no/such")]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", text(&nowhere.stderr));
    let health = here(&["local-health"]);
    assert!(health.status.success() && health.stdout.is_empty(), "{}", text(&health.stdout));

    assert!(here(&["publish-service", "mysql", "--withdraw"]).status.success());
    assert_eq!(here(&["publish-service", "mysql", "--withdraw"]).status.code(), Some(1));
    wait_for("it is gone", async || !text(&here(&["cache-services"]).stdout).contains("services::mysql"))
        .await;
}
