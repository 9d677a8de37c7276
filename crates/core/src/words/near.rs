//! Suggestions for mistyped words: the nearest known one.

use alloc::vec::Vec;

/// The known word nearest to a mistyped one, if one is near: a word of three letters may have two mistakes, each three further
/// letters one more, up to three.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let most = (1 + length / 3).min(3);
    // The lengths alone say that the others are far: a long word is not compared at all.
    let close = known.filter(|known| known.chars().count().abs_diff(length) <= most);
    let (far, found) = close.map(|known| (distance(word, known), known)).min()?;
    (far <= most && far < found.len()).then_some(found)
}

/// The known word of which another is a slip: one letter is wrong, or two of a word of six or more.
pub fn slip_of<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let most = if length < 6 { 1 } else { 2 };
    let close = known.filter(|known| known.chars().count().abs_diff(length) <= most);
    let (far, found) = close.map(|known| (distance(word, known), known)).min()?;
    (1..=most).contains(&far).then_some(found)
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
    fn a_slip_is_nearer_than_a_guess() {
        let known = || ["name", "cordoned"].into_iter();
        assert_eq!((slip_of("nme", known()), slip_of("cordnoed", known())), (Some("name"), Some("cordoned")));
        assert_eq!((slip_of("zone", known()), slip_of("name", known())), (None, None));
    }

    #[test]
    fn the_nearest_word_is_found_unless_all_are_far() {
        let known = || ["mysql", "rabbitmq", "web"].into_iter();
        assert_eq!(nearest("mysq", known()), Some("mysql"));
        assert_eq!(nearest("rabitmq", known()), Some("rabbitmq"));
        assert_eq!(nearest("wbe", known()), Some("web"));
        assert_eq!(nearest("dns", known()), None);
        assert_eq!(nearest("ghost", ["list"].into_iter()), None);
        assert_eq!(nearest("web", core::iter::empty()), None);
        // Compared letter by letter, this would take minutes.
        let long = "web".repeat(1_000_000);
        assert_eq!((nearest(&long, (0..1_000).map(|_| "rabbitmq")), slip_of(&long, known())), (None, None));
    }
}
