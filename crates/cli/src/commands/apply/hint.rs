//! What to look up about a document that cannot be read.

use super::locate;
use crate::args::DocumentKind;
use crate::fields;

/// The hint about a document that does not say what it is.
pub(super) const KINDS: &str = "bellwether explain entity   (or: cluster, ensemble, policy, filter, freeze, node, param, pause, profile, reaction, schedule, sink, slot, stage, task, workflow)";

/// The hint about an error in a document of this kind, which begins with the path of its field if that is known.
pub(super) fn of(kind: Option<DocumentKind>, error: &str) -> String {
    let Some(kind) = kind.map(DocumentKind::as_str) else { return KINDS.to_owned() };
    let known = fields::paths();
    let path = error.split_once(": ").map_or("", |(path, _)| path);
    let keys: Vec<&str> =
        locate::parts(path).into_iter().filter(|key| key.parse::<usize>().is_err()).collect();
    let deeper = (1..=keys.len()).rev().find_map(|length| {
        let path = keys.get(..length)?.join(".");
        // A policy is explained by itself.
        let own = path.starts_with("policy.").then(|| path.clone());
        own.into_iter().chain([format!("{kind}.{path}")]).find(|path| known.contains(path))
    });
    format!("bellwether explain {}", deeper.as_deref().unwrap_or(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_about_the_kind_and_as_much_of_the_path_as_is_explained() {
        let task = Some(DocumentKind::Task);
        assert_eq!(of(task, "steps[0].script: it is a string"), "bellwether explain task.steps");
        assert_eq!(of(task, "missing field `steps`"), "bellwether explain task");
        assert_eq!(of(task, "colour: unknown: x"), "bellwether explain task");
        assert_eq!(of(Some(DocumentKind::Entity), "policy.batch: no"), "bellwether explain policy.batch");
        assert_eq!(of(Some(DocumentKind::Entity), "policy.batsh: no"), "bellwether explain entity.policy");
        assert_eq!(of(None, "kind: unknown variant `taks`"), KINDS);
    }

    #[test]
    fn every_kind_can_be_looked_up() {
        let known = fields::paths();
        for kind in KINDS.split([' ', ',', '(', ')', ':']).filter(|word| !word.is_empty()).skip(2) {
            assert!(kind == "or" || known.iter().any(|path| path == kind), "{kind} is not explained");
        }
    }
}
