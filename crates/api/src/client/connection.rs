//! The client: its connections, deadlines and parsing of answers. It makes no decisions.

mod failure;
mod forward;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::access::{Access, Identity};
use super::error::CallError;
use super::list_options::ListOptions;
use super::notice::{Notice, NoticeHook};
use super::tls;
use crate::media;
use crate::paths::{CONSISTENCY, LOGICAL_NODE};
use crate::problem::{Code, Problem};

/// Largest answer that is read, in bytes; a page of a thousand large nodes is much smaller.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Default deadline of a call.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// Time for the network and the server, in addition to the requested wait.
pub(super) const BEYOND_WAIT: Duration = Duration::from_secs(10);

/// An empty answer.
pub(super) type Nothing = serde_json::Value;

/// Interval of pings on a connection, and time for the answer to one: a broken connection is noticed within
/// their sum. A server declares a node unreachable if it has not received anything from it for 14 s.
const PING_EVERY: Duration = Duration::from_secs(6);
const PING_DEADLINE: Duration = Duration::from_secs(5);

/// A client of one server. Clones are cheap and share connections.
#[derive(Debug, Clone)]
pub struct Client {
    base: String,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    bearer: Option<Arc<HeaderValue>>,
    tls: rustls::ClientConfig,
    is_consistent: bool,
    /// The revision that the object of a change must have, 0 if it must not exist.
    only_at: Option<u64>,
    /// The logical node for which the node of the certificate acts.
    acting_as: Option<Arc<HeaderValue>>,
    /// Is told how current each answer is.
    notices: NoticeHook,
    /// Media type of request bodies.
    media: &'static str,
    /// What to return of lists.
    pub(super) list: Arc<ListOptions>,
}

impl Client {
    /// A client that trusts the CA with this fingerprint, if the server presents it in its chain: for
    /// joining, when the machine has no CA certificate yet.
    ///
    /// # Errors
    /// [`CallError::Setup`] when the address cannot be used.
    pub fn by_fingerprint(server: &str, fingerprint: &str) -> Result<Self, CallError> {
        let base = server.trim_end_matches('/').to_owned();
        let tls = tls::by_fingerprint(&base, fingerprint)?;
        Ok(Self::with_tls(base, tls, None))
    }

    /// Creates a client.
    ///
    /// # Errors
    /// [`CallError::Setup`] naming the value that cannot be used.
    pub fn new(access: &Access) -> Result<Self, CallError> {
        let base = access.server.trim_end_matches('/').to_owned();
        let setup = |what: &str, reason: String| CallError::Setup { what: what.to_owned(), reason };
        let uri: Uri = base.parse().map_err(|error| setup("the server address", format!("{error}")))?;
        match uri.scheme_str() {
            Some("https") if access.ca.is_none() => {
                return Err(setup("the server address", "https:// needs a CA certificate".to_owned()));
            }
            Some("http") if !is_loopback(&uri) && !matches!(access.identity, Identity::Nobody) => {
                let reason =
                    "http:// would send the token unencrypted and is allowed for loopback only; use https://";
                return Err(setup("the server address", reason.to_owned()));
            }
            Some("http" | "https") => {}
            Some(_) | None => {
                return Err(setup("the server address", format!("{base:?} does not start with https://")));
            }
        }
        let bearer = match &access.identity {
            Identity::Token(token) => {
                let mut value =
                    HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(|_| {
                        setup(
                            "the token",
                            "it contains characters that are not allowed in a token".to_owned(),
                        )
                    })?;
                value.set_sensitive(true);
                Some(Arc::new(value))
            }
            Identity::Nobody | Identity::Node { .. } => None,
        };
        Ok(Self::with_tls(base, tls::config(access)?, bearer))
    }

