//! Settings of hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::policy::Policy;
use bellwether_core::words::name::Actor;

use super::url_prefix::UrlPrefix;
use crate::sinks::addresses::AddressRules;
use crate::sinks::settings::literal_address;

/// Settings of hooks, as a server's configuration has them.
#[derive(Debug, Clone)]
pub struct HookSettings {
    /// Tokens, by the names that policies use.
    pub tokens: BTreeMap<Actor, HookToken>,
    /// File with the authorities (PEM) that hooks behind `https` are verified with; the system's own if absent.
    pub ca_file: Option<PathBuf>,
    /// Which addresses hooks may have.
    pub addresses: Arc<AddressRules>,
}

/// A token for hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookToken {
    /// The file that has it.
    pub file: PathBuf,
    /// The beginnings of the URLs that it is sent to; at least one.
    pub urls: Vec<UrlPrefix>,
}

impl Default for HookSettings {
    fn default() -> Self {
        let addresses = Arc::new(AddressRules::of_hooks(Vec::new()));
        Self { tokens: BTreeMap::new(), ca_file: None, addresses }
    }
}

impl HookSettings {
    /// Refuses a policy that names a token which this server's configuration does not have, or does not send there, and one whose
    /// hook has an address that is not called.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn permit(&self, policy: &Policy) -> Result<(), ShapeError> {
        let monitor =
            policy.monitor.iter().map(|monitor| ("monitor".to_owned(), &monitor.url, &monitor.token));
        let hooks = policy.hooks.iter().flat_map(|hooks| {
            let each = [
                ("selection", &hooks.selection),
                ("approval", &hooks.approval),
                ("monitoring", &hooks.monitoring),
                ("removal", &hooks.removal),
            ];
            each.into_iter().filter_map(|(name, hook)| {
                let hook = hook.as_ref()?;
                Some((format!("hooks.{name}"), &hook.url, &hook.token))
            })
        });
        for (place, url, token) in monitor.chain(hooks) {
            let refused =
                |field: &str, reason| Err(ShapeError::at(&format!("policy.{place}.{field}"), reason));
            if let Some(reason) = self.refused_address(url) {
                return refused("url", reason);
            }
            let Some(token) = token else { continue };
            let Some((_, known)) = self.tokens.iter().find(|(known, _)| known.as_str() == token) else {
                let reason = format!("{token:?} is not in hook_tokens of this server's configuration");
                return refused("token", reason);
            };
            if let Some(reason) = known.refusal(token, url) {
                return refused("token", reason);
            }
        }
        Ok(())
    }

    /// Why the address that a URL has literally may not be called; `None` if it may, or if the URL has a name.
    pub(super) fn refused_address(&self, url: &str) -> Option<String> {
        let uri: http::Uri = url.parse().ok()?;
        literal_address(&uri).and_then(|address| self.addresses.refusal(address))
    }
}

impl HookToken {
    /// Why the token is not sent to a URL; `None` if it is.
    pub(super) fn refusal(&self, name: &str, url: &str) -> Option<String> {
        if self.urls.iter().any(|prefix| prefix.covers(url)) {
            return None;
        }
        let urls: Vec<String> = self.urls.iter().map(ToString::to_string).collect();
        let urls = urls.join(", ");
        Some(format!("the token {name} is not sent to {url}: hook_tokens has it for {urls}"))
    }
}
