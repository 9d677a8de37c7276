//! `ensemble certify`: a key for a client, which never leaves this machine, and its certificate.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bellwether_api::v1::ensemble::certificates::ClientCertificateRequest;
use bellwether_core::words::time::Span;
use rcgen::{CertificateParams, KeyPair};

use crate::context::Context;
use crate::exit::{Failure, LocalFault};
use crate::show::time::date;

/// The files of a client, in the order in which they are written.
const FILES: [&str; 3] = ["client-key.pem", "client.pem", "ca.pem"];

pub(super) async fn certify(
    context: &Context,
    name: &str,
    out: &Path,
    valid_for: Span,
) -> Result<(), Failure> {
    let paths = FILES.map(|file| out.join(file));
    if let Some(there) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(Failure::usage(format!(
            "write {}: it is there already; remove it, or name another directory with --out",
            there.display()
        )));
    }
    let (key, certificate_request) =
        key_and_request().map_err(|error| Failure::ours(format!("make a key: {error}")))?;
    let request = ClientCertificateRequest { certificate_request, valid_for: Some(valid_for.to_string()) };
    let issued = context.client.ensemble_certificate(&context.namespace, name, &request).await?;
    let unwritable = |path: &PathBuf, error: &std::io::Error| {
        Failure::local(LocalFault::Output, format!("write {}: {error}", path.display()))
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(out)
        .map_err(|error| unwritable(&out.to_owned(), &error))?;
    for (path, text) in paths.iter().zip([&key, &issued.certificate, &issued.ca]) {
        write(path, text).map_err(|error| unwritable(path, &error))?;
    }
    context.show.changed(&format!(
        "ensemble {name}: certified a client until {}; its files are in {}",
        date(issued.expires_at_ms),
        out.display()
    ));
    context.show.data(&issued, || FILES.map(str::to_owned).to_vec(), |_| String::new())
}

fn key_and_request() -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let request = CertificateParams::default().serialize_request(&key)?.pem()?;
    Ok((key.serialize_pem(), request))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