    fn with_tls(base: String, tls: rustls::ClientConfig, bearer: Option<Arc<HeaderValue>>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        tcp.set_connect_timeout(Some(Duration::from_secs(5)));
        let is_machine = tls.alpn_protocols.iter().any(|protocol| protocol == tls::MACHINE);
        let connector = HttpsConnector::from((tcp, tls.clone()));
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PING_DEADLINE)
            // The server does not ping agents; their requests show that they are alive.
            .http2_keep_alive_while_idle(is_machine)
            .build(connector);
        Self {
            base,
            http,
            bearer,
            tls,
            is_consistent: false,
            only_at: None,
            acting_as: None,
            notices: NoticeHook::default(),
            media: media::JSON,
            list: Arc::default(),
        }
    }

    /// A client of another server, by TLS, with the same identity. It shares the TLS sessions of this one, so
    /// that a connection to a server that was used before resumes its session.
    ///
    /// # Errors
    /// [`CallError::Setup`] when the address cannot be used.
    pub fn towards(&self, server: &str) -> Result<Self, CallError> {
        let base = server.trim_end_matches('/').to_owned();
        let unfit = |reason: String| CallError::Setup { what: "the server address".to_owned(), reason };
        let uri: Uri = base.parse().map_err(|error| unfit(format!("{error}")))?;
        if uri.scheme_str() != Some("https") {
            return Err(unfit(format!("{base:?} does not start with https://")));
        }
        let client = Self::with_tls(base, self.tls.clone(), self.bearer.clone());
        Ok(self.as_this(client))
    }

    /// A client of the same server, with the same identity and connections of its own.
    #[must_use]
    pub fn fresh(&self) -> Self {
        self.as_this(Self::with_tls(self.base.clone(), self.tls.clone(), self.bearer.clone()))
    }

    /// Another client that asks as this one does.
    fn as_this(&self, client: Self) -> Self {
        Self {
            is_consistent: self.is_consistent,
            acting_as: self.acting_as.clone(),
            notices: self.notices.clone(),
            ..client
        }
    }

    /// The same client, and `hook` is told of each answer: with its notice if it may be out of date or the store takes no changes.
    #[must_use]
    pub fn on_notice(self, hook: impl Fn(Option<Notice>) + Send + Sync + 'static) -> Self {
        Self { notices: NoticeHook::new(hook), ..self }
    }

    /// The same client for a logical node that the node of the certificate hosts: requests are this one's, as long as it does.
    ///
    /// # Errors
    /// [`CallError::Setup`] when the name is not that of a node.
    pub fn acting_as(self, logical: &str) -> Result<Self, CallError> {
        let value = HeaderValue::try_from(logical).map_err(|error| CallError::Setup {
            what: "the name of the logical node".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self { acting_as: Some(Arc::new(value)), ..self })
    }

    /// The same client with linearizable reads: each answer includes everything that was committed before the
    /// request, or is a problem with [`Code::Store`].
    #[must_use]
    pub fn consistent(self) -> Self {
        Self { is_consistent: true, ..self }
    }

    /// The same client for changes of an object that is at this revision, and no other; 0 for one that does not exist.
    #[must_use]
    pub fn only_at(&self, revision: u64) -> Self {
        Self { only_at: Some(revision), ..self.clone() }
    }

    /// The same client, whose lists are returned in part.
    #[must_use]
    pub fn listing(&self, options: ListOptions) -> Self {
        Self { list: options.into(), ..self.clone() }
    }

    /// The same client for bodies of this media type.
    #[must_use]
    pub(super) fn of_media(&self, media: &'static str) -> Self {
        Self { media, ..self.clone() }
    }

    /// Address of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.base
    }

    /// Sends GET to `path`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str, deadline: Duration) -> Result<T, CallError> {
        self.call(Method::GET, path, Bytes::new(), deadline).await
    }

    /// Sends `body` to `path`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn send<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &B,
        deadline: Duration,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(body).map_err(|error| CallError::Setup {
            what: "the request".to_owned(),
            reason: error.to_string(),
        })?;
        self.call(method, path, body.into(), deadline).await
    }

    /// Sends GET to `path` and returns the answer as text.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn text(&self, path: &str, deadline: Duration) -> Result<String, CallError> {
        let bytes = self.raw(Method::GET, path, Bytes::new(), deadline).await?;
        String::from_utf8(bytes.to_vec()).map_err(|error| self.garbled(error))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<T, CallError> {
        let bytes = self.raw(method, path, body, deadline).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(bytes).map_err(|error| self.garbled(error))
    }

    /// Boxed, so that all of it is compiled here once, and not in each crate that awaits a call.
    fn raw<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        body: Bytes,
        deadline: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, CallError>> + Send + 'a>> {
        Box::pin(self.try_raw(method, path, body, deadline))
    }

    async fn try_raw(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Bytes, CallError> {
        let started = tokio::time::Instant::now();
        let asked = async {
            loop {
                let request = self.request(method.clone(), path, body.clone())?;
                let answer = self.answer(request).await;
                match self.ask_again_in(&method, &answer) {
                    Some(pause) if started.elapsed() + pause < deadline => tokio::time::sleep(pause).await,
                    Some(_) | None => return answer,
                }
            }
        };
        match tokio::time::timeout(deadline, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Timeout { server: self.base.clone(), after: deadline }),
        }
    }

    /// After how long to retry a read that the server was too busy to answer, if the client has a token.
    /// Agents retry with another server; the caller retries changes.
    fn ask_again_in(&self, method: &Method, answer: &Result<Bytes, CallError>) -> Option<Duration> {
        match answer {
            Err(CallError::Problem(problem))
                if problem.code == Code::Busy && *method == Method::GET && self.bearer.is_some() =>
            {
                problem.retry_after_ms.map(Duration::from_millis)
            }
            Ok(_) | Err(_) => None,
        }
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, CallError> {
        let consistency = match (self.is_consistent && method == Method::GET, path.contains('?')) {
            (false, _) => String::new(),
            (true, false) => format!("?{CONSISTENCY}=linearizable"),
            (true, true) => format!("&{CONSISTENCY}=linearizable"),
        };
        let uri = format!("{}{path}{consistency}", self.base);
        let mut builder = Request::builder().method(method).uri(uri);
        if !body.is_empty() {
            builder = builder.header(header::CONTENT_TYPE, self.media);
        }
        if let Some(bearer) = &self.bearer {
            builder = builder.header(header::AUTHORIZATION, HeaderValue::clone(bearer));
        }
        if let Some(logical) = &self.acting_as {
            builder = builder.header(LOGICAL_NODE, HeaderValue::clone(logical));
        }
        builder = match self.only_at {
            Some(0) => builder.header(header::IF_NONE_MATCH, "*"),
            Some(revision) => builder.header(header::IF_MATCH, format!("\"{revision}\"")),
            None => builder,
        };
        builder
            .body(Full::new(body))
            .map_err(|error| CallError::Setup { what: path.to_owned(), reason: error.to_string() })
    }

    async fn whole(&self, request: Request<Full<Bytes>>) -> Result<http::Response<Bytes>, CallError> {
        let unreachable = |error: &(dyn std::error::Error + 'static)| CallError::Unreachable {
            server: self.base.clone(),
            cause: failure::cause(error),
            reason: failure::chain(error),
        };
        let answer = self.http.request(request).await.map_err(|error| unreachable(&error))?;
        let (head, body) = answer.into_parts();
        self.notices.answered(&head.headers);
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let bytes = body.map_err(|error| unreachable(&*error))?.to_bytes();
        Ok(http::Response::from_parts(head, bytes))
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<Bytes, CallError> {
        let answer = self.whole(request).await?;
        let status = answer.status();
        let bytes = answer.into_body();
        if status.is_success() {
            return Ok(bytes);
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => Err(CallError::Problem(problem)),
            Err(_) => Err(self.garbled(format!("status {status} without a problem document"))),
        }
    }

    fn garbled(&self, reason: impl std::fmt::Display) -> CallError {
        CallError::Garbled { server: self.base.clone(), reason: reason.to_string() }
    }
}

/// Whether an address is a loopback address.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
