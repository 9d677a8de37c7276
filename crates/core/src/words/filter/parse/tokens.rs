//! The tokens of filters: words, symbols, quoted texts, and the error at a place.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use winnow::Parser;
use winnow::ascii::multispace0;
use winnow::stream::{LocatingSlice, Location, Stream};
use winnow::token::{literal, take_while};

use crate::words::filter::error::FilterError;
use crate::words::label::is_value_byte;

pub(super) type Text<'a> = LocatingSlice<&'a str>;

/// A value as it was written.
pub(super) struct Literal<'a> {
    pub(super) at: Text<'a>,
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

pub(super) fn literal_of<'a>(rest: &mut Text<'a>) -> Result<Literal<'a>, FilterError> {
    literal_of_run(rest, |c| u8::try_from(c).is_ok_and(is_value_byte))
}

/// A quoted text, or the run of these characters.
pub(super) fn literal_of_run<'a>(
    rest: &mut Text<'a>,
    run: fn(char) -> bool,
) -> Result<Literal<'a>, FilterError> {
    let at = *rest;
    if !rest.starts_with('"') && !rest.starts_with('\'') {
        let text = taken(rest, run).to_string();
        return if text.is_empty() {
            refuse(&at, "expected a value")
        } else {
            Ok(Literal { at, text, is_quoted: false })
        };
    }
    let (mut text, mut escaped) = (String::new(), false);
    let mut chars = rest.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    for (index, c) in chars {
        match c {
            _ if escaped => {
                text.push(c);
                escaped = false;
            }
            '\\' if quote == Some('"') => escaped = true,
            _ if Some(c) == quote => {
                skip(rest, index + c.len_utf8());
                blank(rest);
                return Ok(Literal { at, text, is_quoted: true });
            }
            _ => text.push(c),
        }
    }
    refuse(&at, "the quoted text has no end")
}

/// A run of characters that keys and values consist of.
pub(super) fn token<'a>(rest: &mut Text<'a>) -> &'a str {
    taken(rest, |c| u8::try_from(c).is_ok_and(is_value_byte))
}

pub(super) fn taken<'a>(rest: &mut Text<'a>, run: fn(char) -> bool) -> &'a str {
    let found = take_while::<_, _, winnow::error::EmptyError>(0.., run).parse_next(rest).unwrap_or("");
    blank(rest);
    found
}

/// The token that follows, which stays.
pub(super) fn peek<'a>(rest: &Text<'a>) -> &'a str {
    token(&mut { *rest })
}

pub(super) fn symbol(rest: &mut Text<'_>, wanted: &str) -> bool {
    let found: Result<&str, winnow::error::EmptyError> = literal(wanted).parse_next(rest);
    blank(rest);
    found.is_ok()
}

pub(super) fn word(rest: &mut Text<'_>, wanted: &str) -> bool {
    let found = peek(rest) == wanted;
    if found {
        token(rest);
    }
    found
}

/// Skips a number of bytes that end at the end of a character.
fn skip(rest: &mut Text<'_>, bytes: usize) {
    rest.next_slice(bytes);
}

pub(super) fn blank(rest: &mut Text<'_>) {
    let skipped: Result<&str, winnow::error::EmptyError> = multispace0.parse_next(rest);
    debug_assert!(skipped.is_ok(), "no blanks is fine too");
}

/// The rest of a list up to its closing parenthesis; at least one item.
pub(super) fn list<T>(
    rest: &mut Text<'_>,
    mut item: impl FnMut(&mut Text<'_>) -> Result<T, FilterError>,
) -> Result<Vec<T>, FilterError> {
    let mut items = vec![item(rest)?];
    while symbol(rest, ",") {
        items.push(item(rest)?);
    }
    if symbol(rest, ")") { Ok(items) } else { refuse(rest, "expected ',' or ')'") }
}

pub(super) fn not_in(rest: &mut Text<'_>) -> bool {
    let before = *rest;
    let found = word(rest, "not") && word(rest, "in");
    if !found {
        *rest = before;
    }
    found
}

pub(super) fn expect(rest: &mut Text<'_>, wanted: &str) -> Result<(), FilterError> {
    if symbol(rest, wanted) { Ok(()) } else { refuse(rest, format!("expected '{wanted}'")) }
}

pub(super) fn refuse<T>(at: &Text<'_>, reason: impl Into<String>) -> Result<T, FilterError> {
    Err(FilterError { position: at.current_token_start(), reason: reason.into() })
}
