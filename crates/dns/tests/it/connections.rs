use std::time::Duration;

use bellwether_dns::config::{Config, DnsLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::fleet::{PATIENCE, hear, large, loopback, question, small, start_with, tell};

async fn limited(limits: DnsLimits) -> crate::fleet::Server {
    start_with(small(), Config { limits, ..Config::on([loopback()]) }).await
}

/// Whether the other side closes the connection without sending anything.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let read = timeout(PATIENCE, stream.read(&mut [0; 16])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_queries_are_answered_in_order() {
    let server = limited(DnsLimits::default()).await;
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    for number in 0..50 {
        let mut asked = question("web.service.bw.internal", 1, None);
        asked[1] = number;
        tell(&mut stream, &asked).await;
    }
    for number in 0..50 {
        assert_eq!(hear(&mut stream).await[1], number);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_complete_query_is_closed() {
    let server = limited(DnsLimits { idle: Duration::from_millis(200), ..DnsLimits::default() }).await;
    let mut silent = TcpStream::connect(server.at()).await.unwrap();
    let mut slow = TcpStream::connect(server.at()).await.unwrap();
    slow.write_all(&[0, 40, 1, 2, 3]).await.unwrap();
    assert!(is_closed(&mut silent).await && is_closed(&mut slow).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_above_the_limit_is_closed_and_the_others_continue() {
    let server = limited(DnsLimits { connections: 2, ..DnsLimits::default() }).await;
    let asked = question("web.service.bw.internal", 1, None);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.at()).await.unwrap();
        tell(&mut stream, &asked).await;
        hear(&mut stream).await;
        held.push(stream);
    }
    let mut third = TcpStream::connect(server.at()).await.unwrap();
    assert!(is_closed(&mut third).await);
    assert_eq!(server.serving.counts().connections_refused, 1);
    tell(&mut held[0], &asked).await;
    hear(&mut held[0]).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_holds_all_its_connections_open_keeps_nobody_else_away() {
    let server =
        limited(DnsLimits { connections: 3, connections_of_client: 2, ..DnsLimits::default() }).await;
    let mut held =
        [TcpStream::connect(server.at()).await.unwrap(), TcpStream::connect(server.at()).await.unwrap()];
    for stream in &mut held {
        stream.write_all(&[0, 40]).await.unwrap();
    }
    let mut third = TcpStream::connect(server.at()).await.unwrap();
    assert!(is_closed(&mut third).await);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(server.at()).await.unwrap();
    tell(&mut other, &question("web.service.bw.internal", 1, None)).await;
    hear(&mut other).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_closed_after_its_last_query() {
    let server = limited(DnsLimits { questions_per_connection: 2, ..DnsLimits::default() }).await;
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    for _ in 0..2 {
        tell(&mut stream, &question("web.service.bw.internal", 1, None)).await;
        hear(&mut stream).await;
    }
    assert!(is_closed(&mut stream).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_disconnected() {
    let limits = DnsLimits { idle: Duration::from_millis(300), ..DnsLimits::default() };
    let server = start_with(large(4_000), Config { limits, ..Config::on([loopback()]) }).await;
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    let asked = question("big.service.bw.internal", 1, None);
    let mut frame = u16::try_from(asked.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(&asked);
    // More answers than all buffers hold; sending fails after the server has closed the connection.
    let gone = async { while stream.write_all(&frame.repeat(100)).await.is_ok() {} };
    timeout(PATIENCE, gone).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_does_not_wait_for_connections() {
    let server = limited(DnsLimits::default()).await;
    let mut stream = TcpStream::connect(server.at()).await.unwrap();
    tell(&mut stream, &question("web.service.bw.internal", 1, None)).await;
    hear(&mut stream).await;
    let at = server.at();
    timeout(Duration::from_secs(5), server.stop()).await.unwrap();
    assert!(is_closed(&mut stream).await);
    assert!(TcpStream::connect(at).await.is_err(), "nobody listens any more");
}
