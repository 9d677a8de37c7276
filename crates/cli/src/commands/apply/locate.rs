//! Where a field is in the text of a document: the parser itself finds it, so that flow mappings and tables count too.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::files::Format;

/// The keys and indexes of a path such as `steps[1].script`.
pub(super) fn parts(path: &str) -> Vec<&str> {
    path.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect()
}

/// The number of the line, from 0, with the key or element at this path of the document, or with the nearest one above it that is
/// there. An element is named by its index, from 0.
pub(super) fn line_of(format: Format, text: &str, path: &[&str]) -> Option<usize> {
    (1..=path.len()).rev().find_map(|length| occurrence(format, text, path.get(..length)?, 1))
}

/// The number of the line, from 0, with the second key of this path; the document is refused because of it.
pub(super) fn second_line_of(format: Format, text: &str, path: &[&str]) -> Option<usize> {
    occurrence(format, text, path, 2)
}

/// The line of a key, the first or a later one of its name.
fn occurrence(format: Format, text: &str, path: &[&str], which: usize) -> Option<usize> {
    let mut found = false;
    let search = Search { path, left: which, found: &mut found };
    let line = match format {
        Format::Yaml => {
            let stopped = search.deserialize(serde_norway::Deserializer::from_str(text)).err()?;
            // An error at the very beginning of the text has no position.
            stopped.location().map_or(1, |at| at.line())
        }
        Format::Json => {
            let stopped = search.deserialize(&mut serde_json::Deserializer::from_str(text)).err()?;
            stopped.line()
        }
        Format::Toml => {
            let stopped = search.deserialize(toml::Deserializer::parse(text).ok()?).err()?;
            let before = text.get(..stopped.span()?.start)?;
            before.matches('\n').count() + 1
        }
    };
    found.then(|| line.saturating_sub(1))
}

/// Reads a document and stops with an error at a key or an element: the error has its position.
struct Search<'a> {
    path: &'a [&'a str],
    /// Keys of the last name still to be met, this one included.
    left: usize,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();
    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a document")
    }
    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        let Some((first, rest)) = self.path.split_first() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        loop {
            let is_last = rest.is_empty() && self.left == 1;
            let key = Key { wanted: first, stop: is_last, found: &mut *self.found };
            match map.next_key_seed(key)? {
                None => return Ok(()),
                Some(true) if rest.is_empty() => {
                    self.left -= 1;
                    map.next_value::<IgnoredAny>()?;
                }
                Some(true) => {
                    let search = Search { path: rest, left: self.left, found: &mut *self.found };
                    map.next_value_seed(search)?;
                }
                Some(false) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let wanted =
            self.path.split_first().and_then(|(first, rest)| Some((first.parse::<usize>().ok()?, rest)));
        if let Some((wanted, rest)) = wanted {
            for _ in 0..wanted {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
            }
            if rest.is_empty() {
                seq.next_element_seed(Here { found: self.found })?;
            } else {
                seq.next_element_seed(Search { path: rest, left: self.left, found: &mut *self.found })?;
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Stops the search at an element, whatever it is.
struct Here<'a> {
    found: &'a mut bool,
}

impl Here<'_> {
    fn stop<T, E: Error>(self) -> Result<T, E> {
        *self.found = true;
        Err(E::custom("found"))
    }
}

impl<'de> DeserializeSeed<'de> for Here<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Here<'_> {
    type Value = ();
    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an element")
    }
    fn visit_map<M: MapAccess<'de>>(self, _: M) -> Result<(), M::Error> {
        self.stop()
    }
    fn visit_seq<S: SeqAccess<'de>>(self, _: S) -> Result<(), S::Error> {
        self.stop()
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.stop()
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.stop()
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.stop()
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.stop()
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.stop()
    }
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.stop()
    }
}

