//! Settings of hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::policy::Policy;
use bellwether_core::words::name::Actor;

/// Settings of hooks, as a server's configuration has them.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// Token files, by the names that policies use.
    pub tokens: BTreeMap<Actor, PathBuf>,
    /// File with the authorities (PEM) that hooks behind `https` are verified with; the system's own if absent.
    pub ca_file: Option<PathBuf>,
}

impl HookSettings {
    /// Refuses a policy that names a token which this server's configuration does not have.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn knows_tokens(&self, policy: &Policy) -> Result<(), ShapeError> {
        let monitor = policy.monitor.iter().map(|monitor| ("monitor".to_owned(), &monitor.token));
        let hooks = policy.hooks.iter().flat_map(|hooks| {
            let each = [
                ("selection", &hooks.selection),
                ("approval", &hooks.approval),
                ("monitoring", &hooks.monitoring),
                ("removal", &hooks.removal),
            ];
            each.into_iter().filter_map(|(name, hook)| Some((format!("hooks.{name}"), &hook.as_ref()?.token)))
        });
        for (place, token) in monitor.chain(hooks) {
            let Some(token) = token else { continue };
            if !self.tokens.keys().any(|known| known.as_str() == token) {
                let reason = format!("{token:?} is not in hook_tokens of this server's configuration");
                return Err(ShapeError::at(&format!("policy.{place}.token"), reason));
            }
        }
        Ok(())
    }
}
