use std::time::Duration;

use bellwether_core::local::health::Hysteresis;
use bellwether_core::words::time::Span;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::config::recipe::Command;

const LONG: Duration = Duration::from_secs(20);

fn check(probe: Probe) -> BTreeMap<CheckName, CheckRecipe> {
    let hysteresis = Hysteresis { fall: 2, rise: 1 };
    let (interval, timeout) = (Span::from_millis(10), Span::from_millis(300));
    [(CheckName::parse("it").unwrap(), CheckRecipe { probe, interval, timeout, hysteresis })].into()
}

/// The first verdict.
async fn verdict(probe: Probe) -> CheckVerdict {
    verdict_and_said(probe).await.0
}

/// The first verdict, and what is evidence of it.
async fn verdict_and_said(probe: Probe) -> (CheckVerdict, String) {
    let tasks = Tasks::new();
    let (facts, clock) = (CommandFacts::default(), Clock::system());
    let context = CheckContext { facts: &facts, clock: &clock, tasks: &tasks, seed: 1, starting_until: None };
    let mut checks = EntityChecks::start(&check(probe), &BTreeMap::new(), context);
    loop {
        tokio::time::timeout(LONG, checks.changed()).await.unwrap();
        let verdict = checks.now().values().next().unwrap().verdict().clone();
        if verdict != CheckVerdict::Unknown {
            let evidence = Evidence { failing_checks: vec!["it".to_owned()], ..Evidence::default() };
            return (verdict, checks.with_said(evidence).tail);
        }
    }
}

fn shell(script: &str) -> Probe {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Probe::Exec {
        command: Command { argv, workdir: "/".into(), env: BTreeMap::new(), stdin: None },
        warning: None,
    }
}

async fn answering(status: &'static str) -> String {
    answering_with(format!("{status}\r\ncontent-length: 2\r\n\r\nok")).await
}

/// Answers each request with this, and keeps the connection.
async fn answering_with(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    Tasks::new().spawn("web", async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0_u8; 1_024];
            let read = stream.read(&mut request).await.unwrap_or_default();
            if read > 0 {
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await.unwrap();
                open.push(stream);
            }
        }
    });
    address
}

fn failing(verdict: &CheckVerdict, with: &str) -> bool {
    matches!(verdict, CheckVerdict::Failing(_, message) if message.contains(with))
}

#[tokio::test]
async fn a_command_passes_with_exit_code_0_alone() {
    assert!(matches!(verdict(shell("exit 0")).await, CheckVerdict::Passing(_)));
    assert!(failing(&verdict(shell("echo why; exit 2")).await, "exit code 2: why"));
}

#[tokio::test]
async fn a_hanging_or_flooding_command_is_bounded() {
    assert!(failing(&verdict(shell("sleep 600")).await, "timeout of 300ms"));
    let flood = verdict(shell("yes flood | tr -d '\\n'")).await;
    assert!(matches!(flood, CheckVerdict::Failing(_, message) if message.len() <= MAX_MESSAGE_BYTES));
}

#[tokio::test]
async fn http_needs_its_status_and_tcp_a_listener() {
    let http =
        |authority: &str| Probe::Http { authority: authority.into(), path: "/".into(), status: Some(200) };
    assert!(matches!(verdict(http(&answering("200 OK").await)).await, CheckVerdict::Passing(_)));
    assert!(failing(&verdict(http(&answering("500 No").await)).await, "status 500, not 200"));
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    assert!(failing(&verdict(http(&address)).await, "no answer within 300ms"));
    assert!(matches!(verdict(Probe::Tcp { authority: address.clone() }).await, CheckVerdict::Passing(_)));
    drop(silent);
    assert!(failing(&verdict(Probe::Tcp { authority: address }).await, "connect to"));
}

#[tokio::test]
async fn evidence_of_a_failed_check_has_the_beginning_of_its_response_or_the_end_of_its_output() {
    let http = |authority: String| Probe::Http { authority, path: "/".into(), status: None };
    let said = answering_with("503 No\r\ncontent-length: 14\r\n\r\nno db\u{1b}[1m here".into()).await;
    assert_eq!(verdict_and_said(http(said)).await.1, "no db\u{fffd}[1m here");
    // One that never ends: its beginning is there, and the status is the reason.
    let endless = format!("500 No\r\ncontent-length: 999999\r\n\r\n{}", "x".repeat(3_000));
    let (verdict, said) = verdict_and_said(http(answering_with(endless).await)).await;
    assert!(failing(&verdict, "status 500") && said == "x".repeat(1_024), "{verdict:?} {said}");
    let halfway = "500 No\r\ncontent-length: 999\r\n\r\nhalf".to_owned();
    let (verdict, said) = verdict_and_said(http(answering_with(halfway).await)).await;
    assert!(failing(&verdict, "status 500") && said == "half", "{verdict:?} {said}");
    let (_, said) = verdict_and_said(shell("echo one; echo two; exit 1")).await;
    assert_eq!(said, "one\ntwo\n");
}
