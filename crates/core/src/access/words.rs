//! The words of rights: kinds of objects and verbs. Owns their names, and which object an event is about.

use alloc::string::String;

use crate::words::near::nearest;

macro_rules! words {
    ($(#[$doc:meta])* $type:ident: $what:literal { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[$each])* $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Reads the word.
            ///
            /// # Errors
            /// With the nearest word and all there are.
            pub fn parse(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|known| known.as_str() == text);
                found.copied().ok_or_else(|| unknown($what, text, &[$($word,)*]))
            }
        }
    };
}

words! {
    /// A kind of objects.
    ObjectKind: "kind" {
        /// The audit log.
        Audit = "audit",
        /// Clusters, with their roles and members.
        Cluster = "cluster",
        /// Ensembles, with their members.
        Ensemble = "ensemble",
        /// Entities, with their targets and the reports of external targets.
        Entity = "entity",
        /// Saved filters.
        Filter = "filter",
        /// Freezes of a namespace.
        Freeze = "freeze",
        /// Freezes of all namespaces.
        GlobalFreeze = "global-freeze",
        /// Join tokens.
        JoinToken = "join-token",
        /// Namespaces.
        Namespace = "namespace",
        /// Nodes, with their params, profiles, facts, statuses and logs.
        Node = "node",
        /// Declarations of params.
        Param = "param",
        /// Pauses of nodes by filter.
        Pause = "pause",
        /// Profiles and their revisions.
        Profile = "profile",
        /// Roles.
        Role = "role",
        /// Rollouts, by the name of their entity.
        Rollout = "rollout",
        /// Runs of workflows; starting one is a right on the workflow of that name.
        Run = "run",
        /// Schedules of workflows.
        Schedule = "schedule",
        /// Reactions to conditions.
        Reaction = "reaction",
        /// Sinks of events.
        Sink = "sink",
        /// Secrets, without their values.
        Secret = "secret",
        /// The servers and their metrics.
        Server = "server",
        /// Services and their instances.
        Service = "service",
        /// Slots.
        Slot = "slot",
        /// Stages of workflows.
        Stage = "stage",
        /// Tasks.
        Task = "task",
        /// API tokens.
        Token = "token",
        /// Workflows.
        Workflow = "workflow",
    }
}

words! {
    /// What is done with an object.
    Verb: "verb" {
        /// Read it.
        Get = "get",
        /// Create it or change it.
        Update = "update",
        /// Delete it.
        Delete = "delete",
        /// Read the values of its secrets.
        Reveal = "reveal",
    }
}

impl ObjectKind {
    /// Whether objects of the kind belong to the whole installation and to no namespace.
    #[must_use]
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Audit | Self::GlobalFreeze | Self::Role | Self::Server | Self::Token)
    }

    /// The object that an event is about, by the event's subject; `None` for a subject that is no object of these kinds.
    #[must_use]
    pub fn of_subject(subject: &str) -> Option<(Self, &str)> {
        let (kind, rest) = subject.split_once('/')?;
        let first = rest.split('/').next().unwrap_or(rest);
        Some(match kind {
            "target" => (Self::Entity, first),
            "store" => (Self::Node, first),
            "rollout" | "service" | "entity" | "slot" => (Self::parse(kind).ok()?, first),
            _ => (Self::parse(kind).ok()?, rest),
        })
    }
}

fn unknown(what: &str, text: &str, known: &[&str]) -> String {
    let near = nearest(text, known.iter().copied());
    let meant = near.map_or_else(String::new, |near| alloc::format!("did you mean {near}? "));
    alloc::format!("{text:?} is not a {what}; {meant}known: {}", known.join(", "))
}
