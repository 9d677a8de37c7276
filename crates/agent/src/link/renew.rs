//! Renewal of the certificate, for a new key, at half of its life, or when its authority is replaced; and whom this node trusts.

use std::path::{Path, PathBuf};

use bellwether_api::client::secret::Secret;
use bellwether_api::v1::access::Renew;
use bellwether_api::v1::authorities::TrustBundle;
use bellwether_core::local::delay;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use rcgen::KeyPair;

use super::connection::Connection;
use super::retry::cannot;
use crate::identity::{self, Identity, IdentityError};
use crate::join::certificate_request;

/// Time until a failed renewal is retried, give or take a quarter: half of the certificate's life is left for it. A
/// successful one is not repeated sooner either.
const AGAIN: Span = Span::from_secs(600);

/// Longest sleep: a machine that was suspended notices within this that its certificate is due.
const NAP: Span = Span::from_secs(3_600);

/// The renewal of this node's certificate.
#[derive(Debug)]
pub(super) struct CertificateRenewal {
    pub(super) connection: Connection,
    pub(super) data_dir: PathBuf,
    pub(super) clock: Clock,
    pub(super) seed: u64,
}

impl CertificateRenewal {
    /// Runs until the agent stops.
    pub(super) async fn run(self, tasks: Tasks) {
        let (token, mut news) = (tasks.token(), self.connection.trust().follow());
        for round in 0_u32.. {
            let wanted = news.borrow_and_update().clone();
            if let Some(bundle) = wanted.bundle
                && let Err(reason) = self.take_in(bundle, &tasks).await
            {
                tracing::warn!("cannot {reason}; the authorities before stay trusted, and it is tried again");
            }
            let identity = self.connection.identity();
            let is_outdated = wanted.outdated.is_some_and(|outdated| outdated == identity.certificate);
            let mut wait = due(&identity, self.seed).since(self.clock.now());
            if is_outdated {
                wait = Span::ZERO;
            }
            if wait == Span::ZERO {
                // Files are written whole, so a renewal that is dropped leaves the old certificate or the new one.
                let renewed = tokio::select! {
                    () = token.cancelled() => return,
                    renewed = self.renew(&tasks) => renewed,
                };
                wait = match renewed {
                    // By a clock that is ahead by more than a certificate's life, the new one would be due at once.
                    Ok(()) => due(&self.connection.identity(), self.seed).since(self.clock.now()).max(AGAIN),
                    Err(reason) => {
                        tracing::warn!("cannot renew the certificate of this node: {reason}; retrying");
                        delay::spread(AGAIN, self.seed, round)
                    }
                };
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(wait.min(NAP).to_duration()) => {}
                // The sender is in the connection, which lives as long as this.
                _ = news.changed() => {}
            }
        }
    }

    /// Trusts these authorities, unless it knows later ones. They are stored before they are used.
    async fn take_in(&self, bundle: TrustBundle, tasks: &Tasks) -> Result<(), String> {
        let before = self.connection.identity();
        if bundle.version <= before.trusted_version() {
            return Ok(());
        }
        let (kept, dir) = (before.trusting(bundle.certificates), self.data_dir.clone());
        let fresh = kept.clone();
        let stored = tasks.spawn_blocking(move || kept.store_trust(&dir)).await;
        stored.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        tracing::info!(
            version = bundle.version,
            "trusting other certificate authorities of the control plane"
        );
        self.connection.renewed(fresh);
        Ok(())
    }

    async fn renew(&self, tasks: &Tasks) -> Result<(), String> {
        let identity = self.connection.identity();
        let (dir, kept) = (
            self.data_dir.clone(),
            tasks.spawn_blocking({
                let dir = self.data_dir.clone();
                move || next_key(&dir)
            }),
        );
        let key = kept.await.map_err(|error| error.to_string())??;
        let certificate_request = certificate_request(&key).map_err(|error| error.to_string())?;
        let client = self.connection.client().map_err(|error| cannot(&error))?;
        let (namespace, node) = (identity.namespace.as_str(), identity.node.as_str());
        let answer = client.renew(namespace, node, &Renew { certificate_request }).await;
        let answer = answer.map_err(|error| cannot(&error))?;
        let fresh = Identity {
            certificate: answer.certificate,
            issued_at: self.clock.now(),
            expires_at: Timestamp::from_millis(answer.expires_at_ms),
            key: Secret::new(key.serialize_pem()),
            ..identity
        }
        .trusting(answer.ca);
        let kept = fresh.clone();
        let stored = tasks.spawn_blocking(move || kept.store_renewed(&dir)).await;
        stored.map_err(|error| error.to_string())?.map_err(|error| format!("cannot {error}"))?;
        self.connection.renewed(fresh);
        tracing::info!("renewed the certificate of this node");
        Ok(())
    }
}

/// The key for which the certificate is renewed: that of a renewal whose answer did not arrive, or a new one. It is stored before it is used.
fn next_key(data_dir: &Path) -> Result<KeyPair, String> {
    let failed = |error: IdentityError| format!("cannot {error}");
    let kept = identity::kept_next_key(data_dir).map_err(failed)?;
    // One that cannot be read was never used.
    if let Some(key) = kept.and_then(|kept| KeyPair::from_pem(kept.expose()).ok()) {
        return Ok(key);
    }
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    identity::keep_next_key(data_dir, &Secret::new(key.serialize_pem())).map_err(failed)?;
    Ok(key)
}

/// When a certificate is due for renewal: at half its life, give or take a quarter of that half.
fn due(identity: &Identity, seed: u64) -> Timestamp {
    let half = identity.expires_at.since(identity.issued_at).as_millis() / 2;
    identity.issued_at.plus(delay::spread(Span::from_millis(half), seed, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::words::name::{Namespace, NodeName};

    #[test]
    fn a_certificate_is_due_around_half_its_life() {
        let hour = 3_600_000;
        let identity = Identity {
            node: NodeName::parse("a").unwrap(),
            namespace: Namespace::parse("default").unwrap(),
            server: String::new(),
            issued_at: Timestamp::from_millis(1_000 * hour),
            expires_at: Timestamp::from_millis(1_072 * hour),
            certificate: String::new(),
            ca: String::new(),
            key: Secret::new(""),
            is_logical: false,
        };
        for seed in 0..100 {
            let due = due(&identity, seed).as_millis() / hour;
            assert!((1_027..=1_045).contains(&due), "{due}");
        }
    }
}
