//! The simulator's own tests: histories repeat, hold every law, and show it when a rule is taken away.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod histories;
