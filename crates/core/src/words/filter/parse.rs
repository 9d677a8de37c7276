//! The grammar of filters. Owns the parser; never evaluates a filter.
//!
//! ```text
//! either = both *( "or" both )
//! both   = one *( ["and" | ","] one )
//! one    = "not" one | "(" either ")" | "all" | call | saved | test
//! saved  = "@" word
//! call   = ( "And" | "Or" ) "(" either *( "," either ) ")" | "Not" "(" either ")" | "exists" "(" field ")"
//! test   = ["any"] field [ operator ]
//! operator = ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "=~" | "!~" ) value
//!          | ["not"] "in" "(" value *( "," value ) ")"
//!          | ( "Eq" | "Ne" | "Lt" | "Lte" | "Gt" | "Gte" | "Re" ) value
//!          | ( "In" | "Nin" ) list | ( "Between" | "Except" ) pair
//! field  = word [ "[" text "]" ]
//! ```

mod name;
mod tokens;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use regex::{Regex, RegexBuilder};
use winnow::stream::LocatingSlice;
use winnow::stream::Location as _;

use self::name::field;
use self::tokens::{
    Literal, Text, blank, expect, list, literal_of, literal_of_run, not_in, peek, refuse, symbol, token, word,
};
use super::error::{FilterError, MAX_FILTER_BYTES, MAX_FILTER_DEPTH, MAX_FILTER_PATTERNS};
use super::expression::{Comparison, Pattern, Predicate, SavedTerm, number};
use super::field::{Field, FieldTable, FieldType, allowed};
use crate::words::label::is_value_byte;
use crate::words::name::FilterName;
use crate::words::near::nearest;
use crate::words::time::Span;
use crate::words::value::{Number, Value};

/// An expression as it is read, which may name saved filters.
type Expression = super::expression::Expression<SavedTerm>;

/// Largest compiled regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 64 << 10;

/// Operators of the pattern language that are words.
const OPERATORS: [&str; 11] = ["Eq", "Ne", "Lt", "Lte", "Gt", "Gte", "Re", "In", "Nin", "Between", "Except"];

/// Where the parser is: the fields that there are, and how deep it is nested.
#[derive(Clone, Copy)]
struct Scope<'a> {
    /// The whole text.
    text: &'a str,
    table: &'static FieldTable,
    depth: usize,
    /// Whether a comma separates here, as within `And(…)` and `Or(…)`.
    is_call: bool,
}

impl Scope<'_> {
    const fn deeper(self, is_call: bool) -> Self {
        Self { depth: self.depth + 1, is_call, ..self }
    }
}

/// A test whose position is not known yet.
enum Test {
    Is(Field, Predicate),
    IsNot(Field, Predicate),
}

impl Test {
    fn negated(self) -> Self {
        match self {
            Self::Is(field, test) => Self::IsNot(field, test),
            Self::IsNot(field, test) => Self::Is(field, test),
        }
    }

    fn at(self, at: &Text<'_>) -> Expression {
        let position = at.current_token_start();
        match self {
            Self::Is(field, test) => Expression::Test { field, test, position },
            Self::IsNot(field, test) => negated(Expression::Test { field, test, position }),
        }
    }
}

/// Parses a field alone.
pub(super) fn read_field(text: &str, table: &'static FieldTable) -> Result<Field, FilterError> {
    let mut rest = LocatingSlice::new(text);
    blank(&mut rest);
    let (field, _) = field(&mut rest, table)?;
    if rest.is_empty() { Ok(field) } else { refuse(&rest, "expected the end of the field") }
}

/// What `all` stands for.
fn every(table: &FieldTable) -> String {
    if table.plural == "nodes" { "every node".into() } else { format!("all {}", table.plural) }
}

