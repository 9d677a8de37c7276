//! One read of a list: a bounded file below the directory of the namespace, or a bounded answer over HTTP, without following redirects and
//! from no address that the rules refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::v1::cluster::discovery::ListedGroup;
use bellwether_core::decide::discovery::{MemberList, by_host};
use bellwether_core::records::discovery::DiscoverySource;
use bellwether_core::words::name::Namespace;
use bytes::Bytes;
use http::{Method, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use rustix::fs::OFlags;
use tokio::io::AsyncReadExt;

use super::settings::{DiscoverySettings, NO_DIRECTORY};
use crate::outside_call::{HttpClient, USER_AGENT, client, refused_address};
use crate::sinks::settings::literal_address;
use crate::tls_client::{self, innermost, place};

/// Largest list that is read, in bytes: far more than one that may be stored.
const MAX_BYTES: usize = 1 << 20;

/// Longest time of a read.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a list.
///
/// # Errors
/// Why it cannot be read, in one line.
pub(super) async fn read(
    settings: &DiscoverySettings,
    namespace: &Namespace,
    source: &DiscoverySource,
) -> Result<MemberList, String> {
    let reading = async {
        match source {
            DiscoverySource::File(path) => file(settings, namespace, path).await,
            DiscoverySource::Url(url) => answer(settings, url).await,
        }
    };
    let read = tokio::time::timeout(TIMEOUT, reading).await;
    members(&read.unwrap_or_else(|_| Err(format!("no answer within {} s", TIMEOUT.as_secs())))?)
}

async fn file(settings: &DiscoverySettings, namespace: &Namespace, path: &str) -> Result<Vec<u8>, String> {
    let directory = settings.directory.as_ref().ok_or_else(|| NO_DIRECTORY.to_owned())?;
    let path = directory.join(namespace.as_str()).join(path);
    let trouble = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    // Without waiting: the opening of a pipe that nobody writes would keep a thread for ever, and the server from stopping.
    let mut how = tokio::fs::OpenOptions::new();
    let file = how.read(true).custom_flags(no_wait()).open(&path).await.map_err(trouble)?;
    // Whatever else it is may never end, or answer something that was not meant as a list.
    if !file.metadata().await.map_err(trouble)?.is_file() {
        return Err(format!("cannot read {}: it is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    file.take(most + 1).read_to_end(&mut bytes).await.map_err(trouble)?;
    if bytes.len() > MAX_BYTES { Err(too_large()) } else { Ok(bytes) }
}

/// That a file is opened at once, whatever it is, and takes no terminal.
fn no_wait() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

async fn answer(settings: &DiscoverySettings, url: &str) -> Result<Vec<u8>, String> {
    let uri: Uri = url.parse().map_err(|error| format!("{url} is not a valid URL: {error}"))?;
    if let Some(reason) = literal_address(&uri).and_then(|address| settings.addresses.refusal(address)) {
        return Err(reason);
    }
    let tls = tls_client::config(&uri, settings.ca_file.as_deref()).await?;
    let request = http::Request::builder()
        .method(Method::GET)
        .uri(uri.clone())
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, USER_AGENT)
        .body(Full::new(Bytes::new()))
        .map_err(|error| format!("cannot write the request: {error}"))?;
    asked(&client(tls, &settings.addresses), &uri, request).await
}

async fn asked(
    client: &HttpClient,
    uri: &Uri,
    request: http::Request<Full<Bytes>>,
) -> Result<Vec<u8>, String> {
    let answer = client.request(request).await.map_err(|error| match refused_address(&error) {
        Some(refused) => refused,
        None if error.is_connect() => format!("cannot connect to {}: {}", place(uri), innermost(&error)),
        None => format!("no answer: {}", innermost(&error)),
    })?;
    let status = answer.status();
    if status.is_redirection() {
        return Err(format!("status {}: redirects are not followed", status.as_u16()));
    }
    if !status.is_success() {
        return Err(format!("status {}", status.as_u16()));
    }
    let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
    match body {
        Ok(body) => Ok(body.to_bytes().to_vec()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Err(error) => Err(format!("the answer ended too early: {error}")),
    }
}

fn too_large() -> String {
    format!("the list is too large: more than {} KiB", MAX_BYTES >> 10)
}

/// The members of a list as Prometheus has it.
fn members(bytes: &[u8]) -> Result<MemberList, String> {
    let groups: Vec<ListedGroup> = serde_json::from_slice(bytes)
        .map_err(|error| format!("expected [{{\"targets\": [\"HOST:PORT\"], \"labels\": {{}}}}]: {error}"))?;
    let targets = groups.iter().flat_map(|group| {
        let labels: &BTreeMap<String, String> = &group.labels;
        group.targets.iter().map(move |target| (target.as_str(), labels))
    });
    by_host(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(directory: &std::path::Path) -> DiscoverySettings {
        DiscoverySettings { directory: Some(directory.to_owned()), ..DiscoverySettings::default() }
    }

    #[tokio::test]
    async fn a_file_is_read_below_the_directory_of_the_namespace_and_what_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("default");
        std::fs::create_dir_all(own.join("folder")).unwrap();
        for (name, content, expected) in [
            (
                "good.json",
                r#"[{"targets": ["db-1:9100", "db-1:9101", "db-2"]}, {"targets": [], "labels": {}}]"#,
                Ok(2),
            ),
            ("empty.json", "[]", Ok(0)),
            ("cut.json", r#"[{"targets": ["db-1"#, Err("expected [{")),
            ("object.json", r#"{"targets": ["db-1"]}"#, Err("expected [{")),
            ("target.json", r#"[{"targets": ["http://db-1/"]}]"#, Err("is no target")),
            ("labels.json", r#"[{"targets": ["db-1"], "labels": {"a": 1}}]"#, Err("expected [{")),
        ] {
            std::fs::write(own.join(name), content).unwrap();
            let source = DiscoverySource::File(name.to_owned());
            let found = read(&settings(directory.path()), &"default".parse().unwrap(), &source).await;
            match expected {
                Ok(count) => assert_eq!(found.unwrap().len(), count, "{name}"),
                Err(said) => assert!(found.clone().unwrap_err().contains(said), "{name}: {found:?}"),
            }
        }
        std::fs::write(own.join("large.json"), " ".repeat(MAX_BYTES + 1)).unwrap();
        let owner = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, own.join("pipe"), rustix::fs::FileType::Fifo, owner, 0).unwrap();
        for (name, said) in [
            ("large.json", "too large"),
            ("none.json", "cannot read"),
            ("folder", "not a file"),
            ("pipe", "not a file"),
        ] {
            let source = DiscoverySource::File(name.to_owned());
            let found = read(&settings(directory.path()), &"default".parse().unwrap(), &source).await;
            assert!(found.clone().unwrap_err().contains(said), "{name}: {found:?}");
        }
        let source = DiscoverySource::File("good.json".to_owned());
        let other = read(&settings(directory.path()), &"other".parse().unwrap(), &source).await;
        assert!(other.unwrap_err().contains("cannot read"), "another namespace has its own directory");
        let none = read(&DiscoverySettings::default(), &"default".parse().unwrap(), &source).await;
        assert!(none.unwrap_err().contains("names no directory"));
    }

    #[tokio::test]
    async fn no_address_of_this_machine_is_called_unless_it_is_allowed() {
        for url in ["http://127.0.0.1:9/list", "http://localhost:9/list", "http://169.254.169.254/list"] {
            let source = DiscoverySource::Url(url.to_owned());
            let found = read(&DiscoverySettings::default(), &"default".parse().unwrap(), &source).await;
            assert!(found.clone().unwrap_err().contains("allow_addresses"), "{url}: {found:?}");
        }
    }
}
