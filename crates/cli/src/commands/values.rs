//! Values of params as typed, and the files that have them. A number that would change is refused: JSON numbers are kept as whole
//! numbers of 64 bits or as binary fractions.

use std::io::Read;
use std::path::Path;

use bellwether_api::number::{inexact, kept_as_text};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exit::Failure;

/// Largest file that is read, in bytes: what a request may have.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The value of a param as typed: JSON if it is valid JSON, otherwise text.
///
/// # Errors
/// A number that would lose digits.
pub(super) fn parameter_value(key: &str, text: &str) -> Result<Value, Failure> {
    if let Some(found) = inexact(text) {
        let number = found.number;
        let failure = Failure::usage(format!("set {key}: {found}"));
        return Err(failure.hint(format!("to keep it as text, quote it: {key}='\"{number}\"'")));
    }
    Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// The JSON of a file or of stdin.
///
/// # Errors
/// What is wrong with the file, with an example; a number that would lose digits.
pub(super) fn document<T: DeserializeOwned>(path: &Path, example: &str) -> Result<T, Failure> {
    let text = text_of(path)?;
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("read {}: {error}", path.display()));
    if let Some(found) = inexact(&text) {
        return Err(failed(&found.at_place()).hint(kept_as_text(found.number)));
    }
    serde_json::from_str(&text).map_err(|error| failed(&error).hint(example))
}

/// The text of a file; `-` reads stdin.
///
/// # Errors
/// A file that cannot be read, is not text, or is larger than 1 MiB.
pub(super) fn text_of(path: &Path) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("read {}: {error}", path.display()));
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| failed(&error))?)
    };
    let mut bytes = Vec::new();
    source.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(&"it is larger than 1 MiB, the most that a request may have"));
    }
    String::from_utf8(bytes).map_err(|error| {
        failed(&format!("it is not text: byte {} is not UTF-8", error.utf8_error().valid_up_to()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_that_would_change_is_refused_with_its_key() {
        for kept in [
            "1",
            "-9223372036854775808",
            "18446744073709551615",
            "0.1",
            "1.50",
            "1e3",
            "100e-2",
            "-0.0",
            "1E+22",
            "5e-324",
        ] {
            assert!(parameter_value("n", kept).is_ok_and(|value| value.is_number()), "{kept}");
        }
        let long = "123456789012345678901234567890";
        for changed in [long, "1e999", "0.12345678901234567890123", "-18446744073709551617", "1e-999"] {
            let refused = parameter_value("n", changed).unwrap_err();
            assert!(
                refused.message.contains("set n: ") && refused.message.contains(changed),
                "{}",
                refused.message
            );
            assert_eq!(refused.hint.unwrap(), format!("to keep it as text, quote it: n='\"{changed}\"'"));
        }
        assert!(parameter_value("n", &format!("[1, {{\"a\": {long}}}]")).is_err());
        assert_eq!(
            parameter_value("n", &format!("\"{long}\\\"{long}\"")).unwrap(),
            json!(format!("{long}\"{long}"))
        );
        assert_eq!(parameter_value("n", "1.2.3-e5").unwrap(), json!("1.2.3-e5"));
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_and_not_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.json");
        std::fs::write(&path, format!("{{\"a\": \"{}\"}}", "x".repeat(1_200_000))).unwrap();
        let refused = document::<Value>(&path, "").unwrap_err().message;
        assert!(refused.contains("large.json: it is larger than 1 MiB"), "{refused}");
        std::fs::write(&path, "{\"a\": 1e999}").unwrap();
        let refused = document::<Value>(&path, "").unwrap_err().message;
        assert!(refused.contains("large.json: a: the number 1e999"), "{refused}");
    }
}
