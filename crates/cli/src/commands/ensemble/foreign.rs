//! Members of the store of an ensemble that something else runs, as they are shown, and `ensemble remove-foreign-member`.

use bellwether_api::v1::ensemble::adoption::{AdoptSpec, ForeignMember, RemoveForeignMember};
use bellwether_api::v1::ensemble::status::EnsembleStatus;

use crate::args::Consent;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{Failure, LocalFault};
use crate::show::table;
use crate::show::time::date;

/// What becomes of a member that is removed.
const LEFT: &str = "its process ends with exit code 0, and its data stay where they are: have whatever runs it not start it again, such as with \
                    systemctl disable";

/// Asks that a member is removed from the store, after the question whether that is meant; or withdraws that.
pub(super) async fn remove(
    context: &Context,
    name: &str,
    request: RemoveForeignMember,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace, id) = (&context.client, context.namespace.as_str(), &request.id);
    if !request.withdraw {
        let status = client.ensemble(namespace, name).await?.status.unwrap_or_default();
        let is_named = |of: &&ForeignMember| of.id == id.trim().to_ascii_lowercase();
        let known = status.foreign.iter().find(is_named).ok_or_else(|| {
            let what = format!("find foreign member {id} of ensemble {name}");
            Failure::local(LocalFault::Missing, what).hint(format!("see: bellwether ensemble get {name}"))
        })?;
        let (left, at) = (left(&status), format!("{} at {}", known.name, known.peer_url));
        confirm(
            &format!(
                "member {id} ({at}) is removed from the store, after another one leads; {left}; {LEFT}\nremove foreign member {id} of ensemble {name}?"
            ),
            consent,
        )?;
        context.show.note(&left);
    }
    client.remove_foreign_member(namespace, name, &request).await?;
    let what = if request.withdraw { "stays" } else { "is to be removed" };
    context.show.changed(&format!("ensemble {name}: foreign member {id} {what}"));
    if !request.withdraw {
        context.show.note(LEFT);
        context.show.note(&format!("see how far it is: bellwether why ensemble/{name}"));
    }
    Ok(())
}

/// How many copies are left of the data of a store, of which a member is removed that is not of the ensemble.
fn left(status: &EnsembleStatus) -> String {
    let foreign = status.foreign.iter().filter(|of| of.votes && of.removal.is_none()).count() as u64;
    match status.voting.saturating_add(foreign).saturating_sub(1) {
        0 => "no member that votes is left, and its data are lost".to_owned(),
        1 => "1 member that votes is left, which has the only copy of its data then".to_owned(),
        left => format!("{left} members that vote are left"),
    }
}

/// The members that are not of the ensemble; nothing where there are none.
pub(super) fn lines(status: &EnsembleStatus) -> Vec<String> {
    if status.foreign.is_empty() {
        return Vec::new();
    }
    let rows = status.foreign.iter().map(|foreign| {
        let ForeignMember { id, name, peer_url, votes, answers, since_ms, removal } = foreign;
        let votes = if *votes { "voting" } else { "learning" };
        let removal = if removal.is_some() { ", to be removed" } else { "" };
        vec![
            id.clone(),
            if name.is_empty() { "-".to_owned() } else { name.clone() },
            format!("{votes}{removal}"),
            if *answers { "answers" } else { "silent" }.to_owned(),
            date(*since_ms),
            peer_url.clone(),
        ]
    });
    let head = ["foreign member", "name", "state", "health", "since", "peer"];
    vec![String::new(), table(&head, rows)]
}

/// How many there are, after how many members work; nothing where there are none.
pub(super) fn number(status: &EnsembleStatus) -> String {
    match status.foreign.len() {
        0 => String::new(),
        number => format!(", {number} foreign"),
    }
}

/// The store that is named on the command line.
pub(super) fn adopted(endpoints: Vec<String>) -> Option<AdoptSpec> {
    (!endpoints.is_empty()).then_some(AdoptSpec { endpoints })
}
