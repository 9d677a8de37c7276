//! Events about servers: that the leadership was handed over, what became of their clocks, and what their stores left out. The keys of servers and of the leader are not written here.

use bellwether_api::shape::read;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::server::Leader;
use bellwether_core::verdict::Changeset;
use bellwether_core::words::name::{Actor, ServerName};
use bellwether_store::JournalCut;

use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Why a leader is told of.
const LEADS: &str = "it was started, or no other server led any more; until nodes and targets were heard again, nothing counts against them";

/// Records that a server stepped down and another one leads, in the events of the namespace `default`.
///
/// # Errors
/// [`OpError::Commit`].
pub async fn stepped_down(
    transactor: &Transactor,
    actor: &Actor,
    (before, leader): (&ServerName, &ServerName),
    reason: &str,
) -> Result<(), OpError> {
    transactor
        .change(&read("namespace", "default")?, actor, |_, _, _| {
            let event = EventDraft {
                before: Some(before.to_string()),
                after: Some(leader.to_string()),
                ..event("leader.stepped_down", format!("server/{before}"), cause(reason))
            };
            Ok((Some(Changeset { writes: Vec::new(), events: vec![event] }), ()))
        })
        .await
}

/// Records that a server leads, in the events of the namespace `default`. In one that has nothing, nobody is told.
///
/// # Errors
/// [`OpError::Commit`].
pub async fn leads(transactor: &Transactor, leader: &Leader) -> Result<(), OpError> {
    let namespace = read("namespace", "default")?;
    if !transactor.world().fleets.contains_key(&namespace) {
        return Ok(());
    }
    let (actor, name) = (Actor::parse("bellwether").expect("plain letters are an actor"), &leader.server);
    transactor
        .change(&namespace, &actor, |_, _, _| {
            let event = EventDraft {
                after: Some(name.to_string()),
                ..event("leader.elected", format!("server/{name}"), LEADS)
            };
            Ok((Some(Changeset { writes: Vec::new(), events: vec![event] }), ()))
        })
        .await
}

/// Records that the clock of a server was judged otherwise than before, in the events of the namespace `default`.
///
/// # Errors
/// [`OpError::Commit`].
pub async fn clock_judged(
    transactor: &Transactor,
    server: &ServerName,
    judgement: &str,
) -> Result<(), OpError> {
    let actor = Actor::parse("bellwether").expect("plain letters are an actor");
    transactor
        .change(&read("namespace", "default")?, &actor, |_, _, _| {
            let event = event("server.clock", format!("server/{server}"), judgement);
            Ok((Some(Changeset { writes: Vec::new(), events: vec![event] }), ()))
        })
        .await
}

/// Records that a start left out the end of the store's journal, in the events of the namespace `default`.
///
/// # Errors
/// [`OpError::Commit`].
pub async fn tail_dropped(
    transactor: &Transactor,
    server: &ServerName,
    cut: JournalCut,
) -> Result<(), OpError> {
    let actor = Actor::parse("bellwether").expect("plain letters are an actor");
    let cause = format!(
        "{} bytes at byte {} of the journal are not a whole group and were left out, as a power cut leaves them; if the disk damaged \
         them, they were acknowledged: compare with a backup, and begin a new epoch with `bellwether server restore --in-place`",
        cut.bytes, cut.at
    );
    transactor
        .change(&read("namespace", "default")?, &actor, |_, _, _| {
            let event = event("server.journal_tail_dropped", format!("server/{server}"), &cause);
            Ok((Some(Changeset { writes: Vec::new(), events: vec![event] }), ()))
        })
        .await
}
