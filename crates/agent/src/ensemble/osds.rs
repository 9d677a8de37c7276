//! The OSDs of this node, and the devices that it offers: a task for each OSD, a look at the devices from time to time, and what is
//! reported of both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::osd::{DeviceReport, OsdsOrder};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{DeviceSerial, EnsembleName};
use tokio::sync::{Notify, watch};

use super::context::MemberContext;
use super::devices::{BLUESTORE, Devices};
use super::osd::{OneOsd, OsdTask};
use super::osd_board::{OsdBoard, OsdReports};
use crate::apply::CommandFacts;

/// Time between two looks at the devices: that one is put in is no hurry.
const SCAN: Duration = Duration::from_secs(60);

/// The same while one is not free and no OSD's: somebody may be wiping it.
const SCAN_USED: Duration = Duration::from_secs(10);

/// The devices that are offered; `None` before they were looked at.
pub(super) type FoundDevices = Option<BTreeMap<DeviceSerial, DeviceReport>>;

/// The OSDs of this node.
pub(super) struct Osds {
    context: MemberContext,
    board: OsdBoard,
    running: BTreeMap<(EnsembleName, MemberNumber), watch::Sender<Option<OneOsd>>>,
    pub(super) reports: watch::Receiver<OsdReports>,
    pub(super) devices: watch::Receiver<FoundDevices>,
}

impl Osds {
    /// Starts looking at the devices.
    pub(super) fn start(context: &MemberContext) -> Self {
        let (board, reports) = OsdBoard::new();
        let (found, devices) = watch::channel(None);
        let offers = context.settings.as_ref().is_some_and(|settings| !settings.devices.is_empty());
        if offers {
            context.tasks.spawn("devices", scan(context.clone(), board.scan(), found));
        } else {
            found.send_replace(Some(BTreeMap::new()));
        }
        Self { context: context.clone(), board, running: BTreeMap::new(), reports, devices }
    }

    /// Gives each OSD its order.
    pub(super) fn follow(&mut self, orders: &BTreeMap<EnsembleName, OsdsOrder>) {
        let mut wanted = BTreeMap::new();
        for (ensemble, of) in orders {
            for (number, order) in &of.osds {
                let (identity, monitors) = (of.identity.clone(), of.monitors.clone());
                wanted
                    .insert((ensemble.clone(), *number), OneOsd { identity, monitors, order: order.clone() });
            }
        }
        for (key, sender) in &self.running {
            let order = wanted.get(key);
            sender.send_if_modified(|current| {
                let is_other = current.as_ref() != order;
                *current = order.cloned();
                is_other
            });
        }
        self.running.retain(|key, _| wanted.contains_key(key));
        for (key, order) in wanted {
            if self.running.contains_key(&key) {
                continue;
            }
            let identity = order.identity.clone();
            let (sender, receiver) = watch::channel(Some(order));
            let parts = (self.context.clone(), self.board.clone());
            let task = OsdTask::new(key.clone(), &identity, receiver, parts);
            self.context.tasks.spawn("osd", task.run());
            self.running.insert(key, sender);
        }
    }

    /// What is reported of those that are ordered, and of the devices; `None` before all were looked at.
    pub(super) fn told(&self) -> Option<(OsdReports, BTreeMap<DeviceSerial, DeviceReport>)> {
        let devices = self.devices.borrow().clone()?;
        let reports = self.reports.borrow();
        let mut told = OsdReports::new();
        for (ensemble, number) in self.running.keys() {
            let report = reports.get(ensemble)?.get(number)?.clone();
            told.entry(ensemble.clone()).or_default().insert(*number, report);
        }
        Some((told, devices))
    }
}

/// Looks at the devices that are offered, from time to time.
async fn scan(context: MemberContext, again: Arc<Notify>, found: watch::Sender<FoundDevices>) {
    let token = context.tasks.token();
    let Some(settings) = context.settings.clone() else { return };
    let facts =
        CommandFacts { node: context.node.clone(), run: "devices".to_owned(), ..CommandFacts::default() };
    let devices =
        Devices { offered: &settings.devices, bluestore_tool: &settings.ceph.bluestore_tool, facts: &facts };
    let look = async {
        loop {
            let mut pause = SCAN;
            match devices.report().await {
                Ok(reports) => {
                    let waits = |report: &DeviceReport| {
                        !report.used_by.is_empty() && report.used_by.iter().all(|of| of != BLUESTORE)
                    };
                    if reports.values().any(waits) {
                        pause = SCAN_USED;
                    }
                    found.send_if_modified(|known| {
                        let is_news = known.as_ref() != Some(&reports);
                        *known = Some(reports);
                        is_news
                    })
                }
                Err(error) => {
                    tracing::warn!("cannot {error}");
                    found.send_if_modified(|known| {
                        known.is_none().then(|| *known = Some(BTreeMap::new())).is_some()
                    })
                }
            };
            // Both arms only wait.
            tokio::select! {
                () = again.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    };
    tokio::select! {
        () = token.cancelled() => {}
        () = look => {}
    }
}
