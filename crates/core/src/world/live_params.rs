//! The params that reach a node without a rollout: its own, and those of the live profiles that it reads.

use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::node_params::NodeParams;
use crate::records::profile::ProfileRevision;
use crate::words::digest::Digest;
use crate::words::name::{NodeName, ProfileName};
use crate::words::precedence::{DEFAULTS_PROFILE, GLOBAL_PROFILE, ParamLevel, levels};

/// The params that reach a node without a rollout.
#[derive(Debug, Clone)]
pub struct LiveParams<'a> {
    /// The node's own params, and the profiles that are set on it; `None` if it has neither.
    pub own: Option<&'a NodeParams>,
    /// The profiles that it reads before those of all nodes: those that are set on it, and that of its cluster.
    pub listed: Vec<ProfileName>,
    /// The newest revisions of the live profiles that it reads, in order of precedence.
    pub profiles: Vec<&'a ProfileRevision>,
}

impl LiveParams<'_> {
    /// A digest that changes when the params do; 0 if there are none. The same on every server.
    #[must_use]
    pub fn digest(&self) -> u64 {
        if self.own.is_none() && self.profiles.is_empty() {
            return 0;
        }
        let mut digest = Digest::default();
        if let Some(own) = self.own {
            digest.add(&own.revision.get().to_be_bytes());
        }
        for revision in &self.profiles {
            digest.add(revision.profile.as_str().as_bytes());
            digest.add(&revision.number.get().to_be_bytes());
        }
        digest.finish()
    }
}

impl Fleet {
    /// The params that reach a node without a rollout.
    #[must_use]
    pub fn live_params(&self, node: &NodeName) -> LiveParams<'_> {
        let own = self.node_params.get(node).map(|kept| &*kept.value);
        let listed = self.profiles_read_by(node);
        let newest = |level| match level {
            ParamLevel::Node => None,
            ParamLevel::Profile(name) => {
                let head = self.profile(&name).filter(|head| head.live)?;
                Some(&*self.profile_revisions.get(&(name, head.newest))?.value)
            }
        };
        let profiles = levels(&listed, None).into_iter().filter_map(newest).collect();
        LiveParams { own, listed, profiles }
    }

    /// The nodes that read a profile while it is live: those that name it, members of the clusters that share it, or all for the global
    /// one and the defaults. One may come twice.
    pub fn readers<'a>(&'a self, profile: &'a ProfileName) -> impl Iterator<Item = &'a NodeName> + 'a {
        let all = [GLOBAL_PROFILE, DEFAULTS_PROFILE].contains(&profile.as_str()).then(|| self.nodes.keys());
        let all_is_none = all.is_none();
        let named = all_is_none.then(|| self.readers_of_profile.get(profile));
        let shares = self.clusters.values().filter(move |kept| all_is_none && kept.value.profile == *profile);
        let members = shares.flat_map(|kept| {
            core::iter::once(&kept.value.manager).chain(self.membership.members(&kept.value.name))
        });
        all.into_iter().flatten().chain(named.into_iter().flatten()).chain(members)
    }
}

#[cfg(test)]
mod tests;
