//! Needs: a number of service instances in a state that must exist before something continues. Owns the
//! reasons for an unmet need: the service is unknown, has no instances, or has too few.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use super::Catalogue;
use super::instance::{Instance, InstanceState};
use crate::words::counted::counted;
use crate::words::name::ServiceName;
use crate::words::near::nearest;
use crate::words::time::Span;

/// A number of instances of a service that must exist.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Name of the service.
    pub service: ServiceName,
    /// Number of instances, at least 1.
    pub count: u32,
    /// State that instances must have to count.
    pub at: RequiredState,
    /// How long to wait for them; `None` for ever.
    pub timeout: Option<Span>,
    /// What happens after the timeout.
    pub on_timeout: OnTimeout,
}

/// State that an instance must have to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RequiredState {
    /// Passing or warning, and its node reports.
    #[default]
    Functional,
    /// Registered, in any state.
    Addressable,
}

/// What happens when a need is not met in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OnTimeout {
    /// Whatever depends on it fails.
    #[default]
    Fail,
    /// It keeps waiting, and reports for how long.
    Wait,
}

/// An unmet need, with the instances there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetNeed {
    /// The need.
    pub need: Need,
    /// Why it is not met.
    pub there: Shortfall,
}

/// Why a need is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortfall {
    /// The service has never been registered.
    UnknownService {
        /// A known name that is nearly the same.
        near: Option<ServiceName>,
    },
    /// The service has no instances at present.
    NoInstances,
    /// Too few instances are registered, or too few of them are functional.
    TooFew {
        /// Number of registered instances.
        addressable: usize,
        /// Number of functional instances.
        functional: usize,
        /// The first instance that is not functional, and why.
        first: Option<String>,
    },
}

impl Need {
    /// A need for that many functional instances, without a timeout.
    #[must_use]
    pub const fn of(service: ServiceName, count: u32) -> Self {
        let (at, on_timeout) = (RequiredState::Functional, OnTimeout::Fail);
        Self { service, count, at, timeout: None, on_timeout }
    }

    /// Why the need is not met; `None` if it is.
    #[must_use]
    pub fn unmet(&self, catalogue: &Catalogue) -> Option<UnmetNeed> {
        let Some(service) = catalogue.service(&self.service) else {
            let known = catalogue.services().map(|(name, _)| name.as_str());
            let near = nearest(self.service.as_str(), known).and_then(|near| ServiceName::parse(near).ok());
            return Some(UnmetNeed { need: self.clone(), there: Shortfall::UnknownService { near } });
        };
        let (functional, addressable) = (service.functional(), service.addressable());
        let there = match self.at {
            RequiredState::Functional => functional,
            RequiredState::Addressable => addressable,
        };
        if u32::try_from(there).is_ok_and(|there| there < self.count) {
            let there = if addressable == 0 {
                Shortfall::NoInstances
            } else {
                let first = service.instances().find(|instance| !instance.level.serves()).map(why);
                Shortfall::TooFew { addressable, functional, first }
            };
            return Some(UnmetNeed { need: self.clone(), there });
        }
        None
    }
}

/// An instance that is not functional, and why: `mysql on db-1 is failing: check port: refused`.
#[must_use]
pub fn why(instance: &Instance) -> String {
    let state = match &instance.level {
        InstanceState::Warning { reason } => format!("is warning: {reason}"),
        InstanceState::Failing { reason } => format!("is failing: {reason}"),
        InstanceState::Passing => "is passing".into(),
        InstanceState::Unreachable => "is unreachable with its node".into(),
    };
    format!("{} on {} {state}", instance.name, instance.node)
}

impl core::str::FromStr for Need {
    type Err = String;
    /// Reads `db` or `2 of db` for functional instances; or, as written by `Display`, `2 addressable of db`.
    fn from_str(text: &str) -> Result<Self, String> {
        let levels = [RequiredState::Functional, RequiredState::Addressable];
        let levelled = levels.into_iter().find_map(|level| {
            let (count, name) = text.split_once(&format!(" {} of ", level.as_str()))?;
            Some((format!("{count} of {name}"), level))
        });
        let (text, at) = levelled.unwrap_or_else(|| (text.to_string(), RequiredState::default()));
        let read = counted(&text).ok_or("write a service, or a count and a service, like \"2 of db\"")?;
        match read {
            (0, _) => Err("the count is 0".into()),
            (count, name) => {
                let service = ServiceName::parse(name).map_err(|error| error.to_string())?;
                Ok(Self { at, ..Self::of(service, count) })
            }
        }
    }
}

