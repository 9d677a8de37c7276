//! What the control plane says of its certificate authorities: whom this node is to trust, and whether its certificate is to be renewed.
//! The order poll receives it, and the renewal of the certificate does it, which alone writes the identity.

use bellwether_api::v1::authorities::TrustBundle;
use tokio::sync::watch;

/// What is to become of the identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedTrust {
    /// The authorities to trust.
    pub(crate) bundle: Option<TrustBundle>,
    /// The certificate that is to be renewed now.
    pub(crate) outdated: Option<String>,
}

/// Tells what is to become of the identity. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustNews(watch::Sender<WantedTrust>);

impl TrustNews {
    /// The authorities to trust, as a server sent them.
    pub(crate) fn trust(&self, bundle: TrustBundle) {
        self.0.send_modify(|wanted| wanted.bundle = Some(bundle));
    }

    /// A server says that this certificate is to be renewed.
    pub(crate) fn outdated(&self, certificate: String) {
        self.0.send_modify(|wanted| wanted.outdated = Some(certificate));
    }

    /// What is wanted, and what comes to be.
    pub(crate) fn follow(&self) -> watch::Receiver<WantedTrust> {
        self.0.subscribe()
    }
}
