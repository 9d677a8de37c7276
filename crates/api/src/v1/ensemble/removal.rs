//! Why members of ensembles are removed.

use bellwether_core::records::ensemble_members as core;

use crate::word::words;

words! {
    /// Why a member of an ensemble is removed.
    RemovalReason = core::RemovalReason {
        /// It was silent for too long.
        Dead = "dead",
        /// Its node was decommissioned.
        Decommissioned = "decommissioned",
        /// The store itself does not count it any more.
        NotCounted = "not_counted",
        /// It was not connected to the primary for too long, while others were.
        CutOff = "cut_off",
        /// There are more than are wanted.
        Surplus = "surplus",
        /// Its node is drained, and another one has taken its place.
        Drained = "drained",
        /// It has not joined in time.
        NotJoined = "not_joined",
        /// Its node could not have it.
        Refused = "refused",
        /// A person asked for another one in its place.
        Replaced = "replaced",
        /// The ensemble was deleted.
        Deleted = "deleted",
    }
}
