//! Which files are read, and their text: files, directories, stdin; nothing that is too large or not text.

use std::io::Read;
use std::path::{Path, PathBuf};

use bellwether_api::v1::apply::MAX_APPLY_BYTES;

use crate::args::FileFlags;
use crate::exit::Failure;

/// Largest file, in bytes: what a server takes in one call.
const MAX_FILE_BYTES: u64 = MAX_APPLY_BYTES as u64;

/// Endings of the files that are read from a directory.
const ENDINGS: [&str; 3] = ["toml", "yaml", "yml"];

/// Deepest subdirectories that are read.
const MAX_DEPTH: usize = 32;

/// How a file's documents are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Toml,
    Json,
    Yaml,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Input {
    /// Its path as it was named; `-` for stdin.
    pub(super) name: String,
    pub(super) format: Format,
    pub(super) text: String,
    /// Whether it was named itself, and not found in a directory.
    pub(super) named: bool,
}

/// Reads all files that the flags name, in that order; those of a directory by name.
pub(super) fn read(from: &FileFlags) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    if from.file.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::usage("read stdin twice: -f - is given more than once"));
    }
    for path in &from.file {
        if !is_stdin(path) && path.is_dir() {
            let mut found = Vec::new();
            list(path, from.recursive, 0, &mut found)?;
            if found.is_empty() {
                let what = format!("read {}: no .toml, .yaml or .yml file in it", path.display());
                let failure = Failure::usage(what);
                return Err(if from.recursive {
                    failure
                } else {
                    failure.hint("-R reads subdirectories too")
                });
            }
            for path in found {
                inputs.push(one(&path, false)?);
            }
        } else {
            inputs.push(one(path, true)?);
        }
    }
    Ok(inputs)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The files of a directory, by name; hidden ones are passed over.
fn list(directory: &Path, recursive: bool, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("read {}: {error}", directory.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push((entry.path(), entry.file_type().map_err(failed)?));
        }
    }
    paths.sort_by(|one, other| one.0.cmp(&other.0));
    for (path, kind) in paths {
        let ending = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if kind.is_dir() {
            // A link to a directory is passed over: it may lead in a circle.
            if recursive && depth < MAX_DEPTH {
                list(&path, recursive, depth + 1, found)?;
            }
        } else if ENDINGS.contains(&ending) && !path.is_dir() {
            found.push(path);
        }
    }
    Ok(())
}

fn one(path: &Path, named: bool) -> Result<Input, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES + 1;
    let read = if is_stdin(path) {
        std::io::stdin().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(&format!(
            "it is larger than {MAX_FILE_BYTES} bytes, the most that one call takes"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        failed(&format!("it is not text: byte {} is not UTF-8", error.utf8_error().valid_up_to()))
    })?;
    if let Some(at) = text.find('\0') {
        return Err(failed(&format!("it is not text: byte {at} is zero")));
    }
    let format = match path.extension().and_then(|end| end.to_str()) {
        Some("toml") => Format::Toml,
        Some("json") => Format::Json,
        Some(_) | None => Format::Yaml,
    };
    Ok(Input { name: path.display().to_string(), format, text, named })
}