/// Parses a whole filter.
pub(super) fn read(text: &str, table: &'static FieldTable) -> Result<Expression, FilterError> {
    if text.len() > MAX_FILTER_BYTES {
        let reason = format!("it is longer than {MAX_FILTER_BYTES} bytes");
        return Err(FilterError { position: MAX_FILTER_BYTES, reason });
    }
    let mut rest = LocatingSlice::new(text);
    blank(&mut rest);
    if rest.is_empty() {
        return refuse(&rest, format!("it is empty; write 'all' for {}", every(table)));
    }
    let tree = either(&mut rest, Scope { text, table, depth: 0, is_call: false })?;
    if !rest.is_empty() {
        return refuse(&rest, "expected 'and', 'or' or the end of the filter");
    }
    if tree.patterns() > MAX_FILTER_PATTERNS {
        let reason = format!(
            "it has more than {MAX_FILTER_PATTERNS} regular expressions: join them, such as \"^(web|db)-\""
        );
        return Err(FilterError { position: 0, reason });
    }
    Ok(tree)
}

fn either(rest: &mut Text<'_>, scope: Scope<'_>) -> Result<Expression, FilterError> {
    let mut parts = vec![both(rest, scope)?];
    while word(rest, "or") {
        parts.push(both(rest, scope)?);
    }
    Ok(single_or(parts, Expression::Or))
}

fn both(rest: &mut Text<'_>, scope: Scope<'_>) -> Result<Expression, FilterError> {
    let mut parts = vec![one(rest, scope)?];
    loop {
        // The comma of label selectors.
        let is_joined = word(rest, "and") || (!scope.is_call && symbol(rest, ","));
        // Terms side by side mean `and`.
        let follows = rest.starts_with(['(', '@']) || (!peek(rest).is_empty() && peek(rest) != "or");
        if !is_joined && !follows {
            return Ok(single_or(parts, Expression::And));
        }
        parts.push(one(rest, scope)?);
    }
}

fn one(rest: &mut Text<'_>, scope: Scope<'_>) -> Result<Expression, FilterError> {
    if scope.depth >= MAX_FILTER_DEPTH {
        return refuse(rest, format!("it is nested deeper than {MAX_FILTER_DEPTH}"));
    }
    if word(rest, "not") {
        return one(rest, scope.deeper(scope.is_call)).map(negated);
    }
    if symbol(rest, "(") {
        let inner = either(rest, scope.deeper(false))?;
        expect(rest, ")")?;
        return Ok(inner);
    }
    if word(rest, "all") {
        return Ok(Expression::All);
    }
    let before = *rest;
    for (name, many) in
        [("And", Expression::And as fn(Vec<Expression>) -> Expression), ("Or", Expression::Or)]
    {
        if word(rest, name) && symbol(rest, "(") {
            return Ok(single_or(list(rest, |rest| either(rest, scope.deeper(true)))?, many));
        }
        *rest = before;
    }
    if word(rest, "Not") && symbol(rest, "(") {
        let inner = either(rest, scope.deeper(false))?;
        expect(rest, ")")?;
        return Ok(negated(inner));
    }
    *rest = before;
    if word(rest, "exists") && symbol(rest, "(") {
        let position = rest.current_token_start();
        let (field, _) = field(rest, scope.table)?;
        expect(rest, ")")?;
        return Ok(Expression::Test { field, test: Predicate::Exists, position });
    }
    *rest = before;
    if rest.starts_with('@') { saved(rest, scope.text) } else { test(rest, scope.table) }
}

/// A saved filter. Right behind a word, it would be a part of a value for a person who reads it, such as an address of mail.
fn saved(rest: &mut Text<'_>, text: &str) -> Result<Expression, FilterError> {
    let position = rest.current_token_start();
    let before = position.checked_sub(1).and_then(|index| text.as_bytes().get(index));
    if before.is_some_and(|byte| is_value_byte(*byte)) {
        return refuse(
            rest,
            "a value with '@' is quoted, as in \"a@b\"; before @ and a saved filter is a blank",
        );
    }
    // A blank between them would be skipped.
    let is_named = text.get(position + 1..).is_some_and(|name| name.starts_with(|c| !char::is_whitespace(c)));
    symbol(rest, "@");
    let at = *rest;
    let name = token(rest);
    if name.is_empty() || !is_named {
        return refuse(&at, "expected the name of a saved filter");
    }
    match FilterName::parse(name) {
        Ok(name) => Ok(Expression::Saved(SavedTerm { name, position })),
        Err(error) => refuse(&at, error.to_string()),
    }
}

