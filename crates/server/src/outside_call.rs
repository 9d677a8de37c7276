//! Calls to addresses that people named: to none that the rules refuse, whatever a name resolves to, and without following redirects.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as CallError};
use hyper_util::rt::TokioExecutor;

use crate::sinks::addresses::{AddressRefused, AddressRules, CheckedResolver};

/// How long a connection is kept for the next call.
const IDLE: Duration = Duration::from_secs(30);

/// Who calls.
pub(crate) const USER_AGENT: &str = concat!("bellwether/", env!("CARGO_PKG_VERSION"));

/// A client that connects to no address that the rules refuse, and follows no redirect.
pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector<CheckedResolver>>, Full<Bytes>>;

/// A client with these rules. An address that a URL has literally is not resolved: its caller checks that.
pub(crate) fn client(tls: rustls::ClientConfig, rules: &Arc<AddressRules>) -> HttpClient {
    let mut tcp = HttpConnector::new_with_resolver(CheckedResolver { rules: Arc::clone(rules) });
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector =
        hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
    let mut client = Client::builder(TokioExecutor::new());
    client.pool_max_idle_per_host(1).pool_idle_timeout(IDLE);
    client.build(connector.wrap_connector(tcp))
}

/// That the rules refuse every address of the name, if that is why there is no answer.
pub(crate) fn refused_address(error: &CallError) -> Option<String> {
    let mut last: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = last {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(refused) = inner.and_then(|inner| inner.downcast_ref::<AddressRefused>()) {
            return Some(refused.to_string());
        }
        if let Some(refused) = cause.downcast_ref::<AddressRefused>() {
            return Some(refused.to_string());
        }
        last = cause.source();
    }
    None
}
