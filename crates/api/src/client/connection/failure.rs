//! Why a connection failed, in words for people, and what to check first.

use crate::client::error::UnreachableCause;

/// What to check first, by the kinds of an error and its causes.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> UnreachableCause {
    let mut next = Some(error);
    while let Some(error) = next {
        // An I/O error skips the error inside it in `source`.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            next = Some(inner);
            continue;
        }
        match error.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(reason)) if off_clock(reason).is_some() => {
                return UnreachableCause::Clock;
            }
            Some(rustls::Error::InvalidCertificate(_)) => return UnreachableCause::Certificate,
            Some(rustls::Error::InvalidMessage(_)) => return UnreachableCause::Scheme,
            Some(_) | None => {}
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return UnreachableCause::Scheme;
        }
        next = error.source();
    }
    UnreachableCause::Connection
}

/// Why a certificate is not valid at the time of this machine's clock; `None` if something else is wrong with it.
const fn off_clock(error: &rustls::CertificateError) -> Option<&'static str> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    if matches!(error, NotValidYet | NotValidYetContext { .. }) {
        Some("the server's certificate is not valid yet by the clock of this machine")
    } else if matches!(error, Expired | ExpiredContext { .. }) {
        Some("the server's certificate has expired by the clock of this machine")
    } else {
        None
    }
}

/// What is wrong with the clock of this machine, or what we refuse ourselves, by the errors of TLS among the causes.
fn tls_reason<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            next = Some(inner);
            continue;
        }
        match error.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(reason)) => return off_clock(reason),
            Some(rustls::Error::General(reason)) => return Some(reason),
            Some(_) | None => {}
        }
        next = error.source();
    }
    None
}

/// Why a connection failed, by the kinds of the I/O errors among the causes.
fn io_reason(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    use std::io::ErrorKind;
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::ConnectionRefused) => return Some("connection refused"),
            Some(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                return Some("the server closed the connection");
            }
            Some(ErrorKind::TimedOut) => return Some("the connection timed out"),
            Some(ErrorKind::HostUnreachable) => return Some("the host is unreachable"),
            Some(ErrorKind::NetworkUnreachable) => return Some("the network is unreachable"),
            Some(_) | None => {}
        }
        next = error.source();
    }
    None
}

/// An error with all its causes in one line, each cause once; of a connection that failed, its plain reason alone.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(reason) = tls_reason(error).or_else(|| io_reason(error)) {
        return reason.to_owned();
    }
    let mut parts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        next = cause.source();
    }
    parts.join(": ")
}
