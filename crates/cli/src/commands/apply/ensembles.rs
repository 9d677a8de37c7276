//! Ensembles of which an apply would have members leave, or take no snapshots any more.

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::{Applied, AppliedObject, ApplyOutcome, Document, EnsembleDocument};
use bellwether_api::v1::ensemble::PlanEnsemble;

use super::document::Located;
use crate::args::Consent;
use crate::commands::ensemble::losses;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::Failure;
use crate::show::tell;

/// Asks whether the members may go that would, as `ensemble set` does; says which they are also where consent was given before.
pub(super) async fn ask(
    (context, namespace): (&Context, &str),
    documents: &[Located],
    planned: &Applied,
    consent: Consent,
) -> Result<(), Failure> {
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    for located in documents {
        let Document::Ensemble(document) = &located.document else { continue };
        let object = format!("ensemble/{}", document.name);
        let is_changed = |of: &AppliedObject| of.object == object && of.outcome == ApplyOutcome::Changed;
        if !planned.objects.iter().any(is_changed) {
            continue;
        }
        let lost = lost((context, namespace), document).await?;
        if !lost.is_empty() {
            lines.extend(lost.into_iter().map(|line| format!("{object}: {line}")));
            names.push(object);
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    if consent.yes {
        lines.iter().for_each(|line| tell(line));
        return Ok(());
    }
    confirm(&format!("{}\nchange {}?", lines.join("\n"), names.join(", ")), consent)
}

/// What an ensemble loses once it is as its document says.
async fn lost(
    (context, namespace): (&Context, &str),
    document: &EnsembleDocument,
) -> Result<Vec<String>, Failure> {
    let before = match context.client.ensemble(namespace, &document.name).await {
        Ok(before) => before,
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => return Ok(Vec::new()),
        // Who may change it and not read it is asked in any case.
        Err(CallError::Problem(problem)) if problem.code == Code::Forbidden => {
            return Ok(vec![format!("whether members leave is not known: {}", problem.detail)]);
        }
        Err(error) => return Err(error.into()),
    };
    let asked = PlanEnsemble { spec: Some(document.spec()), ..PlanEnsemble::default() };
    let plan = context.client.plan_ensemble(namespace, &document.name, &asked).await?;
    Ok(losses(&before, &plan))
}

/// That an ensemble has no schedule of snapshots any more.
pub(super) fn unscheduled(object: &AppliedObject) -> Option<String> {
    if !object.object.starts_with("ensemble/") {
        return None;
    }
    let every =
        object.fields.iter().find(|change| change.field == "snapshots.every" && change.new.is_none())?;
    let every = every.old.as_ref()?;
    Some(format!("no snapshot is taken every {every} any more, only when somebody asks for one"))
}
