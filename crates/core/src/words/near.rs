//! Suggestions for mistyped words: the nearest known one.

use alloc::vec::Vec;

/// The known word nearest to a mistyped one, if one is near: a word of three letters may have two mistakes, each three further
/// letters one more, up to three.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (far, found) = known.map(|known| (distance(word, known), known)).min()?;
    let most = (1 + word.chars().count() / 3).min(3);
    (far <= most && far < found.len()).then_some(found)
}

/// Number of letters to change, add or remove to turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut diagonal = place;
        let mut left = place + 1;
        for (above, wanted) in row.iter_mut().skip(1).zip(other.chars()) {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = *above;
            left = changed.min(left + 1).min(*above + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = place + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_unless_all_are_far() {
        let known = || ["mysql", "rabbitmq", "web"].into_iter();
        assert_eq!(nearest("mysq", known()), Some("mysql"));
        assert_eq!(nearest("rabitmq", known()), Some("rabbitmq"));
        assert_eq!(nearest("wbe", known()), Some("web"));
        assert_eq!(nearest("dns", known()), None);
        assert_eq!(nearest("ghost", ["list"].into_iter()), None);
        assert_eq!(nearest("web", core::iter::empty()), None);
    }
}
