//! Secrets of sinks that a provider has: that they cannot sign is told before there is an event to send.

use bellwether_api::client::Client;
use bellwether_api::v1::secret::SecretSpec;
use bellwether_api::v1::sink::{SinkSpec, WebhookSpec};
use bellwether_core::words::time::Span;
use bellwether_server::secrets::provider::ProviderSpec;

use crate::harness::Installation;
use crate::hooked::eventually;
use crate::sinks::local;

/// An installation with a provider that has what these files contain.
async fn with_provider(files: &std::path::Path) -> Installation {
    let mut installation = local().await;
    let command = ["sh", "-c", "cat \"$0/$1\"", &files.display().to_string()].map(str::to_owned).to_vec();
    let spec = ProviderSpec { command, timeout: Span::from_secs(60), cache: Span::ZERO };
    installation.config.secret_providers.insert("vault".parse().unwrap(), spec);
    installation.restart().await;
    installation
}

/// Has the secret be what the provider has under this name.
async fn refer(admin: &Client, reference: &str) {
    let secret = SecretSpec {
        provider: Some("vault".to_owned()),
        reference: Some(reference.to_owned()),
        readers: Some(vec!["sink/audit".to_owned()]),
        ..SecretSpec::default()
    };
    admin.set_secret("default", "audit/key", &secret).await.unwrap();
}

/// Waits until everywhere says this of the sink.
async fn told(admin: &Client, reason: &str) {
    eventually(reason, async || {
        let waits = admin.sink("default", "audit").await.unwrap().status?.waits_for?;
        waits.contains(reason).then_some(())
    })
    .await;
    let why = admin.why("default", "sink/audit").await.unwrap().lines.join("\n");
    assert!(why.contains(reason) && why.contains("no event is undelivered"), "{why}");
    assert!(why.contains("read again each minute"), "{why}");
    let stuck = admin.overview("default").await.unwrap().stuck_sinks;
    assert!(stuck.first().is_some_and(|stuck| stuck.reason.contains(reason)), "{stuck:?}");
}

#[tokio::test]
async fn a_secret_that_cannot_sign_is_told_before_there_is_an_event() {
    let files = tempfile::tempdir().unwrap();
    let installation = with_provider(files.path()).await;
    let admin = installation.admin();
    for (name, value) in
        [("bad", "whsec_*"), ("pair", "whsk_AAAA"), ("good", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    {
        std::fs::write(files.path().join(name), value).unwrap();
    }
    refer(&admin, "none").await;
    let webhook = WebhookSpec {
        url: "http://127.0.0.1:1/events".to_owned(),
        secrets: vec!["audit/key".to_owned()],
        ..WebhookSpec::default()
    };
    let filter = Some("kind = filter.changed".to_owned());
    let spec = SinkSpec { webhook: Some(webhook), filter, ..SinkSpec::default() };
    admin.set_sink("default", "audit", &spec).await.unwrap();
    told(&admin, "it cannot sign: secret audit/key: ").await;
    refer(&admin, "bad").await;
    told(&admin, "it cannot sign: secret audit/key: after whsec_ it is not base64").await;
    refer(&admin, "pair").await;
    told(&admin, "it cannot sign: secret audit/key: it is half of a pair of keys").await;
    refer(&admin, "good").await;
    eventually("it can sign", async || {
        let status = admin.sink("default", "audit").await.unwrap().status?;
        (status.waits_for.is_none() && status.state.defect.is_none()).then_some(())
    })
    .await;
    assert!(admin.overview("default").await.unwrap().stuck_sinks.is_empty());
}