/// One test of a field.
fn test(rest: &mut Text<'_>, table: &'static FieldTable) -> Result<Expression, FilterError> {
    word(rest, "any");
    let before = *rest;
    let (field, bare) = field(rest, table)?;
    let operator = *rest;
    let name = peek(rest);
    if OPERATORS.contains(&name) {
        token(rest);
        // There a bare name is a param where there are params.
        let bare = bare.and_then(|name| Some(Field::new(table.bare_in_words()?, name)));
        return worded(rest, &operator, bare.unwrap_or(field), name).map(|test| test.at(&before));
    }
    if let Some(test) = symbolic(rest, &operator, &field)? {
        return Ok(test.at(&before));
    }
    if field.kind() == FieldType::Duration {
        return refuse(&before, format!("{field} is {}", allowed(FieldType::Duration)));
    }
    let flags = table.fields.iter().filter(|spec| spec.kind == FieldType::Flag).map(|spec| spec.name);
    if let Some((name, near)) = bare.and_then(|name| Some((name, nearest(name, flags)?))) {
        let reason = format!("{name} is not a field; did you mean {near}? For the label write label.{name}");
        return refuse(&before, reason);
    }
    Ok(Test::Is(field, Predicate::Exists).at(&before))
}

/// A test with an operator that is a symbol, or `in`; `None` if another thing follows.
fn symbolic(rest: &mut Text<'_>, operator: &Text<'_>, field: &Field) -> Result<Option<Test>, FilterError> {
    let comparison = |rest: &mut Text<'_>| {
        let symbols = [
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Less),
            (">", Comparison::More),
        ];
        symbols.into_iter().find(|(text, _)| symbol(rest, text)).map(|(_, comparison)| comparison)
    };
    let field = field.clone();
    if symbol(rest, "=~") {
        like(rest, operator, field)
    } else if symbol(rest, "!~") {
        like(rest, operator, field).map(Test::negated)
    } else if symbol(rest, "!=") {
        is(rest, operator, field).map(Test::negated)
    } else if symbol(rest, "==") || symbol(rest, "=") {
        is(rest, operator, field)
    } else if let Some(comparison) = comparison(rest) {
        ordered(rest, operator, field, comparison)
    } else if word(rest, "in") {
        within(rest, operator, field)
    } else if not_in(rest) {
        within(rest, operator, field).map(Test::negated)
    } else {
        return Ok(None);
    }
    .map(Some)
}

/// A test with an operator of the pattern language.
fn worded(rest: &mut Text<'_>, at: &Text<'_>, field: Field, name: &str) -> Result<Test, FilterError> {
    match name {
        "Eq" => is(rest, at, field),
        "Ne" => is(rest, at, field).map(Test::negated),
        "Lt" => ordered(rest, at, field, Comparison::Less),
        "Lte" => ordered(rest, at, field, Comparison::AtMost),
        "Gt" => ordered(rest, at, field, Comparison::More),
        "Gte" => ordered(rest, at, field, Comparison::AtLeast),
        "Re" => like(rest, at, field),
        "In" => within(rest, at, field),
        "Nin" => within(rest, at, field).map(Test::negated),
        "Between" => between(rest, at, field),
        _ => between(rest, at, field).map(Test::negated),
    }
}

fn is(rest: &mut Text<'_>, at: &Text<'_>, field: Field) -> Result<Test, FilterError> {
    if field.kind() == FieldType::Duration {
        return unfit(at, &field);
    }
    let wanted = typed(&field, literal_of(rest)?)?;
    Ok(Test::Is(field, Predicate::Is(wanted)))
}

