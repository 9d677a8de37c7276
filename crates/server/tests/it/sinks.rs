//! Sinks of events: what a receiver gets, in which order, and what its answers lead to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bellwether_api::client::{CallError, Client};
use bellwether_api::problem::Code;
use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_api::v1::filter::FilterSpec;
use bellwether_api::v1::secret::SecretSpec;
use bellwether_api::v1::sink::{EnableSink, ReplayEvents, Sink, SinkFileSpec, SinkSpec, WebhookSpec};
use bellwether_rt::tasks::Tasks;
use bellwether_server::sinks::addresses::AddressRules;
use bellwether_server::sinks::settings::SinkSettings;

use crate::harness::{Installation, problem};
use crate::hooked::eventually;

/// The labels of the metrics of the sink.
const OF_IT: &str = r#"namespace="default",sink="audit""#;

/// An answer of the receiver: a status, and headers.
type Answer = (u16, Vec<(&'static str, &'static str)>);

#[derive(Debug, Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    heard: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

/// A receiver on loopback, which answers 200 after the answers that it was told.
struct Receiver {
    script: Script,
    url: String,
    _tasks: Tasks,
}

impl Receiver {
    async fn new() -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", socket.local_addr().unwrap());
        let (script, tasks) = (Script::default(), Tasks::new());
        let router = axum::Router::new().fallback(answer).with_state(script.clone());
        tasks.spawn("receiver", async move { axum::serve(socket, router).await.unwrap() });
        Self { script, url, _tasks: tasks }
    }

    fn answers(&self, answers: &[Answer]) {
        self.script.answers.lock().unwrap().extend(answers.iter().cloned());
    }

    /// What it accepted or refused, in order.
    fn heard(&self) -> Vec<(HeaderMap, Bytes)> {
        self.script.heard.lock().unwrap().clone()
    }

    fn events(&self) -> Vec<CloudEvent> {
        self.heard().iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    fn subjects(&self) -> Vec<String> {
        self.events().into_iter().map(|event| event.subject).collect()
    }

    fn webhook(&self) -> SinkSpec {
        let webhook = WebhookSpec { url: self.url.clone(), ..WebhookSpec::default() };
        SinkSpec {
            webhook: Some(webhook),
            filter: Some("kind = filter.changed".to_owned()),
            ..SinkSpec::default()
        }
    }
}

