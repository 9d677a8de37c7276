//! Names of namespaces, nodes, entities, targets, checks, status categories, services and others. Owns which
//! names are valid.

mod rules;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

pub use self::rules::{
    MAX_INTERFACE_BYTES, MAX_LABEL_BYTES, MAX_PARAM_KEY_BYTES, MAX_TARGET_BYTES, NODE_ACTOR,
};
use self::rules::{actor, grouped, host, interface, label, param_key, serial, target, unit, visible};

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {kind}: {reason}{}", instead(.suggestion.as_deref()))]
pub struct NameError {
    /// The text, cut to a readable length.
    pub text: String,
    /// The kind of name that was expected.
    pub kind: &'static str,
    /// The rule that it breaks.
    pub reason: &'static str,
    /// A valid name that differs only by case and by '-' in place of '_', if there is one.
    pub suggestion: Option<String>,
}

fn instead(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("; use {name:?}"))
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident: $kind:literal, $check:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Reads a name.
            ///
            /// # Errors
            /// [`NameError`] with the rule that is broken.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let Some(reason) = $check(text) else { return Ok(Self(text.into())) };
                let similar = text.to_ascii_lowercase().replace('_', "-");
                let suggestion = $check(&similar).is_none().then_some(similar);
                Err(NameError { text: text.chars().take(80).collect(), kind: $kind, reason, suggestion })
            }

            /// The text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl core::str::FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )*};
}

names! {
    /// An isolated fleet. A DNS label; `default` exists from the start.
    Namespace: "namespace", label;
    /// A machine that runs an agent. A DNS label, or a full host name: 1 to 253 bytes of DNS labels with dots
    /// between them, in lower case.
    NodeName: "node name", host;
    /// A process of the control plane. A DNS label.
    ServerName: "server name", label;
    /// Something that is rolled out to many targets. A DNS label.
    EntityName: "entity name", label;
    /// A freeze. A DNS label.
    FreezeName: "freeze name", label;
    /// A pause of several nodes. A DNS label.
    PauseName: "pause name", label;
    /// A semaphore that limits concurrent holders. A DNS label.
    SlotName: "slot name", label;
    /// The holder of a slot, under a name of its own choice. 1 to 253 visible ASCII characters.
    HolderName: "holder", visible;
    /// A named set of rights. A DNS label.
    RoleName: "role name", label;
    /// The key of a param. 1 to 128 letters, digits and `_ - . /`.
    ParamKey: "param key", param_key;
    /// A secret of a namespace. 1 to 128 letters, digits and `_ - . /`.
    SecretName: "secret name", param_key;
    /// A cluster: nodes that share a profile and have roles. A DNS label.
    ClusterName: "cluster name", label;
    /// A saved filter of a namespace. A DNS label.
    FilterName: "filter name", label;
    /// What a filter is of, by the last part of the path of its list, such as `nodes`. A DNS label.
    ListName: "list name", label;
    /// A program that reads secrets from elsewhere, by its name in the servers' configuration. A DNS label.
    ProviderName: "provider name", label;
    /// A key that secrets are encrypted with, by the first half of its fingerprint in hex. A DNS label.
    SecretKeyId: "secret key id", label;
    /// A task: scripts and files that a node runs and writes. A DNS label.
    TaskName: "task name", label;
    /// A step of a task. A DNS label.
    StepName: "step name", label;
    /// A stage: tasks in order, and the profiles that they read. A DNS label.
    StageName: "stage name", label;
    /// A workflow: stages in order. A DNS label.
    WorkflowName: "workflow name", label;
    /// A schedule: a workflow that runs at times of a calendar. A DNS label.
    ScheduleName: "schedule name", label;
    /// A reaction: a workflow that is run when a condition is true. A DNS label.
    ReactionName: "reaction name", label;
    /// A sink: a receiver of the events of a namespace. A DNS label.
    SinkName: "sink name", label;
    /// An ensemble: a distributed service that is managed whole. A DNS label.
    EnsembleName: "ensemble name", label;
    /// Something that a node has under this name for ensembles: a program, or executables. A DNS label.
    ProgramName: "program name", label;
    /// A unit of systemd, such as `web.service`, or a template, such as `web@.service`. 1 to 253 letters, digits and `. _ : @ -`.
    UnitName: "unit name", unit;
    /// A device of a node: its serial number, or a name that its node gives it. 1 to 128 letters, digits and `. _ : -`.
    DeviceSerial: "device", serial;
    /// A named set of parameters. A DNS label.
    ProfileName: "profile name", label;
    /// An action of a node, from its own catalogue of actions. A DNS label.
    ActionName: "action name", label;
    /// A target of an entity: a node's name, or a name that a controller reports. 1 to 253 bytes of letters,
    /// digits and `. _ : / -`; case-sensitive; `group/name` names a target in a group, and no part is empty.
    TargetName: "target name", grouped;
    /// An agent's ledger, from its first write to its loss. A DNS label.
    LedgerId: "ledger id", label;
    /// A category of node status, such as `configure`. A DNS label.
    Category: "status category", label;
    /// A probe of a data store on a node. A DNS label.
    ProbeName: "probe name", label;
    /// A check on a node. A DNS label.
    CheckName: "check name", label;
    /// A service that has instances on nodes. A DNS label.
    ServiceName: "service name", label;
    /// An instance of a service, unique on its node. 1 to 253 bytes, as for targets.
    InstanceName: "instance name", target;
    /// A tag that selects instances of a service. 1 to 253 visible ASCII characters.
    Tag: "tag", visible;
    /// Location of a fleet's nodes, as used in DNS names. A DNS label.
    Datacentre: "datacentre name", label;
    /// A network interface of a node, such as `eth0`. 1 to 15 visible ASCII characters without '/'.
    InterfaceName: "interface name", interface;
    /// The name of a token, or `node/` and the name of a node that acts. 1 to 253 bytes, as for targets, after
    /// that prefix.
    Actor: "actor", actor;
}

