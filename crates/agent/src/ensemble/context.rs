//! What every member of an ensemble on this node needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::records::member::MemberReport;
use bellwether_core::records::unrecorded::UnrecordedMember;
use bellwether_core::words::name::EnsembleName;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::former::ProcessOwner;
use crate::config::ensembles::EnsembleSettings;
use crate::ledger::MemberStore;
use crate::link::source::CertificateSource;
use crate::service::LocalAddresses;
use crate::service::published::PublishedInstances;

/// What every member needs.
#[derive(Debug, Clone)]
pub(super) struct MemberContext {
    /// `None` if the configuration allows no members.
    pub(super) settings: Option<EnsembleSettings>,
    /// Where the directories of members are.
    pub(super) dir: PathBuf,
    pub(super) logs: PathBuf,
    pub(super) node: String,
    pub(super) stops_on_exit: bool,
    pub(super) ledger: MemberStore,
    pub(super) owner: ProcessOwner,
    pub(super) addresses: LocalAddresses,
    pub(super) reports: watch::Sender<BTreeMap<EnsembleName, MemberReport>>,
    /// By ensemble whose member was looked at: what no order names of it, if anything.
    pub(super) unrecorded: watch::Sender<BTreeMap<EnsembleName, Option<UnrecordedMember>>>,
    /// The instances of services of this node.
    pub(super) published: PublishedInstances,
    /// The control plane, which signs certificates.
    pub(super) control_plane: CertificateSource,
    pub(super) clock: Clock,
    pub(super) seed: u64,
    pub(super) tasks: Tasks,
}