impl RequiredState {
    /// Name used in texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Functional => "functional",
            Self::Addressable => "addressable",
        }
    }

    /// Reads the name of a state.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Functional, Self::Addressable].into_iter().find(|wanted| wanted.as_str() == text)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.count, self.at.as_str(), self.service)
    }
}

/// Follows the text "waits for ".
impl fmt::Display for UnmetNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.need)?;
        match &self.there {
            Shortfall::UnknownService { near: None } => f.write_str("no node ever registered it"),
            Shortfall::UnknownService { near: Some(near) } => {
                write!(f, "no node ever registered it; did you mean {near}?")
            }
            Shortfall::NoInstances => f.write_str("no node registers it now"),
            Shortfall::TooFew { addressable, functional, first } => {
                write!(f, "{functional} of {addressable} registered are functional")?;
                first.iter().try_for_each(|first| write!(f, "; {first}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::string::ToString;

    use super::*;
    use crate::words::addresses::Addresses;
    use crate::words::time::Timestamp;

    fn put(catalogue: &mut Catalogue, service: &str, node: &str, level: InstanceState) {
        let instance = Instance {
            name: service.parse().unwrap(),
            node: node.parse().unwrap(),
            addresses: Addresses::default(),
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            level,
            since: Timestamp::EPOCH,
        };
        catalogue.put(&service.parse().unwrap(), instance);
    }

    fn said(catalogue: &Catalogue, need: &Need) -> Option<String> {
        need.unmet(catalogue).map(|unmet| unmet.to_string())
    }

    #[test]
    fn a_need_reads_as_people_say_it() {
        let read = |text: &str| text.parse::<Need>();
        assert_eq!(read("db").unwrap(), Need::of("db".parse().unwrap(), 1));
        assert_eq!(read("3 of db").unwrap().to_string(), "3 functional of db");
        for bad in ["", "0 of db", "x of db", "-1 of db", "2 of D B"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_three_kinds_of_not_there_are_told_apart() {
        let mut catalogue = Catalogue::default();
        let need = Need::of("mysql".parse().unwrap(), 2);
        let text = |catalogue: &Catalogue| said(catalogue, &need).unwrap();
        assert_eq!(text(&catalogue), "2 functional of mysql: no node ever registered it");
        put(&mut catalogue, "mysqld", "db-1", InstanceState::Passing);
        assert!(text(&catalogue).ends_with("did you mean mysqld?"));
        catalogue.hear_of(&"mysql".parse().unwrap());
        assert_eq!(text(&catalogue), "2 functional of mysql: no node registers it now");
        put(&mut catalogue, "mysql", "db-1", InstanceState::Passing);
        assert_eq!(text(&catalogue), "2 functional of mysql: 1 of 1 registered are functional");
        put(&mut catalogue, "mysql", "db-2", InstanceState::Failing { reason: "check port: refused".into() });
        let failing = "2 functional of mysql: 1 of 2 registered are functional; mysql on db-2 is failing: check port: refused";
        assert_eq!(text(&catalogue), failing);
        let addressable = Need { at: RequiredState::Addressable, ..need.clone() };
        assert_eq!(said(&catalogue, &addressable), None, "registered is enough");
        assert_eq!("2 addressable of mysql".parse(), Ok(addressable.clone()));
        assert_eq!(addressable.to_string().parse(), Ok(addressable));
        for wrong in ["addressable of mysql", "0 addressable of mysql", "2 warm of mysql"] {
            assert!(wrong.parse::<Need>().is_err(), "{wrong}");
        }
        put(&mut catalogue, "mysql", "db-2", InstanceState::Warning { reason: "slow".into() });
        assert_eq!(said(&catalogue, &need), None, "what warns serves");
    }
}
