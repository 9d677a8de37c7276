//! The data of the first member of an ensemble that is founded from a snapshot: made beside, and moved to their place once they are whole.

use bellwether_core::local::member::MemberKey;
use bellwether_core::records::member::{MemberOrder, MemberState};

use super::MemberTask;
use super::steps::run;
use crate::apply::answer::answer;
use crate::apply::{CommandFacts, leftover};
use crate::ensemble::etcd::{RESTORE_DEADLINE, restorer};
use crate::ensemble::snapshot_file;
use crate::ensemble::software::Software;

/// Most bytes that the program that restores a snapshot may write to its standard output.
const MAX_BYTES: usize = 64 * 1024;

impl MemberTask {
    /// Makes the data of the member from the snapshot that is ordered. Broken off anywhere, it begins anew: until the last step there are none.
    pub(super) async fn restore(&mut self, order: &MemberOrder) -> Result<(), String> {
        let (Some(source), Some(Software::Etcd(etcd)), Some(settings)) =
            (&order.restore, self.software(order), self.context.settings.clone())
        else {
            return Err(
                "restore it: its order names no snapshot of etcd, or its node has no address".to_owned()
            );
        };
        let (key, path) = (MemberKey::of(order), snapshot_file::path(&self.context.dir, &source.snapshot));
        let run = format!("{}/restore", run(&key));
        let (own, former) = (self.directory.clone(), run.clone());
        let cleared = move || {
            leftover::kill(&former)?;
            own.clear_restored()
        };
        self.on_disk("remove what is left of a restore", cleared).await?;
        let command = etcd.restore(&restorer(&settings), &path, (&self.directory, &key));
        let facts = CommandFacts { node: self.context.node.clone(), run, ..CommandFacts::default() };
        self.report(order, MemberState::Starting, "is being restored from its snapshot", None);
        let what = format!("restore it from {}", path.display());
        answer(&command, &facts, RESTORE_DEADLINE, MAX_BYTES)
            .await
            .map_err(|error| format!("{what}: {error}"))?;
        let own = self.directory.clone();
        self.on_disk(&what, move || own.take_restored()).await?;
        tracing::info!(ensemble = %self.ensemble, snapshot = %source.snapshot, "the first member is restored from a snapshot");
        Ok(())
    }
}
