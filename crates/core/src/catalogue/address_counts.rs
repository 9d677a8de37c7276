//! Services per address, for reverse lookups. Owns the counts; holds no instances.

use core::net::IpAddr;

use super::instance::Instance;
use crate::words::map::Map;
use crate::words::name::ServiceName;

/// Number of instances of each service at each address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AddressCounts(Map<IpAddr, Map<ServiceName, usize>>);

impl AddressCounts {
    /// The services at an address, in name order.
    pub(super) fn at(&self, address: IpAddr) -> impl Iterator<Item = &ServiceName> {
        self.0.get(&address).into_iter().flat_map(Map::keys)
    }

    /// Replaces one instance of `service` by another.
    pub(super) fn change(&mut self, service: &ServiceName, old: Option<&Instance>, new: Option<&Instance>) {
        if old.map(|old| &old.addresses) == new.map(|new| &new.addresses) {
            return;
        }
        for address in new.into_iter().flat_map(|new| new.addresses.all()) {
            let mut here = self.0.get(&address).cloned().unwrap_or_default();
            here.insert_mut(service.clone(), here.get(service).map_or(1, |count| count + 1));
            self.0.insert_mut(address, here);
        }
        for address in old.into_iter().flat_map(|old| old.addresses.all()) {
            let Some(here) = self.0.get_mut(&address) else { continue };
            match here.get(service).copied() {
                Some(count) if count > 1 => here.insert_mut(service.clone(), count - 1),
                Some(_) | None => {
                    here.remove_mut(service);
                }
            }
            if here.is_empty() {
                self.0.remove_mut(&address);
            }
        }
    }
}
