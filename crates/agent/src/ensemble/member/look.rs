//! What is looked at before the next step of a member.

use std::path::Path;

use bellwether_core::local::member::{MemberData, MemberDirectory, MemberKey, MemberProcess};
use bellwether_core::records::member::{MemberOrder, MemberTask as OrderedTask};

use super::MemberTask;
use crate::disk;
use crate::ensemble::etcd::restorer;
use crate::ensemble::etcd_wal;
use crate::ensemble::program::lack;
use crate::ensemble::snapshot_file;
use crate::ensemble::software::Software;

/// What is there before the next step.
pub(super) struct Look {
    pub(super) directory: MemberDirectory,
    /// What is missing for a start.
    pub(super) lack: Option<String>,
}

impl MemberTask {
    /// Looks how much room there is for its data, now that its program has ended: what that wrote may be of the first time, or of the last.
    pub(super) async fn look_for_room(&mut self) {
        let path = self.context.dir.clone();
        let free = self.on_disk("look how much room there is", move || {
            let disk = rustix::fs::statvfs(&path)?;
            Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
        });
        match free.await {
            Ok(free) => self.program.note_room(free),
            Err(error) => tracing::warn!(ensemble = %self.ensemble, "cannot {error}"),
        }
    }

    /// What is on disk, and what is missing for a start.
    pub(super) async fn look(&mut self, order: &MemberOrder) -> Result<Look, String> {
        let (own, runs) = (self.directory.clone(), matches!(self.program.state(), MemberProcess::Running(_)));
        let (settings, software) = (self.context.settings.clone(), self.software(order));
        let service = order.service.clone();
        let is_restart_due = self.is_restart_due(order);
        let source = order.restore.clone();
        let store_id = self.entry.as_ref().and_then(|entry| entry.store_id.clone());
        let (dir, ensemble, mut looked_at) =
            (self.context.dir.clone(), self.ensemble.clone(), self.looked_at.take());
        let looked = move || {
            let directory =
                own.look(&service).map_err(|error| format!("look at {}: {error}", own.path.display()))?;
            let lack_of_source = |settings: &_| {
                let source = source.filter(|_| !has_data(&directory))?;
                let path = snapshot_file::path(&dir, &source.snapshot);
                let program = restorer(settings);
                snapshot_file::lack(&path, &ensemble, &mut looked_at)
                    .or_else(|| lack(&[("etcdutl", &program)], &[]))
            };
            let lack = match (settings, software) {
                _ if runs && !is_restart_due => None,
                (None, _) => Some("the section [ensembles] in the configuration of its agent".to_owned()),
                (_, None) => Some("an address of its node: set addresses in [agent]".to_owned()),
                (Some(settings), Some(software)) => {
                    let foreign = || foreign(&software, &directory, (&own.data(), store_id.as_deref()));
                    let lack = software.lack(&settings, runs).or_else(|| lack_of_source(&settings));
                    lack.or_else(|| if runs { None } else { foreign() })
                }
            };
            Ok((Look { directory, lack }, looked_at))
        };
        let (look, looked_at) = disk::off_runtime(&self.context.tasks, looked).await?;
        self.looked_at = looked_at;
        let is_own =
            matches!(&look.directory, MemberDirectory::Claimed(key, _) if *key == MemberKey::of(order));
        // Removed with its directory, they are missed by one that runs, too.
        let is_lost = runs && self.lost.is_some();
        if look.lack.is_none() && is_own && is_lost {
            self.certified(order).await?;
        }
        if look.lack.is_none() && is_own && !runs && order.task != OrderedTask::Leave {
            self.certified(order).await?;
            self.keyed(order).await?;
            self.accessed(order).await?;
        }
        Ok(look)
    }
}

/// That the data are not those of this member of the store. It would answer as another one, which may live.
fn foreign(
    software: &Software,
    directory: &MemberDirectory,
    (data, own): (&Path, Option<&str>),
) -> Option<String> {
    let (Software::Etcd(_), MemberDirectory::Claimed(_, MemberData::Present), Some(own)) =
        (software, directory, own)
    else {
        return None;
    };
    let place = data.display();
    match etcd_wal::member_of(data) {
        Ok(Some(found)) if found != own => Some(format!(
            "its own data: those in {place} are of member {found} of a store, and it is member {own}; put its own there, or move these away, \
             so that another one takes its place"
        )),
        Ok(_) => None,
        Err(error) => Some(format!("its data, which cannot be read from {place}: {error}")),
    }
}

/// Whether there are data, which are not made again.
const fn has_data(directory: &MemberDirectory) -> bool {
    matches!(directory, MemberDirectory::Claimed(_, MemberData::Present | MemberData::Lost))
}
