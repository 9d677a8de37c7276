//! Reactions to conditions: requests, answers and stored records.

pub mod test;

use std::collections::BTreeMap;

use bellwether_core::decide::reactions::Standing;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::reaction as core;
use bellwether_core::words::counter::ReactionRevision;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::filter::conditions::CONDITIONS;
use bellwether_core::words::filter::nodes::NODES;
use bellwether_core::words::name::WorkflowName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::conditions::{self, TrueCondition};
use serde::{Deserialize, Serialize};

use super::cluster::ClusterMode;
use super::labels::{labels_in, labels_out};
use super::policy::Policy;
use crate::shape::{ShapeError, object, read, read_some, reason};
use crate::word::words;

words! {
    /// What became of a firing.
    FiringResult = core::FiringResult {
        /// A run was started.
        Started = "started",
        /// No run could be started; it is tried again after the cooldown.
        Failed = "failed",
    }
}

words! {
    /// How a reaction stands to a condition that is true.
    ReactionState {
        /// It fires now.
        Due = "due",
        /// It has started a run for this episode.
        Fired = "fired",
        /// The run that it started for this subject before has not ended.
        Running = "running",
        /// The condition has not been true for long enough.
        Pending = "pending",
        /// It has fired for this subject not long ago.
        CoolingDown = "cooling_down",
        /// It has fired as often as it may within an hour.
        Limited = "limited",
        /// The mode of the cluster starts nothing.
        Observed = "observed",
        /// The reaction is suspended.
        Suspended = "suspended",
        /// The servers have not listened for long enough.
        Unsettled = "unsettled",
    }
}

/// Request to create a reaction, or to change one. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReactionSpec {
    /// Filter of the conditions that it is about, over `condition`, `cluster`, `node` and `probe`.
    #[schema(example = "condition = no_primary and cluster = db")]
    pub on: String,
    /// Name of the workflow that it runs; it need not exist yet.
    #[schema(example = "promote-replica")]
    pub workflow: String,
    /// The nodes that run it: `subject` (the node of which the condition is true), `manager` or `members` (of the cluster), or a filter of
    /// nodes. Default `subject`.
    #[schema(example = "manager")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// How long the condition must have been true, at most `24h`. Default `0s`.
    #[schema(example = "30s")]
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// How long after a firing there is no other for the same subject, at most `24h`. Default `10m`.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<String>,
    /// Most firings within an hour, for all subjects, 1 to 60. Default 6.
    #[schema(example = 6)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
    /// Whether it starts nothing. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs; absent fields take their defaults, as for a run that is started by hand.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A reaction, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Reaction {
    /// Its name.
    pub name: String,
    /// Number of the last change of what it is, from 1.
    pub revision: u64,
    /// Filter of the conditions that it is about.
    pub on: String,
    /// Name of the workflow that it runs.
    pub workflow: String,
    /// The nodes that run it: `subject`, `manager`, `members`, or a filter of nodes.
    pub nodes: String,
    /// How long the condition must have been true, in milliseconds.
    pub for_ms: u64,
    /// How long after a firing there is no other for the same subject, in milliseconds.
    pub cooldown_ms: u64,
    /// Most firings within an hour.
    pub max_per_hour: u32,
    /// Whether it starts nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs.
    pub policy: Policy,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it did, the newest last: of the last hour, of the cooldown, and of conditions that are still true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firings: Vec<ReactionFiring>,
    /// Since when it has fired as often as it may within an hour, in milliseconds since the Unix epoch; absent while it may fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_since_ms: Option<u64>,
    /// The conditions that are true now and that it is about; only in the answer to `get`, and never stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ReactionMatch>,
    /// What to know of a reaction that is valid and may not be meant; only in the answer to a change, and never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// One firing of a reaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReactionFiring {
    /// Name of the condition.
    pub condition: String,
    /// What it was true of: `node/NODE`, `store/NODE/PROBE` or `cluster/CLUSTER/PROBE`.
    pub subject: String,
    /// Since when it was true, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// When the reaction fired, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// What became of it.
    pub result: FiringResult,
    /// The run, or the reason for none.
    pub text: String,
}

