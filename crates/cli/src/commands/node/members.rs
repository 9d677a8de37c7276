//! The members of ensembles on a node, before it goes.

use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberHealth, MemberPhase};

use crate::context::Context;

/// What is lost of ensembles with a node, line by line. What could not be read is said: it may be what matters.
pub(super) async fn lost(context: &Context, node: &str) -> Vec<String> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let page = match client.ensembles(namespace).await {
        Ok(page) => page,
        Err(error) => return vec![format!("whether it has members of ensembles is not known: {error}")],
    };
    let mut lines = Vec::new();
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
