//! Files → documents, each with its place: refused with file, line, key and the nearest name before anything is sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bellwether_api::number::kept_as_text;
use bellwether_api::v1::apply::{
    ClusterDocument, Document, EnsembleDocument, EntityDocument, FilterDocument, FreezeDocument,
    NodeDocument, ParamDocument, PauseDocument, ProfileDocument, ReactionDocument, ScheduleDocument,
    SinkDocument, SlotDocument, StageDocument, TaskDocument, WorkflowDocument,
};
use bellwether_rt::config_error::toml_reason;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::files::{self, Format, Input};
use super::hint;
use super::locate;
use super::numbers::{self, Found};
use crate::args::{DocumentKind, FileFlags};
use crate::exit::Failure;
use crate::near::improved;
use crate::yaml_depth;

/// What separates documents, on a line of its own.
const MARKER: &str = "---";

/// A document and where it was read.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) document: Document,
    /// `FILE, document N`; the file alone if it is its only one.
    place: String,
    format: Format,
    /// Its text, and the number of the line before it.
    part: Part,
}

/// A part of a file with one document in it.
#[derive(Debug, Clone)]
struct Part {
    text: String,
    lines_before: usize,
}

/// What every document says first. The rest is read once it is known what it is.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping with the key `kind`")]
struct Head {
    kind: DocumentKind,
}

/// Reads every document of all files. Nothing is answered unless all of them can be read, and each is there once.
pub(super) fn read(from: &FileFlags) -> Result<Vec<Located>, Failure> {
    let mut documents = Vec::new();
    for input in files::read(from)? {
        let before = documents.len();
        of_file(&input, &mut documents)?;
        if input.named && documents.len() == before {
            return Err(
                Failure::usage(format!("read {}: it contains no document", input.name)).hint(hint::KINDS)
            );
        }
    }
    let mut places: BTreeMap<(String, bool), &Located> = BTreeMap::new();
    for located in &documents {
        let object = located.object();
        if let Some(first) = places.insert((object.clone(), located.document.is_global()), located) {
            let (one, other) = (first.line_of("name"), located.line_of("name"));
            return Err(Failure::usage(format!("read {other}: {object} occurs twice, first in {one}")));
        }
    }
    if documents.is_empty() {
        return Err(Failure::usage("apply the files: they contain no document").hint(hint::KINDS));
    }
    Ok(documents)
}

/// The namespace that all documents are for: the one they name, or else that of the command.
pub(super) fn namespace<'a>(
    documents: &'a [Located],
    of_command: &'a str,
    is_said: bool,
) -> Result<&'a str, Failure> {
    let mut named: Option<(&str, &Located)> = None;
    for located in documents {
        let Some(namespace) = located.document.namespace().filter(|_| !located.document.is_global()) else {
            continue;
        };
        match named {
            Some((first, other)) if first != namespace => {
                let (one, other) = (located.line_of("namespace"), other.line_of("namespace"));
                let what = format!("read {one}: it is for namespace {namespace}, and {other} for {first}");
                return Err(
                    Failure::usage(what).hint("one apply changes one namespace; apply them one by one")
                );
            }
            Some(_) | None => named = Some((namespace, located)),
        }
    }
    match named {
        Some((namespace, located)) if is_said && namespace != of_command => {
            let place = located.line_of("namespace");
            let what = format!("read {place}: it is for namespace {namespace}, and -n names {of_command}");
            Err(Failure::usage(what).hint("leave one of them out"))
        }
        Some((namespace, _)) => Ok(namespace),
        None => Ok(of_command),
    }
}

impl Located {
    fn object(&self) -> String {
        format!("{}/{}", self.document.kind(), self.document.name())
    }

    /// Where the field is that an error is about, if it is about this document: `… entity/web: policy.batch: …`.
    pub(super) fn place_of(&self, error: &str) -> Option<String> {
        let (_, after) = error.split_once(&format!("{}: ", self.object()))?;
        let field = after.split_once(": ").map_or("", |(field, _)| field);
        Some(self.line_of(field))
    }

    /// `FILE, document N, line M`: the line of a field such as `policy.batch`, or else of the document.
    fn line_of(&self, field: &str) -> String {
        let path = locate::parts(field);
        let index = locate::line_of(self.format, &without_marker(self.format, &self.part.text), &path);
        let index = index.unwrap_or_else(|| self.part.first_line());
        format!("{}, line {}", self.place, self.part.lines_before + index + 1)
    }
}

impl Part {
    /// The index of its first line that is neither empty nor a marker or comment.
    fn first_line(&self) -> usize {
        let is_said = |line: &str| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with(MARKER) && !line.starts_with('#')
        };
        self.text.lines().position(is_said).unwrap_or_default()
    }
}

