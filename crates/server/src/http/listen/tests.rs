//! Connections that ask nothing, slowly, or take no answers, in memory and in simulated time.

use axum::routing::get;
use bellwether_core::words::time::Timestamp;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinSet;

use super::*;
use crate::metrics::CLOSED_FOR;

/// Bytes of an answer that fits into no window.
const LARGE_BYTES: usize = 1 << 20;

/// Longest wait for the end of a connection, in simulated time.
const LONG: Duration = Duration::from_secs(3_600);

/// A connection of an unknown peer to a server with one route.
struct Served {
    far: DuplexStream,
    served: ConnectionFuture,
    transport: Transport,
}

fn serve_one() -> Served {
    let answer = || async { "x".repeat(LARGE_BYTES) };
    let router = Router::new().route("/large", get(answer)).route("/small", get(|| async { "x" }));
    let transport = Transport {
        tls: None,
        clock: Clock::of_runtime(Timestamp::EPOCH),
        closed: Family::default(),
        load: LoadLog::default(),
    };
    let address = SocketAddr::from(([192, 0, 2, 1], 4_000));
    let peer = Peer::unknown(address, Connections::new().arrive(address).unwrap());
    let (near, far) = tokio::io::duplex(1 << 16);
    let context = ServeContext {
        transport: transport.clone(),
        classes: HandshakeLimiter::default(),
        router,
        tasks: Tasks::new(),
    };
    Served { far, served: context.serve_http((near, None), peer), transport }
}

impl Served {
    /// Why the server closed connections.
    fn reasons(transport: &Transport) -> Vec<&'static str> {
        let count = |reason| transport.closed.get_or_create(&ClosedConnections { reason }).get();
        CLOSED_FOR.into_iter().filter(|reason| count(reason) > 0).collect()
    }
}

/// A client of HTTP/2 with this window for each answer.
async fn connect(
    far: DuplexStream,
    window: u32,
    tasks: &mut JoinSet<()>,
) -> http2::SendRequest<Empty<bytes::Bytes>> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(TokioIo::new(far)).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    sender
}

fn ask(path: &str) -> http::Request<Empty<bytes::Bytes>> {
    http::Request::get(format!("http://server{path}")).body(Empty::new()).unwrap()
}

/// What a client sends that begins this many requests, and gives each up at once.
fn given_up(requests: u32) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    for stream in (0..requests).map(|request| 2 * request + 1) {
        // GET http://a/ as the whole head of a request without a body; then that it is cancelled.
        bytes.extend(frame(1, 0x5, stream, &[0x82, 0x86, 0x84, 0x41, 1, b'a']));
        bytes.extend(frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_every_request_up_is_counted_once_it_is_closed() {
    for (requests, counted) in [(10, 0), (200, 1)] {
        let Served { mut far, served, transport } = serve_one();
        far.write_all(&given_up(requests)).await.unwrap();
        tokio::time::timeout(LONG, served).await.unwrap();
        assert_eq!(transport.load.total(), counted, "{requests}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_comes_is_closed() {
    let Served { far, served, transport } = serve_one();
    tokio::time::timeout(LONG, served).await.unwrap();
    assert_eq!(Served::reasons(&transport), ["idle"]);
    drop(far);
}

/// Writes a byte every few seconds for ever, as long as somebody reads.
async fn drip(mut far: DuplexStream, text: &str) {
    for byte in text.bytes().cycle() {
        tokio::time::sleep(Duration::from_secs(4)).await;
        if far.write_all(&[byte]).await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_drips_is_given_up_whatever_it_begins_like() {
    for text in ["GET /small HTTP/1.1\r\nhost: server\r\nx-long: ", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let Served { far, served, .. } = serve_one();
        // All only wait.
        tokio::select! {
            () = served => {}
            () = drip(far, text) => {}
            () = tokio::time::sleep(LONG) => panic!("it was never given up: {text:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_and_asks_nothing_is_closed() {
    let (Served { far, served, transport }, mut tasks) = (serve_one(), JoinSet::new());
    let mut serving = JoinSet::new();
    serving.spawn(served);
    let mut sender = connect(far, 1 << 16, &mut tasks).await;
    let answer = sender.send_request(ask("/small")).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "x");
    tokio::time::timeout(LONG, serving.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(Served::reasons(&transport), ["idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_answer_is_closed_whatever_its_window() {
    for window in [0, 1, 1 << 16] {
        let (Served { far, served, transport }, mut tasks) = (serve_one(), JoinSet::new());
        let mut serving = JoinSet::new();
        serving.spawn(served);
        let mut sender = connect(far, window, &mut tasks).await;
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(sender.send_request(ask("/large")).await.unwrap());
        }
        tokio::time::timeout(LONG, serving.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(Served::reasons(&transport), ["not-taken"], "{window}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_holds_few_answers_that_are_not_taken_and_gives_more_once_they_are() {
    let (Served { far, served, .. }, mut tasks) = (serve_one(), JoinSet::new());
    tasks.spawn(served);
    let mut sender = connect(far, 0, &mut tasks).await;
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..64 {
        let answer = sender.send_request(ask("/large")).await.unwrap();
        match answer.status().as_u16() {
            200 => held.push(answer),
            status => {
                assert_eq!(status, 429);
                refused += 1;
            }
        }
    }
    assert_eq!((held.len(), refused), (4, 60), "4 MiB of a peer that has shown nothing");
    assert_eq!(sender.send_request(ask("/small")).await.unwrap().status(), 429);
    // Those that are given up are not held.
    drop(held);
    let status =
        async |sender: &mut http2::SendRequest<_>| sender.send_request(ask("/large")).await.unwrap().status();
    tokio::time::timeout(LONG, async {
        while status(&mut sender).await != 200 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_an_answer_slowly_has_all_of_it() {
    let (Served { far, served, .. }, mut tasks) = (serve_one(), JoinSet::new());
    tasks.spawn(served);
    let mut sender = connect(far, 1 << 16, &mut tasks).await;
    let mut body = sender.send_request(ask("/large")).await.unwrap().into_body();
    let mut taken = 0;
    while let Some(frame) = body.frame().await {
        taken += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(taken, LARGE_BYTES);
}
