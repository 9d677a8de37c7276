//! Settings of the discovery of members, as a server's configuration has them.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::records::discovery::DiscoverySource;

use crate::ops::OpError;
use crate::sinks::addresses::AddressRules;
use crate::sinks::settings::{SinkSettings, literal_address};

/// Settings of the discovery of members.
#[derive(Debug, Clone, Default)]
pub struct DiscoverySettings {
    /// Directory of the lists in files; none if there may be no such lists.
    pub directory: Option<PathBuf>,
    /// Which addresses may be called: those of the webhooks of sinks.
    pub addresses: Arc<AddressRules>,
    /// File with the authorities (PEM) that endpoints behind `https` are verified with; the system's own if absent.
    pub ca_file: Option<PathBuf>,
}

impl DiscoverySettings {
    /// The settings with this directory; addresses and authorities are those of sinks.
    #[must_use]
    pub fn beside(sinks: &SinkSettings, directory: Option<PathBuf>) -> Self {
        Self { directory, addresses: Arc::clone(&sinks.addresses), ca_file: sinks.ca_file.clone() }
    }

    /// Refuses a list that this server could not read at all.
    ///
    /// # Errors
    /// [`OpError::Refused`].
    pub fn permit(&self, cluster: &str, source: &DiscoverySource) -> Result<(), OpError> {
        let (reason, hint) = match source {
            DiscoverySource::File(_) if self.directory.is_none() => (
                NO_DIRECTORY.to_owned(),
                "name one that has nothing but lists: directory in [discovery] of every server's configuration",
            ),
            DiscoverySource::File(_) => return Ok(()),
            DiscoverySource::Url(url) => {
                let uri = url.parse::<http::Uri>().ok();
                let address = uri.as_ref().and_then(literal_address);
                match address.and_then(|address| self.addresses.refusal(address)) {
                    Some(reason) => (reason, "write the URL of another machine"),
                    None => return Ok(()),
                }
            }
        };
        let reason = format!("set cluster {cluster}: {reason}");
        Err(OpError::Refused { reason, hint: Some(hint.to_owned()) })
    }
}

/// That lists in files cannot be read.
pub(super) const NO_DIRECTORY: &str =
    "the configuration of this server names no directory for lists of members";
