//! Numbers with their noun: `1 target`, `2 targets`.

use core::fmt;

/// A number with its noun, in the plural unless the number is 1. The noun is regular and given in the singular.
#[derive(Debug, Clone, Copy)]
pub struct Plural<'a>(pub u64, pub &'a str);

impl fmt::Display for Plural<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = *self;
        if number == 1 {
            return write!(f, "1 {noun}");
        }
        let consonant_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
        match consonant_y {
            Some(stem) => write!(f, "{number} {stem}ies"),
            None if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => write!(f, "{number} {noun}es"),
            None => write!(f, "{number} {noun}s"),
        }
    }
}

/// The number of items with its noun, for lengths of collections.
#[must_use]
pub fn plural(number: usize, noun: &str) -> Plural<'_> {
    Plural(u64::try_from(number).unwrap_or(u64::MAX), noun)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn only_one_is_in_the_singular() {
        for (number, noun, text) in [
            (0, "target", "0 targets"),
            (1, "target", "1 target"),
            (2, "failed target", "2 failed targets"),
            (1, "registry", "1 registry"),
            (3, "registry", "3 registries"),
            (3, "day", "3 days"),
            (2, "batch", "2 batches"),
            (2, "address", "2 addresses"),
        ] {
            assert_eq!(plural(number, noun).to_string(), text);
        }
    }
}
