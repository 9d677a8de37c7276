//! Media types of bodies.

/// JSON.
pub const JSON: &str = "application/json";

/// JSON Patch (RFC 6902).
pub const JSON_PATCH: &str = "application/json-patch+json";

/// JSON Merge Patch (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// A page of a list whose items have only the fields that the request names.
pub const PARTIAL_JSON: &str = "application/vnd.bellwether.partial+json";

/// One JSON value per line.
pub const JSON_LINES: &str = "application/x-ndjson";

/// Metrics as OpenMetrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics in Prometheus' text format.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
