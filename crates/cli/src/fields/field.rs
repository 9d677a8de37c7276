//! One field that a person may write.

use serde::Serialize;
use serde_json::Value;

/// One field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Field {
    /// Path, like `policy.batch`.
    pub(crate) field: String,
    /// Meaning, in a sentence.
    pub(crate) meaning: String,
    /// Value of an absent field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<String>,
    /// An example value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) example: Option<Value>,
}

impl Field {
    /// The field in a few lines.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![self.field.clone(), format!("  {}", self.meaning)];
        if let Some(default) = &self.default {
            lines.push(format!("  default  {default}"));
        }
        match &self.example {
            Some(Value::String(text)) => lines.push(format!("  example  {text}")),
            Some(other) => lines.push(format!("  example  {other}")),
            None => {}
        }
        lines.join("\n")
    }
}
