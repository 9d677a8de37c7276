//! All services of the configuration: `[[service]]` in its files, and definitions in Consul's form in a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::records::registrations::MAX_INSTANCES;
use bellwether_core::words::name::InstanceName;
use bellwether_rt::config_error::ConfigError;

use super::service::{Service, consul};

/// A service of the configuration.
#[derive(Debug, Clone)]
pub struct DefinedService {
    /// The definition as written.
    pub definition: ServiceDefinition,
    /// The checked service.
    pub service: Service,
    /// The file that defines it.
    pub source: String,
}

/// The services of the configuration.
#[derive(Debug, Default)]
pub(super) struct DefinedServices {
    pub(super) services: Vec<DefinedService>,
    /// Files of the directory that cannot be used: the file and the reason.
    pub(super) refused: BTreeMap<PathBuf, String>,
}

/// Checks all definitions; an id names one instance on this node. Programs other than the agent's administrator write to the
/// directory: a file there that cannot be used is left out as a whole, with its reason.
pub(super) fn all(
    written: Vec<(PathBuf, ServiceDefinition)>,
    directory: Option<&Path>,
) -> Result<DefinedServices, ConfigError> {
    let (mut defined, mut ids) = (DefinedServices::default(), BTreeMap::new());
    add(&mut defined, &mut ids, written)?;
    for path in directory.map(json).transpose()?.unwrap_or_default() {
        let (mut with, mut known) = (DefinedServices::default(), ids.clone());
        let definitions = read(&path);
        match definitions.and_then(|definitions| add(&mut with, &mut known, definitions)) {
            Ok(()) => {
                ids = known;
                defined.services.extend(with.services);
            }
            Err(error) => drop(defined.refused.insert(path, error.to_string())),
        }
    }
    Ok(defined)
}

/// The definitions in a file.
fn read(path: &Path) -> Result<Vec<(PathBuf, ServiceDefinition)>, ConfigError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let found = consul::read(&text);
    let found = found.map_err(|reason| ConfigError::Parse { path: path.to_owned(), reason })?;
    Ok(found.into_iter().map(|definition| (path.to_owned(), definition)).collect())
}

/// Checks definitions and adds them.
fn add(
    defined: &mut DefinedServices,
    ids: &mut BTreeMap<InstanceName, PathBuf>,
    definitions: Vec<(PathBuf, ServiceDefinition)>,
) -> Result<(), ConfigError> {
    for (path, definition) in definitions {
        let key = format!("service.{}", definition.name);
        let refuse =
            |key: String, reason: String| ConfigError::Value { path: Some(path.clone()), key, reason };
        let service = Service::of(&definition)
            .map_err(|wrong| refuse(format!("{key}.{}", wrong.field), wrong.reason))?;
        if let Some(other) = ids.insert(service.id.clone(), path.clone()) {
            let reason = format!(
                "the id {} is used already in {}; give each instance its own id",
                service.id,
                other.display()
            );
            return Err(refuse(format!("{key}.id"), reason));
        }
        if ids.len() > MAX_INSTANCES {
            return Err(refuse(key, format!("more than {MAX_INSTANCES} services on this node")));
        }
        defined.services.push(DefinedService { definition, service, source: path.display().to_string() });
    }
    Ok(())
}

/// The definition files of a directory, in name order.
fn json(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let failed = |source| ConfigError::Read { path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
