use std::net::SocketAddr;
use std::time::Duration;

use bellwether_core::dns::zone::{ZoneOrigin, ZoneSettings};
use bellwether_dns::config::{Config, ForwardConfig};
use bellwether_dns::serve::ServeError;
use tokio::net::UdpSocket;

use crate::fleet::{Server, large, loopback, question, small, start, start_with};

/// A server without `bw.internal`, which forwards it to another server.
async fn asking(upstreams: Vec<SocketAddr>, adjust: impl Fn(&mut ForwardConfig)) -> Server {
    let mut zone = small();
    let usual = ZoneSettings::new("dc1".parse().unwrap(), "ns-1".parse().unwrap());
    let settings = ZoneSettings { domain: "other.internal".into(), ..usual };
    zone.origin = std::sync::Arc::new(ZoneOrigin::new(settings).unwrap());
    let mut forward = ForwardConfig::to(upstreams);
    adjust(&mut forward);
    start_with(zone, Config { forward: Some(forward), ..Config::on([loopback()]) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_other_zones_are_forwarded() {
    let upstream = start(small()).await;
    let server = asking(vec![upstream.at()], |_| ()).await;
    assert_eq!(server.short("web.service.bw.internal A").await, ["10.0.0.1", "10.9.0.2"]);
    assert_eq!(server.short("+noedns web.service.bw.internal A").await, ["10.0.0.1", "10.9.0.2"]);
    assert_eq!(server.short("web.service.other.internal AAAA").await, ["fd00::1"]);
    let own = server.dig("nobody.service.other.internal").await;
    assert!(own.contains("NXDOMAIN") && own.contains("flags: qr aa rd ra"), "{own}");
    let undesired = server.dig("+norec web.service.bw.internal").await;
    assert!(undesired.contains("status: REFUSED"), "{undesired}");
    let counts = server.serving.counts();
    assert_eq!((counts.forwarded, upstream.serving.counts().no_error), (2, 2));
    server.stop().await;
    upstream.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_forwarded_answer_is_fetched_over_tcp_and_truncated_for_the_client() {
    let upstream = start(large(1_000)).await;
    let server = asking(vec![upstream.at()], |_| ()).await;
    let cut = server.dig("+ignore big.service.bw.internal A").await;
    assert!(cut.contains("tc rd") && cut.contains("ANSWER: 0"), "{cut}");
    let all = server.short("big.service.bw.internal A").await;
    assert_eq!(all.iter().filter(|line| line.starts_with("10.7.")).count(), 1_000);
    server.stop().await;
    upstream.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_resolver_times_out_and_the_next_one_is_tried() {
    let silent = UdpSocket::bind(loopback()).await.unwrap();
    let upstream = start(small()).await;
    let quick = |forward: &mut ForwardConfig| forward.patience = Duration::from_millis(100);
    let server = asking(vec![silent.local_addr().unwrap(), upstream.at()], quick).await;
    assert_eq!(server.short("web-1.node.bw.internal A").await, ["10.0.0.1"]);
    server.stop().await;
    upstream.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_or_with_too_many_queries_the_client_gets_servfail() {
    let silent = UdpSocket::bind(loopback()).await.unwrap();
    let at = silent.local_addr().unwrap();
    let server = asking(vec![at], |forward| forward.patience = Duration::from_millis(50)).await;
    let said = server.dig("example.org A").await;
    assert!(said.contains("status: SERVFAIL"), "{said}");
    assert_eq!(server.tcp(&question("example.org", 1, None)).await[3] & 15, 2);
    assert_eq!(server.serving.counts().serv_fail, 2);
    server.stop().await;
    let full = asking(vec![at], |forward| forward.at_once = 0).await;
    assert_eq!(full.udp(&question("example.org", 1, None)).await[3] & 15, 2);
    full.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_question_is_ignored() {
    let liar = UdpSocket::bind(loopback()).await.unwrap();
    let at = liar.local_addr().unwrap();
    let lie = async {
        let mut buffer = [0; 600];
        let (length, from) = liar.recv_from(&mut buffer).await.unwrap();
        let asked = buffer[..length].to_vec();
        let mut other_number = asked.clone();
        other_number[0] ^= 1;
        other_number[2] |= 0x80;
        let mut other_name = asked.clone();
        other_name[13] ^= 1;
        other_name[2] |= 0x80;
        for lie in [other_number, other_name, asked] {
            liar.send_to(&lie, from).await.unwrap();
        }
    };
    let server = asking(vec![at], |forward| forward.patience = Duration::from_millis(100)).await;
    let asked = question("example.org", 1, None);
    let (_, answer) = tokio::join!(lie, server.udp(&asked));
    assert_eq!(answer[3] & 15, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarding_without_a_resolver_or_to_itself_is_refused() {
    let (_publish, zone) = tokio::sync::watch::channel(std::sync::Arc::new(small()));
    let tasks = bellwether_rt::tasks::Tasks::new();
    let taken = UdpSocket::bind(loopback()).await.unwrap().local_addr().unwrap();
    for (upstreams, expected) in [(vec![], "name one"), (vec![taken], "that is this server")] {
        let config = Config { forward: Some(ForwardConfig::to(upstreams)), ..Config::on([taken]) };
        let error: ServeError = bellwether_dns::serve::serve(config, zone.clone(), &tasks).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    tasks.stop(Duration::from_secs(5)).await.unwrap();
}
