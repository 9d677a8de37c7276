//! Backups of a running control plane: the request. The answer is the text of the backup.

use serde::{Deserialize, Serialize};

/// Request for a backup of all records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBackup {
    /// Whether the keys of the installation are in it too: whoever has it can then be any server and any node, and read every secret.
    #[serde(default)]
    pub keys: bool,
}
