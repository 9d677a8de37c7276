//! What deciders of this leader cannot commit at present: told in the status, so that it is found before somebody wonders why nothing
//! begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::words::name::Namespace;

/// The deciders that fail, each with its reason. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct DeciderFailures(Arc<Mutex<BTreeMap<(Namespace, &'static str), String>>>);

impl DeciderFailures {
    /// Notes how the last pass of a decider over a namespace ended; answers whether it fails for another reason than before.
    pub(crate) fn note(&self, namespace: &Namespace, decider: &'static str, failed: Option<String>) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (namespace.clone(), decider);
        match failed {
            Some(reason) => failures.insert(key, reason.clone()).is_none_or(|before| before != reason),
            None => {
                if !failures.is_empty() {
                    failures.remove(&key);
                }
                false
            }
        }
    }

    /// Another server decides now, or nobody.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What fails in a namespace, in words.
    pub(crate) fn of(&self, namespace: &Namespace) -> Vec<String> {
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = failures.iter().filter(|((of, _), _)| of == namespace);
        own.map(|((_, decider), reason)| {
            format!("the leader cannot carry out what it decides ({decider}): {reason}; it tries again")
        })
        .collect()
    }
}
