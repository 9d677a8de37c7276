//! `rollout plan`: predicts a rollout.

use bellwether_api::v1::plan::{NewPlan, Plan};
use bellwether_core::words::plural::Plural;
use bellwether_core::words::time::Span;

use super::super::policy::PolicyChange;
use crate::args::PlanRollout;
use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::{print, table};

/// Batches shown; the others are counted.
const SHOWN: usize = 12;

/// Plans a rollout and shows the plan. Exits 0 if the rollout would end by itself, 1 if not.
pub(super) async fn run(context: &Context, what: PlanRollout) -> CommandResult {
    let PlanRollout { of, version, apply_time, policy } = what;
    let (entity, change) = (of.entity, PolicyChange::read(policy)?);
    let apply = apply_time.map(|span| span.to_string());
    let flags = change.flags()?;
    let new = NewPlan { version, policy: change.set, unset: change.unset, apply };
    let plan = context.client.plan_rollout(&context.namespace, &entity, &new).await?;
    context.show.data(&plan, || vec![plan.token.clone()], |_| lines(&plan))?;
    if !context.show.is_data() {
        if !plan.batches.is_empty() {
            print("")?;
            print(&batches(&plan))?;
        }
        context.show.note(&format!(
            "start exactly this rollout with: bellwether rollout start {entity} {} --plan {}{flags}",
            plan.version, plan.token
        ));
    }
    Ok(if plan.ends { Exit::Yes } else { Exit::No })
}

fn lines(plan: &Plan) -> String {
    let after = |at: u64| Span::from_millis(at.saturating_sub(plan.began_ms)).brief();
    let mut lines = vec![format!("to         {}", plan.version)];
    for (version, count) in &plan.running {
        let what = if *version == plan.version { "already at it" } else { "to change" };
        lines.push(format!("from       {version}: {count} {what}"));
    }
    let when = if plan.ends { "at the earliest after" } else { "starts waiting after" };
    lines.push(format!("end        {}, {when} {}", plan.end, after(plan.ended_ms)));
    lines.push(format!("batches    {}", plan.batches_opened));
    let tolerated = Plural(plan.tolerated, "failure");
    lines.push(format!("tolerates  {tolerated}; {} must succeed", Plural(plan.needed, "target")));
    let longest = Span::from_millis(plan.longest_at_worst_ms).brief();
    lines.push(format!(
        "if bad     {} before the rollout stops, each for up to {longest}",
        run_it(plan.touched_at_best, plan.touched_at_worst)
    ));
    lines.join("\n")
}

/// How many targets run a bad version, from the best to the worst case.
fn run_it(best: u64, worst: u64) -> String {
    match (best, worst) {
        (1, 1) => "1 target runs it".to_owned(),
        (best, worst) if best == worst => format!("{worst} targets run it"),
        (best, worst) => format!("{best} to {worst} targets run it"),
    }
}

fn batches(plan: &Plan) -> String {
    let rows = plan.batches.iter().take(SHOWN).map(|batch| {
        let domains = batch.domains.iter().map(|(domain, count)| format!("{domain}:{count}"));
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            batch.number.to_string(),
            format!("+{}", Span::from_millis(batch.opened_ms.saturating_sub(plan.began_ms)).brief()),
            batch.assigned.to_string(),
            name(&batch.first),
            name(&batch.last),
            domains.collect::<Vec<_>>().join(" "),
        ]
    });
    let mut text = table(&["batch", "opens", "targets", "first", "last", "domains"], rows);
    let more = plan.batches_opened.saturating_sub(u64::try_from(SHOWN).unwrap_or(u64::MAX));
    if more > 0 {
        text.push_str(&format!("\n… and {more} more"));
    }
    text
}
