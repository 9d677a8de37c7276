//! What `lock run` and the guard of its command say to each other: lines of JSON over two pipes, between processes of one program.

use serde::{Deserialize, Serialize};

/// What `lock run` tells the guard. The end of the pipe asks for the end of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum GuardOrder {
    /// The lease was granted anew: it replaces the one before.
    Lease(GuardedLease),
    /// Send this signal to the command.
    Signal(i32),
    /// Stop the command, until it is to continue.
    Stop,
    /// Have a stopped command continue, unless its lease is over.
    Continue,
    /// The lease is over: end the command.
    End,
}

/// Until when a command may run, by the time since boot, in which a suspended machine counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuardedLease {
    /// When the command is asked to end.
    pub(super) end_ms: u64,
    /// When what is left is killed.
    pub(super) kill_ms: u64,
}

/// What the guard tells `lock run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum GuardAnswer {
    /// The command was started, as this process and process group.
    Started(i32),
    /// The command cannot be started, for this reason.
    NotStarted(String),
    /// The command is ended: nobody renewed its lease in time.
    LeaseOver,
    /// The command is ended as it was ordered.
    Ending,
    /// The command exited with this code.
    Exited(i32),
    /// A signal ended the command.
    Killed(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_these_lines() {
        let orders = [
            (
                GuardOrder::Lease(GuardedLease { end_ms: 7, kill_ms: 9 }),
                r#"{"lease":{"end_ms":7,"kill_ms":9}}"#,
            ),
            (GuardOrder::Signal(15), r#"{"signal":15}"#),
            (GuardOrder::Stop, r#""stop""#),
            (GuardOrder::Continue, r#""continue""#),
            (GuardOrder::End, r#""end""#),
        ];
        for (order, line) in orders {
            assert_eq!(serde_json::to_string(&order).unwrap(), line);
            assert_eq!(serde_json::from_str::<GuardOrder>(line).unwrap(), order);
        }
        let answers = [
            (GuardAnswer::Started(8), r#"{"started":8}"#),
            (GuardAnswer::NotStarted("no".to_owned()), r#"{"not_started":"no"}"#),
            (GuardAnswer::LeaseOver, r#""lease_over""#),
            (GuardAnswer::Ending, r#""ending""#),
            (GuardAnswer::Exited(3), r#"{"exited":3}"#),
            (GuardAnswer::Killed(9), r#"{"killed":9}"#),
        ];
        for (answer, line) in answers {
            assert_eq!(serde_json::to_string(&answer).unwrap(), line);
            assert_eq!(serde_json::from_str::<GuardAnswer>(line).unwrap(), answer);
        }
    }
}
