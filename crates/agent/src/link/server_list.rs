//! The servers that were advertised to this node, saved on disk: an agent whose configured servers are gone finds the
//! others.

use std::path::Path;

use bellwether_core::local::servers::AdvertisedServer;
use bellwether_core::words::name::ServerName;
use serde::{Deserialize, Serialize};

use crate::disk;

/// The file in the data directory.
pub(crate) const FILE: &str = "servers.json";

/// The schema version written, and the newest one read.
const SCHEMA: u32 = 1;

/// The advertised servers and their tag; empty if none were.
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
    live: bool,
}

impl SavedServers {
    /// The saved servers. An unreadable file counts as none: the next server advertises them again.
    pub(crate) fn load(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        read(&path).unwrap_or_else(|reason| {
            tracing::warn!(path = %path.display(), reason, "cannot read the saved servers; requesting them again");
            Self::default()
        })
    }

    /// Saves the servers.
    pub(super) fn store(&self, data_dir: &Path) -> std::io::Result<()> {
        let entry = |advertised: &AdvertisedServer| ServerListEntry {
            name: advertised.name.to_string(),
            address: advertised.address.clone(),
            live: advertised.live,
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
    let advertised = |entry: ServerListEntry| {
        let name = ServerName::parse(&entry.name).map_err(|error| error.to_string())?;
        Ok(AdvertisedServer { name, address: entry.address, live: entry.live })
    };
    Ok(SavedServers {
        tag: file.tag,
        servers: file.servers.into_iter().map(advertised).collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_servers_are_read_back_and_an_unreadable_file_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(SavedServers::load(dir.path()), SavedServers::default());
        // The stored form of schema 1.
        let first = r#"{"schema": 1, "tag": "9d1c0f2ab34e5567", "servers": [
            {"name": "server-1", "address": "https://10.0.0.1:7420", "live": true},
            {"name": "server-2", "address": "https://10.0.0.2:7420", "live": false}]}"#;
        std::fs::write(dir.path().join(FILE), first).unwrap();
        let known = SavedServers::load(dir.path());
        assert_eq!((known.servers.len(), known.servers[1].live), (2, false));
        known.store(dir.path()).unwrap();
        assert_eq!(SavedServers::load(dir.path()), known);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(SavedServers::load(dir.path()), SavedServers::default());
    }
}
