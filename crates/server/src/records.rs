//! Encoding of records and keys, and the one place that commits them.

pub mod commit;
pub mod encoding;
pub mod key_text;