impl From<&NodeName> for TargetName {
    fn from(node: &NodeName) -> Self {
        Self(node.0.clone())
    }
}

impl NodeName {
    /// The first name in order: no other sorts before it.
    pub(crate) fn first() -> Self {
        Self(Arc::from("-"))
    }
}

impl UnitName {
    /// Whether it is a template, of which there are instances.
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.0.ends_with("@.service")
    }

    /// The unit of an instance of a template; of another unit, itself.
    #[must_use]
    pub fn of_instance(&self, instance: &str) -> String {
        match self.0.strip_suffix("@.service") {
            Some(template) => format!("{template}@{instance}.service"),
            None => String::from(self.as_str()),
        }
    }
}

impl TargetName {
    /// The first name in order: no other sorts before it.
    pub(crate) fn first() -> Self {
        Self(Arc::from("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn a_label_is_what_dns_allows() {
        for good in ["a", "web-17", "0", &"a".repeat(63)] {
            assert!(EntityName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "Web", "web_1", "-a", "a-", "a.b", "ä", "a b", &"a".repeat(64)] {
            assert!(EntityName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_node_name_is_a_label_or_a_full_host_name_in_lower_case() {
        let label = "a".repeat(63);
        let longest = [&label, &label, &label, &label[..61]].map(ToString::to_string).join(".");
        assert_eq!(longest.len(), 253);
        for good in ["a", "web-17", "0", "web-1.example.org", "10.0.0.1", "xn--web.example", &longest] {
            assert_eq!(NodeName::parse(good).map(|name| name.to_string()), Ok(good.to_string()));
        }
        let long = format!("{longest}a");
        for (bad, reason) in [
            ("", "it is empty"),
            (&*long, "it is longer than 253 characters"),
            ("web.-a.org", "no label between dots may start or end with '-'"),
            ("web-.org", "no label between dots may start or end with '-'"),
            ("web-1.", "it may not start or end with '.', nor have two in a row"),
            (".web-1", "it may not start or end with '.', nor have two in a row"),
            ("web..org", "it may not start or end with '.', nor have two in a row"),
            ("ä.org", "only lower-case letters, digits, '-' and '.' are allowed"),
            ("eu/web-1", "only lower-case letters, digits, '-' and '.' are allowed"),
            (&*format!("{}.org", "a".repeat(64)), "a label between dots is longer than 63 characters"),
        ] {
            let error = NodeName::parse(bad).unwrap_err();
            assert_eq!((error.reason, error.suggestion), (reason, None), "{bad}");
        }
    }

    #[test]
    fn a_node_name_that_differs_by_case_or_underscores_is_refused_with_the_valid_one() {
        let said = |text: &str| NodeName::parse(text).unwrap_err().to_string();
        assert_eq!(
            said("Web-1.Example.org"),
            "\"Web-1.Example.org\" is not a valid node name: upper-case letters are not allowed; use \"web-1.example.org\""
        );
        assert_eq!(
            said("WEB_1"),
            "\"WEB_1\" is not a valid node name: '_' is not allowed in host names; use \"web-1\""
        );
        assert_eq!(said("_web"), "\"_web\" is not a valid node name: '_' is not allowed in host names");
    }

    proptest! {
        #[test]
        fn exactly_the_dot_separated_labels_of_253_bytes_are_node_names(
            text in "[a-cA_0.-]{0,12}|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.){0,6}[a-z]{1,70}"
        ) {
            let is_label = |part: &str| label(part).is_none();
            let valid = text.len() <= 253 && text.split('.').all(is_label);
            match NodeName::parse(&text) {
                Ok(name) => {
                    prop_assert!(valid);
                    prop_assert_eq!(name.as_str(), &text);
                    prop_assert!(TargetName::parse(&text).is_ok());
                    let actor = format!("{NODE_ACTOR}{text}");
                    prop_assert!(Actor::parse(&actor).is_ok());
                }
                Err(error) => {
                    prop_assert!(!valid);
                    if let Some(name) = error.suggestion {
                        prop_assert!(NodeName::parse(&name).is_ok(), "{} is suggested", name);
                    }
                }
            }
        }
    }

    #[test]
    fn no_part_of_a_targets_name_is_empty() {
        for good in ["a", "eu/shop-1", "eu/rack-1/shop:8080"] {
            assert!(TargetName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "/a", "a/", "a//b", "a b"] {
            assert!(TargetName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_interface_is_what_linux_allows() {
        for good in ["lo", "eth0", "br-1.42", "wg_0", &"a".repeat(15)] {
            assert!(InterfaceName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", "a b", "eth\n", &"a".repeat(16)] {
            assert!(InterfaceName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_names_the_text_the_kind_and_the_rule() {
        let error = EntityName::parse("Web").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"Web\" is not a valid entity name: only lower-case letters, digits and '-' are allowed; use \"web\""
        );
    }
}