/// A condition that is true, and how a reaction stands to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReactionMatch {
    /// Name of the condition.
    pub condition: String,
    /// What it is true of.
    pub subject: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// How the reaction stands to it.
    pub state: ReactionState,
    /// When that ends by itself, in milliseconds since the Unix epoch; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The run that has not ended, in the state `running`; absent in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The cluster whose mode starts nothing; absent in other states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_cluster: Option<String>,
    /// The mode of that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ClusterMode>,
}

/// What a reaction is to be, all but its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredReaction {
    /// The conditions that it is about.
    pub on: Filter,
    /// The workflow that it runs.
    pub workflow: WorkflowName,
    /// The nodes that run it.
    pub nodes: core::ReactionNodes,
    /// How long a condition must have been true.
    pub hold: Span,
    /// How long after a firing there is no other for the same subject.
    pub cooldown: Span,
    /// Most firings within an hour.
    pub max_per_hour: u32,
    /// Whether it starts nothing.
    pub suspended: bool,
    /// Reason for the change.
    pub reason: String,
}

impl ReactionSpec {
    /// What the reaction is to be.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self) -> Result<DesiredReaction, ShapeError> {
        if self.on.trim().is_empty() {
            return Err(ShapeError::at("on", "missing; write a filter such as condition = store_down"));
        }
        let on = Filter::parse(&self.on, &CONDITIONS).map_err(|error| ShapeError::misread("on", &error))?;
        let named = on.required_values("condition", "").unwrap_or_default();
        if let Some(unknown) = named.into_iter().find(|name| !conditions::is_condition(name)) {
            let all = conditions::names().collect::<Vec<_>>().join(", ");
            return Err(ShapeError::at("on", format!("no condition is called {unknown}; there are {all}")));
        }
        let nodes = core::ReactionNodes::read(self.nodes.as_deref().unwrap_or("subject"));
        can_fire(&on, &nodes)?;
        if let core::ReactionNodes::Filter(filter) = &nodes {
            Filter::parse(filter, &NODES).map_err(|error| ShapeError::misread("nodes", &error))?;
        }
        let span = |field, text: &Option<String>, default: Span, most: Span| {
            let span = read_some(field, text.as_deref())?.unwrap_or(default);
            let wrong = || ShapeError::at(field, format!("{span} is too long; at most {most} is allowed"));
            if span > most { Err(wrong()) } else { Ok(span) }
        };
        let max_per_hour = self.max_per_hour.unwrap_or(core::FIRINGS_PER_HOUR);
        if !(1..=core::MAX_FIRINGS_PER_HOUR).contains(&max_per_hour) {
            let reason = format!("{max_per_hour}; write 1 to {}", core::MAX_FIRINGS_PER_HOUR);
            return Err(ShapeError::at("max_per_hour", reason));
        }
        Ok(DesiredReaction {
            on,
            workflow: read("workflow", &self.workflow)?,
            nodes,
            hold: span("for", &self.hold, Span::ZERO, core::MAX_HOLD)?,
            cooldown: span("cooldown", &self.cooldown, core::COOLDOWN, core::MAX_COOLDOWN)?,
            max_per_hour,
            suspended: self.suspended,
            reason: reason(&self.reason)?,
        })
    }
}

/// Refuses a reaction that no condition can ever have run anything.
fn can_fire(on: &Filter, nodes: &core::ReactionNodes) -> Result<(), ShapeError> {
    let matching: Vec<_> = conditions::matching(on).collect();
    if matching.is_empty() {
        let reason = "it matches no condition: node_unreachable has no probe, conditions of a whole cluster have no node, and each \
                      condition has one name";
        return Err(ShapeError::at("on", reason));
    }
    let is_of_nodes = matching.iter().any(|name| conditions::has_node(name));
    if *nodes == core::ReactionNodes::Subject && !is_of_nodes {
        let names = matching.join(", ");
        let reason = format!(
            "the subject of {names} is a whole cluster, and no node; write manager, members or a filter of nodes, as in --nodes manager"
        );
        return Err(ShapeError::at("nodes", reason));
    }
    Ok(())
}

