//! Ranges of keys. Owns the byte arithmetic of prefixes and successors.

use bytes::Bytes;

/// Keys from `start` up to, not including, `end`. An empty `end` means no upper bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key that belongs; empty for no lower bound.
    pub start: Bytes,
    /// The first key that no longer belongs; empty for no upper bound.
    pub end: Bytes,
}

impl Range {
    /// Exactly `key`.
    #[must_use]
    pub fn one(key: impl Into<Bytes>) -> Self {
        let start = key.into();
        let end = successor(&start);
        Self { start, end }
    }

    /// Every key that begins with `prefix`; the empty prefix means every key.
    #[must_use]
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let mut end = start.to_vec();
        // The first key behind the prefix: drop trailing 0xff, then count the last byte up.
        while let Some(last) = end.pop() {
            if let Some(up) = last.checked_add(1) {
                end.push(up);
                break;
            }
        }
        Self { start, end: end.into() }
    }

    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self { start: Bytes::new(), end: Bytes::new() }
    }

    /// No key.
    #[must_use]
    pub fn none() -> Self {
        Self { start: Bytes::from_static(b"\0"), end: Bytes::from_static(b"\0") }
    }

    /// The part of this range behind `key`: where the next page begins.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let next = successor(key);
        let start = if next > self.start { next } else { self.start.clone() };
        Self { start, end: self.end.clone() }
    }

    /// Whether `key` belongs.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && (self.end.is_empty() || self.end > key)
    }

    /// Whether no key can belong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }
}

/// The smallest key greater than `key`.
fn successor(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len().saturating_add(1));
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_its_own_key_and_all_below_and_nothing_else() {
        let range = Range::prefix("a/");
        assert!(range.contains(b"a/") && range.contains(b"a/\xff\xff"));
        assert!(!range.contains(b"a") && !range.contains(b"a0"));
    }

    #[test]
    fn a_prefix_of_highest_bytes_has_no_upper_bound() {
        assert_eq!(Range::prefix(&b"\xff\xff"[..]).end, Bytes::new());
        assert_eq!(Range::prefix(&b"a\xff"[..]).end, "b");
        assert_eq!(Range::prefix(""), Range::all());
    }

    #[test]
    fn one_holds_one_key() {
        let range = Range::one("a");
        assert!(range.contains(b"a") && !range.contains(b"a\0"));
        assert!(range.after(b"a").is_empty());
    }

    #[test]
    fn after_never_widens_a_range() {
        let range = Range::prefix("b");
        assert_eq!(range.after(b"a"), range);
        assert!(!range.after(b"b1").contains(b"b1") && range.after(b"b1").contains(b"b1\0"));
    }
}
