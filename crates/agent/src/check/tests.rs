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
    let tasks = Tasks::new();
    let (facts, clock) = (CommandFacts::default(), Clock::system());
    let context = CheckContext { facts: &facts, clock: &clock, tasks: &tasks, seed: 1, starting_until: None };
    let mut checks = EntityChecks::start(&check(probe), &BTreeMap::new(), context);
    loop {
        tokio::time::timeout(LONG, checks.changed()).await.unwrap();
        let verdict = checks.now().values().next().unwrap().verdict().clone();
        if verdict != CheckVerdict::Unknown {
            return verdict;
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    Tasks::new().spawn("web", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0_u8; 1_024];
            let read = stream.read(&mut request).await.unwrap_or_default();
            if read > 0 {
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
                stream.write_all(answer.as_bytes()).await.unwrap();
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
