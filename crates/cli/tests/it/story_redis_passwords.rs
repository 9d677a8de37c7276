//! The password of the clients of a real Redis is set, changed with and without an overlap, and unset, under a client that counts what a replica had,
//! and while the primary is killed: no program is started anew for it, and the members know each other at all times.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use bellwether_api::v1::ensemble::EnsembleSpec;
use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::passwords::PasswordState;
use bellwether_api::v1::ensemble::replication::MemberRole;
use serde_json::Value;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_redis_ensemble::{Password, Writer, complete, installed, kill, primary, programs, spec};

/// An ensemble of three whose clients use this secret.
fn guarded(port: u16, secret: &str) -> EnsembleSpec {
    let mut spec = spec(3, port, false);
    if let Some(redis) = &mut spec.service.redis {
        redis.password_secrets = vec![secret.to_owned()];
    }
    spec
}

fn secret(place: &Setup, name: &str, value: &str) {
    let said = place.run_with(&["secret", "set", name, "--file", "-"], value);
    assert_eq!(code(&said), 0, "{}", text(&said.stderr));
}

fn address(member: &EnsembleMember) -> String {
    member.peer_url.clone().unwrap().replace("redis://", "")
}

/// What a member answers to this after these words.
fn ask(member: &EnsembleMember, login: &str, words: &str) -> String {
    let asked = RedisClient::connect(address(member)).and_then(|mut redis| {
        let said = if login.is_empty() { "+OK".to_owned() } else { redis.ask(&format!("AUTH {login}"))? };
        if said == "+OK" { redis.ask(words) } else { Ok(said) }
    });
    asked.unwrap_or_default()
}

/// What the agent of a member keeps for it.
fn kept(place: &Setup, member: &EnsembleMember, file: &str) -> String {
    let path = place.path(&format!("{}/data/ensembles/cache/{file}", member.node));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
    std::fs::read_to_string(path).unwrap()
}

/// The login of the members themselves.
fn own(place: &Setup, member: &EnsembleMember) -> String {
    let kept: Value = serde_json::from_str(&kept(place, member, "access.json")).unwrap();
    format!("bellwether-{} {}", member.number, kept.pointer("/own").and_then(Value::as_str).unwrap())
}

/// All members serve, and take the passwords that are ordered.
async fn all_current(place: &Setup, size: usize) -> Vec<EnsembleMember> {
    let mut members = Vec::new();
    wait_for("all members take the present passwords", async || {
        members = complete(place, size).await;
        members.iter().all(|member| member.passwords == Some(PasswordState::Current))
    })
    .await;
    members
}

/// Each member lets in clients with these passwords and no others, and replicates.
async fn are_guarded(place: &Setup, members: &[EnsembleMember], good: &[&str], bad: &[&str]) {
    for member in members {
        for password in good {
            assert_eq!(ask(member, password, "PING"), "+PONG", "{password}: {member:?}");
            assert!(ask(member, password, "CONFIG GET masterauth").starts_with("-NOPERM"));
        }
        for password in bad {
            assert!(ask(member, password, "PING").starts_with("-WRONGPASS"), "{password}: {member:?}");
        }
        assert!(ask(member, "", "GET key-1").starts_with("-NOAUTH"), "{member:?}");
        let own = own(place, member);
        let connected = async || {
            let info = ask(member, &own, "INFO replication");
            match member.role {
                Some(MemberRole::Primary) => {
                    info.contains("role:master") && info.contains("connected_slaves:2")
                }
                _ => info.contains("role:slave") && info.contains("master_link_status:up"),
            }
        };
        wait_for("it replicates", connected).await;
        let users = kept(place, member, "access.json");
        let known: Value = serde_json::from_str(&users).unwrap();
        let clients = known.pointer("/clients").and_then(Value::as_object).unwrap();
        assert_eq!(clients.len(), good.len(), "{users}");
        assert!(good.iter().chain(bad).all(|password| !users.contains(password)), "{users}");
        let mut redis = RedisClient::connect(address(member)).unwrap();
        assert_eq!(redis.ask(&format!("AUTH {own}")).unwrap(), "+OK");
        let users = format!("*{}", members.len() + 1);
        assert_eq!(redis.ask("ACL LIST").unwrap(), users, "one for each member, and that of clients");
        let all = (0..=members.len()).map(|_| redis.ask("ECHO x").unwrap());
        let listed: String = all.collect::<Vec<_>>().join("\n");
        for password in clients.values() {
            let digest = password.pointer("/sha256").and_then(Value::as_str).unwrap();
            assert!(listed.contains(&format!("#{digest}")), "{listed}");
        }
        assert!(listed.contains("user bellwether-1 on #") && !listed.contains("nopass"), "{listed}");
        let pid = programs(member_port(member), member).concat();
        let argv = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!argv.contains(own.split(' ').next_back().unwrap()), "{argv}");
    }
}

