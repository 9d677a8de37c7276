//! The template language of files and tasks: text from a template and its context. Bounded in every direction: the length of a
//! template, the length of one tag in it, the work, and the length of the text.

use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};

/// Longest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 256 << 10;

/// Longest `{{ … }}`, `{% … %}` or `{# … #}`, in bytes. A deeper expression than fits into it could exhaust the stack.
pub const MAX_TAG_BYTES: usize = 2 << 10;

/// Longest rendered text, in bytes.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// Most steps of one rendering: some tenths of a second.
const MAX_STEPS: u64 = 2_000_000;

/// Renders `source` with any context; `undefined` is the reason given for an undefined variable.
///
/// # Errors
/// One line with the template, the line in it, and the reason.
pub fn draw(name: &str, source: &str, context: Value, undefined: &str) -> Result<String, String> {
    within_limits(name, source)?;
    let worded = |error| worded(name, source, &error, undefined);
    let environment = environment().map_err(worded)?;
    let template = environment.template_from_named_str(name, source).map_err(worded)?;
    let mut text = CappedText(Vec::new());
    template.render_captured_to(context, &mut text).map_err(worded)?;
    String::from_utf8(text.0).map_err(|_| format!("{name}: the rendered text is not UTF-8"))
}

/// Checks the length and the syntax of a template; `name` names it in error messages.
///
/// # Errors
/// One line with the template, the line in it, and the reason.
pub fn check(name: &str, source: &str) -> Result<(), String> {
    within_limits(name, source)?;
    let worded = |error| worded(name, source, &error, "");
    let environment = environment().map_err(worded)?;
    environment.template_from_named_str(name, source).map_err(worded)?;
    Ok(())
}

/// Whether a template reads a variable of this name. One that is no template reads none.
#[must_use]
pub fn reads(source: &str, variable: &str) -> bool {
    let Ok(environment) = environment() else { return false };
    let template = environment.template_from_named_str("template", source);
    template.is_ok_and(|template| template.undeclared_variables(false).contains(variable))
}

fn within_limits(name: &str, source: &str) -> Result<(), String> {
    if source.len() > MAX_TEMPLATE_BYTES {
        return Err(format!("{name}: longer than {MAX_TEMPLATE_BYTES} bytes"));
    }
    match long_tag(source) {
        Some(line) => Err(format!("{name}, line {line}: a tag is longer than {MAX_TAG_BYTES} bytes")),
        None => Ok(()),
    }
}

/// The language, with its bounds.
pub(crate) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    // A line with only a tag on it leaves no empty line, and the last line keeps its end, as configuration files need it.
    let mut syntax = SyntaxConfig::builder();
    let syntax = syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(MAX_STEPS));
    environment.set_debug(true);
    environment.set_syntax(syntax);
    environment.set_formatter(print);
    environment.add_filter("quote", quote);
    Ok(environment)
}

/// A value as one word of a shell, whatever it contains: in single quotes.
fn quote(value: &Value) -> String {
    format!("'{}'", value.to_string().replace('\'', "'\\''"))
}

/// The line of the first tag that is too long. What looks like a tag in text or in a comment counts as one.
fn long_tag(source: &str) -> Option<usize> {
    let mut line = 1;
    let mut open: Option<(usize, usize)> = None;
    for (at, pair) in source.as_bytes().windows(2).enumerate() {
        match (pair, open) {
            ([b'{', b'{' | b'%' | b'#'], None) => open = Some((at, line)),
            ([b'}' | b'%' | b'#', b'}'], Some((start, began))) => {
                if at - start > MAX_TAG_BYTES {
                    return Some(began);
                }
                open = None;
            }
            (_, Some((start, began))) if at - start > MAX_TAG_BYTES => return Some(began),
            (_, _) => {}
        }
        line += usize::from(pair.first() == Some(&b'\n'));
    }
    None
}

/// An error with its line and, if known, its expression.
fn worded(name: &str, source: &str, error: &minijinja::Error, undefined: &str) -> String {
    let place = error.line().map_or_else(String::new, |line| format!(", line {line}"));
    let about = error.range().and_then(|range| expression(source, range)).unwrap_or_default();
    let short: String = about.chars().take(80).collect();
    let kind = error.kind();
    let reason = if kind == ErrorKind::UndefinedError {
        format!("`{short}` is undefined: {undefined}")
    } else if kind == ErrorKind::OutOfFuel {
        format!("rendering takes more than {MAX_STEPS} steps")
    } else if kind == ErrorKind::WriteFailure {
        format!("the rendered text has more than {MAX_TEXT_BYTES} bytes")
    } else if short.is_empty() {
        plain(error)
    } else {
        format!("{} in `{short}`", plain(error))
    };
    format!("{name}{place}: {reason}")
}

/// The expression at a range, extended to the start of its name.
fn expression(source: &str, range: std::ops::Range<usize>) -> Option<&str> {
    let before = source.get(..range.start)?;
    let name = before.trim_end_matches(|char: char| char.is_alphanumeric() || char == '_');
    Some(source.get(name.len()..range.end)?.trim())
}

/// Writes a value to a file: booleans as configuration files have them, text unchanged.
fn print(
    out: &mut minijinja::Output<'_>,
    state: &mut minijinja::State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    if value.kind() == ValueKind::Bool {
        Ok(out.write_str(if value.is_true() { "true" } else { "false" })?)
    } else if value.kind() == ValueKind::None {
        Ok(out.write_str("null")?)
    } else {
        minijinja::escape_formatter(out, state, value)
    }
}

/// The kind of an error, with what it says.
pub(crate) fn plain(error: &minijinja::Error) -> String {
    let kind = error.kind().to_string();
    error.detail().map_or(kind.clone(), |detail| format!("{kind}: {detail}"))
}

/// A text with a limit on its length.
struct CappedText(Vec<u8>);

impl Write for CappedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_TEXT_BYTES {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_reads_what_stands_in_its_tags_and_nothing_else() {
        assert!(reads("{% if outputs['probe'].ok %}x{% endif %}", "outputs"));
        assert!(!reads("outputs {{ params.outputs }} {# outputs #}", "outputs"));
        assert!(!reads("{% for outputs in params.all %}{{ outputs }}{% endfor %}", "outputs"));
        assert!(!reads("{{ outputs", "outputs"));
    }

    #[test]
    fn a_quoted_value_is_one_word_of_a_shell() {
        let context = minijinja::context! { name => "it's $(id) `id` \"x\"", port => 80 };
        let drawn = draw("t", "echo {{ name | quote }} {{ port | quote }}", context, "");
        assert_eq!(drawn.as_deref(), Ok(r#"echo 'it'\''s $(id) `id` "x"' '80'"#));
    }
}
