//! Which ensembles are impaired, for the overview of a namespace and for metrics.

use bellwether_core::decide::ensembles::failing::EnsembleCounts;

/// Whether a member or an OSD of an ensemble that is to work does not, or is not known to.
pub(crate) const fn is_impaired(counts: &EnsembleCounts) -> bool {
    counts.members != counts.working || counts.osds != counts.working_osds
}
