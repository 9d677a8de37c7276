//! Requests of a client of several servers, some of which do not answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;
use crate::problem::Code;

/// What a server does with a request that it has read.
#[derive(Clone, Copy)]
enum Does {
    Answers,
    Closes,
    /// Its store fails; whether the change may have been made.
    Fails(bool),
}

/// A server and the first lines of the requests that it read.
struct FakeServer {
    url: String,
    read: Receiver<String>,
}

impl FakeServer {
    fn start(does: impl Fn(usize) -> Does + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, read) = channel();
        std::thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                sender.send(request_line(&mut stream)).unwrap();
                let problem = |may_be_made| {
                    let detail = "the store is away".to_owned();
                    serde_json::to_string(&Problem {
                        status: 503,
                        code: Code::Store,
                        detail,
                        hint: None,
                        retry_after_ms: None,
                        may_be_made,
                        conflict: None,
                        invalid: None,
                    })
                };
                let (status, body) = match does(count) {
                    Does::Answers => ("200 OK", "null".to_owned()),
                    Does::Closes => continue,
                    Does::Fails(may_be_made) => ("503 Unavailable", problem(may_be_made).unwrap()),
                };
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        Self { url, read }
    }

    fn requests(&self) -> Vec<String> {
        self.read.try_iter().collect()
    }
}

/// Reads a request whole, and returns its method and path.
fn request_line(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        match line.strip_prefix("content-length:") {
            Some(number) => length = number.trim().parse().unwrap(),
            None if line.is_empty() => break,
            None => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    first.trim().trim_end_matches(" HTTP/1.1").to_owned()
}

/// An address at which nothing listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn client(servers: &[&str]) -> Client {
    let access = Access { server: servers[0].to_owned(), ca: None, identity: Identity::Nobody };
    let others: Vec<String> = servers[1..].iter().map(|server| (*server).to_owned()).collect();
    Client::of_several(&access, &others).unwrap()
}

const DEADLINE: Duration = Duration::from_secs(60);

async fn write(client: &Client) -> Result<(), CallError> {
    client.send(Method::POST, "/write", &(), DEADLINE).await
}

async fn read(client: &Client) -> Result<(), CallError> {
    client.get("/read", DEADLINE).await
}

#[tokio::test]
async fn a_request_that_a_server_does_not_get_goes_to_the_next_which_is_used_from_then_on() {
    let (gone, other) = (nobody(), FakeServer::start(|_| Does::Answers));
    let client = client(&[&gone, &other.url]);
    let clone = client.clone();
    write(&client).await.unwrap();
    assert_eq!((client.server(), clone.server()), (other.url.as_str(), other.url.as_str()));
    read(&clone).await.unwrap();
    assert_eq!(other.requests(), ["POST /write", "GET /read"]);
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_is_not_sent_again_unless_it_may_be_made_twice() {
    let (first, other) = (FakeServer::start(|_| Does::Closes), FakeServer::start(|_| Does::Answers));
    let client = client(&[&first.url, &other.url]);
    let lost = write(&client).await.unwrap_err();
    assert!(matches!(lost, CallError::AnswerLost { .. }), "{lost}");
    assert!(lost.to_string().ends_with("; it is unknown whether the change was made"), "{lost}");
    assert!(other.requests().is_empty());
    write(&client.repeatable()).await.unwrap();
    assert_eq!((first.requests().len(), other.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_read_whose_answer_was_lost_goes_to_the_next_server() {
    let (first, other) = (FakeServer::start(|_| Does::Closes), FakeServer::start(|_| Does::Answers));
    read(&client(&[&first.url, &other.url])).await.unwrap();
    assert_eq!(other.requests(), ["GET /read"]);
}

#[tokio::test]
async fn a_server_whose_store_fails_is_passed_over_unless_the_change_may_have_been_made() {
    for (may_be_made, sent) in [(false, 1), (true, 0)] {
        let first = FakeServer::start(move |_| Does::Fails(may_be_made));
        let other = FakeServer::start(|_| Does::Answers);
        let written = write(&client(&[&first.url, &other.url])).await;
        assert_eq!((written.is_ok(), other.requests().len()), (!may_be_made, sent));
    }
}

#[tokio::test]
async fn each_server_is_named_with_its_reason_when_none_answers() {
    let (gone, failing) = (nobody(), FakeServer::start(|_| Does::Fails(false)));
    let error = write(&client(&[&gone, &failing.url])).await.unwrap_err();
    let reasons = format!("{gone}: connection refused; {}: the store is away", failing.url);
    assert_eq!(error.to_string(), format!("have the request served by any of the servers: {reasons}"));
    // Nobody is told to look at the network for servers that answered.
    let other = nobody();
    let error = write(&client(&[&gone, &other])).await.unwrap_err();
    let reasons = format!("{gone}: connection refused; {other}: connection refused");
    assert_eq!(error.to_string(), format!("reach any of the servers: {reasons}"));
    // One that is alone is told as it always was.
    let error = write(&client(&[&gone])).await.unwrap_err();
    assert_eq!(error.to_string(), format!("reach the server at {gone}: connection refused"));
}

#[tokio::test]
async fn the_first_read_from_another_server_is_no_older_than_what_was_read_before() {
    let first = FakeServer::start(|count| if count == 0 { Does::Answers } else { Does::Closes });
    let other = FakeServer::start(|_| Does::Answers);
    let client = client(&[&first.url, &other.url]);
    for _ in 0..3 {
        read(&client).await.unwrap();
    }
    assert_eq!(first.requests(), ["GET /read", "GET /read"]);
    assert_eq!(other.requests(), ["GET /read?consistency=linearizable", "GET /read"]);
}

#[tokio::test]
async fn a_filter_that_no_server_takes_is_refused_before_it_is_sent() {
    let server = FakeServer::start(|_| Does::Answers);
    let client = client(&[&server.url]);
    let path = format!("/v1/namespaces/default/nodes?filter={}", "x".repeat(MAX_PATH_BYTES));
    let refused = client.get::<Nothing>(&path, DEFAULT_DEADLINE).await.unwrap_err().to_string();
    assert!(refused.contains("servers take 15000 at the most"), "{refused}");
    assert!(server.read.try_recv().is_err(), "nothing was sent");
}
