//! The store contract on every back end, and what only the embedded one has to prove.

mod memory;
