//! Values of params as typed, and the files that have them. A number that would change is refused: JSON numbers are kept as whole
//! numbers of 64 bits or as binary fractions.

use std::io::Read;
use std::path::Path;

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
    let changed = |number: &str| {
        Failure::usage(format!("set {key}: the number {number} cannot be kept with all its digits"))
            .hint(format!("to keep it as text, quote it: {key}='\"{number}\"'"))
    };
    match serde_json::from_str(text) {
        Ok(value) => inexact(text).map_or(Ok(value), |number| Err(changed(number))),
        Err(error) if is_out_of_range(&error) => Err(changed(inexact(text).unwrap_or(text))),
        Err(_) => Ok(Value::String(text.to_owned())),
    }
}

/// The JSON of a file or of stdin.
///
/// # Errors
/// What is wrong with the file, with an example; a number that would lose digits.
pub(super) fn document<T: DeserializeOwned>(path: &Path, example: &str) -> Result<T, Failure> {
    let text = text_of(path)?;
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("read {}: {error}", path.display()));
    let parsed = serde_json::from_str(&text);
    if let Some(number) = inexact(&text).filter(|_| parsed.as_ref().err().is_none_or(is_out_of_range)) {
        let reason = format!("the number {number} cannot be kept with all its digits");
        return Err(failed(&reason).hint(format!("to keep it as text, quote it: \"{number}\"")));
    }
    parsed.map_err(|error| failed(&error).hint(example))
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

fn is_out_of_range(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("number out of range")
}

/// The first number of a JSON text that would lose digits.
fn inexact(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = rest.get(at..)?;
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_text(text);
            continue;
        }
        let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let end = rest.find(|c: char| !is_of_number(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if !is_exact(number) {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows a JSON text after its opening quote.
fn after_text(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        Ok(value) => value.is_finite() && digits(number) == digits(&format!("{value:e}")),
        Err(_) => true,
    }
}

/// The significant digits of a number, and the power of ten of the first: the same for every way to write it.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('-');
    let all = format!("{whole}{fraction}");
    let from_first = all.trim_start_matches('0');
    if from_first.is_empty() {
        return (String::new(), 0);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let zeros = length(&all).saturating_sub(length(from_first));
    let power = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX);
    let first = length(whole).saturating_sub(zeros).saturating_add(power);
    (from_first.trim_end_matches('0').to_owned(), first)
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
        assert!(refused.contains("large.json: the number 1e999"), "{refused}");
    }
}
