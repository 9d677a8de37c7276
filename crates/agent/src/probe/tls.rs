//! TLS to a data store, with certificates from files.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::connect;
use super::answer::{ProbeError, read};
use crate::config::data_store::TlsFiles;

/// Connects, and makes a TLS handshake with these certificates.
pub(super) async fn connect_tls(
    authority: &str,
    files: &TlsFiles,
) -> Result<TlsStream<TcpStream>, ProbeError> {
    let unknown = |error: &dyn std::fmt::Display| ProbeError::Unknown(format!("{authority}: {error}"));
    let stream = connect(authority).await?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|error| unknown(&error))?;
    let connector = TlsConnector::from(Arc::new(client(files).await?));
    connector.connect(name, stream).await.map_err(|error| unknown(&error))
}

async fn client(files: &TlsFiles) -> Result<ClientConfig, ProbeError> {
    let wrong = |error: rustls::Error| ProbeError::Unknown(format!("cannot use the certificates: {error}"));
    let pem = |error| ProbeError::Unknown(format!("cannot read a certificate: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(read(&files.ca_file).await?.as_bytes()) {
        roots.add(certificate.map_err(pem)?).map_err(wrong)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = builder.with_root_certificates(roots);
    let Some((certificate, key)) = &files.identity else { return Ok(builder.with_no_client_auth()) };
    let chain = CertificateDer::pem_slice_iter(read(certificate).await?.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(pem)?;
    let key = PrivateKeyDer::from_pem_slice(read(key).await?.as_bytes()).map_err(pem)?;
    builder.with_client_auth_cert(chain, key).map_err(wrong)
}