async fn answer(State(script): State<Script>, headers: HeaderMap, body: Bytes) -> Response {
    script.heard.lock().unwrap().push((headers, body));
    let next = script.answers.lock().unwrap().pop_front();
    let Some((status, headers)) = next else { return "thanks".into_response() };
    let mut response = (StatusCode::from_u16(status).unwrap(), "as told").into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// An installation whose sinks may send to this machine.
pub(crate) async fn local() -> Installation {
    let mut installation = Installation::new().await;
    let ranges = vec!["127.0.0.0/8".parse().unwrap()];
    let directory = Some(installation.config.data_dir.join("events"));
    let addresses = Arc::new(AddressRules::of_sinks(ranges));
    installation.config.sinks = SinkSettings { directory, addresses, ca_file: None };
    installation.restart().await;
    installation
}

/// Makes an event about `filter/NAME`.
async fn happens(admin: &Client, name: &str) {
    let spec = FilterSpec { of: "nodes".to_owned(), filter: "all".to_owned(), description: String::new() };
    admin.set_filter("default", name, &spec).await.unwrap();
}

/// Waits until something holds.
async fn holds(what: &str, mut look: impl AsyncFnMut() -> bool) {
    eventually(what, async || look().await.then_some(())).await;
}

async fn sink(admin: &Client) -> Sink {
    admin.sink("default", "audit").await.unwrap()
}

#[tokio::test]
async fn events_arrive_signed_as_cloud_events_in_order_and_a_restart_goes_on_where_it_was() {
    let mut installation = local().await;
    let admin = installation.admin();
    happens(&admin, "before").await;
    let receiver = Receiver::new().await;
    let value = Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
    let readers = Some(vec!["sink/audit".to_owned()]);
    let secret = SecretSpec { value, readers, ..SecretSpec::default() };
    admin.set_secret("default", "audit/key", &secret).await.unwrap();
    let mut spec = receiver.webhook();
    let webhook = spec.webhook.as_mut().unwrap();
    webhook.secrets = vec!["audit/key".to_owned()];
    webhook.headers.insert("X-Team".to_owned(), "shop".to_owned());
    admin.set_sink("default", "audit", &spec).await.unwrap();
    for name in ["a", "b", "c"] {
        happens(&admin, name).await;
    }
    holds("three events", async || receiver.heard().len() == 3).await;
    assert_eq!(receiver.subjects(), ["filter/a", "filter/b", "filter/c"], "none from before");
    let (headers, body) = receiver.heard().first().unwrap().clone();
    let event: CloudEvent = serde_json::from_slice(&body).unwrap();
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/cloudevents+json");
    assert_eq!((header("x-team"), header("webhook-id")), ("shop".to_owned(), event.id.clone()));
    assert!(header("webhook-signature").starts_with("v1,"));
    assert_eq!(event.id, format!("default-{}", event.data.seq));
    assert_eq!(event.kind, "bellwether.filter.changed");
    assert_eq!((event.namespace.as_str(), event.sequence.len()), ("default", 20));

    // What was delivered is recorded, and then nothing is written any more.
    holds("it is recorded", async || {
        let state = sink(&admin).await.status.unwrap();
        state.undelivered == 0 && state.state.delivered == 3 && state.waits_for.is_none()
    })
    .await;
    let before = admin.overview("default").await.unwrap().last_event;
    installation.restart().await;
    let admin = installation.admin();
    happens(&admin, "d").await;
    holds("the next one", async || receiver.subjects().last().is_some_and(|last| last == "filter/d")).await;
    let after = admin.overview("default").await.unwrap().last_event;
    assert!(after - before <= 3, "nothing is told of deliveries: {before} to {after}");
    let used = admin.secret("default", "audit/key").await.unwrap().uses;
    assert_eq!(used.keys().collect::<Vec<_>>(), ["sink/audit"]);
    let kept = admin.delete_secret("default", "audit/key").await.unwrap_err();
    assert!(kept.to_string().contains("sink/audit signs with it"), "{kept}");
}

#[tokio::test]
async fn an_event_that_is_refused_is_a_dead_letter_the_rest_goes_on_and_it_can_be_sent_again() {
    let installation = local().await;
    let admin = installation.admin();
    let receiver = Receiver::new().await;
    let mut spec = receiver.webhook();
    spec.webhook.as_mut().unwrap().attempts = Some(2);
    admin.set_sink("default", "audit", &spec).await.unwrap();
    receiver.answers(&[(200, vec![]), (500, vec![]), (400, vec![])]);
    for name in ["a", "b", "c"] {
        happens(&admin, name).await;
    }
    holds("the last one", async || receiver.subjects().last().is_some_and(|last| last == "filter/c")).await;
    assert_eq!(receiver.subjects(), ["filter/a", "filter/b", "filter/b", "filter/c"]);
    holds("the dead letter", async || sink(&admin).await.status.unwrap().state.dead_letters.len() == 1).await;
    let events = admin.events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let told: Vec<_> = events.iter().filter(|event| event.kind == "sink.dead_lettered").collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told.first().unwrap().cause, "status 400, after 2 attempts");

    // What is not recorded yet would be sent again.
    holds("it is recorded", async || sink(&admin).await.status.unwrap().undelivered == 0).await;
    let page = admin.text("/metrics", Duration::from_secs(5)).await.unwrap();
    let has = |name: &str, value: u64| page.contains(&format!("{name}{{{OF_IT}}} {value}"));
    assert!(has("bellwether_sink_dead_letters_total", 1), "{page}");
    assert!(has("bellwether_sink_delivered_events_total", 2) && has("bellwether_sink_retrying", 0), "{page}");
    let again = ReplayEvents { dead_letters: true, ..ReplayEvents::default() };
    admin.replay_sink("default", "audit", &again).await.unwrap();
    holds("it is sent again", async || receiver.heard().len() == 5).await;
    assert_eq!(receiver.subjects().last().unwrap(), "filter/b");
    let none = admin.replay_sink("default", "audit", &again).await.unwrap_err();
    assert!(none.to_string().contains("it has none"), "{none}");

    // From a number on, all of them.
    let first = receiver.events().first().unwrap().data.seq;
    let from = ReplayEvents { from: Some(first), ..ReplayEvents::default() };
    holds("it came there", async || sink(&admin).await.status.unwrap().undelivered == 0).await;
    admin.replay_sink("default", "audit", &from).await.unwrap();
    holds("all are sent again", async || receiver.heard().len() == 8).await;
    assert_eq!(receiver.subjects()[5..], ["filter/a", "filter/b", "filter/c"]);
    let ahead = ReplayEvents { from: Some(1_000_000), ..ReplayEvents::default() };
    let refused = admin.replay_sink("default", "audit", &ahead).await.unwrap_err();
    assert!(refused.to_string().contains("the newest event is "), "{refused}");
}

