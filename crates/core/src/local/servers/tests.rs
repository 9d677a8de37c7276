use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use super::*;

const MINUTE: u64 = 60_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn address(name: &str) -> String {
    format!("https://{name}.example:7420")
}

/// Servers that have had their place for a while.
fn live(names: &[&str], lasts: Span) -> Vec<LiveServer> {
    let server =
        |name: &&str| LiveServer { name: ServerName::parse(name).unwrap(), address: address(name), lasts };
    names.iter().map(server).collect()
}

/// A machine that was configured with `a` alone and told of three.
fn advertised(me: &str) -> KnownServers {
    let mut servers = KnownServers::new(me, 7, vec![address("a")], vec![], at(0));
    servers.update(live(&["a", "b", "c"], Span::ZERO), at(0));
    servers
}

/// Goes to the best one, as time permits.
fn settled(mut servers: KnownServers) -> KnownServers {
    while let Some((better, _)) = servers.better(at(0)) {
        servers.move_to(&better);
    }
    servers
}

/// How many of a thousand machines call each.
fn spread(machines: &[KnownServers]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    machines.iter().for_each(|servers| *counts.entry(servers.current().to_owned()).or_insert(0) += 1);
    counts
}

fn thousand() -> Vec<KnownServers> {
    (0..1_000).map(|number| advertised(&format!("default/node-{number}"))).collect()
}

#[test]
fn machines_that_were_told_of_one_spread_over_all_and_each_goes_back_to_its_own() {
    let machines = thousand();
    assert_eq!(spread(&machines), BTreeMap::from([(address("a"), 1_000)]), "only one was advertised");
    let machines: Vec<KnownServers> = machines.into_iter().map(settled).collect();
    let level = spread(&machines);
    assert_eq!(level.len(), 3);
    assert!(level.values().all(|count| (280..=390).contains(count)), "{level:?}");

    // One goes: its machines call the others, which both get their share, and nobody else moves.
    let mut away = machines.clone();
    for servers in away.iter_mut().filter(|servers| servers.current() == address("b")) {
        servers.failed(at(MINUTE));
        servers.update(live(&["a", "c"], Span::from_secs(60)), at(MINUTE + 1));
    }
    let fewer = spread(&away);
    assert!(fewer.len() == 2 && fewer.values().all(|count| (430..=570).contains(count)), "{fewer:?}");
    for (before, after) in machines.iter().zip(&away) {
        assert!(before.current() == address("b") || before.current() == after.current());
    }
    for servers in &mut away {
        servers.update(live(&["a", "b", "c"], Span::ZERO), at(10 * MINUTE));
    }
    let back: Vec<KnownServers> = away.into_iter().map(settled).collect();
    assert_eq!(spread(&back), level, "and all of them go back");
}

#[test]
fn a_better_server_is_gone_to_after_a_minute_in_place_and_not_by_all_at_once() {
    let mut moments: Vec<u64> = Vec::new();
    for seed in 0..1_000 {
        let mut servers = KnownServers::new("default/n", seed, vec![address("x")], vec![], at(0));
        servers.update(live(&["a"], Span::from_secs(10)), at(5 * MINUTE));
        let (better, due) = servers.better(at(0)).unwrap();
        assert_eq!(better, address("a"));
        moments.push(due.as_millis());
    }
    moments.sort_unstable();
    let (first, last) = (moments[0], moments[999]);
    assert!(first >= 5 * MINUTE - 10_000 + MINUTE, "{first}");
    assert!(last <= 5 * MINUTE - 10_000 + 101_000, "{last}");
    assert!(moments[900] - moments[100] > 25_000, "{moments:?}");
}

#[test]
fn of_several_that_were_always_there_the_best_is_gone_to_and_not_the_oldest() {
    for number in 0..50 {
        let mut servers =
            KnownServers::new(&format!("default/{number}"), number, vec![address("x")], vec![], at(0));
        let mut all = live(&["a", "b", "c"], Span::from_secs(3_600));
        all[1].lasts = Span::from_secs(7_200);
        servers.update(all, at(5 * MINUTE));
        let (better, due) = servers.better(at(200 * MINUTE)).unwrap();
        assert_eq!(due, at(200 * MINUTE));
        servers.move_to(&better);
        assert_eq!(servers.better(at(200 * MINUTE)), None, "{better}");
    }
}

