//! The store contract on every back end, and what only the embedded one has to prove.

#![expect(clippy::unwrap_used, reason = "a test that meets an unexpected error has failed")]

mod embedded;
mod memory;
