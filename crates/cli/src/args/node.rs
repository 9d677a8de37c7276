//! `node` as typed.

use bellwether_api::v1::job_log::EnsembleLog;
use clap::Subcommand;

use bellwether_core::words::percent::Amount;
use bellwether_core::words::time::Span;

use super::consent::Consent;
use super::list::ListFlags;
use super::node_choice::{NodeChoice, NodeName, NodeReason};
use super::param::NodeParamsVerb;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeVerb {
    /// List nodes
    List {
        #[command(flatten)]
        flags: ListFlags,
        /// Include decommissioned nodes
        #[arg(long)]
        all: bool,
        /// List only nodes that are expected but have not joined, or are unreachable; exit 1 if there are any
        #[arg(long, conflicts_with_all = ["matching", "filter", "sort", "limit", "fields", "count", "all"])]
        unaccounted: bool,
    },
    /// Show one node
    Get {
        #[command(flatten)]
        of: NodeName,
    },
    /// Explain what a node waits for
    Why {
        #[command(flatten)]
        of: NodeName,
    },
    /// Set and remove labels of a node
    Label {
        #[command(flatten)]
        of: NodeName,
        /// Label to set (KEY=VALUE) or to remove (KEY-)
        #[arg(required = true, value_name = "CHANGE")]
        changes: Vec<String>,
    },
    /// Set which services a node may register; others leave the catalogue
    AllowServices {
        #[command(flatten)]
        of: NodeName,
        /// Service name, which may end with *; none to allow no service
        #[arg(value_name = "SERVICE")]
        services: Vec<String>,
    },
    #[command(flatten)]
    Params(NodeParamsVerb),
    /// Pause a node: it starts nothing new, but still checks and reports
    Pause {
        #[command(flatten)]
        which: NodeChoice,
        #[command(flatten)]
        why: NodeReason,
    },
    /// Resume a paused node
    Resume {
        #[command(flatten)]
        which: NodeChoice,
    },
    /// Cordon a node: it is assigned nothing new, and what it runs continues
    Cordon {
        #[command(flatten)]
        which: NodeChoice,
        #[command(flatten)]
        why: NodeReason,
    },
    /// Drain a node: cordon it, and withdraw its services from discovery; what it runs continues
    ///
    /// The services are withdrawn as soon as no more than `--max-unavailable` instances of each are unavailable with
    /// them, and no entity has more unavailable targets than its policy allows. Until then the drain waits; `node why`
    /// says what for.
    Drain(DrainNodes),
    /// Uncordon a cordoned or drained node
    Uncordon {
        #[command(flatten)]
        which: NodeChoice,
        /// Accepted as for `drain`; uncordoning never asks
        #[arg(long)]
        yes: bool,
    },
    /// Request a rescan of a node's facts, such as its disks; the agent does it with its next order
    Rescan {
        #[command(flatten)]
        which: NodeChoice,
    },
    /// Expect a node that has not joined yet, so that its absence is reported
    Expect {
        /// Node name
        #[arg(value_name = "NODE")]
        name: String,
        #[command(flatten)]
        why: NodeReason,
        /// Stop expecting the node
        #[arg(long)]
        off: bool,
    },
    /// Have a node begin runs of workflows again after one failed on it; or none, with --no
    Runnable {
        #[command(flatten)]
        of: NodeName,
        /// Have it begin none; what runs goes on
        #[arg(long)]
        no: bool,
        #[command(flatten)]
        why: NodeReason,
    },
    /// List the jobs on a node
    Jobs {
        #[command(flatten)]
        of: NodeName,
    },
    /// Print the output of the process of an entity on a node, or of the node's last failing runs
    Logs(NodeLogs),
    /// Decommission a node for good: its certificate stops working and its agent ends; supervised processes keep running
    Decommission {
        #[command(flatten)]
        of: NodeName,
        #[command(flatten)]
        why: NodeReason,
        /// Also if it is up and has members or OSDs of ensembles, which count as lost then: somebody else has its key, or it cannot be
        /// reached
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DrainNodes {
    #[command(flatten)]
    pub(crate) which: NodeChoice,
    #[command(flatten)]
    pub(crate) why: NodeReason,
    /// Most instances of any one service that may be unavailable at once: a count or a share
    #[arg(long, value_name = "AMOUNT", default_value = "1")]
    pub(crate) max_unavailable: Amount,
    /// Give up a drain that still waits after this time
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) deadline: Span,
    /// Drain at once, whatever else is unavailable
    #[arg(long, conflicts_with_all = ["max_unavailable", "deadline", "watch"])]
    pub(crate) force: bool,
    /// Wait until every node is drained and has nothing of an ensemble any more; exit code 1 if that is given up
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// What wrote output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogOf {
    /// The process of an entity.
    Entity(String),
    /// What a node has of an ensemble.
    Ensemble(EnsembleLog),
}

fn process(text: &str) -> Result<LogOf, String> {
    let Some(rest) = text.strip_prefix("ensemble/") else { return Ok(LogOf::Entity(text.to_owned())) };
    let (ensemble, part) = rest.split_once('/').unwrap_or((rest, ""));
    let log = EnsembleLog { ensemble: ensemble.to_owned(), osd: None, manager: false };
    let log = match part.strip_prefix("osd-") {
        Some(number) => EnsembleLog { osd: Some(super::number::whole(number)?), ..log },
        None if part == "mgr" => EnsembleLog { manager: true, ..log },
        None if part.is_empty() => log,
        None => return Err("write ensemble/NAME, ensemble/NAME/osd-N or ensemble/NAME/mgr".to_owned()),
    };
    Ok(LogOf::Ensemble(log))
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeLogs {
    #[command(flatten)]
    pub(crate) of: NodeName,
    /// Entity whose process wrote the output, or ensemble/NAME, ensemble/NAME/osd-N or ensemble/NAME/mgr; without it, the output of failing runs is printed
    #[arg(value_name = "ENTITY", conflicts_with_all = ["entity", "category"], value_parser = process)]
    pub(crate) process: Option<LogOf>,
    /// Go on with what the process writes, until Ctrl-C
    #[arg(short, long, requires = "process")]
    pub(crate) follow: bool,
    /// Entity of failing runs; every entity if absent
    #[arg(short, long)]
    pub(crate) entity: Option<String>,
    /// Category: configure or validate; both if absent
    #[arg(long, value_parser = ["configure", "validate"], hide_possible_values = true)]
    pub(crate) category: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_of_an_entity_or_of_a_part_of_an_ensemble() {
        let of = |osd, manager| LogOf::Ensemble(EnsembleLog { ensemble: "disks".to_owned(), osd, manager });
        assert_eq!(process("web").unwrap(), LogOf::Entity("web".to_owned()));
        assert_eq!(process("ensemble/disks").unwrap(), of(None, false));
        assert_eq!(process("ensemble/disks/osd-3").unwrap(), of(Some(3), false));
        assert_eq!(process("ensemble/disks/mgr").unwrap(), of(None, true));
        for bad in ["ensemble/disks/osd-x", "ensemble/disks/3", "ensemble/disks/mgr/1"] {
            assert!(process(bad).is_err(), "{bad}");
        }
    }
}