impl Reaction {
    /// The request that would make this reaction.
    #[must_use]
    pub fn spec(&self) -> ReactionSpec {
        ReactionSpec {
            on: self.on.clone(),
            workflow: self.workflow.clone(),
            nodes: Some(self.nodes.clone()),
            hold: Some(Span::from_millis(self.for_ms).to_string()),
            cooldown: Some(Span::from_millis(self.cooldown_ms).to_string()),
            max_per_hour: Some(self.max_per_hour),
            suspended: self.suspended,
            policy: self.policy.clone(),
            reason: String::new(),
        }
    }
}

impl ReactionMatch {
    /// How a reaction stands to a condition.
    #[must_use]
    pub fn of(condition: &TrueCondition<'_>, standing: &Standing) -> Self {
        let (state, until_ms) = ReactionState::of(standing);
        let mode = standing.mode().map(ClusterMode::from);
        let cluster = condition.cluster.filter(|_| mode.is_some());
        Self {
            run: standing.run().map(ToString::to_string),
            observed_cluster: cluster.map(ToString::to_string),
            mode,
            condition: condition.name.to_owned(),
            subject: condition.subject.to_string(),
            since_ms: condition.since.as_millis(),
            state,
            until_ms,
        }
    }
}

impl ReactionState {
    /// How a reaction stands to a condition, and when that ends by itself, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn of(standing: &Standing) -> (Self, Option<u64>) {
        let (state, until) = match standing {
            Standing::Due => (Self::Due, None),
            Standing::Fired => (Self::Fired, None),
            Standing::Running { .. } => (Self::Running, None),
            Standing::Holds { until } => (Self::Pending, Some(until)),
            Standing::CoolsDown { until } => (Self::CoolingDown, Some(until)),
            Standing::Limited { until } => (Self::Limited, Some(until)),
            Standing::Mode(_) => (Self::Observed, None),
            Standing::Suspended => (Self::Suspended, None),
            Standing::Unsettled { until } => (Self::Unsettled, Some(until)),
        };
        (state, until.map(|until| until.as_millis()))
    }
}

impl From<&core::Reaction> for Reaction {
    fn from(from: &core::Reaction) -> Self {
        let firing = |firing: &core::ReactionFiring| ReactionFiring {
            condition: firing.condition.clone(),
            subject: firing.subject.to_string(),
            since_ms: firing.since.as_millis(),
            at_ms: firing.at.as_millis(),
            result: firing.result.into(),
            text: firing.text.clone(),
        };
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            on: from.on.to_string(),
            workflow: from.workflow.to_string(),
            nodes: from.nodes.to_string(),
            for_ms: from.hold.as_millis(),
            cooldown_ms: from.cooldown.as_millis(),
            max_per_hour: from.max_per_hour,
            suspended: from.suspended,
            policy: (&from.policy).into(),
            labels: labels_out(&from.labels),
            firings: from.firings.iter().map(firing).collect(),
            limited_since_ms: from.limited_since.map(Timestamp::as_millis),
            matches: Vec::new(),
            warning: None,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<Reaction> for core::Reaction {
    type Error = ShapeError;
    fn try_from(from: Reaction) -> Result<Self, ShapeError> {
        let firing = |firing: ReactionFiring| {
            Ok::<_, ShapeError>(core::ReactionFiring {
                condition: firing.condition,
                subject: read("subject", &firing.subject)?,
                since: Timestamp::from_millis(firing.since_ms),
                at: Timestamp::from_millis(firing.at_ms),
                result: firing.result.into(),
                text: firing.text,
            })
        };
        Ok(Self {
            name: read("name", &from.name)?,
            revision: ReactionRevision::new(from.revision),
            on: Filter::parse(&from.on, &CONDITIONS).map_err(|error| ShapeError::misread("on", &error))?,
            workflow: read("workflow", &from.workflow)?,
            nodes: core::ReactionNodes::read(&from.nodes),
            hold: Span::from_millis(from.for_ms),
            cooldown: Span::from_millis(from.cooldown_ms),
            max_per_hour: from.max_per_hour,
            suspended: from.suspended,
            policy: (&from.policy).try_into()?,
            labels: labels_in(&from.labels)?,
            firings: from.firings.into_iter().map(firing).collect::<Result<_, _>>()?,
            limited_since: from.limited_since_ms.map(Timestamp::from_millis),
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}
