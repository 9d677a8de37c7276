//! The servers that this machine was told of, kept on disk: an agent that starts while those it was configured with are gone
//! finds the others.

use std::path::Path;

use bellwether_core::local::servers::AdvertisedServer;
use bellwether_core::words::name::ServerName;
use serde::{Deserialize, Serialize};

use crate::disk;

/// The file in the data directory.
const FILE: &str = "servers.json";

/// The schema written, and the newest read.
const SCHEMA: u32 = 1;

/// What was told, and its tag; none of both for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SavedServers {
    pub(crate) tag: String,
    pub(crate) servers: Vec<AdvertisedServer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ServerListFile {
    schema: u32,
    tag: String,
    servers: Vec<ServerListEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ServerListEntry {
    name: String,
    address: String,
    in_place: bool,
}

impl SavedServers {
    /// What was kept. What cannot be read is as good as nothing: the next server tells it anew.
    pub(crate) fn load(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        read(&path).unwrap_or_else(|reason| {
            tracing::warn!(path = %path.display(), reason, "could not read the kept servers; asking for them anew");
            Self::default()
        })
    }

    /// Keeps it.
    pub(super) fn store(&self, data_dir: &Path) -> std::io::Result<()> {
        let entry = |told: &AdvertisedServer| ServerListEntry {
            name: told.name.to_string(),
            address: told.address.clone(),
            in_place: told.in_place,
        };
        let servers = self.servers.iter().map(entry).collect();
        let file = ServerListFile { schema: SCHEMA, tag: self.tag.clone(), servers };
        let text = serde_json::to_string_pretty(&file).map_err(std::io::Error::other)?;
        disk::replace(&data_dir.join(FILE), &text)
    }
}

fn read(path: &Path) -> Result<SavedServers, String> {
    let Some(text) = disk::read(path).map_err(|error| error.to_string())? else {
        return Ok(SavedServers::default());
    };
    let file: ServerListFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("schema {} is not {SCHEMA}", file.schema));
    }
    let told = |entry: ServerListEntry| {
        let name = ServerName::parse(&entry.name).map_err(|error| error.to_string())?;
        Ok(AdvertisedServer { name, address: entry.address, in_place: entry.in_place })
    };
    Ok(SavedServers {
        tag: file.tag,
        servers: file.servers.into_iter().map(told).collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_and_what_cannot_be_read_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(SavedServers::load(dir.path()), SavedServers::default());
        // As the first release wrote it: it must read for ever.
        let first = r#"{"schema": 1, "tag": "9d1c0f2ab34e5567", "servers": [
            {"name": "server-1", "address": "https://10.0.0.1:7420", "in_place": true},
            {"name": "server-2", "address": "https://10.0.0.2:7420", "in_place": false}]}"#;
        std::fs::write(dir.path().join(FILE), first).unwrap();
        let known = SavedServers::load(dir.path());
        assert_eq!((known.servers.len(), known.servers[1].in_place), (2, false));
        known.store(dir.path()).unwrap();
        assert_eq!(SavedServers::load(dir.path()), known);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(SavedServers::load(dir.path()), SavedServers::default());
    }
}
