//! The client: its connections, deadlines and parsing of answers. It makes no decisions.

mod failure;
mod forward;
pub(super) mod streamed;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::words::filter::MAX_FILTER_BYTES;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::access::{Access, Identity};
use super::attempt::{Attempted, Request as Call};
use super::connector::{self, Http};
use super::error::CallError;
use super::list_options::ListOptions;
use super::notice::{Notice, NoticeHook};
use super::servers::Servers;
use super::tls;
use crate::media;
use crate::paths::{CONSISTENCY, LOGICAL_NODE};
use crate::problem::Problem;

/// Largest answer that is read, in bytes; a page of a thousand large nodes is much smaller.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Longest path with its query, in bytes. A server takes some more, with the other fields of a header.
const MAX_PATH_BYTES: usize = 15_000;

/// Default deadline of a call.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// Time for the network and the server, in addition to the requested wait.
pub(super) const BEYOND_WAIT: Duration = Duration::from_secs(10);

/// An empty answer.
pub(super) type Nothing = serde_json::Value;

/// A client of one server, or of several that have one store: a request that a server cannot take goes to the next one, which is
/// then the one in use. Clones are cheap and share connections and the server in use.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) servers: Servers,
    http: Http,
    pub(super) bearer: Option<Arc<HeaderValue>>,
    tls: rustls::ClientConfig,
    is_consistent: bool,
    /// The revision that the object of a change must have, 0 if it must not exist.
    only_at: Option<u64>,
    /// The logical node for which the node of the certificate acts.
    acting_as: Option<Arc<HeaderValue>>,
    /// Whether a change may be sent again when its answer was lost.
    pub(super) is_repeatable: bool,
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
    pub fn by_fingerprint(servers: &[String], fingerprint: &str) -> Result<Self, CallError> {
        let mut bases = servers.iter().map(|server| server.trim_end_matches('/').to_owned());
        let first = bases.next().unwrap_or_default();
        let others: Vec<String> = bases.collect();
        let tls = tls::by_fingerprint([&first].into_iter().chain(&others), fingerprint)?;
        Ok(Self::with_tls(Servers::new(first, others), tls, None))
    }

    /// Creates a client of one server.
    ///
    /// # Errors
    /// [`CallError::Setup`] naming the value that cannot be used.
    pub fn new(access: &Access) -> Result<Self, CallError> {
        Self::of_several(access, &[])
    }

    /// Creates a client of a server and of others that have the same store and CA, in the order in which they are tried.
    ///
    /// # Errors
    /// [`CallError::Setup`] naming the value that cannot be used.
    pub fn of_several(access: &Access, others: &[String]) -> Result<Self, CallError> {
        let setup = |what: &str, reason: String| CallError::Setup { what: what.to_owned(), reason };
        let first = access.usable(&access.server)?;
        let others = others.iter().map(|other| access.usable(other)).collect::<Result<_, _>>()?;
        let servers = Servers::new(first, others);
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
        // A node repeats what was not answered.
        let is_repeatable = matches!(access.identity, Identity::Node { .. });
        Ok(Self { is_repeatable, ..Self::with_tls(servers, tls::config(access)?, bearer) })
    }

    fn with_tls(servers: Servers, tls: rustls::ClientConfig, bearer: Option<Arc<HeaderValue>>) -> Self {
        let http = connector::http(tls.clone(), servers.len());
        Self {
            servers,
            http,
            bearer,
            tls,
            is_consistent: false,
            only_at: None,
            acting_as: None,
            is_repeatable: false,
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
        Ok(self.with_servers(Servers::new(base, vec![])))
    }

    /// A client of the server in use alone, for what it has of its own.
    #[must_use]
    pub fn of_server_in_use(&self) -> Self {
        let servers = Servers::new(self.servers.current().to_owned(), vec![]);
        Self { servers, ..self.clone() }
    }

    /// A client of the same servers, with the same identity and connections of its own.
    #[must_use]
    pub fn fresh(&self) -> Self {
        self.with_servers(self.servers.clone())
    }

    /// Another client that asks as this one does.
    fn with_servers(&self, servers: Servers) -> Self {
        let client = Self::with_tls(servers, self.tls.clone(), self.bearer.clone());
        Self {
            is_consistent: self.is_consistent,
            is_repeatable: self.is_repeatable,
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

    /// The same client for changes that have the same effect once and twice: one whose answer was lost is sent again.
    #[must_use]
    pub(super) fn repeatable(&self) -> Self {
        Self { is_repeatable: true, ..self.clone() }
    }

    /// The same client for bodies of this media type.
    #[must_use]
    pub(super) fn of_media(&self, media: &'static str) -> Self {
        Self { media, ..self.clone() }
    }

    /// Address of the server in use.
    #[must_use]
    pub fn server(&self) -> &str {
        self.servers.current()
    }

    /// Has the next request go to the next server: this one did not answer in the time that the caller has.
    pub fn pass_over(&self, server: &str) {
        self.servers.failed(server);
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
        Box::pin(self.attempt(Call { method, path, body }, deadline))
    }

    pub(super) fn request(&self, server: &str, call: Call<'_>) -> Result<Request<Full<Bytes>>, CallError> {
        let Call { method, path, body } = call;
        if path.len() > MAX_PATH_BYTES {
            return Err(CallError::Setup {
                what: format!(
                    "{}…, which is {} bytes long",
                    path.chars().take(80).collect::<String>(),
                    path.len()
                ),
                reason: format!(
                    "servers take {MAX_PATH_BYTES} at the most; a filter has at most {MAX_FILTER_BYTES} characters"
                ),
            });
        }
        let consistency = match (self.reads_newest(&method), path.contains('?')) {
            (false, _) => String::new(),
            (true, false) => format!("?{CONSISTENCY}=linearizable"),
            (true, true) => format!("&{CONSISTENCY}=linearizable"),
        };
        let uri = format!("{server}{path}{consistency}");
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

    /// Whether a request reads the newest state: one that goes to another server than the one before is to be no older than that.
    pub(super) fn reads_newest(&self, method: &Method) -> bool {
        *method == Method::GET && (self.is_consistent || self.servers.may_be_behind())
    }

    async fn whole(
        &self,
        server: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<http::Response<Bytes>, Attempted> {
        let (head, body) = self.begun(server, request).await?;
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let bytes = body.map_err(|error| unreachable(server, &*error))?.to_bytes();
        Ok(http::Response::from_parts(head, bytes))
    }

    /// Sends a request, and hears the head of the answer.
    async fn begun(
        &self,
        server: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<(http::response::Parts, Incoming), Attempted> {
        let answer = self.http.request(request).await.map_err(|error| Attempted {
            is_unsent: error.is_connect(),
            error: unreachable(server, &error),
        })?;
        let (head, body) = answer.into_parts();
        self.notices.answered(head.status, &head.headers);
        Ok((head, body))
    }

    pub(super) async fn answer(
        &self,
        server: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<Bytes, Attempted> {
        let answer = self.whole(server, request).await?;
        let status = answer.status();
        let bytes = answer.into_body();
        if status.is_success() { Ok(bytes) } else { Err(refused(server, status, &bytes).into()) }
    }

    fn garbled(&self, reason: impl std::fmt::Display) -> CallError {
        CallError::Garbled { server: self.server().to_owned(), reason: reason.to_string() }
    }
}

fn unreachable(server: &str, error: &(dyn std::error::Error + 'static)) -> CallError {
    let (cause, reason) = (failure::cause(error), failure::chain(error));
    CallError::Unreachable { server: server.to_owned(), cause, reason }
}

/// What an answer that is no success says.
fn refused(server: &str, status: http::StatusCode, bytes: &[u8]) -> CallError {
    match serde_json::from_slice::<Problem>(bytes) {
        Ok(problem) => CallError::Problem(problem),
        Err(_) => CallError::Garbled {
            server: server.to_owned(),
            reason: format!("status {status} without a problem document"),
        },
    }
}

#[cfg(test)]
mod tests;
