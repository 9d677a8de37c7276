//! Values of the configuration.

use bellwether_core::words::time::{Span, SpanError};
use bellwether_rt::config_error::ConfigError;

/// A duration such as `30s`.
pub(super) fn span(key: &'static str, text: Option<String>) -> Result<Option<Span>, ConfigError> {
    let read = |text: String| text.parse();
    text.map(read).transpose().map_err(|error: SpanError| ConfigError::value(key, error.to_string()))
}
