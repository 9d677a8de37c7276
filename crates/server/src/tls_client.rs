//! TLS of calls to receivers and controllers that are not ours: the authorities that they are verified with, and what their errors say.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use http::Uri;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The system's trusted authorities, on Debian and its derivatives.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The configuration for calls to a URL, which trusts the authorities in a file, or those of the system. Without TLS it trusts nobody.
pub(crate) async fn config(uri: &Uri, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let roots = match uri.scheme_str() {
        Some("https") => roots(ca_file.unwrap_or(Path::new(SYSTEM_AUTHORITIES))).await?,
        Some(_) | None => RootCertStore::empty(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot start TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

async fn roots(file: &Path) -> Result<RootCertStore, String> {
    let trouble = |reason: String| format!("cannot read the authorities in {}: {reason}", file.display());
    let pem = tokio::fs::read(file).await.map_err(|error| trouble(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    roots.add_parsable_certificates(certificates.map_err(|error| trouble(error.to_string()))?);
    if roots.is_empty() { Err(trouble("it has no certificate".to_owned())) } else { Ok(roots) }
}

/// The innermost cause: the outer ones add nothing.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// What could not be connected to: host and port of a URL.
pub(crate) fn place(uri: &Uri) -> String {
    let tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    format!("{}:{port}", uri.host().unwrap_or_default())
}
