//! Turns to reboot: a server, and machines that ask as the FleetLock protocol has it, with curl as Zincati asks with its
//! token in the address. One slot, two machines; a lease that ends; a slot taken from a machine that never comes back.

use std::process::Command;

use serde_json::{Value, json};

use crate::place::{Setup, text, wait_for};

/// A machine that takes turns.
struct Machine<'a> {
    place: &'a Setup,
    token: &'a str,
    base: String,
    id: &'a str,
    group: &'a str,
}

impl Machine<'_> {
    /// Asks, and answers the status and the body.
    fn asks(&self, path: &str, more: &[&str]) -> (u16, Value) {
        let body = json!({ "client_params": { "id": self.id, "group": self.group } }).to_string();
        // As Zincati has it: the base address ends with a slash, and may name whoever asks.
        let url = format!("https://fleet:{}@127.0.0.1:{}{}{path}", self.token, self.place.port, self.base);
        let output = Command::new("curl")
            .args(["-sS", "-g", "--cacert", &self.place.path("server/pki/ca.pem"), "-w", "\n%{http_code}"])
            .args(["-d", &body])
            .args(if more.is_empty() { &["-H", "fleet-lock-protocol: true"] } else { more })
            .arg(url)
            .output()
            .unwrap();
        eprint!("{}", text(&output.stderr));
        let said = text(&output.stdout);
        let (body, status) = said.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn pre_reboot(&self) -> u16 {
        self.asks("v1/pre-reboot", &[]).0
    }

    fn steady_state(&self) -> u16 {
        self.asks("v1/steady-state", &[]).0
    }
}

fn machine<'a>(place: &'a Setup, token: &'a str, id: &'a str) -> Machine<'a> {
    Machine { place, token, base: "/".to_owned(), id, group: "default" }
}

