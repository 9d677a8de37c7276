//! Settings of sinks, as a server's configuration has them.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::records::sink::SinkTarget;

use super::addresses::AddressRules;
use crate::ops::OpError;

/// Settings of sinks.
#[derive(Debug, Clone, Default)]
pub struct SinkSettings {
    /// Directory of the files of sinks; none if there may be no such sinks.
    pub directory: Option<PathBuf>,
    /// Which addresses webhooks may call.
    pub addresses: Arc<AddressRules>,
    /// File with the authorities (PEM) that receivers behind `https` are verified with; the system's own if absent.
    pub ca_file: Option<PathBuf>,
}

impl SinkSettings {
    /// Refuses a sink that this server could not send to at all.
    ///
    /// # Errors
    /// [`OpError::Refused`].
    pub fn permit(&self, name: &str, target: &SinkTarget) -> Result<(), OpError> {
        let refused = |reason: String, hint: &str| {
            Err(OpError::Refused {
                reason: format!("set sink {name}: {reason}"),
                hint: Some(hint.to_owned()),
            })
        };
        match target {
            SinkTarget::File(_) if self.directory.is_none() => refused(
                NO_DIRECTORY.to_owned(),
                "name one that exists for nothing else: directory in [sinks] of every server's configuration",
            ),
            SinkTarget::File(_) => Ok(()),
            SinkTarget::Webhook(webhook) => {
                let literal = webhook.url.parse::<http::Uri>().ok();
                let literal = literal.as_ref().and_then(literal_address);
                match literal.and_then(|address| self.addresses.refusal(address)) {
                    Some(reason) => refused(reason, "write the URL of another machine"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// That files cannot be written.
pub(super) const NO_DIRECTORY: &str =
    "the configuration of this server names no directory for files of sinks";

/// The address in a URL that has no name.
pub(crate) fn literal_address(uri: &http::Uri) -> Option<std::net::IpAddr> {
    uri.host()?.trim_matches(['[', ']']).parse().ok()
}
