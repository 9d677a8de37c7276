//! Records ↔ bytes, and the one place that commits them.

pub mod commit;
pub mod form;
pub mod keys;
