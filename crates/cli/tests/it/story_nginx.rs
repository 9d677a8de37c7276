//! nginx: five agents, each managing its own real nginx by configuration versions. A good one goes out; one that nginx
//! itself refuses is never loaded; one that loads and answers 500 is rolled back. Nodes that were not updated answer all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bellwether_api::v1::rollout::RolloutState;

use crate::place::{Setup, free_port, page, text, wait_for};

const NODES: [&str; 5] = ["web-1", "web-2", "web-3", "web-4", "web-5"];

/// What each configuration version says inside its server block.
const VERSIONS: [(&str, &str); 4] = [
    ("v1", "return 200 'v1';"),
    ("v2", "return 200 'v2';"),
    ("v3-broken", "return 200 'v3' this is no nginx;"),
    ("v4-sick", "return 500 'v4';"),
];

/// Puts a version's configuration in place if nginx takes it, and starts or reloads nginx.
const APPLY: &str = r#"set -eu
home=$1; port=$2
sed "s/@port@/$port/; s|@home@|$home|" "$home/../versions/$BELLWETHER_VERSION.conf" > "$home/new.conf"
/usr/sbin/nginx -t -p "$home" -c "$home/new.conf"
mv "$home/new.conf" "$home/nginx.conf"
if [ -s "$home/nginx.pid" ] && kill -0 "$(cat "$home/nginx.pid")" 2>/dev/null; then
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf" -s reload
else
  /usr/sbin/nginx -p "$home" -c "$home/nginx.conf"
fi
"#;

fn write_versions(place: &Setup) {
    let dir = place.dir.path().join("versions");
    std::fs::create_dir(&dir).unwrap();
    for (version, says) in VERSIONS {
        let conf = format!(
            "pid @home@/nginx.pid;\nerror_log @home@/error.log;\nevents {{}}\nhttp {{ access_log off;\n\
             server {{ listen 127.0.0.1:@port@; location / {{ default_type text/plain; {says} }} }} }}\n"
        );
        std::fs::write(dir.join(format!("{version}.conf")), conf).unwrap();
    }
    std::fs::write(place.dir.path().join("apply.sh"), APPLY).unwrap();
}

fn sections(place: &Setup, name: &str, port: u16) -> String {
    let (script, home) = (place.path("apply.sh"), place.path(name));
    format!(
        "[entity.web]\ntimeout = \"5s\"\nstatic = [\"/bin/sh\", {script:?}, {home:?}, \"{port}\"]\n\n\
         [[entity.web.check]]\nname = \"page\"\nhttp = \"http://127.0.0.1:{port}/\"\ninterval = \"200ms\"\n\
         timeout = \"2s\"\n"
    )
}

/// Fetches pages over and over, and counts those that do not say what they must.
struct Watcher {
    stop: Arc<AtomicBool>,
    fetched: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Watcher {
    #[expect(clippy::disallowed_methods, reason = "a test's own watcher, joined in `ended`")]
    fn start(ports: Vec<u16>, expected: &'static str) -> Self {
        let (stop, fetched, failed) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (halt, count, wrong) = (stop.clone(), fetched.clone(), failed.clone());
        let task = tokio::spawn(async move {
            while !halt.load(Ordering::SeqCst) {
                for port in &ports {
                    let right = page(*port).await == Some((200, expected.to_owned()));
                    count.fetch_add(1, Ordering::SeqCst);
                    wrong.fetch_add(u64::from(!right), Ordering::SeqCst);
                }
            }
        });
        Self { stop, fetched, failed, task }
    }

    async fn ended(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        assert!(self.fetched.load(Ordering::SeqCst) > 20, "hardly anything was fetched");
        assert_eq!(self.failed.load(Ordering::SeqCst), 0, "requests to untouched nodes failed");
    }
}

async fn expect_pages(ports: &BTreeMap<&str, u16>, expected: &str) {
    for (name, port) in ports {
        wait_for(&format!("{name} serves {expected}"), async || {
            page(*port).await == Some((200, expected.to_owned()))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_is_changed_checked_and_rolled_back() {
    let mut place = Setup::new().await;
    write_versions(&place);
    let ports: BTreeMap<&str, u16> = NODES.into_iter().map(|name| (name, free_port())).collect();
    for (name, port) in &ports {
        let sections = sections(&place, name, *port);
        place.start_agent(name, &sections);
    }
    let set =
        place.run(&["entity", "set", "web", "--selector", "role=web", "--batch", "100%", "--soak", "500ms"]);
    assert!(set.status.success(), "{}", text(&set.stderr));

    let started = place.run(&["rollout", "start", "web", "v1", "-w", "--timeout", "60s"]);
    assert!(started.status.success(), "{}{}", text(&started.stdout), text(&started.stderr));
    expect_pages(&ports, "v1").await;

    // A good one, one node at a time.
    let set = place.run(&["entity", "set", "web", "--batch", "1"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let started = place.run(&["rollout", "start", "web", "v2", "-w", "--timeout", "60s"]);
    assert!(started.status.success(), "{}{}", text(&started.stdout), text(&started.stderr));
    expect_pages(&ports, "v2").await;

    // One that nginx refuses: the static part fails, nothing is reloaded, the old one keeps serving everywhere.
    let watcher = Watcher::start(ports.values().copied().collect(), "v2");
    let started = place.run(&["rollout", "start", "web", "v3-broken", "-w", "--timeout", "60s"]);
    assert_eq!(started.status.code(), Some(1), "{}", text(&started.stdout));
    watcher.ended().await;
    let view = place.ended().await;
    let rollout = view.rollout.unwrap();
    assert_eq!(rollout.status.state, RolloutState::RolledBack);
    let failure = rollout.failures.first().unwrap();
    assert_eq!(failure.evidence.exit_code, Some(1));
    assert!(failure.evidence.tail.contains("invalid number of arguments"), "{}", failure.evidence.tail);

    // One that loads and answers 500: validation fails, the first node is rolled back, the others never run it.
    let untouched = ports.iter().filter(|(name, _)| **name != "web-1").map(|(_, port)| *port).collect();
    let watcher = Watcher::start(untouched, "v2");
    let started = place.run(&["rollout", "start", "web", "v4-sick", "-w", "--timeout", "60s"]);
    assert_eq!(started.status.code(), Some(1), "{}", text(&started.stdout));
    let view = place.ended().await;
    expect_pages(&ports, "v2").await;
    watcher.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v2"));
    assert_eq!(view.progress.bad.last().unwrap().version, "v4-sick");
    let failure = view.rollout.unwrap().failures.first().cloned().unwrap();
    assert_eq!(
        (failure.target.as_str(), failure.evidence.failing_checks.first().map(String::as_str)),
        ("web-1", Some("page"))
    );

    // A version known to be bad is refused, with the way to insist.
    let again = place.run(&["rollout", "start", "web", "v4-sick"]);
    assert_eq!(again.status.code(), Some(7));
    assert!(text(&again.stderr).contains("rollout retry"), "{}", text(&again.stderr));
}
