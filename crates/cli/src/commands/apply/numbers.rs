//! Numbers in files that would lose digits: found in the text of each format, since a parsed number shows only what is left.

use bellwether_api::number::{inexact, is_exact, may_be_inexact};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::de::{DeTable, DeValue};

use super::files::Format;

/// A number as it is written, and the path to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) number: String,
    pub(super) path: Vec<String>,
}

/// The first number of a document that would lose digits; none if the text cannot be read.
pub(super) fn first(format: Format, text: &str) -> Option<Found> {
    if !may_be_inexact(text) {
        return None;
    }
    match format {
        Format::Json => inexact(text).map(|found| Found {
            number: found.number.to_owned(),
            path: found
                .place
                .split(['.', '[', ']'])
                .filter(|part| !part.is_empty())
                .map(Into::into)
                .collect(),
        }),
        Format::Toml => {
            let table = DeTable::parse(text).ok()?;
            in_table(table.get_ref(), &mut Vec::new())
        }
        Format::Yaml => {
            let node = Kinds.deserialize(serde_norway::Deserializer::from_str(text)).ok()?;
            let (mut path, mut found) = (Vec::new(), None);
            let reader = Reader { node: &node, path: &mut path, found: &mut found };
            // It stops with an error at what it finds.
            let _stopped = reader.deserialize(serde_norway::Deserializer::from_str(text));
            found
        }
    }
}

fn in_table(table: &DeTable<'_>, path: &mut Vec<String>) -> Option<Found> {
    table.iter().find_map(|(key, value)| below(path, key.get_ref(), |path| in_value(value.get_ref(), path)))
}

fn in_value(value: &DeValue<'_>, path: &mut Vec<String>) -> Option<Found> {
    let lost = |number: &str| Found { number: number.to_owned(), path: path.clone() };
    match value {
        DeValue::Float(float) => (!is_exact(float.as_str())).then(|| lost(float.as_str())),
        DeValue::Integer(integer) => {
            let fits = |radix| {
                i64::from_str_radix(integer.as_str(), radix).is_ok()
                    || u64::from_str_radix(integer.as_str(), radix).is_ok()
            };
            (!fits(integer.radix())).then(|| lost(integer.as_str()))
        }
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| below(path, &index.to_string(), |path| in_value(item.get_ref(), path))),
        DeValue::Table(table) => in_table(table, path),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => None,
    }
}

fn below<T>(path: &mut Vec<String>, key: &str, then: impl FnOnce(&mut Vec<String>) -> T) -> T {
    path.push(key.to_owned());
    let answer = then(path);
    path.pop();
    answer
}

/// What a YAML node is, as far as it matters here.
#[derive(Debug)]
enum Node {
    Mapping(Vec<Node>),
    Sequence(Vec<Node>),
    /// A fraction: its text says whether it is exact.
    Fraction,
    /// A whole number of more than 64 bits, or no finite number.
    Lost,
    Other,
}

/// Reads what the nodes are.
struct Kinds;

impl<'de> DeserializeSeed<'de> for Kinds {
    type Value = Node;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kinds {
    type Value = Node;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a document")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Node, M::Error> {
        let mut nodes = Vec::new();
        while map.next_key::<String>()?.is_some() {
            nodes.push(map.next_value_seed(Self)?);
        }
        Ok(Node::Mapping(nodes))
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Node, S::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = seq.next_element_seed(Self)? {
            nodes.push(node);
        }
        Ok(Node::Sequence(nodes))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(if value.is_finite() { Node::Fraction } else { Node::Lost })
    }
    fn visit_u128<E: Error>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Lost)
    }
    fn visit_i128<E: Error>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Lost)
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Other)
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Other)
    }
    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }
}

/// Reads the texts of those that may be lost, and stops at the first one that is.
struct Reader<'a> {
    node: &'a Node,
    path: &'a mut Vec<String>,
    found: &'a mut Option<Found>,
}

impl Reader<'_> {
    fn at<'b>(&'b mut self, node: &'b Node, key: String) -> Reader<'b> {
        self.path.push(key);
        Reader { node, path: &mut *self.path, found: &mut *self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.node {
            Node::Mapping(_) => deserializer.deserialize_map(self),
            Node::Sequence(_) => deserializer.deserialize_seq(self),
            Node::Fraction | Node::Lost => deserializer.deserialize_str(self),
            Node::Other => deserializer.deserialize_ignored_any(serde::de::IgnoredAny).map(drop),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the same document")
    }
    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        let Node::Mapping(nodes) = self.node else { return Ok(()) };
        for node in nodes {
            let key = map.next_key::<String>()?.unwrap_or_default();
            map.next_value_seed(self.at(node, key))?;
            self.path.pop();
        }
        map.next_key::<String>().map(drop)
    }
    fn visit_seq<S: SeqAccess<'de>>(mut self, mut seq: S) -> Result<(), S::Error> {
        let Node::Sequence(nodes) = self.node else { return Ok(()) };
        for (index, node) in nodes.iter().enumerate() {
            seq.next_element_seed(self.at(node, index.to_string()))?;
            self.path.pop();
        }
        seq.next_element::<serde::de::IgnoredAny>().map(drop)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if matches!(self.node, Node::Fraction) && is_exact(text) {
            return Ok(());
        }
        *self.found = Some(Found { number: text.to_owned(), path: self.path.clone() });
        Err(E::custom("a number that would lose digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(format: Format, text: &str) -> Option<(String, String)> {
        first(format, text).map(|found| (found.number, found.path.join(".")))
    }

    #[test]
    fn a_number_that_would_lose_digits_is_found_in_every_format() {
        let lost = |number: &str, path: &str| Some((number.to_owned(), path.to_owned()));
        let long = "123456789012345678901";
        let yaml = |text: &str| found(Format::Yaml, text);
        assert_eq!(yaml(&format!("a: &x {{n: [1, 1e2, {long}]}}\nb: *x\n")), lost(long, "a.n.2"));
        assert_eq!(yaml("a:\n  b: 0.1234567890123456789\n"), lost("0.1234567890123456789", "a.b"));
        for number in [".inf", "-0x123456789abcdef0123", "1.00000000000000000001"] {
            assert_eq!(yaml(&format!("n: {number}\n")), lost(number, "n"), "{number}");
        }
        for kept in
            [&format!("a: '{long}'\nb: 1.50\nc: 18446744073709551615\nd: 1e3\ne: 1e999\n"), "a: [", "x: info"]
        {
            assert_eq!(yaml(kept), None, "{kept}");
        }
        let toml = |text: &str| found(Format::Toml, text);
        assert_eq!(toml("[a]\nb = [1, 0.1234567890123456789]\n"), lost("0.1234567890123456789", "a.b.1"));
        assert_eq!(toml("a = nan\n"), lost("nan", "a"));
        assert_eq!(toml(&format!("a = {long}\n")), lost(long, "a"));
        assert_eq!(toml("a = 1_000_000_000_000_000_000\nb = 1e3\nc = 0x1f\n"), None);
        assert_eq!(found(Format::Json, &format!("{{\"a\": [{{\"b\": {long}}}]}}")), lost(long, "a.0.b"));
    }
}