fn within(rest: &mut Text<'_>, at: &Text<'_>, field: Field) -> Result<Test, FilterError> {
    if matches!(field.kind(), FieldType::Duration | FieldType::Flag) {
        return unfit(at, &field);
    }
    expect(rest, "(")?;
    let wanted = list(rest, |rest| typed(&field, literal_of(rest)?))?;
    Ok(Test::Is(field, Predicate::In(wanted)))
}

fn ordered(
    rest: &mut Text<'_>,
    at: &Text<'_>,
    field: Field,
    comparison: Comparison,
) -> Result<Test, FilterError> {
    let limit = limit(rest, at, &field)?;
    Ok(Test::Is(field, Predicate::Ordered(comparison, limit)))
}

fn between(rest: &mut Text<'_>, at: &Text<'_>, field: Field) -> Result<Test, FilterError> {
    expect(rest, "(")?;
    let least = limit(rest, at, &field)?;
    expect(rest, ",")?;
    let most = limit(rest, at, &field)?;
    expect(rest, ")")?;
    Ok(Test::Is(field, Predicate::Between(least, most)))
}

fn like(rest: &mut Text<'_>, at: &Text<'_>, field: Field) -> Result<Test, FilterError> {
    if matches!(field.kind(), FieldType::Duration | FieldType::Flag | FieldType::Number) {
        return unfit(at, &field);
    }
    let literal = literal_of_run(rest, |c| !c.is_whitespace() && c != ')' && c != ',')?;
    let built: Result<Regex, _> = RegexBuilder::new(&literal.text).size_limit(MAX_PATTERN_BYTES).build();
    match built {
        Ok(pattern) => Ok(Test::Is(field, Predicate::Like(Pattern(pattern)))),
        Err(error) => refuse(&literal.at, format!("not a valid regular expression: {error}")),
    }
}

/// The value that an order compares with.
fn limit(rest: &mut Text<'_>, at: &Text<'_>, field: &Field) -> Result<Value, FilterError> {
    let kind = field.kind();
    if matches!(kind, FieldType::Text | FieldType::Names | FieldType::Flag) {
        return unfit(at, field);
    }
    let literal = literal_of(rest)?;
    match (kind, number(&literal.text).filter(|_| !literal.is_quoted)) {
        (FieldType::Label | FieldType::Number, None) => refuse(&literal.at, "expected a number"),
        (FieldType::Label | FieldType::Number | FieldType::Any, Some(number)) => Ok(Value::Number(number)),
        (_, _) => typed(field, literal),
    }
}

/// A value of the type that a field has.
fn typed(field: &Field, literal: Literal<'_>) -> Result<Value, FilterError> {
    let text = || Value::Text(literal.text.as_str().into());
    match field.kind() {
        FieldType::Text if field.is_word() => Ok(Value::Text(literal.text.replace(' ', "_").into())),
        FieldType::Text | FieldType::Label | FieldType::Names => Ok(text()),
        FieldType::Any if literal.is_quoted => Ok(text()),
        FieldType::Any => Ok(match literal.text.as_str() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => number(other).map_or_else(text, Value::Number),
        }),
        FieldType::Flag => match literal.text.as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => refuse(&literal.at, format!("{field} is true or false")),
        },
        FieldType::Number => match number(&literal.text) {
            Some(number) => Ok(Value::Number(number)),
            None => refuse(&literal.at, format!("{field} is a number")),
        },
        FieldType::Duration => match literal.text.parse::<Span>() {
            Ok(span) => Ok(Value::Number(Number::integer(span.as_millis()))),
            Err(_) => refuse(&literal.at, format!("{field} is a duration, such as 10m")),
        },
    }
}

fn unfit<T>(at: &Text<'_>, field: &Field) -> Result<T, FilterError> {
    refuse(at, format!("{field} is {}", allowed(field.kind())))
}

fn negated(inner: Expression) -> Expression {
    Expression::Not(Box::new(inner))
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
