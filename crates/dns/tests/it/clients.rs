//! Who is answered, and how often over UDP.

use std::time::Duration;

use bellwether_dns::config::{Config, DnsLimits};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::fleet::{PATIENCE, Server, hear, loopback, question, small, start_with, tell};

/// Queries of a flood.
const FLOOD: usize = 100;

async fn limited(limits: DnsLimits) -> Server {
    start_with(small(), Config { limits, ..Config::on([loopback()]) }).await
}

/// A flood of queries, and the answers to it that have come once every query was counted.
async fn flood(server: &Server, asked: &[u8]) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.at()).await.unwrap();
    for _ in 0..FLOOD {
        socket.send(asked).await.unwrap();
    }
    let all = async {
        loop {
            let counts = server.serving.counts();
            if counts.queries().max(counts.limited) >= u64::try_from(FLOOD).unwrap() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, all).await.unwrap();
    let (mut answers, mut buffer) = (Vec::new(), [0; 2_048]);
    while let Ok(read) = socket.try_recv(&mut buffer) {
        answers.push(buffer[..read].to_vec());
    }
    answers
}

/// Flags and number of records of an answer.
fn head(answer: &[u8]) -> (bool, u8, u16) {
    (answer[2] & 2 != 0, answer[3] & 0xf, u16::from_be_bytes([answer[6], answer[7]]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_a_network_that_is_not_local_is_not_amplified_and_tcp_goes_on() {
    let limits = DnsLimits { unlimited: Vec::new(), answers_per_second: 0, ..DnsLimits::default() };
    let server = limited(limits).await;
    let asked = question("web.service.bw.internal", 1, None);
    let answers = flood(&server, &asked).await;
    assert!(!answers.is_empty() && answers.len() <= FLOOD / 2, "{}", answers.len());
    for answer in &answers {
        assert!(answer.len() <= asked.len());
        assert_eq!(head(answer), (true, 0, 0));
    }
    assert_eq!(server.serving.counts().limited, u64::try_from(FLOOD).unwrap());
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    tell(&mut stream, &asked).await;
    assert!(head(&hear(&mut stream).await).2 > 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_allowed_is_refused_over_udp_and_tcp() {
    let allowed = vec!["192.0.2.0/24".parse().unwrap()];
    let server = limited(DnsLimits { allowed, ..DnsLimits::default() }).await;
    let asked = question("web.service.bw.internal", 1, None);
    let answers = flood(&server, &asked).await;
    assert!(!answers.is_empty() && answers.iter().all(|answer| head(answer) == (false, 5, 0)));
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    tell(&mut stream, &asked).await;
    assert_eq!(head(&hear(&mut stream).await), (false, 5, 0));
    server.stop().await;
}
