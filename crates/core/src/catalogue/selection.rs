//! Which services, and which of their instances, something is made of, and what it needs that is not there.

use alloc::collections::{BTreeMap, BTreeSet};

use super::instance::Instance;
use super::{Catalogue, Service};
use crate::words::name::ServiceName;

/// Which instances count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Those that serve.
    Functional,
    /// All that are registered.
    Addressable,
}

/// What something is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Only these services; every one that was heard of if none are named.
    pub services: BTreeSet<ServiceName>,
    /// Only these of their instances.
    pub grade: Grade,
    /// Nothing is made while one of these services has no such instance. They are chosen too.
    pub required: BTreeSet<ServiceName>,
}

/// What is needed and not there. Fits after "waits for ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Nobody ever offered it.
    #[error("service {0}: nobody has offered it yet")]
    Unheard(ServiceName),
    /// Nobody offers it any more.
    #[error("service {0}: nobody offers it now")]
    Nobody(ServiceName),
    /// It is offered, and nobody serves.
    #[error("service {service}: {addressable} registered, none of them serves")]
    NoneServes {
        /// The service.
        service: ServiceName,
        /// How many are registered.
        addressable: usize,
    },
}

impl Grade {
    /// Reads the word for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "functional" => Some(Self::Functional),
            "addressable" => Some(Self::Addressable),
            _ => None,
        }
    }

    /// Whether an instance counts.
    #[must_use]
    pub const fn takes(self, instance: &Instance) -> bool {
        match self {
            Self::Functional => instance.level.serves(),
            Self::Addressable => true,
        }
    }

    fn count(self, service: &Service) -> usize {
        match self {
            Self::Functional => service.functional(),
            Self::Addressable => service.addressable(),
        }
    }
}

impl Selection {
    /// The first of what is needed, in name order, that is not there.
    #[must_use]
    pub fn missing(&self, catalogue: &Catalogue) -> Option<Missing> {
        self.required.iter().find_map(|name| {
            let Some(service) = catalogue.service(name) else { return Some(Missing::Unheard(name.clone())) };
            match (self.grade.count(service), service.addressable()) {
                (0, 0) => Some(Missing::Nobody(name.clone())),
                (0, addressable) => Some(Missing::NoneServes { service: name.clone(), addressable }),
                (_, _) => None,
            }
        })
    }

    /// The services that are chosen, in name order. One that is named is there even if nobody has heard of it.
    pub fn services<'a>(
        &'a self,
        catalogue: &'a Catalogue,
    ) -> BTreeMap<&'a ServiceName, Option<&'a Service>> {
        if self.services.is_empty() {
            let named = self.required.iter().map(|name| (name, None));
            return named.chain(catalogue.services().map(|(name, service)| (name, Some(service)))).collect();
        }
        let named = self.services.iter().chain(&self.required);
        named.map(|name| (name, catalogue.service(name))).collect()
    }

    /// The instances of a service that count, by node and name.
    pub fn instances<'a>(&self, service: Option<&'a Service>) -> impl Iterator<Item = &'a Instance> {
        let grade = self.grade;
        service.into_iter().flat_map(Service::instances).filter(move |instance| grade.takes(instance))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::catalogue::instance::{Addresses, Level};
    use crate::words::time::Timestamp;

    fn instance(node: &str, level: Level) -> Instance {
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

    fn selection(services: &[&str], grade: Grade, required: &[&str]) -> Selection {
        Selection { services: names(services), grade, required: names(required) }
    }

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue.put(&"db".parse().unwrap(), instance("n1", Level::Failing { reason: "down".into() }));
        catalogue.put(&"web".parse().unwrap(), instance("n1", Level::Passing));
        catalogue.put(&"web".parse().unwrap(), instance("n2", Level::Unreachable));
        catalogue.hear_of(&"old".parse().unwrap());
        catalogue
    }

    #[test]
    fn what_is_missing_is_told_apart() {
        let says = |grade, required: &str| {
            selection(&[], grade, &[required]).missing(&catalogue()).map(|missing| missing.to_string())
        };
        assert_eq!(says(Grade::Functional, "web"), None);
        assert_eq!(says(Grade::Addressable, "db"), None);
        for (name, reason) in [
            ("db", "service db: 1 registered, none of them serves"),
            ("old", "service old: nobody offers it now"),
            ("new", "service new: nobody has offered it yet"),
        ] {
            assert_eq!(says(Grade::Functional, name).unwrap(), reason);
        }
    }

    #[test]
    fn what_is_named_is_chosen_whether_or_not_it_is_there_and_else_everything() {
        let catalogue = catalogue();
        let chosen = |selection: &Selection| -> Vec<_> {
            let all = selection.services(&catalogue).into_iter();
            all.map(|(name, service)| (name.to_string(), selection.instances(service).count())).collect()
        };
        let pair = |name: &str, count| (name.to_string(), count);
        let some = selection(&["web", "new"], Grade::Functional, &["db"]);
        assert_eq!(chosen(&some), [pair("db", 0), pair("new", 0), pair("web", 1)]);
        let all = selection(&[], Grade::Addressable, &["new"]);
        assert_eq!(chosen(&all), [pair("db", 1), pair("new", 0), pair("old", 0), pair("web", 2)]);
    }
}
