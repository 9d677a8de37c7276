//! How many documents one apply may have. They are counted while they are read, so that no more than these are ever held.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::{Document, MAX_APPLY_DOCUMENTS};

/// Reads at most [`MAX_APPLY_DOCUMENTS`].
pub(super) fn documents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Document>, D::Error> {
    deserializer.deserialize_seq(Documents)
}

struct Documents;

impl<'de> Visitor<'de> for Documents {
    type Value = Vec<Document>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of documents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<Document>, A::Error> {
        let mut documents = Vec::new();
        while documents.len() < MAX_APPLY_DOCUMENTS {
            match sequence.next_element()? {
                Some(document) => documents.push(document),
                None => return Ok(documents),
            }
        }
        match sequence.next_element::<serde::de::IgnoredAny>()? {
            Some(_) => Err(A::Error::custom(format_args!(
                "more than {MAX_APPLY_DOCUMENTS}, the most of one apply; divide them into several applies"
            ))),
            None => Ok(documents),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ApplyRequest;
    use super::*;

    #[test]
    fn ten_thousand_documents_are_read_and_one_more_is_refused() {
        let read = |count: usize| {
            let one = r#"{"kind":"slot","name":"s","capacity":1}"#;
            let text = format!(r#"{{"documents":[{}]}}"#, vec![one; count].join(","));
            serde_json::from_str::<ApplyRequest>(&text).map(|request| request.documents.len())
        };
        assert_eq!(read(MAX_APPLY_DOCUMENTS).unwrap(), MAX_APPLY_DOCUMENTS);
        let refused = read(MAX_APPLY_DOCUMENTS + 1).unwrap_err().to_string();
        assert!(refused.starts_with("more than 10000, the most of one apply; divide them"), "{refused}");
    }
}