#[tokio::test]
async fn redirects_are_not_followed_a_receiver_says_when_to_come_back_and_410_stops_it() {
    let installation = local().await;
    let admin = installation.admin();
    let receiver = Receiver::new().await;
    receiver.answers(&[(302, vec![("location", "http://169.254.169.254/"), ("retry-after", "1000")])]);
    admin.set_sink("default", "audit", &receiver.webhook()).await.unwrap();
    happens(&admin, "a").await;
    holds("why it waits", async || {
        let status = sink(&admin).await.status.unwrap();
        status.waits_for.is_some_and(|why| why.contains("redirects are not followed"))
    })
    .await;
    let retry = sink(&admin).await.status.unwrap().state.retry.unwrap();
    assert!(retry.next_ms - retry.since_ms >= 1_000_000, "{retry:?}");
    assert_eq!((receiver.heard().len(), retry.refusals), (1, 0));

    // To enable it has it try at once, although it is enabled; the same again changes nothing.
    receiver.answers(&[(503, vec![("retry-after", "1000")])]);
    let enable = EnableSink { enabled: true, ..EnableSink::default() };
    let before = sink(&admin).await;
    let why = admin.why("default", "sink/audit").await.unwrap().lines.join("\n");
    assert!(why.contains("have it tried now: bellwether sink enable audit"), "{why}");
    let after = admin.enable_sink("default", "audit", &enable).await.unwrap();
    assert_eq!(after.revision, before.revision);
    holds("it tries at once", async || receiver.heard().len() == 2).await;
    holds("it waits again", async || sink(&admin).await.status.unwrap().state.retry.is_some()).await;

    // A change of the sink has it try at once.
    receiver.answers(&[(410, vec![])]);
    let changed =
        SinkSpec { filter: Some("kind = filter.changed or kind = x".to_owned()), ..receiver.webhook() };
    admin.set_sink("default", "audit", &changed).await.unwrap();
    holds("it stops", async || sink(&admin).await.status.unwrap().state.stopped.is_some()).await;
    let page = admin.text("/metrics", Duration::from_secs(5)).await.unwrap();
    assert!(page.contains(&format!("bellwether_sink_stopped{{{OF_IT}}} 1")), "{page}");
    let stuck = admin.overview("default").await.unwrap().stuck_sinks;
    let stopped = sink(&admin).await.status.unwrap().state.stopped.unwrap();
    assert_eq!((stuck.len(), &*stuck[0].sink, stuck[0].since_ms), (1, "audit", stopped.at_ms), "{stuck:?}");
    assert!(stuck[0].reason.contains("it stopped until it is enabled or changed"), "{stuck:?}");
    happens(&admin, "b").await;
    let why = admin.why("default", "sink/audit").await.unwrap();
    let text = why.lines.join("\n");
    let last = "the last attempt failed";
    for said in
        ["it stopped until", "2 events are undelivered, the oldest for", last, "bellwether sink enable audit"]
    {
        assert!(why.waiting && text.contains(said), "{said}: {text}");
    }
    let events = admin.events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    assert_eq!(events.iter().filter(|event| event.kind == "sink.stopped").count(), 1);
    admin
        .enable_sink("default", "audit", &EnableSink { enabled: true, ..EnableSink::default() })
        .await
        .unwrap();
    holds("both arrive", async || receiver.heard().len() == 5).await;
    assert_eq!(receiver.subjects()[3..], ["filter/a", "filter/b"]);
    holds("nothing is undelivered", async || sink(&admin).await.status.unwrap().undelivered == 0).await;
    assert_eq!(admin.overview("default").await.unwrap().stuck_sinks, []);
    let why = admin.why("default", "sink/audit").await.unwrap();
    let first = ["nothing keeps it from sending", "no event is undelivered"];
    assert!(!why.waiting && why.lines[..2] == first, "{why:?}");
    assert_eq!(problem(admin.why("default", "sink/other").await).0, Code::NotFound);
}

