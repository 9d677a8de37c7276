use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::fleet::{loopback, question, small, start};

#[tokio::test(flavor = "multi_thread")]
async fn noise_is_not_answered_and_does_not_stop_the_server() {
    let server = start(small()).await;
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    socket.connect(server.at()).await.unwrap();
    let mut answer = question("web.service.bw.internal", 1, None);
    answer[2] |= 0x80;
    for noise in [&[][..], &[0; 5], &[255; 1_400], &answer] {
        socket.send(noise).await.unwrap();
    }
    socket.send(&question("web.service.bw.internal", 1, None)).await.unwrap();
    let mut buffer = [0; 2_000];
    let length = timeout(crate::fleet::PATIENCE, socket.recv(&mut buffer)).await.unwrap().unwrap();
    assert_eq!((&buffer[..2], length > 12), (&[0x12, 0x34][..], true), "the first answer is the question's");
    // What is dropped may be counted by another task, after the answer.
    let counted = async {
        while server.serving.counts().dropped < 4 {
            tokio::task::yield_now().await;
        }
    };
    timeout(crate::fleet::PATIENCE, counted).await.unwrap();
    assert_eq!(server.serving.counts().dropped, 4);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_from_the_queried_address() {
    let config = bellwether_dns::config::Config::on(["0.0.0.0:0".parse().unwrap()]);
    let server = crate::fleet::start_with(small(), config).await;
    let socket = UdpSocket::bind(loopback()).await.unwrap();
    // Another source address than packets to 127.0.0.1 would have by default.
    let asked = std::net::SocketAddr::from(([127, 0, 0, 77], server.at().port()));
    socket.send_to(&question("web.service.bw.internal", 1, None), asked).await.unwrap();
    let mut buffer = [0; 2_000];
    let (_, from) = timeout(crate::fleet::PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(from, asked);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_an_error_with_the_next_step() {
    let server = start(small()).await;
    let (_publish, zone) = tokio::sync::watch::channel(std::sync::Arc::new(small()));
    let tasks = bellwether_rt::tasks::Tasks::new();
    let serve = |at: &str| {
        let config = bellwether_dns::config::Config::on([at.parse().unwrap()]);
        bellwether_dns::serve::serve(config, zone.clone(), &tasks)
    };
    let at = server.at().to_string();
    let error = serve(&at).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("listen for DNS on {at} (tcp): Address already in use")), "{error}");
    assert!(error.ends_with("or choose another port"), "{error}");
    let error = serve("192.0.2.1:0").await.unwrap_err().to_string();
    assert!(error.ends_with("this machine does not have the address"), "{error}");
    tasks.stop(Duration::from_secs(5)).await.unwrap();
    server.stop().await;
}