#[test]
fn one_that_does_not_answer_is_tried_later_each_time_until_it_was_away_and_is_back() {
    let mut servers = KnownServers::new("default/n", 7, vec![address("x")], vec![], at(0));
    servers.update(live(&["a"], Span::ZERO), at(0));
    let mut waits = Vec::new();
    for _ in 0..8 {
        let (better, due) = servers.better(at(0)).unwrap();
        servers.avoid(&better, due);
        waits.push(servers.better(due).unwrap().1.since(due).as_millis());
    }
    assert!(waits[0] >= MINUTE && waits[4] > 10 * MINUTE && waits[7] <= 30 * MINUTE, "{waits:?}");
    assert_eq!(servers.current(), address("x"), "nothing was left for it");
    servers.update(vec![], at(100 * MINUTE));
    assert_eq!(servers.better(at(0)), None, "it is gone");
    servers.update(live(&["a"], Span::ZERO), at(101 * MINUTE));
    assert!(servers.better(at(0)).unwrap().1 <= at(103 * MINUTE));
}

#[test]
fn who_is_gone_is_called_when_nobody_else_answers_and_the_configured_ones_before() {
    let mut servers = advertised("default/n");
    servers.update(live(&["b"], Span::ZERO), at(MINUTE));
    let kept = servers.advertised().to_vec();
    assert_eq!(kept.iter().map(|advertised| advertised.live).collect::<Vec<_>>(), [true, false, false]);
    let mut again = KnownServers::new("default/n", 9, vec![address("a")], kept, at(2 * MINUTE));
    let mut called = vec![again.current().to_owned()];
    for _ in 0..3 {
        again.failed(at(2 * MINUTE));
        called.push(again.current().to_owned());
    }
    assert_eq!(called, ["b", "a", "c", "b"].map(address));
}

#[test]
fn an_address_that_means_this_machine_is_no_news_on_another_one() {
    for (address, here) in [
        ("https://127.0.0.1:7420", true),
        ("https://[::1]:7420", true),
        ("https://0.0.0.0:7420", true),
        ("https://localhost:7420", true),
        ("https://10.0.0.1:7420", false),
        ("https://[2001:db8::1]:7420", false),
        ("https://bw.example", false),
    ] {
        assert_eq!(is_this_machine(address), here, "{address}");
        let one = || {
            vec![LiveServer {
                name: ServerName::parse("s").unwrap(),
                address: address.to_string(),
                lasts: Span::ZERO,
            }]
        };
        let mut far =
            KnownServers::new("default/n", 7, vec!["https://10.0.0.9:7420".to_string()], vec![], at(0));
        far.update(one(), at(0));
        assert_eq!(far.better(at(0)).is_some(), !here, "{address}");
        let mut near =
            KnownServers::new("default/n", 7, vec!["https://127.0.0.1:1".to_string()], vec![], at(0));
        near.update(one(), at(0));
        assert!(near.better(at(0)).is_some(), "{address}");
    }
}

#[test]
fn what_is_not_tls_is_never_called_on_hearsay_and_no_crowd_is_remembered() {
    let mut servers = KnownServers::new("default/n", 7, vec![address("a")], vec![], at(0));
    let name = |number: u32| ServerName::parse(&format!("s{number}")).unwrap();
    servers.update(
        vec![LiveServer { name: name(0), address: "http://10.0.0.1:1".to_string(), lasts: Span::ZERO }],
        at(0),
    );
    assert_eq!(servers.better(at(0)), None);
    for round in 0..40 {
        let one = LiveServer { name: name(round), address: address(&format!("s{round}")), lasts: Span::ZERO };
        servers.update(vec![one], at(0));
    }
    assert_eq!(servers.advertised().len(), MOST);
    assert_eq!(servers.advertised()[1].name, name(38), "who went last is remembered");
}