fn of_file(input: &Input, documents: &mut Vec<Located>) -> Result<(), Failure> {
    let parts = match input.format {
        Format::Json => vec![Part { text: input.text.clone(), lines_before: 0 }],
        Format::Toml | Format::Yaml => parts(&input.text),
    };
    let whole: Vec<Part> = parts.into_iter().filter(|part| !says_nothing(input.format, &part.text)).collect();
    let several = whole.len() > 1;
    for (index, part) in whole.into_iter().enumerate() {
        let number = if several { format!(", document {}", index + 1) } else { String::new() };
        let place = format!("{}{number}", input.name);
        shallow(input.format, &part, &place)?;
        exact(input.format, &part, &place)?;
        let document = one(input.format, &part).map_err(|error| {
            let kind = value::<Head>(input.format, &part.text).ok().map(|head| head.kind);
            let hint = hint::of(kind, &error);
            let (place, error) = with_line(input.format, &part, &place, error.trim_end());
            Failure::usage(format!("read {place}: {}", improved(&error))).hint(hint)
        })?;
        documents.push(Located { document, place, format: input.format, part });
    }
    Ok(())
}

/// Refuses YAML that takes its parser for ever. The parsers of the others see to that themselves.
fn shallow(format: Format, part: &Part, place: &str) -> Result<(), Failure> {
    match format {
        Format::Yaml => yaml_depth::check(&part.text, part.lines_before)
            .map_err(|reason| Failure::usage(format!("read {place}: {reason}"))),
        Format::Json | Format::Toml => Ok(()),
    }
}

/// Refuses a document with a number that would be stored as another one.
fn exact(format: Format, part: &Part, place: &str) -> Result<(), Failure> {
    let text = without_marker(format, &part.text);
    let Some(Found { number, path }) = numbers::first(format, &text) else { return Ok(()) };
    let keys: Vec<&str> = path.iter().map(String::as_str).collect();
    let index = locate::line_of(format, &text, &keys).unwrap_or_else(|| part.first_line());
    let (line, field) = (part.lines_before + index + 1, path.join("."));
    let what =
        format!("read {place}, line {line}: {field}: the number {number} cannot be kept with all its digits");
    Err(Failure::usage(what).hint(kept_as_text(&number)))
}

/// The place of a document with the line of an error, where the parser gives none or that of the mapping around it.
fn with_line(format: Format, part: &Part, place: &str, error: &str) -> (String, String) {
    const DUPLICATE: &str = "duplicate field `";
    let at = |index: usize| format!("{place}, line {}", part.lines_before + index + 1);
    if let (Format::Yaml, Some((above, rest))) = (format, error.split_once(DUPLICATE))
        && let Some((key, _)) = rest.split_once('`')
    {
        let above = above.trim_end_matches(": ");
        let path: Vec<&str> = locate::parts(above).into_iter().chain([key]).collect();
        if let Some(index) = locate::second_line_of(format, &part.text, &path) {
            let above = if above.is_empty() { String::new() } else { format!("{above}: ") };
            return (at(index), format!("{above}{DUPLICATE}{key}`"));
        }
    }
    if error.contains(" at line ") {
        return (place.to_owned(), error.to_owned());
    }
    (at(part.first_line()), error.to_owned())
}

/// The parts of a file between its markers. The line of a marker belongs to the part behind it.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = vec![Part { text: String::new(), lines_before: 0 }];
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let after = line.strip_prefix(MARKER);
        if after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\n', '\r'])) {
            parts.push(Part { text: String::new(), lines_before: number });
        }
        if let Some(part) = parts.last_mut() {
            part.text.push_str(line);
        }
    }
    parts
}

/// Whether there is nothing but markers, comments and empty lines.
fn says_nothing(format: Format, text: &str) -> bool {
    format != Format::Json
        && text.lines().all(|line| {
            let line = line.strip_prefix(MARKER).unwrap_or(line).trim();
            line.is_empty() || line.starts_with('#')
        })
}

fn one(format: Format, part: &Part) -> Result<Document, String> {
    // Only an error needs the numbers of lines, and making them right costs as much as all lines before.
    document(format, &part.text)
        .or_else(|_| document(format, &format!("{}{}", "\n".repeat(part.lines_before), part.text)))
}

fn document(format: Format, text: &str) -> Result<Document, String> {
    Ok(match value::<Head>(format, text)?.kind {
        DocumentKind::Cluster => Document::Cluster(value::<ClusterDocument>(format, text)?),
        DocumentKind::Ensemble => Document::Ensemble(Box::new(value::<EnsembleDocument>(format, text)?)),
        DocumentKind::Entity => Document::Entity(Box::new(value::<EntityDocument>(format, text)?)),
        DocumentKind::Filter => Document::Filter(value::<FilterDocument>(format, text)?),
        DocumentKind::Freeze => Document::Freeze(value::<FreezeDocument>(format, text)?),
        DocumentKind::Node => Document::Node(value::<NodeDocument>(format, text)?),
        DocumentKind::Param => Document::Param(value::<ParamDocument>(format, text)?),
        DocumentKind::Pause => Document::Pause(value::<PauseDocument>(format, text)?),
        DocumentKind::Profile => Document::Profile(value::<ProfileDocument>(format, text)?),
        DocumentKind::Schedule => Document::Schedule(Box::new(value::<ScheduleDocument>(format, text)?)),
        DocumentKind::Reaction => Document::Reaction(Box::new(value::<ReactionDocument>(format, text)?)),
        DocumentKind::Sink => Document::Sink(Box::new(value::<SinkDocument>(format, text)?)),
        DocumentKind::Slot => Document::Slot(value::<SlotDocument>(format, text)?),
        DocumentKind::Stage => Document::Stage(value::<StageDocument>(format, text)?),
        DocumentKind::Task => Document::Task(value::<TaskDocument>(format, text)?),
        DocumentKind::Workflow => Document::Workflow(value::<WorkflowDocument>(format, text)?),
    })
}

