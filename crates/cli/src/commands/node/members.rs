//! The members of ensembles on a node, before it goes, or is to be emptied.

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberHealth, MemberPhase};
use bellwether_api::v1::ensemble::osd_reports::StoreAnswer;
use bellwether_api::v1::ensemble::osds::OsdPhase;
use bellwether_api::v1::ensemble::status::EnsembleStatus;
use bellwether_api::v1::ensemble::unrecorded::UnrecordedMember;
use bellwether_api::v1::node::NodeView;

use crate::context::Context;

/// What is lost of ensembles with a node, line by line. What could not be read is said: it may be what matters.
pub(super) async fn lost(context: &Context, node: &str) -> Vec<String> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let page = match client.ensembles(namespace).await {
        Ok(page) => page,
        Err(error) => return vec![format!("whether it has members of ensembles is not known: {error}")],
    };
    let mut lines = Vec::new();
    match client.node(namespace, node).await {
        Ok(view) => lines.extend(unrecorded(&view)),
        Err(error) => {
            lines.push(format!("whether it has members that are not recorded is not known: {error}"))
        }
    }
    for ensemble in page.items {
        let name = &ensemble.name;
        match client.ensemble(namespace, name).await {
            Ok(read) => {
                let members = read.status.map(|status| status.members).unwrap_or_default();
                lines.extend(line(name, &members, node));
            }
            Err(error) => {
                lines.push(format!("whether it has a member of ensemble {name} is not known: {error}"));
            }
        }
    }
    lines
}

/// What drained nodes have of ensembles, line by line: it leaves later, or stays. The failure says that it is not known.
pub(in crate::commands) async fn staying(context: &Context, nodes: &[&str]) -> Result<Vec<String>, String> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let page = match client.ensembles(namespace).await {
        Ok(page) => page,
        Err(error) => return Err(format!("whether members of ensembles are on them is not known: {error}")),
    };
    let mut lines = Vec::new();
    for node in nodes {
        match client.node(namespace, node).await {
            Ok(view) => lines.extend(unrecorded(&view)),
            Err(error) => return Err(format!("what node {node} has of ensembles is not known: {error}")),
        }
    }
    for ensemble in page.items {
        let is_on = |status: &EnsembleStatus| !parts(status, nodes).is_empty();
        if !ensemble.status.as_ref().is_some_and(is_on) {
            continue;
        }
        let name = &ensemble.name;
        match client.ensemble(namespace, name).await {
            Ok(read) => lines.extend(read.status.iter().flat_map(|status| stays(name, status, nodes))),
            Err(error) => lines.push(format!("what of ensemble {name} is on them is not known: {error}")),
        }
    }
    Ok(lines)
}

/// The members that a node has and that are not recorded, line by line.
pub(super) fn unrecorded(view: &NodeView) -> impl Iterator<Item = String> {
    let line = |(ensemble, of): (&String, &UnrecordedMember)| {
        format!("member {} of ensemble {ensemble} on node {} {}", of.number, view.node.name, of.message)
    };
    view.unrecorded_members.iter().map(line)
}

/// What these nodes have of an ensemble: each member and OSD with its node, but those that may go with it.
fn parts<'a>(status: &'a EnsembleStatus, nodes: &[&str]) -> Vec<(String, &'a str)> {
    let is_on = |node: &str| nodes.contains(&node);
    let members = status.members.iter().filter(|member| member.state != MemberPhase::Removed);
    let members = members.map(|member| (format!("member {}", member.number), member.node.as_str()));
    let osds = status
        .osds
        .iter()
        .filter(|osd| osd.state != OsdPhase::Removed && osd.safe_to_remove != Some(StoreAnswer::Yes));
    let osds = osds.map(|osd| (format!("OSD {}", osd.number), osd.node.as_str()));
    members.chain(osds).filter(|(_, node)| is_on(node)).collect()
}

fn stays(ensemble: &str, status: &EnsembleStatus, nodes: &[&str]) -> Vec<String> {
    let until = match &status.waiting {
        Some(waiting) => format!("as long as this is so: {waiting}"),
        None => "until others have what it has".to_owned(),
    };
    let line = |(part, node): (String, &str)| {
        format!(
            "{part} of ensemble {ensemble} stays on node {node} {until}; see: bellwether why ensemble/{ensemble}"
        )
    };
    parts(status, nodes).into_iter().map(line).collect()
}

fn line(ensemble: &str, members: &[EnsembleMember], node: &str) -> Option<String> {
    let serves =
        |member: &&EnsembleMember| matches!(member.state, MemberPhase::Voting | MemberPhase::Serving);
    let own = members.iter().filter(serves).find(|member| member.node == node)?;
    let others = members.iter().filter(serves).filter(|member| member.node != node);
    let working = others.filter(|member| member.health == MemberHealth::Working).count();
    let left = match working {
        0 => {
            "no other member works: its data are lost, unless they are set aside or in a snapshot".to_owned()
        }
        1 => "1 other member works, which has the only copy of its data then".to_owned(),
        working => format!("{working} other members work"),
    };
    Some(format!("it has member {} of ensemble {ensemble}; {left}", own.number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u64, node: &str, health: MemberHealth) -> EnsembleMember {
        EnsembleMember {
            number,
            node: node.to_owned(),
            state: MemberPhase::Serving,
            reason: None,
            health,
            role: None,
            passwords: None,
            message: None,
            since_ms: 0,
            store_id: None,
            peer_url: None,
        }
    }

    #[test]
    fn what_stays_on_a_drained_node_is_said_with_what_it_waits_for() {
        let members = vec![member(1, "a", MemberHealth::Working), member(2, "b", MemberHealth::Working)];
        let mut status = EnsembleStatus { members, ..EnsembleStatus::default() };
        assert!(stays("disks", &status, &["c"]).is_empty());
        assert_eq!(
            stays("disks", &status, &["a", "c"]),
            [
                "member 1 of ensemble disks stays on node a until others have what it has; see: bellwether why ensemble/disks"
            ]
        );
        status.waiting = Some("no node may have another member".to_owned());
        let said = stays("disks", &status, &["b"]);
        assert!(
            said[0].contains("on node b as long as this is so: no node may have another member;"),
            "{said:?}"
        );
    }

    #[test]
    fn what_is_left_of_an_ensemble_is_said() {
        let all = [
            member(1, "a", MemberHealth::Working),
            member(2, "b", MemberHealth::Failed),
            member(3, "c", MemberHealth::Working),
        ];
        assert_eq!(line("cache", &all, "d"), None);
        let said = |node| line("cache", &all, node).unwrap();
        assert_eq!(
            said("a"),
            "it has member 1 of ensemble cache; 1 other member works, which has the only copy of its data then"
        );
        assert_eq!(said("b"), "it has member 2 of ensemble cache; 2 other members work");
        assert!(line("cache", &all[..2], "a").unwrap().contains("no other member works: its data are lost"));
    }
}
