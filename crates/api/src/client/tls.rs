//! TLS of the client: it trusts one CA or, for joining, the CA with a known fingerprint.

use std::sync::Arc;

use http::Uri;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};

use super::access::{Access, Identity};
use super::error::CallError;

/// Protocol name that agents add to the ALPN list, so that a server can distinguish them from people before
/// the expensive part of the handshake. It is never negotiated.
pub const MACHINE: &[u8] = b"bellwether-machine";

/// Number of TLS sessions kept for resumption; a client calls one server.
const SESSIONS: usize = 4;

/// SHA-256 of a CA certificate (DER), lower-case hex. A join token contains it, so that a machine joins the
/// right server.
#[must_use]
pub fn fingerprint(der: &[u8]) -> String {
    Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// TLS configuration of the client.
pub(super) fn config(access: &Access) -> Result<ClientConfig, CallError> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = &access.ca {
        for certificate in certificates("the CA certificate", pem)? {
            roots.add(certificate).map_err(|error| setup("the CA certificate", error))?;
        }
    }
    let builder = base()?.with_root_certificates(roots);
    match &access.identity {
        Identity::Nobody | Identity::Token(_) => {
            Ok(spoken(builder.with_no_client_auth(), CallerKind::Person))
        }
        Identity::Node { certificate, key } => {
            let chain = certificates("the node's certificate", certificate)?;
            let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes())
                .map_err(|error| setup("the node's key", error))?;
            let tls = builder.with_client_auth_cert(chain, key);
            tls.map(|tls| spoken(tls, CallerKind::Machine))
                .map_err(|error| setup("the node's certificate", error))
        }
    }
}

/// Kind of the caller, which a server knows before it authenticates the caller.
#[derive(Debug, Clone, Copy)]
enum CallerKind {
    Person,
    Machine,
}

/// Adds the ALPN protocols of the caller.
fn spoken(mut tls: ClientConfig, caller: CallerKind) -> ClientConfig {
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    match caller {
        CallerKind::Person => {}
        CallerKind::Machine => tls.alpn_protocols.push(MACHINE.to_vec()),
    }
    tls.resumption = Resumption::in_memory_sessions(SESSIONS);
    tls
}

/// TLS that trusts the CA with this fingerprint, if the server presents it in its chain: for joining, when
/// the machine has no CA certificate yet.
///
/// # Errors
/// [`CallError::Setup`] when the address cannot be used.
pub(super) fn by_fingerprint<'a>(
    servers: impl Iterator<Item = &'a String>,
    fingerprint: &str,
) -> Result<ClientConfig, CallError> {
    for server in servers {
        let uri: Uri = server.parse().map_err(|error| setup("the server address", error))?;
        if uri.scheme_str() != Some("https") {
            return Err(setup("the server address", "joining needs https://"));
        }
    }
    let verifier = Arc::new(FingerprintVerifier { fingerprint: fingerprint.to_owned() });
    let tls = base()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(spoken(tls, CallerKind::Machine))
}

/// The cryptography of client and server. Of the cipher suites of TLS 1.3, the one with SHA-256 comes first:
/// processors accelerate it, but not the SHA-384 of the suite with the larger key, which costs a tenth of a
/// handshake.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    use ring::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    let cipher_suites =
        vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() })
}

fn base() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, CallError> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| setup("TLS 1.3", error))
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, CallError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.map_err(|error| setup(what, error))?;
    if read.is_empty() { Err(setup(what, "it contains no certificate")) } else { Ok(read) }
}

fn setup(what: &str, reason: impl std::fmt::Display) -> CallError {
    CallError::Setup { what: what.to_owned(), reason: reason.to_string() }
}

/// Accepts a server whose chain contains the CA with the fingerprint and is valid under it.
#[derive(Debug)]
struct FingerprintVerifier {
    fingerprint: String,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let known = intermediates.iter().find(|ca| fingerprint(ca) == self.fingerprint);
        let Some(ca) = known else {
            return Err(Error::General(
                "the server's CA is not the one in the join token: the authority was replaced since (make a new join token), or the connection is intercepted"
                    .to_owned(),
            ));
        };
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone().into_owned())?;
        let provider = Arc::new(ring::default_provider());
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is supported".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
