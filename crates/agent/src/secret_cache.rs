//! Secrets of this node's params: read from the control plane once per revision, and then kept in files that only their owner may
//! read. Only the rendering of files asks for them; neither the ledger nor a report has one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::profile::Params;
use bellwether_api::v1::secret::{NodeSecrets, ParamSecrets};
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};

use crate::apply::hidden;
use crate::disk;
use crate::link::source::ParamSource;

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// The secrets on disk. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SecretCache {
    dir: PathBuf,
    source: ParamSource,
    tasks: Tasks,
}

/// A set of params: of a profile, or the node's own, at a revision.
pub(crate) type ParamsRevision = (Option<String>, u64);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CachedSecrets {
    schema: u32,
    secrets: ParamSecrets,
}

impl SecretCache {
    /// The secrets of a data directory; what it lacks is fetched from `source`.
    pub(crate) fn new(data_dir: &Path, source: ParamSource, tasks: Tasks) -> Self {
        // A process may print what the agent read in a former life.
        remember(data_dir);
        Self { dir: data_dir.join("secrets"), source, tasks }
    }

    /// The secrets of these keys of sets of params, from disk or else from the control plane.
    ///
    /// # Errors
    /// Why one is not available now.
    pub(crate) async fn get(
        &self,
        wanted: &BTreeMap<ParamsRevision, BTreeSet<String>>,
    ) -> Result<BTreeMap<ParamsRevision, Params>, String> {
        let (dir, sets) = (self.dir.clone(), wanted.keys().cloned().collect::<Vec<_>>());
        let mut found =
            self.off(move || Ok(sets.into_iter().filter_map(|set| kept(&dir, set)).collect())).await?;
        if lacking(wanted, &found).is_some() {
            let answer = self.source.secrets().await?;
            let unavailable = answer
                .params
                .iter()
                .flat_map(|set| set.unavailable.iter().map(|(key, reason)| (key.clone(), reason.clone())));
            let unavailable: BTreeMap<String, String> = unavailable.collect();
            let (dir, fetched) = (self.dir.clone(), answer.clone());
            self.off(move || keep(&dir, &fetched)).await?;
            found = answer.params.into_iter().map(|set| ((set.profile, set.revision), set.values)).collect();
            if let Some(key) = lacking(wanted, &found) {
                let reason = unavailable.get(key).cloned();
                let other = "the control plane has params of another revision for this node".to_owned();
                return Err(format!("the secret param {key} is not available: {}", reason.unwrap_or(other)));
            }
        }
        hidden::remember(found.values().flat_map(Params::values));
        Ok(found)
    }

    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.tasks.spawn_blocking(work).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|error| format!("cannot keep secrets in {}: {error}", self.dir.display()))
    }
}

/// Has the secrets of a data directory masked in what is shown from now on.
pub(crate) fn remember(data_dir: &Path) {
    for entry in fs::read_dir(data_dir.join("secrets")).into_iter().flatten().flatten() {
        if let Some(form) = read(&entry.path()) {
            hidden::remember(form.secrets.values.values());
        }
    }
}

/// The first key that is wanted and was not found.
fn lacking<'a>(
    wanted: &'a BTreeMap<ParamsRevision, BTreeSet<String>>,
    found: &BTreeMap<ParamsRevision, Params>,
) -> Option<&'a String> {
    wanted.iter().find_map(|(set, keys)| {
        let there = found.get(set);
        keys.iter().find(|key| !there.is_some_and(|there| there.contains_key(*key)))
    })
}

fn file_name(profile: Option<&str>, revision: u64) -> String {
    match profile {
        Some(profile) => format!("profile.{profile}.{revision}.json"),
        None => format!("node.{revision}.json"),
    }
}

/// The secrets of one set on disk; `None` if there are none, or none that can be read.
fn kept(dir: &Path, (profile, revision): ParamsRevision) -> Option<(ParamsRevision, Params)> {
    let form = read(&dir.join(file_name(profile.as_deref(), revision)))?;
    Some(((profile, revision), form.secrets.values))
}

fn read(path: &Path) -> Option<CachedSecrets> {
    let text = disk::read(path).ok()??;
    serde_json::from_str(&text).ok().filter(|form: &CachedSecrets| form.schema == SCHEMA)
}

/// Keeps what the control plane answered, and nothing else.
fn keep(dir: &Path, answer: &NodeSecrets) -> io::Result<()> {
    disk::private_dir(dir)?;
    let mut names = BTreeSet::new();
    for secrets in &answer.params {
        let name = file_name(secrets.profile.as_deref(), secrets.revision);
        let form = CachedSecrets { schema: SCHEMA, secrets: secrets.clone() };
        disk::replace(&dir.join(&name), &serde_json::to_string(&form).map_err(io::Error::other)?)?;
        names.insert(name);
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_none_or(|name| !names.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn set(profile: Option<&str>, revision: u64) -> ParamSecrets {
        let values = [("password".to_owned(), json!("hunter2"))].into();
        ParamSecrets { profile: profile.map(str::to_owned), revision, values, ..ParamSecrets::default() }
    }

    #[test]
    fn secrets_are_kept_for_their_owner_alone_and_only_as_long_as_they_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("secrets");
        keep(&dir, &NodeSecrets { params: vec![set(Some("web"), 7), set(None, 2)] }).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join("profile.web.7.json"))), (0o700, 0o600));
        let (_, read) = kept(&dir, (Some("web".to_owned()), 7)).unwrap();
        assert_eq!(read["password"], "hunter2");
        assert!(kept(&dir, (None, 2)).is_some() && kept(&dir, (None, 3)).is_none());
        keep(&dir, &NodeSecrets { params: vec![set(Some("web"), 8)] }).unwrap();
        assert!(kept(&dir, (Some("web".to_owned()), 7)).is_none() && kept(&dir, (None, 2)).is_none());
        fs::write(dir.join("profile.web.8.json"), "{").unwrap();
        assert!(kept(&dir, (Some("web".to_owned()), 8)).is_none(), "what cannot be read is fetched again");
    }
}
