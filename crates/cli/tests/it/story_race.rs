//! Many writers of one param on three servers and a real etcd of three members, while servers are killed and the leader changes:
//! each round has one winner, and the whole history is linearizable.

use std::process::{Child, Stdio};
use std::time::Duration;

use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::profile::{Params, ParamsPatch};
use bellwether_core::words::random::RandomStream;
use bellwether_testbed::Options;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{Bed, options};
use crate::linear::{Answer, Call, Operation, Value, is_linearizable};

const KEY: &str = "leader";

/// How long a call may take before its outcome is unknown: a server that is killed does not answer.
pub(crate) const CALL: Duration = Duration::from_secs(4);

pub(crate) fn no_agents() -> Options {
    Options { agents: 0, ..options() }
}

/// One `profile add` of the command line.
struct Adding {
    name: String,
    child: Child,
}

fn add(bed: &Bed, server: usize, name: &str) -> Adding {
    let value = format!("{KEY}=\"{name}\"");
    let mut command = bed.inner.command(server, &["profile", "add", "shared", &value]).unwrap();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Adding { name: name.to_owned(), child }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_who_add_a_leader_while_servers_die_one_wins() {
    let mut bed = Bed::start(no_agents()).await;
    let leads = bed.leader_but(&[]).await;
    let (mut winners, mut losers) = (Vec::new(), 0);
    let mut left: Vec<Adding> =
        (0..20).map(|number| add(&bed, number % 3 + 1, &format!("agent-{number}"))).collect();
    bed.obey(&format!("kill server-{leads}"));
    let mut unanswered = Vec::new();
    let mut other = leads;
    while let Some(mut adding) = left.pop() {
        let status = tokio::task::block_in_place(|| adding.child.wait()).unwrap();
        match status.code() {
            Some(0) => winners.push(adding.name),
            Some(6) => losers += 1,
            // It asked the server that was killed, or one that had no leader to write by; it asks another one again.
            Some(69 | 75) => {
                other = other % 3 + 1;
                let server = if other == leads { other % 3 + 1 } else { other };
                left.push(add(&bed, server, &adding.name));
                unanswered.push(adding.name);
            }
            code => panic!("{} ended with {code:?}", adding.name),
        }
    }
    let found = bed.ask(async |client| client.profile("default", "shared").await).await.unwrap();
    let leader = found.params[KEY].as_str().unwrap().to_owned();
    // Whoever was not answered may have won then, and has lost against itself when it asked again.
    assert!(
        winners == [leader.clone()] || winners.is_empty() && unanswered.contains(&leader),
        "{winners:?} {leader}"
    );
    assert_eq!(winners.len() + losers, 20);
    assert_eq!(found.revision, 1);
}

/// A client that reads the param, and replaces what it read.
async fn writes(clients: Vec<Client>, number: u64, until: Instant) -> Vec<Call> {
    let mut chance = RandomStream::for_one(7, "race", number);
    let mut calls = Vec::new();
    let mut known: Value = None;
    for turn in 0_u64.. {
        if Instant::now() >= until {
            break;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(60))).await;
        let client = clients.get(usize::try_from(chance.below(clients.len() as u64)).unwrap()).unwrap();
        let operation = match chance.below(3) {
            0 => Operation::Read,
            _ => Operation::Swap { expected: known.clone(), new: Some(format!("{number}-{turn}")) },
        };
        let called = Instant::now();
        let answer = match &operation {
            Operation::Read => read(client).await,
            Operation::Swap { expected, new } => swap(client, expected, new).await,
        };
        let answered = Instant::now();
        match &answer {
            Answer::Value(value) | Answer::Lost(Some(value)) => known.clone_from(value),
            Answer::Written | Answer::Lost(None) | Answer::Unknown => {}
        }
        if let (Operation::Swap { new, .. }, Answer::Written) = (&operation, &answer) {
            known.clone_from(new);
        }
        let unread = operation == Operation::Read && answer == Answer::Unknown;
        if !unread {
            calls.push(Call { operation, answer, called, answered });
        }
    }
    calls
}

/// Reads by a call that is not answered from an old world.
async fn read(client: &Client) -> Answer {
    match tokio::time::timeout(CALL, client.clone().consistent().profile("default", "race")).await {
        Ok(Ok(profile)) => {
            Answer::Value(profile.params.get(KEY).map(|value| value.as_str().unwrap().to_owned()))
        }
        Ok(Err(_)) | Err(_) => Answer::Unknown,
    }
}

async fn swap(client: &Client, expected: &Value, new: &Value) -> Answer {
    let one = |value: &str| Params::from([(KEY.to_owned(), json!(value))]);
    let patch = ParamsPatch {
        set: new.as_deref().map(one).unwrap_or_default(),
        if_equal: expected.as_deref().map(one).unwrap_or_default(),
        if_absent: if expected.is_none() { vec![KEY.to_owned()] } else { Vec::new() },
        ..ParamsPatch::default()
    };
    match tokio::time::timeout(CALL, client.patch_profile("default", "race", &patch)).await {
        Ok(Ok(_)) => Answer::Written,
        Ok(Err(CallError::Problem(problem))) if problem.code == Code::Conflict => Answer::Lost(None),
        Ok(Err(_)) | Err(_) => Answer::Unknown,
    }
}

/// Kills the leader, cuts the next one off from its store, and kills the leader of etcd.
pub(crate) async fn disturb(bed: &mut Bed) {
    let killed = bed.leader_but(&[]).await;
    bed.obey(&format!("kill server-{killed}"));
    let cut = bed.leader_but(&[killed]).await;
    bed.obey(&format!("start server-{killed}"));
    for member in 1..=3 {
        bed.obey(&format!("cut server-{cut} etcd-{member}"));
    }
    bed.leader_but(&[cut]).await;
    bed.obey("heal");
    let member = crate::story_servers::etcd_leader(bed);
    bed.obey(&format!("kill etcd-{member}"));
    bed.obey(&format!("start etcd-{member}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_of_many_writers_while_servers_die_and_members_are_cut_off_is_linearizable() {
    let mut bed = Bed::start(no_agents()).await;
    // The profile is there, and the param is not.
    bed.run(1, &["profile", "set", "race", "other=1"]);
    let until = Instant::now() + Duration::from_secs(25);
    let clients = bed.clients.clone();
    let writing = (0..8).map(|number| writes(clients.clone(), number, until));
    let writing = futures_util::future::join_all(writing);
    let (histories, ()) = tokio::join!(writing, disturb(&mut bed));
    let calls: Vec<Call> = histories.into_iter().flatten().collect();
    let of = |answer: &Answer| calls.iter().filter(|call| call.answer == *answer).count();
    let (written, lost) = (of(&Answer::Written), of(&Answer::Lost(None)));
    assert!(written > 50 && lost > 50, "hardly a race: {written} written, {lost} lost of {}", calls.len());
    assert!(is_linearizable(None, &calls), "{} calls have no order that explains their answers", calls.len());
}
