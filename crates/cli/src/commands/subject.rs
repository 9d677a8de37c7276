//! Subjects such as `entity/web`: their kinds, and which events are about one.

/// First words of subjects.
pub(super) const KINDS: [&str; 23] = [
    "node",
    "entity",
    "rollout",
    "target",
    "service",
    "slot",
    "freeze",
    "pause",
    "profile",
    "filter",
    "store",
    "cluster",
    "ensemble",
    "schedule",
    "reaction",
    "sink",
    "run",
    "job",
    "task",
    "stage",
    "workflow",
    "token",
    "join-token",
];

/// A rollout of an entity's history, as events name it after their first word: `web/3`.
pub(super) fn past_rollout(name: &str) -> Option<(&str, u64)> {
    let (entity, number) = name.split_once('/')?;
    Some((entity, number.parse().ok()?))
}

/// A subject as events and explanations name it: a run and a rollout are told of by their entity, a job by its target.
pub(super) fn canonical(subject: &str) -> String {
    match subject.split_once('/') {
        Some(("run", name)) => format!("entity/{name}"),
        // Events name one by its number, too.
        Some(("rollout", name)) => format!("entity/{}", name.split('/').next().unwrap_or(name)),
        Some(("job", job)) => {
            let parts: Vec<&str> = job.split('/').take(2).collect();
            format!("target/{}", parts.join("/"))
        }
        Some(_) | None => subject.to_owned(),
    }
}

/// Whether an event's subject is the object or a part of it: an entity's rollouts and targets, a node's targets and data
/// stores. A bare name is a
/// node's or an entity's.
pub(super) fn is_about(event: &str, subject: &str) -> bool {
    let parts: Vec<&str> = event.split('/').collect();
    match (subject.split_once('/'), parts.as_slice()) {
        _ if event == subject => true,
        (None, _) => {
            is_about(event, &format!("node/{subject}")) || is_about(event, &format!("entity/{subject}"))
        }
        (Some(("run" | "job", _)), _) => is_about(event, &canonical(subject)),
        (Some(("entity", name)), ["rollout" | "target", entity, _]) => *entity == name,
        (Some(("service", name)), ["service", service, ..]) => *service == name,
        (Some(("rollout", name)), ["entity" | "rollout" | "target", entity, ..]) => *entity == name,
        (Some(("node", name)), ["target", _, target]) => *target == name,
        (Some(("node", name)), ["store", node, _]) => *node == name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_of_by_its_entity_and_a_job_by_its_target() {
        assert_eq!(canonical("run/shop-7"), "entity/shop-7");
        assert_eq!(canonical("rollout/shop/3"), "entity/shop");
        assert_eq!(canonical("job/shop-7/web-1/0"), "target/shop-7/web-1");
        assert_eq!(canonical("job/shop-7/web-1"), "target/shop-7/web-1");
        assert_eq!(canonical("workflow/shop"), "workflow/shop");
        assert_eq!(canonical("web-1"), "web-1");
    }

    #[test]
    fn a_part_of_an_object_is_about_the_object() {
        assert!(is_about("target/web/web-1", "entity/web") && is_about("rollout/web/3", "rollout/web"));
        assert!(is_about("target/web/web-1", "node/web-1") && !is_about("target/api/web-2", "node/web-1"));
        assert!(!is_about("rollout/webs/3", "entity/web"));
        assert!(
            is_about("target/shop-7/web-1", "run/shop-7")
                && is_about("target/shop-7/web-1", "job/shop-7/web-1/0")
        );
        assert!(
            is_about("rollout/web/3", "web") && is_about("node/web", "web") && !is_about("slot/web", "web")
        );
    }
}