#[tokio::test]
async fn a_secret_is_not_taken_from_a_sink_that_signs_with_it_and_is_a_key() {
    let installation = local().await;
    let admin = installation.admin();
    let receiver = Receiver::new().await;
    let secret = |value: &str, readers: &[&str]| SecretSpec {
        value: Some(value.into()),
        readers: Some(readers.iter().map(|reader| (*reader).to_owned()).collect()),
        ..SecretSpec::default()
    };
    admin.set_secret("default", "key", &secret("whsec_*", &["sink/*"])).await.unwrap();
    let mut spec = receiver.webhook();
    spec.webhook.as_mut().unwrap().secrets = vec!["key".to_owned()];
    let (code, said) = problem(admin.set_sink("default", "audit", &spec).await);
    assert!(code == Code::Refused && said.contains("after whsec_ it is not base64"), "{said}");
    admin.set_secret("default", "key", &secret("a", &["sink/*"])).await.unwrap();
    admin.set_sink("default", "audit", &spec).await.unwrap();

    let (code, said) = problem(admin.set_secret("default", "key", &secret("a", &["profile/db"])).await);
    assert!(code == Code::Refused && said.contains("sink/audit signs with it"), "{said}");
    let (code, said) = problem(admin.set_secret("default", "key", &secret("whsec_*", &["sink/*"])).await);
    assert!(code == Code::Invalid && said.contains("sink/audit signs with it"), "{said}");
    // It may lose other readers, and all of them once nothing signs with it.
    admin.set_secret("default", "key", &secret("b", &["sink/audit"])).await.unwrap();
    admin.set_sink("default", "audit", &receiver.webhook()).await.unwrap();
    admin.set_secret("default", "key", &secret("whsec_*", &["profile/db"])).await.unwrap();
}

#[tokio::test]
async fn a_test_event_is_sent_at_once_and_special_addresses_are_refused() {
    let installation = local().await;
    let admin = installation.admin();
    let receiver = Receiver::new().await;
    let disabled = SinkSpec { disabled: true, ..receiver.webhook() };
    admin.set_sink("default", "audit", &disabled).await.unwrap();
    let tested = admin.test_sink("default", "audit").await.unwrap();
    assert!(tested.delivered && tested.answer == "status 200", "{tested:?}");
    assert_eq!(receiver.events().first().unwrap().kind, "bellwether.sink.test");

    let strict = Installation::new().await;
    let admin = strict.admin();
    let refused = problem(admin.set_sink("default", "audit", &disabled).await);
    assert!(refused.1.contains("the machine of the server itself"), "{refused:?}");
    // A name is known for what it is when it is resolved.
    let port = receiver.url.rsplit_once(':').unwrap().1;
    let named = WebhookSpec { url: format!("http://localhost:{port}"), ..WebhookSpec::default() };
    let named = SinkSpec { webhook: Some(named), ..disabled };
    admin.set_sink("default", "audit", &named).await.unwrap();
    let tested = admin.test_sink("default", "audit").await.unwrap();
    assert!(!tested.delivered && tested.answer.contains("allow_addresses"), "{tested:?}");
    assert_eq!(receiver.heard().len(), 1);
    let file = SinkFileSpec { path: "events.jsonl".to_owned(), ..SinkFileSpec::default() };
    let file = SinkSpec { file: Some(file), ..SinkSpec::default() };
    let refused = problem(admin.set_sink("default", "log", &file).await);
    assert!(refused.1.contains("names no directory"), "{refused:?}");
}