fn value<T: DeserializeOwned>(format: Format, text: &str) -> Result<T, String> {
    match format {
        Format::Json => {
            let mut json = serde_json::Deserializer::from_str(text);
            let value = serde_path_to_error::deserialize(&mut json);
            let value = value.map_err(|error| at_path(error.path(), error.inner().to_string()))?;
            json.end().map(|()| value).map_err(|error| error.to_string())
        }
        Format::Yaml => serde_norway::from_str(text).map_err(|error| error.to_string()),
        Format::Toml => {
            let text = without_marker(format, text);
            let toml = toml::Deserializer::parse(&text).map_err(|error| toml_reason(&error, &text))?;
            serde_path_to_error::deserialize(toml)
                .map_err(|error| at_path(error.path(), toml_reason(error.inner(), &text)))
        }
    }
}

/// An error with the path of its field before it, as that of YAML has it. An unknown field is named by the error itself.
fn at_path(path: &serde_path_to_error::Path, error: String) -> String {
    let path = path.to_string();
    let unknown = error.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let above = unknown.and_then(|key| path.strip_suffix(key)).map(|above| above.trim_end_matches('.'));
    match above.unwrap_or(&path) {
        "" | "." => error,
        path => format!("{path}: {error}"),
    }
}

/// The text of a document that its format can read. The marker is not TOML; an empty line in its place keeps the numbers of the
/// other lines.
fn without_marker(format: Format, text: &str) -> Cow<'_, str> {
    let marked = text.lines().position(|line| line.trim_end() == MARKER);
    match (format, marked) {
        (Format::Toml, Some(marker)) => Cow::Owned(without_line(text, marker)),
        (Format::Toml | Format::Json | Format::Yaml, _) => Cow::Borrowed(text),
    }
}

fn without_line(text: &str, number: usize) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| if index == number { "\n".to_owned() } else { format!("{line}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_at_markers_and_keep_their_lines() {
        let text = "# head\n---\na: 1\n--- # two\nb: |\n  ---\n---x\n---\n";
        let parts = parts(text);
        let found: Vec<(usize, &str)> =
            parts.iter().map(|part| (part.lines_before, part.text.as_str())).collect();
        assert_eq!(
            found,
            [(0, "# head\n"), (1, "---\na: 1\n"), (3, "--- # two\nb: |\n  ---\n---x\n"), (7, "---\n")]
        );
        assert!(says_nothing(Format::Yaml, parts[0].text.as_str()) && says_nothing(Format::Yaml, "---\n"));
        assert!(!says_nothing(Format::Yaml, "--- {a: 1}\n"));
    }

    #[test]
    fn yaml_that_is_nested_very_deep_is_refused_before_it_is_parsed() {
        let nested = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let text = format!("kind: slot\nname: a\n---\nkind: profile\nname: b\nparams:\n  a: {nested}\n");
        let (name, format) = ("x.yaml".to_owned(), Format::Yaml);
        let error = of_file(&Input { name, format, text, named: true }, &mut Vec::new()).unwrap_err().message;
        assert_eq!(error, "cannot read x.yaml, document 2: it is nested deeper than 64 levels at line 7");
    }

    #[test]
    fn a_toml_document_behind_a_marker_tells_its_own_line() {
        let text = "kind = \"slot\"\nname = \"a\"\n---\nkind = \"slot\"\nname = \"b\"\ncapcity = 2\n";
        let input = |text: &str| Input {
            name: "x.toml".to_owned(),
            format: Format::Toml,
            text: text.to_owned(),
            named: true,
        };
        let mut documents = Vec::new();
        let error = of_file(&input(text), &mut documents).unwrap_err().message;
        for part in ["x.toml, document 2", "line 6", "did you mean capacity?"] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
        let mut documents = Vec::new();
        of_file(&input(&text.replace("capcity", "capacity")), &mut documents).unwrap();
        let second = documents.get(1).unwrap();
        let place = second.place_of("read slot/b: capacity: it is not from 0 to 1000").unwrap();
        assert_eq!(place, "x.toml, document 2, line 6");
        assert_eq!(second.place_of("read slot/a: capacity: no"), None);
    }
}
