//! The selector grammar. Owns the parser; never evaluates a selector.
//!
//! ```text
//! either = both *( "or" both )
//! both   = one *( "and" one )
//! one    = "not" one | "(" either ")" | "all" | test
//! test   = field [ "=" value | "!=" value | ["not"] "in" "(" value *("," value) ")" ]
//! ```

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use winnow::Parser;
use winnow::ascii::multispace0;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{literal, take_while};

use crate::words::label::{is_key, is_reserved, is_value_byte};
use crate::words::selector::expression::{
    Expression, Field, MAX_SELECTOR_BYTES, MAX_SELECTOR_DEPTH, Predicate, SelectorError,
};

type Text<'a> = LocatingSlice<&'a str>;

/// Parses a whole selector.
pub(super) fn read(text: &str) -> Result<Expression, SelectorError> {
    if text.len() > MAX_SELECTOR_BYTES {
        let reason = "it is longer than 4096 bytes";
        return Err(SelectorError { position: MAX_SELECTOR_BYTES, reason });
    }
    let mut rest = LocatingSlice::new(text);
    blank(&mut rest);
    if rest.is_empty() {
        return Err(SelectorError { position: 0, reason: "it is empty; write 'all' for every node" });
    }
    let tree = either(&mut rest, 0)?;
    if rest.is_empty() { Ok(tree) } else { refuse(&rest, "expected 'and', 'or' or the end of the selector") }
}

fn either(rest: &mut Text<'_>, depth: usize) -> Result<Expression, SelectorError> {
    let mut parts = vec![both(rest, depth)?];
    while word(rest, "or") {
        parts.push(both(rest, depth)?);
    }
    Ok(single_or(parts, Expression::Or))
}

fn both(rest: &mut Text<'_>, depth: usize) -> Result<Expression, SelectorError> {
    let mut parts = vec![one(rest, depth)?];
    while word(rest, "and") {
        parts.push(one(rest, depth)?);
    }
    Ok(single_or(parts, Expression::And))
}

fn one(rest: &mut Text<'_>, depth: usize) -> Result<Expression, SelectorError> {
    if depth >= MAX_SELECTOR_DEPTH {
        return refuse(rest, "it is nested deeper than 32");
    }
    if word(rest, "not") {
        return one(rest, depth + 1).map(|inner| Expression::Not(Box::new(inner)));
    }
    if symbol(rest, "(") {
        let inner = either(rest, depth + 1)?;
        return if symbol(rest, ")") { Ok(inner) } else { refuse(rest, "expected ')'") };
    }
    if word(rest, "all") { Ok(Expression::All) } else { test(rest) }
}

fn test(rest: &mut Text<'_>) -> Result<Expression, SelectorError> {
    let before = *rest;
    let name = token(rest);
    let field = match name {
        "name" => Field::Name,
        key if is_key(key) && !is_reserved(key) => Field::Label(key.into()),
        _ => return refuse(&before, "expected a label key, 'name', 'not', 'all' or '('"),
    };
    let test = if symbol(rest, "!=") {
        Predicate::IsNot(value(rest)?)
    } else if symbol(rest, "=") {
        Predicate::Is(value(rest)?)
    } else if word(rest, "in") {
        Predicate::In(values(rest)?)
    } else if not_in(rest) {
        Predicate::NotIn(values(rest)?)
    } else {
        Predicate::Exists
    };
    Ok(Expression::Test { field, test })
}

fn not_in(rest: &mut Text<'_>) -> bool {
    let before = *rest;
    let found = word(rest, "not") && word(rest, "in");
    if !found {
        *rest = before;
    }
    found
}

fn values(rest: &mut Text<'_>) -> Result<Vec<String>, SelectorError> {
    if !symbol(rest, "(") {
        return refuse(rest, "expected '(' after 'in'");
    }
    let mut values = vec![value(rest)?];
    while symbol(rest, ",") {
        values.push(value(rest)?);
    }
    if symbol(rest, ")") { Ok(values) } else { refuse(rest, "expected ',' or ')'") }
}

fn value(rest: &mut Text<'_>) -> Result<String, SelectorError> {
    let before = *rest;
    let text = token(rest);
    if text.is_empty() { refuse(&before, "expected a value") } else { Ok(text.to_string()) }
}

/// A run of characters that keys and values consist of.
fn token<'a>(rest: &mut Text<'a>) -> &'a str {
    let run = |c: char| u8::try_from(c).is_ok_and(is_value_byte);
    let found = take_while::<_, _, winnow::error::EmptyError>(0.., run).parse_next(rest).unwrap_or("");
    blank(rest);
    found
}

fn symbol(rest: &mut Text<'_>, wanted: &str) -> bool {
    let found: Result<&str, winnow::error::EmptyError> = literal(wanted).parse_next(rest);
    blank(rest);
    found.is_ok()
}

fn word(rest: &mut Text<'_>, wanted: &str) -> bool {
    let before = *rest;
    let found = token(rest) == wanted;
    if !found {
        *rest = before;
    }
    found
}

fn blank(rest: &mut Text<'_>) {
    let skipped: Result<&str, winnow::error::EmptyError> = multispace0.parse_next(rest);
    debug_assert!(skipped.is_ok(), "no blanks is fine too");
}

fn refuse<T>(at: &Text<'_>, reason: &'static str) -> Result<T, SelectorError> {
    Err(SelectorError { position: at.current_token_start(), reason })
}

fn single_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            many(parts)
        }
    }
}
