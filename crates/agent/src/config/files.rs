//! `[[file]]`: files written from the catalogue of services, for programs that do not query it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bellwether_core::catalogue::need::{Need, RequiredState};
use bellwether_core::catalogue::selection::CatalogueSelection;
use bellwether_core::words::name::{EntityName, ServiceName};
use bellwether_core::words::time::Span;
use bellwether_rt::config_error::ConfigError;

use super::command::{CommandDefaults, command};
use super::config_path::ConfigPath;
use super::file;
use super::kinds::{alone, mode, plain, template, user};
use super::recipe::{Command, Recipe, Template};
use crate::users::UserName;

/// Default time for which changes are gathered: services that start together lead to one reload.
pub const DEFAULT_DEBOUNCE: Span = Span::from_secs(1);

/// Default deadline of a check or a reload.
pub const DEFAULT_FILE_TIMEOUT: Span = Span::from_secs(60);

/// Longest time for which changes may be gathered.
const LONGEST_DEBOUNCE: Span = Span::from_secs(3_600);

/// Most files of one node, as for one entity.
const MAX_FILES: usize = 256;

/// A file written from the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueFile {
    /// Its absolute path; not a link, and in an existing directory.
    pub path: PathBuf,
    /// Its content.
    pub form: FileForm,
    /// The services it is rendered from.
    pub selection: CatalogueSelection,
    /// Its mode; by default that of the file it replaces, or 0644 for a new one.
    pub mode: Option<u32>,
    /// Its owner, who may write its directory; by default that of the file it replaces, or the agent's user for a new one.
    pub owner: Option<UserName>,
    /// A command that accepts or refuses the new file; `{path}` in an argument is the path of the new file.
    pub check: Option<Command>,
    /// A command that makes the file's reader read it again.
    pub reload: Option<Command>,
    /// Deadline of the check, and of the reload.
    pub timeout: Span,
    /// For how long changes are gathered.
    pub debounce: Span,
    /// Entities whose dynamic part waits until the file is written.
    pub before: BTreeSet<EntityName>,
}

/// The content of a catalogue file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileForm {
    /// A known format.
    Known(Format),
    /// A template rendered with the catalogue.
    Template(Template),
}

/// Known formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A data file for hiera: `services::SERVICE::INTERFACE: [ADDRESS, …]`.
    Hiera,
    /// One JSON object.
    Json,
    /// Variables for shells and for systemd.
    Env,
}

impl Format {
    /// Parses the name of a format.
    ///
    /// # Errors
    /// The valid names.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "hiera" => Ok(Self::Hiera),
            "json" => Ok(Self::Json),
            "env" => Ok(Self::Env),
            other => Err(format!("{other:?} is not \"hiera\", \"json\" or \"env\"")),
        }
    }

    /// The default state of the instances that are written: nodes that configure themselves by hiera also need the addresses
    /// of instances that wait for them.
    #[must_use]
    pub const fn level(self) -> RequiredState {
        match self {
            Self::Hiera => RequiredState::Addressable,
            Self::Json | Self::Env => RequiredState::Functional,
        }
    }
}

/// Checks every file; `known` are the paths that are written already, with the key that names them.
pub(super) fn all(
    written: &[(PathBuf, file::CatalogueFileTable)],
    entities: &BTreeMap<EntityName, Recipe>,
    known: &mut BTreeMap<PathBuf, String>,
) -> Result<Vec<CatalogueFile>, ConfigError> {
    let mut files = Vec::new();
    for (from, file) in written {
        let place = ConfigPath::new(from, format!("file.{}", file.path.display()));
        let file = one(&place, file, entities)?;
        alone(&place, &file.path, known)?;
        files.push(file);
        if files.len() > MAX_FILES {
            return Err(place.refuse(format!("more than {MAX_FILES} files")));
        }
    }
    Ok(files)
}

fn one(
    place: &ConfigPath,
    file: &file::CatalogueFileTable,
    entities: &BTreeMap<EntityName, Recipe>,
) -> Result<CatalogueFile, ConfigError> {
    let path = plain(&file.path).map_err(|reason| place.at("path").refuse(reason))?;
    let form = form(place, file)?;
    let level = match (&file.level, &form) {
        (Some(text), _) => RequiredState::parse(text).ok_or_else(|| {
            place.at("level").refuse(format!("{text:?} is neither \"functional\" nor \"addressable\""))
        })?,
        (None, FileForm::Known(format)) => format.level(),
        (None, FileForm::Template(_)) => RequiredState::Functional,
    };
    let names = |key: &str, texts: &[String]| {
        let place = place.at(key);
        texts.iter().map(|text| place.read::<ServiceName>(text)).collect::<Result<BTreeSet<_>, _>>()
    };
    let services = names("services", &file.services)?;
    let required = file.required.iter().map(|text| {
        let need: Need = place.at("required").read(text)?;
        Ok(Need { at: level, ..need })
    });
    let required = required.collect::<Result<Vec<_>, ConfigError>>()?;
    let setting = CommandDefaults { workdir: PathBuf::from("/"), env: BTreeMap::new() };
    let argv = |key: &str, argv: Option<&Vec<String>>| {
        let read = argv.map(|argv| command(argv, &setting)).transpose();
        read.map_err(|reason| place.at(key).refuse(reason))
    };
    let mode = file.mode.as_deref().map(mode).transpose();
    Ok(CatalogueFile {
        path,
        form,
        selection: CatalogueSelection { services, level, required },
        mode: mode.map_err(|reason| place.at("mode").refuse(reason))?,
        owner: user(&place.at("owner"), file.owner.as_deref())?,
        check: argv("check", file.check.as_ref())?,
        reload: argv("reload", file.reload.as_ref())?,
        timeout: place.at("timeout").span(file.timeout.as_deref(), DEFAULT_FILE_TIMEOUT)?,
        debounce: debounce(&place.at("debounce"), file.debounce.as_deref())?,
        before: before(&place.at("before"), &file.before, entities)?,
    })
}

fn form(place: &ConfigPath, file: &file::CatalogueFileTable) -> Result<FileForm, ConfigError> {
    match (&file.format, template(place, file.template.as_deref(), file.text.as_deref())?) {
        (Some(format), None) => {
            let format = Format::parse(format).map_err(|reason| place.at("format").refuse(reason))?;
            Ok(FileForm::Known(format))
        }
        (None, Some(template)) => Ok(FileForm::Template(template)),
        (None, None) => Err(place.refuse("name one of format, template or text")),
        (Some(_), Some(_)) => Err(place.refuse("name only one of format, template or text")),
    }
}

fn debounce(place: &ConfigPath, text: Option<&str>) -> Result<Span, ConfigError> {
    let span = text.map_or(Ok(DEFAULT_DEBOUNCE), |text| place.read::<Span>(text))?;
    if span > LONGEST_DEBOUNCE { Err(place.refuse("longer than an hour")) } else { Ok(span) }
}

fn before(
    place: &ConfigPath,
    names: &[String],
    entities: &BTreeMap<EntityName, Recipe>,
) -> Result<BTreeSet<EntityName>, ConfigError> {
    let read = |name: &String| {
        let name: EntityName = place.read(name)?;
        if entities.contains_key(&name) {
            Ok(name)
        } else {
            Err(place.refuse(format!("there is no [entity.{name}]")))
        }
    };
    names.iter().map(read).collect()
}
