//! Selections: the services and instances that an output depends on, and the needs that must be met first.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::instance::Instance;
use super::need::{Need, RequiredState, UnmetNeed};
use super::{Catalogue, CatalogueService};
use crate::words::name::ServiceName;

/// The services and instances that an output, such as a file, depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueSelection {
    /// Only these services; every known one if none is named.
    pub services: BTreeSet<ServiceName>,
    /// Only instances in this state.
    pub level: RequiredState,
    /// Nothing is produced until these are met. Their services are selected too.
    pub required: Vec<Need>,
}

impl CatalogueSelection {
    /// The first unmet need.
    #[must_use]
    pub fn unmet(&self, catalogue: &Catalogue) -> Option<UnmetNeed> {
        self.required.iter().find_map(|need| need.unmet(catalogue))
    }

    /// The selected services, in name order, including named ones that are not known.
    pub fn services<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> BTreeMap<&'a ServiceName, Option<&'a CatalogueService>> {
        if self.services.is_empty() {
            let named = self.required.iter().map(|need| (&need.service, None));
            return named.chain(catalogue.services().map(|(name, service)| (name, Some(service)))).collect();
        }
        let named = self.services.iter().chain(self.required.iter().map(|need| &need.service));
        named.map(|name| (name, catalogue.service(name))).collect()
    }

    /// The selected instances of a service, by node and name.
    pub fn instances<'a>(&self, service: Option<&'a CatalogueService>) -> impl Iterator<Item = &'a Instance> {
        let level = self.level;
        let takes = move |instance: &&Instance| match level {
            RequiredState::Functional => instance.level.serves(),
            RequiredState::Addressable => true,
        };
        service.into_iter().flat_map(CatalogueService::instances).filter(takes)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;

    use super::*;
    use crate::catalogue::instance::InstanceState;
    use crate::words::addresses::Addresses;
    use crate::words::time::Timestamp;

    fn instance(node: &str, level: InstanceState) -> Instance {
        Instance {
            name: "i".parse().unwrap(),
            node: node.parse().unwrap(),
            addresses: Addresses::default(),
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            level,
            since: Timestamp::EPOCH,
        }
    }

    fn names(all: &[&str]) -> BTreeSet<ServiceName> {
        all.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn selection(services: &[&str], level: RequiredState, required: &[&str]) -> CatalogueSelection {
        let required = required.iter().map(|need| need.parse().unwrap()).collect();
        CatalogueSelection { services: names(services), level, required }
    }

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue
            .put(&"db".parse().unwrap(), instance("n1", InstanceState::Failing { reason: "down".into() }));
        catalogue.put(&"web".parse().unwrap(), instance("n1", InstanceState::Passing));
        catalogue.put(&"web".parse().unwrap(), instance("n2", InstanceState::Unreachable));
        catalogue.hear_of(&"old".parse().unwrap());
        catalogue
    }

    #[test]
    fn the_first_need_that_is_not_met_is_named() {
        let unmet = |required: &[&str]| {
            let unmet = selection(&[], RequiredState::Functional, required).unmet(&catalogue());
            unmet.map(|unmet| unmet.need.service.to_string())
        };
        assert_eq!(unmet(&["web"]), None);
        assert_eq!(unmet(&["web", "2 of web", "db"]).unwrap(), "web");
        assert_eq!(unmet(&["web", "new", "db"]).unwrap(), "new");
    }

    #[test]
    fn what_is_named_is_chosen_whether_or_not_it_is_there_and_else_everything() {
        let catalogue = catalogue();
        let chosen = |selection: &CatalogueSelection| -> Vec<_> {
            let all = selection.services(&catalogue).into_iter();
            all.map(|(name, service)| (name.to_string(), selection.instances(service).count())).collect()
        };
        let pair = |name: &str, count| (name.to_string(), count);
        let some = selection(&["web", "new"], RequiredState::Functional, &["db"]);
        assert_eq!(chosen(&some), [pair("db", 0), pair("new", 0), pair("web", 1)]);
        let all = selection(&[], RequiredState::Addressable, &["new"]);
        assert_eq!(chosen(&all), [pair("db", 1), pair("new", 0), pair("old", 0), pair("web", 2)]);
    }
}
