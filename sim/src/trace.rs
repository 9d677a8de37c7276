//! The trace of a history, line by line, with its digest: two histories of one seed have the same.

use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Number of lines kept for people: the end of a history explains it.
const KEPT: usize = 4_000;

/// A history's trace. Clones are the same trace.
#[derive(Debug, Clone)]
pub struct Trace(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sum: Sha256,
    lines: std::collections::VecDeque<String>,
    broken: Vec<String>,
    count: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self(Arc::new(Shared { began: Instant::now(), state: Mutex::default() }))
    }
}

impl Trace {
    /// Records an event at the current time.
    pub fn say(&self, line: &str) {
        let line = format!("{:>9} {line}", self.0.began.elapsed().as_millis());
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sum.update(line.as_bytes());
        state.sum.update(b"\n");
        state.count += 1;
        state.lines.push_back(line);
        if state.lines.len() > KEPT {
            state.lines.pop_front();
        }
    }

    /// Records a broken law.
    pub fn breaks(&self, what: &str) {
        self.say(&format!("BROKEN: {what}"));
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.broken.push(what.to_owned());
    }

    /// Whether a law was broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        !self.0.state.lock().unwrap_or_else(PoisonError::into_inner).broken.is_empty()
    }

    /// The broken laws.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).broken.clone()
    }

    /// The digest of all lines in lower-case hex, and their number.
    #[must_use]
    pub fn sum(&self) -> (String, u64) {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = state.sum.clone().finalize();
        (sum.iter().map(|byte| format!("{byte:02x}")).collect(), state.count)
    }

    /// The last lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
    }
}