/// Runs it; it must succeed.
fn done(place: &Setup, args: &[&str]) -> String {
    let output = place.run(args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn events(place: &Setup, subject: &str) -> Vec<(String, String, String)> {
    let said = done(place, &["events", "--about", subject, "-o", "json"]);
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events.map(|event| (word(&event, "kind"), word(&event, "actor"), word(&event, "cause"))).collect()
}

fn kinds(place: &Setup, subject: &str) -> Vec<String> {
    events(place, subject).into_iter().map(|(kind, _, _)| kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_take_turns_to_reboot_as_fleetlock_has_it() {
    let mut place = Setup::new().await;
    let token = done(&place, &["token", "create", "fleet", "--role", "operator"]);
    let token = token.trim().to_owned();
    {
        let (one, two) = (machine(&place, &token, "one"), machine(&place, &token, "two"));
        // A machine that starts releases what it may have held.
        assert_eq!((one.steady_state(), two.steady_state()), (200, 200));
        assert_eq!((one.pre_reboot(), one.pre_reboot()), (200, 200));
        let (status, said) = two.asks("v1/pre-reboot", &[]);
        let expected = json!({
            "kind": "failed_lock_semaphore_full",
            "value": "cannot give slot reboot to two: 1 of 1 held, by one",
        });
        assert_eq!((status, said), (409, expected));
        assert_eq!(two.steady_state(), 200, "releasing a slot that it never held succeeds");
        assert_eq!(two.pre_reboot(), 409);
    }
    // Another server, the same turns.
    place.kill_server();
    place.start_server().await;
    let (one, two) = (machine(&place, &token, "one"), machine(&place, &token, "two"));
    assert_eq!(two.pre_reboot(), 409);
    assert_eq!(one.steady_state(), 200);
    assert_eq!(two.pre_reboot(), 200);

    // Who has it, and taking it away.
    let list = done(&place, &["slot", "list"]);
    assert!(list.contains("1 of 1") && list.contains("two") && list.contains("group default"), "{list}");
    let none = place.run(&["slot", "release", "reboot", "--holder", "one", "--reason", "it is gone"]);
    assert_eq!(none.status.code(), Some(1), "{}", text(&none.stderr));
    done(&place, &["slot", "release", "reboot", "--holder", "two", "--reason", "it burned down"]);
    assert_eq!(one.pre_reboot(), 200);
    let events = events(&place, "slot/reboot");
    let kinds: Vec<&str> = events.iter().map(|(kind, _, _)| kind.as_str()).collect();
    let expected = ["slot.acquired", "slot.released", "slot.acquired", "slot.forced", "slot.acquired"];
    assert_eq!(kinds, expected);
    assert_eq!(events.first().unwrap().1, "fleet");
    assert_eq!(events.get(3).unwrap().1, "admin");
    assert_eq!(events.get(3).unwrap().2, "taken from two: it burned down");

    // Room for two, and for none.
    done(&place, &["slot", "set", "reboot", "--capacity", "2"]);
    assert_eq!(two.pre_reboot(), 200);
    done(&place, &["slot", "set", "reboot", "--capacity", "0"]);
    assert_eq!((one.steady_state(), two.steady_state(), one.pre_reboot()), (200, 200, 409));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_slots_and_namespaces_take_turns_of_their_own_and_a_lease_ends_by_itself() {
    let place = Setup::new().await;
    let token = done(&place, &["token", "create", "fleet", "--role", "operator"]);
    let token = token.trim().to_owned();
    let one = machine(&place, &token, "one");
    let workers = Machine { group: "workers", ..machine(&place, &token, "two") };
    let base = "/v1/namespaces/default/slots/kernel/".to_owned();
    let kernel = Machine { base: base.clone(), ..machine(&place, &token, "three") };
    let late = Machine { base, ..machine(&place, &token, "four") };
    for machine in [&one, &workers, &kernel] {
        assert_eq!(machine.pre_reboot(), 200, "{}", machine.id);
    }
    assert_eq!(done(&place, &["slot", "list", "-o", "name"]), "kernel\nreboot\nreboot-workers\n");

    done(&place, &["slot", "set", "kernel", "--lease", "100ms"]);
    assert_eq!(late.pre_reboot(), 409);
    assert_eq!(kernel.steady_state(), 200);
    assert_eq!(kernel.pre_reboot(), 200);
    wait_for("the lease ends by itself", async || {
        kinds(&place, "slot/kernel").last().unwrap() == "slot.expired"
    })
    .await;
    assert_eq!((late.pre_reboot(), kernel.steady_state()), (200, 200));

    // What is refused is refused in the protocol's words.
    let capital = Machine { group: "Workers", ..machine(&place, &token, "one") };
    let viewer = done(&place, &["token", "create", "page", "--role", "viewer"]);
    let reader = machine(&place, viewer.trim(), "one");
    let stranger = machine(&place, "wrong", "one");
    let nameless = machine(&place, &token, "");
    for (machine, more, status, kind) in [
        (&one, &["-H", "x: y"][..], 400, "invalid"),
        (&one, &["-H", "fleet-lock-protocol: yes"], 400, "invalid"),
        (&capital, &[], 400, "invalid"),
        (&nameless, &[], 400, "invalid"),
        (&reader, &[], 403, "forbidden"),
        (&stranger, &[], 401, "unauthenticated"),
    ] {
        let (found, said) = machine.asks("v1/pre-reboot", more);
        assert_eq!((found, said["kind"].as_str()), (status, Some(kind)), "{said}");
        assert!(
            said["value"].as_str().is_some_and(|value| [
                "cannot ",
                "client_params.",
                "token ",
                "authentication failed: "
            ]
            .iter()
            .any(|start| value.starts_with(start))),
            "{said}"
        );
    }
    // A password is a token on these paths alone.
    let url = format!("https://fleet:{token}@127.0.0.1:{}/v1/namespaces/default/slots", place.port);
    let ca = place.path("server/pki/ca.pem");
    let output = Command::new("curl").args(["-s", "--cacert", &ca, &url]).output().unwrap();
    assert!(text(&output.stdout).contains("unauthenticated"), "{}", text(&output.stdout));
}
