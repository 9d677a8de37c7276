//! Media types of bodies.

/// JSON.
pub const JSON: &str = "application/json";

/// JSON Patch (RFC 6902).
pub const JSON_PATCH: &str = "application/json-patch+json";

/// JSON Merge Patch (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// A page of a list whose items have only the fields that the request names.
pub const PARTIAL_JSON: &str = "application/vnd.bellwether.partial+json";
