//! `[[file]]`: what is written from the catalogue of services, for programs that know nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bellwether_core::catalogue::need::{Need, RequiredState};
use bellwether_core::catalogue::selection::CatalogueSelection;
use bellwether_core::words::name::{EntityName, ServiceName};
use bellwether_core::words::time::Span;

use super::command::{CommandDefaults, command};
use super::config_path::ConfigPath;
use super::error::ConfigError;
use super::file;
use super::kinds::{alone, mode, plain, template};
use super::recipe::{Command, Recipe, Template};

/// How long changes are gathered when nothing else is said: what comes up together is one reload.
pub const DEFAULT_DEBOUNCE: Span = Span::from_secs(1);

/// How long a check or a reload may take when nothing else is said: readers answer within seconds.
pub const DEFAULT_FILE_TIMEOUT: Span = Span::from_secs(60);

/// Longest gathering: what waits longer is no discovery any more.
const LONGEST_DEBOUNCE: Span = Span::from_secs(3_600);

/// Most files of one machine, as for one entity.
const MAX_FILES: usize = 256;

/// A file that is written from the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueFile {
    /// Where it is. Never a link; its directory must be there.
    pub path: PathBuf,
    /// What it says.
    pub form: FileForm,
    /// What it is made of.
    pub selection: CatalogueSelection,
    /// Its mode; if none is said, what it had, or 0644 for a new one.
    pub mode: Option<u32>,
    /// Says whether the new file may take the old one's place; `{path}` in an argument stands for the new one's.
    pub check: Option<Command>,
    /// Makes whoever reads the file read it again.
    pub reload: Option<Command>,
    /// How long the check, and the reload, may take.
    pub timeout: Span,
    /// How long changes are gathered.
    pub debounce: Span,
    /// Entities whose dynamic part waits until the file was written.
    pub before: BTreeSet<EntityName>,
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileForm {
    /// A format that others know.
    Known(Format),
    /// What a template makes of the catalogue.
    Template(Template),
}

/// Formats that others know.
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
    /// Reads the word for it.
    ///
    /// # Errors
    /// Which words there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "hiera" => Ok(Self::Hiera),
            "json" => Ok(Self::Json),
            "env" => Ok(Self::Env),
            other => Err(format!("{other:?} is not \"hiera\", \"json\" or \"env\"")),
        }
    }

    /// Which instances are written when nothing else is said: whoever configures itself by hiera needs the addresses of
    /// those that wait for it, too.
    #[must_use]
    pub const fn level(self) -> RequiredState {
        match self {
            Self::Hiera => RequiredState::Addressable,
            Self::Json | Self::Env => RequiredState::Functional,
        }
    }
}

/// Every file, checked; `known` are the files that something else writes.
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
        (None, None) => Err(place.refuse("say what to write: format, template or text")),
        (Some(_), Some(_)) => Err(place.refuse("write one thing: format, template or text")),
    }
}

fn debounce(place: &ConfigPath, text: Option<&str>) -> Result<Span, ConfigError> {
    let span = text.map_or(Ok(DEFAULT_DEBOUNCE), |text| place.read::<Span>(text))?;
    if span > LONGEST_DEBOUNCE { Err(place.refuse("it is longer than an hour")) } else { Ok(span) }
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
            Err(place.refuse(format!("there is no [entity.{name}] whose dynamic part could wait")))
        }
    };
    names.iter().map(read).collect()
}