#[tokio::test]
async fn a_receiver_with_tls_is_one_that_the_authorities_of_the_configuration_have_certified() {
    let mut installation = local().await;
    // The server itself has a certificate of its own authority; it takes no events there.
    let sink = |installation: &Installation| {
        let url = format!("{}/healthz", installation.url());
        let webhook = Some(WebhookSpec { url, ..WebhookSpec::default() });
        SinkSpec { webhook, disabled: true, ..SinkSpec::default() }
    };
    let admin = installation.admin();
    admin.set_sink("default", "audit", &sink(&installation)).await.unwrap();
    let stranger = admin.test_sink("default", "audit").await.unwrap();
    assert!(!stranger.delivered && stranger.answer.contains("certificate"), "{stranger:?}");

    installation.config.sinks.ca_file = Some(installation.config.data_dir.join("pki/ca.pem"));
    installation.restart().await;
    let admin = installation.admin();
    admin.set_sink("default", "audit", &sink(&installation)).await.unwrap();
    let known = admin.test_sink("default", "audit").await.unwrap();
    assert!(!known.delivered && known.answer.contains("status 405"), "{known:?}");
}

#[tokio::test]
async fn events_are_written_to_a_file_which_only_one_sink_writes() {
    let installation = local().await;
    let admin = installation.admin();
    let file = SinkFileSpec { path: "events.jsonl".to_owned(), ..SinkFileSpec::default() };
    let spec = SinkSpec {
        file: Some(file),
        filter: Some("kind = filter.changed".to_owned()),
        ..SinkSpec::default()
    };
    admin.set_sink("default", "log", &spec).await.unwrap();
    for name in ["a", "b"] {
        happens(&admin, name).await;
    }
    let path = installation.config.data_dir.join("events/default/events.jsonl");
    let lines = || std::fs::read_to_string(&path).unwrap_or_default();
    holds("both lines", async || lines().lines().count() == 2).await;
    let events: Vec<CloudEvent> = lines().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let subjects: Vec<_> = events.iter().map(|event| event.subject.as_str()).collect();
    assert_eq!(subjects, ["filter/a", "filter/b"]);
    for path in ["events.jsonl", "events.jsonl.1"] {
        let file = SinkFileSpec { path: path.to_owned(), ..SinkFileSpec::default() };
        let other = SinkSpec { file: Some(file), ..spec.clone() };
        let refused = problem(admin.set_sink("default", "other", &other).await);
        assert!(refused.1.contains("sink log writes the file"), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn whoever_sets_a_sink_may_read_all_events_of_the_namespace() {
    let installation = local().await;
    let (admin, receiver) = (installation.admin(), Receiver::new().await);
    let operator = installation.token("operator").await;
    let refused = problem(operator.set_sink("default", "audit", &receiver.webhook()).await);
    assert_eq!(refused.0, Code::Forbidden, "{refused:?}");
    assert!(refused.1.contains("sends all events of the namespace"), "{refused:?}");
    admin.set_sink("default", "audit", &receiver.webhook()).await.unwrap();
    let off = EnableSink { enabled: false, ..EnableSink::default() };
    assert!(operator.enable_sink("default", "audit", &off).await.unwrap().disabled);
    let viewer = installation.token("viewer").await;
    assert_eq!(viewer.sinks("default").await.unwrap().items.len(), 1);
    let denied = viewer.enable_sink("default", "audit", &off).await;
    assert!(matches!(denied, Err(CallError::Problem(problem)) if problem.code == Code::Forbidden));
}
