//! Certificates of a member: they are obtained before its program is started, and renewed while it runs.

use std::net::IpAddr;
use std::time::Duration;

use bellwether_api::v1::ensemble::certificates::{MAX_ADDRESSES, MemberCertificateRequest};
use bellwether_core::records::member::MemberOrder;
use tokio::time::Instant;

use super::MemberTask;
use crate::ensemble::certificates::{CertificateFiles, Issued};

/// Time until it is looked again whether certificates are due.
const AGAIN: Duration = Duration::from_secs(60);

/// Time until certificates that were not issued are asked for again: the control plane may not know yet which addresses this node has.
const RETRY: Duration = Duration::from_secs(10);

/// Time after which certificates may be renewed again: a clock that is wrong must not ask each second.
const PAUSE: Duration = Duration::from_secs(60 * 60);

impl MemberTask {
    /// Obtains the certificates before a start, unless they are there and hold. That they cannot be had now is no refusal of this node: the
    /// control plane may not be reached.
    pub(super) async fn certified(&mut self, order: &MemberOrder) -> Result<(), String> {
        if !order.service.has_tls() {
            return Ok(());
        }
        let now = self.context.clock.now();
        match self.issued().await? {
            Some(issued) if !issued.is_over(now) => Ok(()),
            Some(_) | None => self.certify(order).await,
        }
    }

    /// Asks for new certificates, if they are due; answers whether there are new ones.
    pub(super) async fn renew(&mut self, order: &MemberOrder) -> bool {
        if !order.service.has_tls() || self.renewal.is_some_and(|due| Instant::now() < due) {
            return false;
        }
        let (now, addresses) = (self.context.clock.now(), self.certified_addresses(order));
        let is_due = match self.issued().await {
            Ok(Some(issued)) => issued.is_due(&addresses, now),
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(ensemble = %self.ensemble, "cannot {error}");
                false
            }
        };
        if !is_due {
            self.renewal = Some(Instant::now() + AGAIN);
            return false;
        }
        let certified = self.certify(order).await;
        self.renewal = Some(Instant::now() + if certified.is_ok() { PAUSE } else { RETRY });
        match &certified {
            Ok(()) => tracing::info!(ensemble = %self.ensemble, "has new certificates"),
            Err(error) => tracing::warn!(ensemble = %self.ensemble, "cannot {error}"),
        }
        certified.is_ok()
    }

    async fn issued(&self) -> Result<Option<Issued>, String> {
        let files = self.certificate_files();
        self.on_disk("read the certificates", move || files.read()).await
    }

    fn certificate_files(&self) -> CertificateFiles {
        CertificateFiles::within(&self.directory.path)
    }

    /// The addresses in the certificates: that of the member, and the others of its node, from which it may call other members.
    fn certified_addresses(&mut self, order: &MemberOrder) -> Vec<IpAddr> {
        let own = self.software(order).map(|software| software.client().ip());
        let all = self.context.addresses.now();
        let others = all.0.values().flatten().copied().filter(|address| Some(*address) != own);
        own.into_iter().chain(others).take(MAX_ADDRESSES).collect()
    }

    async fn certify(&mut self, order: &MemberOrder) -> Result<(), String> {
        let (files, addresses) = (self.certificate_files(), self.certified_addresses(order));
        let asking = files.clone();
        let certificate_request = self.on_disk("make a key", move || asking.request()).await?;
        let request = MemberCertificateRequest {
            number: order.number.get(),
            identity: order.identity.clone(),
            addresses: addresses.clone(),
            certificate_request,
        };
        let asked = self.context.control_plane.certify(&self.ensemble, &request).await;
        let issued = asked.map_err(|error| format!("ask for certificates: {error}"))?;
        let now = self.context.clock.now();
        let keep = move || files.keep(&issued, addresses, now).map(drop);
        self.on_disk("keep the certificates", keep).await
    }
}
