//! Objects as documents: `export`, and what commands print for `-o yaml`. Applied as they are, they change nothing.

use std::path::Path;

use bellwether_api::v1::apply::Document;
use bellwether_core::words::plural::plural;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{Export, Output};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::data::readable;
use crate::show::{print, print_data};
use crate::whole_file;

/// Prints what can be applied of the namespace, or writes it to files.
pub(super) async fn export(context: &Context, flags: &Export) -> CommandResult {
    let mut documents = context.client.documents(&context.namespace).await?.items;
    let is_selected = |document: &Document| {
        flags.kind.is_empty() || flags.kind.iter().any(|kind| kind.as_str() == document.kind())
    };
    documents.retain(|document| !document.is_global() && is_selected(document));
    if let Some(directory) = &flags.directory {
        let written = write_files(directory, &documents)?;
        let (written, place) = (plural(written, "object"), directory.display());
        context.show.changed(&format!(
            "{written} written to {place}, one file each; read them with: apply -f {place}"
        ));
        return Ok(Exit::Yes);
    }
    match context.show.output {
        Output::Json => context.show.data(&documents, Vec::new, |_| String::new())?,
        Output::Name => print(&documents.iter().map(object).collect::<Vec<_>>().join("\n"))?,
        Output::Table | Output::Wide | Output::Yaml => {
            let all = documents.iter().map(|document| text(document, None));
            print_data(&all.collect::<Result<Vec<_>, _>>()?.join("---\n"))?;
        }
    }
    Ok(Exit::Yes)
}

/// Writes one file for each document; answers how many. Other files in the directory stay.
fn write_files(directory: &Path, documents: &[Document]) -> Result<usize, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::local(LocalFault::Output, format!("write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for document in documents {
        let path =
            directory.join(format!("{}-{}.yaml", document.kind(), document.name().replace('/', "%2F")));
        whole_file::replace(&path, text(document, None)?.as_bytes()).map_err(|error| failed(&path, error))?;
    }
    Ok(documents.len())
}

fn object(document: &Document) -> String {
    format!("{}/{}", document.kind(), document.name())
}

/// Prints objects of a kind as documents, if YAML was asked for; answers whether it did. What else there is to say of each
/// is its `status`, which `apply` passes over.
pub(super) async fn yaml<T: Serialize>(context: &Context, kind: &str, views: &[T]) -> Result<bool, Failure> {
    if context.show.output != Output::Yaml {
        return Ok(false);
    }
    let documents = context.client.documents(&context.namespace).await?.items;
    let mut texts = Vec::new();
    for view in views {
        let view = fields(view)?;
        let is_of = |document: &&Document| {
            let global = view.get("global").and_then(Value::as_bool).unwrap_or_default();
            let name = ["name", "profile"].iter().find_map(|key| view.get(*key)?.as_str());
            document.kind() == kind && Some(document.name()) == name && document.is_global() == global
        };
        match documents.iter().find(is_of) {
            Some(document) => texts.push(text(document, Some(view))?),
            // A freeze that ended: as a document it would be one in force.
            None => texts.push(commented(&view)?),
        }
    }
    print_data(&texts.join("---\n"))?;
    Ok(true)
}

/// The fields of a view; those of a pause and a freeze are a level further in.
fn fields<T: Serialize>(view: &T) -> Result<Map<String, Value>, Failure> {
    let Value::Object(mut fields) = serde_json::to_value(view).map_err(unprintable)? else {
        return Ok(Map::new());
    };
    for nested in ["pause", "freeze"] {
        if let Some(Value::Object(inner)) = fields.remove(nested) {
            fields.extend(inner);
        }
    }
    Ok(fields)
}

/// A document as YAML, with the fields of its view that are not its own as its status.
fn text(document: &Document, view: Option<Map<String, Value>>) -> Result<String, Failure> {
    let text = serde_norway::to_string(document).map_err(unprintable)?;
    let Some(mut view) = view else { return Ok(text) };
    let own = fields(document)?;
    view.retain(|key, value| !own.contains_key(key) && !matches!(key.as_str(), "global") && !is_empty(value));
    if view.is_empty() {
        return Ok(text);
    }
    let status =
        readable(&Map::from_iter([("status".to_owned(), Value::Object(view))])).map_err(unprintable)?;
    let status = serde_norway::to_string(&status);
    Ok(format!("{text}{}", status.map_err(unprintable)?))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn commented(view: &Map<String, Value>) -> Result<String, Failure> {
    let text = serde_norway::to_string(&readable(view).map_err(unprintable)?).map_err(unprintable)?;
    Ok(text.lines().map(|line| format!("# {line}\n")).collect())
}

fn unprintable(error: impl std::fmt::Display) -> Failure {
    Failure::ours(format!("print the answer: {error}"))
}
