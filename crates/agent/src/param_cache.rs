//! Params: revisions of profiles, fetched from the control plane once and then kept on disk for as long as an entity may
//! need them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use bellwether_api::v1::profile::{Params, ProfileRevision};
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::ProfileName;
use bellwether_rt::tasks::Tasks;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::link::source::{MissingParams, ParamSource};

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// Newest revisions of a profile that are kept even if nothing needs them.
const KEPT: usize = 8;

/// The cache of params on disk. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ParamCache {
    dir: PathBuf,
    source: ParamSource,
    tasks: Tasks,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CachedParams {
    schema: u32,
    profile_revision: ProfileRevision,
}

impl ParamCache {
    /// The cache of a data directory; what it lacks is fetched from `source`.
    pub(crate) fn new(data_dir: &Path, source: ParamSource, tasks: Tasks) -> Self {
        Self { dir: data_dir.join("ledger/params"), source, tasks }
    }

    /// The params of one revision, from disk or else from the control plane. `needed` are the revisions that must not be
    /// removed.
    ///
    /// # Errors
    /// [`MissingParams`]: not available now, or not at all.
    pub(crate) async fn get(
        &self,
        profile: &ProfileName,
        number: ProfileRevisionNumber,
        needed: BTreeSet<u64>,
    ) -> Result<Params, MissingParams> {
        let path = self.dir.join(profile.as_str()).join(format!("{number}.json"));
        let (at, of) = (path.clone(), profile.to_string());
        let found = self.off(move || read(&at, &of, number.get())).await;
        match found {
            Ok(Some(params)) => return Ok(params),
            Ok(None) => {}
            // An unreadable file is fetched again.
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot read the stored params"),
        }
        let profile_revision = self.source.fetch(profile, number).await?;
        let params = profile_revision.params.clone();
        let kept = self.off(move || keep(&path, profile_revision, &needed)).await;
        // Without the copy a later apply would need the control plane, which an apply must not.
        kept.map_err(|error| MissingParams::NotYet(format!("cannot store {profile}@{number}: {error}")))?;
        Ok(params)
    }

    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.tasks.spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

fn read(path: &Path, profile: &str, number: u64) -> io::Result<Option<Params>> {
    let Some(text) = disk::read(path)? else { return Ok(None) };
    let form: CachedParams = serde_json::from_str(&text).map_err(io::Error::other)?;
    let ProfileRevision { profile: of, revision, params, .. } = form.profile_revision;
    if form.schema != SCHEMA || of != profile || revision != number {
        return Err(io::Error::other(format!("it is schema {} of {of}@{revision}", form.schema)));
    }
    Ok(Some(params))
}

fn keep(path: &Path, profile_revision: ProfileRevision, needed: &BTreeSet<u64>) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    disk::private_dir(dir)?;
    let text = serde_json::to_string(&CachedParams { schema: SCHEMA, profile_revision })
        .map_err(io::Error::other)?;
    disk::replace(path, &text)?;
    let mut numbers: Vec<u64> = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".json"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    numbers.truncate(numbers.len().saturating_sub(KEPT));
    for old in numbers.into_iter().filter(|number| !needed.contains(number)) {
        std::fs::remove_file(dir.join(format!("{old}.json")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile_revision(revision: u64) -> ProfileRevision {
        let (profile, by) = ("web".to_owned(), "kim".to_owned());
        ProfileRevision { profile, revision, params: Params::new(), by, at_ms: 0, reason: String::new() }
    }

    #[test]
    fn old_revisions_are_removed_unless_they_are_needed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |number| dir.path().join(format!("web/{number}.json"));
        for number in 1..=12 {
            keep(&path(number), profile_revision(number), &BTreeSet::from([2])).unwrap();
        }
        let there: Vec<u64> = (1..=12).filter(|number| path(*number).exists()).collect();
        assert_eq!(there, [2, 5, 6, 7, 8, 9, 10, 11, 12]);
    }

    #[test]
    fn a_file_of_another_revision_or_without_valid_json_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("web/7.json");
        assert_eq!(read(&path, "web", 7).unwrap(), None);
        keep(&path, profile_revision(7), &BTreeSet::new()).unwrap();
        assert_eq!(read(&path, "web", 7).unwrap(), Some(Params::new()));
        assert!(read(&path, "web", 8).is_err() && read(&path, "db", 7).is_err());
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path, "web", 7).is_err());
        let first = r#"{"schema":1,"profile_revision":{"profile":"web","revision":7,"params":{"a":1},"by":"kim","at_ms":5,"why":""}}"#;
        std::fs::write(&path, first).unwrap();
        assert_eq!(read(&path, "web", 7).unwrap().unwrap().len(), 1);
    }
}
