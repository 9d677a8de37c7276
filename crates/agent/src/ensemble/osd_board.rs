//! Where the OSDs of this node say how they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::osd::OsdReport;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use tokio::sync::{Notify, watch};

/// By ensemble and number: what is reported of OSDs.
pub(super) type OsdReports = BTreeMap<EnsembleName, BTreeMap<MemberNumber, OsdReport>>;

/// Where OSDs say how they are. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct OsdBoard {
    reports: watch::Sender<OsdReports>,
    scan: Arc<Notify>,
}

impl OsdBoard {
    /// An empty one, and what is put there.
    pub(super) fn new() -> (Self, watch::Receiver<OsdReports>) {
        let (reports, told) = watch::channel(OsdReports::new());
        (Self { reports, scan: Arc::default() }, told)
    }

    /// What is notified when the devices are to be looked at again.
    pub(super) fn scan(&self) -> Arc<Notify> {
        self.scan.clone()
    }

    pub(super) fn put(&self, (ensemble, number): (&EnsembleName, MemberNumber), report: OsdReport) {
        self.reports.send_if_modified(|all| {
            let of = all.entry(ensemble.clone()).or_default();
            let is_news = of.get(&number) != Some(&report);
            of.insert(number, report);
            is_news
        });
    }

    pub(super) fn forget(&self, (ensemble, number): (&EnsembleName, MemberNumber)) {
        self.reports.send_if_modified(|all| {
            let Some(of) = all.get_mut(ensemble) else { return false };
            let was_there = of.remove(&number).is_some();
            if of.is_empty() {
                all.remove(ensemble);
            }
            was_there
        });
    }

    /// Has the devices looked at again.
    pub(super) fn rescan(&self) {
        self.scan.notify_one();
    }
}
