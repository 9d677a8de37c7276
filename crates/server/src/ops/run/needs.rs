//! What an agent needs to know for a task to be run as it was written.

use std::collections::BTreeSet;

use bellwether_api::template::reads;
use bellwether_api::v1::workflow::TaskSpec;
use bellwether_core::words::feature::Feature;

/// The variable that has the path of the outputs, in the environment of scripts.
const OUTPUTS_FILE: &str = "BELLWETHER_OUTPUTS";

/// The features that an agent needs for a task, besides those that every run needs.
#[must_use]
pub fn needs(spec: &TaskSpec) -> BTreeSet<Feature> {
    let scripts = spec.steps.iter().filter_map(|step| step.script.as_ref()).map(|script| &script.text);
    let files = spec.steps.iter().filter_map(|step| step.file.as_ref()).map(|file| &file.text);
    let mut texts = scripts.chain(files);
    let outputs = texts.any(|text| text.contains(OUTPUTS_FILE) || reads(text, "outputs"));
    let conditions = spec.condition.is_some();
    let needed = [outputs.then_some(Feature::Outputs), conditions.then_some(Feature::Conditions)];
    needed.into_iter().flatten().collect()
}