fn member_port(member: &EnsembleMember) -> u16 {
    address(member).rsplit(':').next().unwrap().parse().unwrap()
}

fn processes(members: &[EnsembleMember]) -> BTreeMap<u64, Vec<String>> {
    members.iter().map(|member| (member.number, programs(member_port(member), member))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_change_without_a_restart_and_no_write_is_lost_also_if_the_primary_is_killed_meanwhile() {
    let place = installed().await;
    let [port] = free_ports();
    secret(&place, "cache/one", "first-1");
    place.client().set_ensemble("default", "cache", &guarded(port, "cache/one")).await.unwrap();
    let members = all_current(&place, 3).await;
    are_guarded(&place, &members, &["first-1"], &["second-2", "default"]).await;

    // Two at once, while clients change from one to the other; nobody is started anew.
    let (before, password) = (processes(&members), Password::default());
    "first-1".clone_into(&mut password.lock().unwrap());
    let writer = Writer::start_with(members.iter().map(address).collect(), password.clone());
    writer.goes_on().await;
    secret(&place, "cache/two", "second-2");
    let both = ["--password-secret", "cache/one", "--password-secret", "cache/two"];
    done(&place, &[["ensemble", "set", "cache"].as_slice(), &both].concat());
    let members = all_current(&place, 3).await;
    are_guarded(&place, &members, &["first-1", "second-2"], &["third-3"]).await;
    writer.goes_on().await;
    "second-2".clone_into(&mut password.lock().unwrap());
    writer.goes_on().await;
    assert_eq!(processes(&members), before, "no program was started anew");

    // The former one is taken away, and the primary is killed meanwhile.
    let first = primary(&members);
    done(&place, &["ensemble", "set", "cache", "--password-secret", "cache/two"]);
    kill(&programs(port, &first));
    wait_for("another member is the primary", async || {
        primary(&all_current(&place, 3).await).number != first.number
    })
    .await;
    let members = all_current(&place, 3).await;
    are_guarded(&place, &members, &["second-2"], &["first-1"]).await;
    writer.goes_on().await;

    // A new value of the same secret: there is no overlap. An agent that is away meanwhile hears of it later, and its Redis goes on replicating.
    let (before, away) =
        (processes(&members), members.iter().find(|of| of.role == Some(MemberRole::Replica)).unwrap());
    while_its_agent_stands_still(&place, away, async || {
        secret(&place, "cache/two", "third-3");
        "third-3".clone_into(&mut password.lock().unwrap());
        writer.goes_on().await;
        assert_eq!(ask(away, "second-2", "PING"), "+PONG", "it has heard of nothing");
        let why = text(&place.run(&["why", "ensemble/cache"]).stdout);
        assert!(why.contains(&format!("yet: {} left", away.number)), "{why}");
    })
    .await;
    let members = all_current(&place, 3).await;
    are_guarded(&place, &members, &["third-3"], &["first-1", "second-2"]).await;
    assert_eq!(processes(&members), before, "no program was started anew");
    let why = done(&place, &["why", "ensemble/cache"]);
    assert!(why.contains("all members take the present value of secret cache/two"), "{why}");
    assert!(done(&place, &["ensemble", "get", "cache"]).contains("passwords of clients: current on members"));
    let events = done(&place, &["events", "--limit", "1000", "-o", "json"]);
    assert!(["first-1", "second-2", "third-3"].iter().all(|value| !events.contains(value)), "{events}");

    // Without a password again.
    done(&place, &["ensemble", "set", "cache", "--no-password"]);
    let last = complete(&place, 3).await;
    for member in &last {
        wait_for("it is open", async || ask(member, "", "PING") == "+PONG").await;
    }
    password.lock().unwrap().clear();
    writer.all_is_at(&address(&primary(&last)), "redis: passwords changed").await;
}

/// The agent of a member stands still while something happens.
async fn while_its_agent_stands_still(place: &Setup, member: &EnsembleMember, during: impl AsyncFnOnce()) {
    let signal = |signal| rustix::process::kill_process(place.agent_pid(&member.node), signal).unwrap();
    signal(rustix::process::Signal::STOP);
    during().await;
    signal(rustix::process::Signal::CONT);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_are_no_passwords_are_refused_and_those_in_use_stay() {
    let place = installed().await;
    let [port] = free_ports();
    let of = |secret: &str| {
        let port = port.to_string();
        let words = ["ensemble", "create", "cache", "--service", "redis", "--filter", "all", "--size", "1"];
        place.run(
            &[words.as_slice(), &["--tls", "false", "--port", &port, "--password-secret", secret]].concat(),
        )
    };
    let refused = |said: std::process::Output, reason: &str| {
        let told = text(&said.stderr);
        assert!(code(&said) != 0 && told.contains(reason), "{reason}: {told}");
    };
    refused(of("nowhere"), "secret nowhere");
    for (value, reason) in
        [("\"\"", "its value is empty"), ("\"a\\n\"", "line break"), ("7", "its value is no text")]
    {
        let said = place.run_with(&["secret", "set", "bad", "--json", "--file", "-"], value);
        assert_eq!(code(&said), 0, "{}", text(&said.stderr));
        refused(of("bad"), reason);
    }
    let said = place.run_with(&["secret", "set", "others", "--file", "-", "--reader", "profile/x"], "good");
    assert_eq!(code(&said), 0);
    refused(of("others"), "ensemble/cache is not among its readers");
    secret(&place, "good", "word");
    assert_eq!(code(&of("good")), 0);
    let members = all_current(&place, 1).await;
    assert_eq!(ask(&members[0], "word", "PING"), "+PONG");
    refused(
        place.run(&["secret", "delete", "good", "--yes"]),
        "it is a password of clients of ensemble/cache",
    );
    refused(place.run(&["secret", "set", "good", "--reader", "profile/x"]), "ensemble/cache");
    refused(place.run_with(&["secret", "set", "good", "--file", "-"], "a\nb"), "line break");
    refused(
        place.run(&["ensemble", "set", "cache", "--password-secret", "good", "--no-password"]),
        "--no-password",
    );
    assert!(done(&place, &["secret", "get", "good"]).contains("ensemble/cache"));
}

/// A restore brings back what was ordered before: clients go on with the passwords that they have until a person has the ensemble go on.
#[tokio::test(flavor = "multi_thread")]
async fn clients_keep_their_password_over_a_restore_of_records_of_before_it_was_set() {
    let mut place = installed().await;
    let [port] = free_ports();
    secret(&place, "cache/one", "first-1");
    place.client().set_ensemble("default", "cache", &guarded(port, "cache/one")).await.unwrap();
    let members = all_current(&place, 3).await;
    place.back_up().await;
    secret(&place, "cache/one", "second-2");
    wait_for("the new one is taken", async || {
        let members = all_current(&place, 3).await;
        members.iter().all(|member| ask(member, "second-2", "PING") == "+PONG")
    })
    .await;
    let (former, before) = (primary(&members), processes(&members));
    done(&place, &["ensemble", "failover", "cache"]);
    wait_for("another member is the primary", async || {
        primary(&all_current(&place, 3).await).number != former.number
    })
    .await;
    let password = Password::default();
    "second-2".clone_into(&mut password.lock().unwrap());
    let writer = Writer::start_with(members.iter().map(address).collect(), password.clone());
    writer.goes_on().await;

    place.put_back().await;
    let why = || text(&place.run(&["why", "ensemble/cache"]).stdout);
    wait_for("it is held", async || why().contains("keep the passwords of clients that they have")).await;
    for _ in 0..3 {
        writer.goes_on().await;
    }
    for member in &members {
        assert_eq!(ask(member, "second-2", "PING"), "+PONG", "{}", why());
        assert!(ask(member, "first-1", "PING").starts_with("-WRONGPASS"), "{}", why());
    }
    done(&place, &["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    wait_for("the recorded one is taken", async || {
        let members = all_current(&place, 3).await;
        members.iter().all(|member| ask(member, "first-1", "PING") == "+PONG")
    })
    .await;
    "first-1".clone_into(&mut password.lock().unwrap());
    writer.goes_on().await;
    let last = all_current(&place, 3).await;
    assert_eq!(processes(&last), before, "no program was started anew");
    writer.all_is_at(&address(&primary(&last)), "redis: passwords over a restore").await;
}
