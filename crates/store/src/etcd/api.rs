//! etcd's gRPC API, generated from its protocol files by `cargo xtask`.

#[rustfmt::skip]
#[expect(clippy::all, clippy::pedantic, clippy::allow_attributes, clippy::allow_attributes_without_reason, unreachable_pub, reason = "a program wrote it, and no person reads it")]
#[allow(dead_code, clippy::wildcard_enum_match_arm, clippy::excessive_nesting, reason = "not every message of the protocol is used")]
pub(super) mod generated;