/// Compares a key with the one that is wanted; the last one of a path stops the search.
struct Key<'a> {
    wanted: &'a str,
    stop: bool,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;
    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a key")
    }
    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        if key == self.wanted && self.stop {
            *self.found = true;
            return Err(E::custom("found"));
        }
        Ok(key == self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "# web\nkind: entity\nlabels: {version: a, name: b}\nname: web\npolicy: {soak: 1s,\n  batch: lots}\nversion: v1\n";

    #[test]
    fn a_key_is_found_at_its_path_and_not_by_its_name_elsewhere() {
        let line = |path: &[&str]| line_of(Format::Yaml, YAML, path).map(|index| index + 1);
        assert_eq!(line(&["version"]), Some(7));
        assert_eq!(line(&["name"]), Some(4));
        assert_eq!(line(&["labels", "version"]), Some(3));
        assert_eq!(line(&["policy", "soak"]), Some(5));
        assert_eq!(line(&["policy", "batch"]), Some(6));
        assert_eq!(line(&["policy", "deadline"]), Some(5), "the nearest key above");
        assert_eq!(line(&["selector"]), None);
        assert_eq!(line_of(Format::Yaml, "name: web\n", &["name"]), Some(0));
    }

    #[test]
    fn the_other_formats_have_lines_too() {
        let toml = "kind = \"entity\"\nlabels = { version = \"a\" }\n[policy]\nbatch = \"lots\"\n";
        assert_eq!(line_of(Format::Toml, toml, &["policy", "batch"]), Some(3));
        let json = "{\"labels\": {\"batch\": \"a\"},\n \"policy\":\n {\"batch\": \"lots\"}}";
        assert_eq!(line_of(Format::Json, json, &["policy", "batch"]), Some(2));
    }

    #[test]
    fn an_element_is_found_by_its_index_in_every_format() {
        let yaml = "steps:\n- name: a\n  script: {text: x}\n- name: b\n  script:\n    text: y\nclaims:\n- one\n- 2\n- [3,\n  4]\n";
        let line = |text: &str| line_of(Format::Yaml, yaml, &parts(text)).map(|index| index + 1);
        assert_eq!(line("steps[0].script"), Some(3));
        assert_eq!(line("steps[1]"), Some(4));
        assert_eq!(line("steps[1].script.text"), Some(6));
        assert_eq!(line("steps[1].file"), Some(4), "the nearest one above");
        assert_eq!(line("steps[7].script"), Some(1));
        assert_eq!((line("claims[0]"), line("claims[1]")), (Some(8), Some(9)));
        assert_eq!(line("claims[2][1]"), Some(11));
        let toml = "name = \"t\"\nclaims = [\n  \"a\",\n  \"b\",\n]\n[[steps]]\nname = \"a\"\n[[steps]]\nname = \"b\"\n";
        let line = |text: &str| line_of(Format::Toml, toml, &parts(text)).map(|index| index + 1);
        assert_eq!((line("claims[1]"), line("steps[1].name"), line("steps[1]")), (Some(4), Some(9), Some(8)));
        let json =
            "{\"steps\": [\n {\"name\": \"a\"},\n {\"name\":\n \"b\"}],\n \"claims\": [\"a\",\n \"b\"]}";
        let line = |text: &str| line_of(Format::Json, json, &parts(text)).map(|index| index + 1);
        assert_eq!((line("steps[1]"), line("steps[1].name"), line("claims[1]")), (Some(3), Some(3), Some(6)));
    }

    #[test]
    fn the_second_key_of_a_name_is_found() {
        let yaml = "name: a\npolicy:\n  batch: 1\n  soak: 1s\n  batch: 2\nname: b\n";
        assert_eq!(second_line_of(Format::Yaml, yaml, &["name"]), Some(5));
        assert_eq!(second_line_of(Format::Yaml, yaml, &["policy", "batch"]), Some(4));
        assert_eq!(second_line_of(Format::Yaml, yaml, &["kind"]), None);
    }
}
