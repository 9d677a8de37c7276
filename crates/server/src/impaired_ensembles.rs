//! Which ensembles are impaired, for the overview of a namespace and for metrics.

use bellwether_core::decide::ensembles::failing::EnsembleCounts;
use bellwether_core::records::ensemble::EnsembleSize;

/// How many members an ensemble is to have, as far as that is known without a look at every node: at least those that it has, and one.
pub(crate) fn wanted(size: EnsembleSize, counts: &EnsembleCounts) -> usize {
    match size {
        EnsembleSize::Number(wanted) => usize::try_from(wanted).unwrap_or(usize::MAX),
        EnsembleSize::Quorum => counts.members.max(1),
    }
}

/// Whether members are missing, or one that is to work, or an OSD, does not or is not known to.
pub(crate) const fn is_impaired(wanted: usize, counts: &EnsembleCounts) -> bool {
    counts.members < wanted || counts.members != counts.working || counts.osds != counts.working_osds
}
