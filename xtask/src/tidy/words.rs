//! Words that were given up for the field's own: names of types and phrases that must not come back, anywhere in the tree.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::codegen;
use crate::shell::say;

/// Names that were given up, and what is said instead.
const NAMES: [(&str, &str); 41] = [
    ("Around", "RolloutEnvironment"),
    ("Atom", "Changeset"),
    ("Bell", "Notify"),
    ("Cast", "SimulatedTargets"),
    ("Course", "RolloutActivity"),
    ("Cue", "Simulation"),
    ("Desk", "Transactor, Resolver, CatalogueApi or StatusSink"),
    ("Doing", "TargetActivity"),
    ("Edition", "ProfileRevision"),
    ("Fate", "RunOutcome"),
    ("Gain", "what it measures"),
    ("Ground", "EntityContext, FileContext or RegistryContext"),
    ("Heading", "Direction"),
    ("Heard", "the noun of what was received"),
    ("Hold", "Annotation"),
    ("Kept", "Versioned"),
    ("Lane", "RequestClass, HandshakeLimiter or TargetPhase"),
    ("Luck", "FaultModel"),
    ("Marked", "Annotation"),
    ("Mood", "FaultModel"),
    ("Opinion", "RolloutJudgement"),
    ("Patience", "StalenessLimits"),
    ("Picture", "CatalogueSnapshot"),
    ("Place", "KeyLocation, ConfigPath, Permit, TargetPhase or FreezeScope"),
    ("Pulse", "TtlUpdate"),
    ("Scene", "RenderContext"),
    ("Seat", "Leadership or Membership"),
    ("Seats", "Memberships"),
    ("Setback", "FailureReason"),
    ("Shelf", "ParamCache or RecordCache"),
    ("Shutters", "DispatchGate"),
    ("Sighting", "Observation"),
    ("Speech", "Transport"),
    ("Strange", "GroupConflict"),
    ("Strength", "what it measures"),
    ("Told", "the noun of what was assigned"),
    ("Trouble", "FaultInjection or HookError"),
    ("Undone", "RevertedKeys"),
    ("Vital", "CheckSummary"),
    ("Waived", "WaivedPause"),
    ("Wellness", "HealthTracker"),
];

/// Phrases that were given up, in lower case, and what is said instead.
const PHRASES: [(&str, &str); 45] = [
    ("asks no server", "works offline"),
    ("bags of", "versioned parameter sets"),
    ("came of it", "outcome"),
    ("came of them", "outcome"),
    ("come again", "retry"),
    ("comes again", "retries"),
    ("could not identify you", "authentication failed"),
    ("doorway", "acceptor"),
    ("ends with 1", "exits 1"),
    ("ends with 2", "exits 2"),
    ("give back", "return"),
    ("gives back", "returns"),
    ("given back", "returned"),
    ("gave back", "returned"),
    ("hand out", "dispatch"),
    ("handed out", "dispatched"),
    ("handing out", "dispatching"),
    ("hands out", "dispatches"),
    ("hanging request", "long poll"),
    ("heed", "apply"),
    ("heeds", "applies"),
    ("heeded", "applied"),
    ("is no key", "is not a valid key"),
    ("let go", "release"),
    ("let past", "waive"),
    ("lets go", "releases"),
    ("made-up", "simulated"),
    ("rehearsal", "simulation"),
    ("shake hands", "TLS handshake"),
    ("shakes hands", "TLS handshake"),
    ("taken back", "rolled back"),
    ("taken for gone", "declared unreachable"),
    ("takes back", "rolls back"),
    ("take back", "roll back"),
    ("takes its turn", "is updated"),
    ("unwell", "unhealthy"),
    ("what came of", "outcome"),
    ("gives it back", "releases it"),
    ("had their turn", "were updated"),
    ("nobody offers", "no node registers"),
    ("not heard from", "unreachable"),
    ("take their turn", "are updated"),
    ("told nothing", "assigned nothing"),
    ("waits for its turn", "waits to be updated"),
    ("without being told", "without an assignment"),
];

/// How the text of an error no longer begins, and how it does.
const BEGINNING: (&str, &str) = ("\"could not ", "\"cannot ");

/// This list itself.
const HERE: &str = "xtask/src/tidy/words.rs";

/// One occurrence.
struct Old {
    path: String,
    line: usize,
    word: &'static str,
    better: &'static str,
}

/// A complaint about every occurrence in the files, given by their paths in the tree.
pub(super) fn check(root: &Path, files: &[&String]) -> Result<Vec<String>> {
    let complaint =
        |old: Old| format!("{}:{}: write {:?} instead of {:?}", old.path, old.line, old.better, old.word);
    Ok(find(root, files)?.into_iter().map(complaint).collect())
}

/// Says every occurrence, and how often each word occurs.
pub(super) fn show(root: &Path, files: &[&String]) -> Result<()> {
    let found = find(root, files)?;
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for old in &found {
        say(&format!("{}:{}: {} (better: {})", old.path, old.line, old.word, old.better));
        *counts.entry((old.word, old.better)).or_default() += 1;
    }
    for ((word, better), count) in counts {
        say(&format!("{count:5}  {word} (better: {better})"));
    }
    say(&format!("{} in all", found.len()));
    Ok(())
}

fn find(root: &Path, files: &[&String]) -> Result<Vec<Old>> {
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.as_str() != HERE && !codegen::is_generated(path)) {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        found.extend(occurrences(&text).into_iter().map(|(line, word, better)| Old {
            path: (*path).clone(),
            line,
            word,
            better,
        }));
    }
    Ok(found)
}

/// Where they occur in a text. A phrase may go on in the next line; a name counts as a whole word only.
fn occurrences(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '\'';
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        words.extend(line.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(|word| (number, word)));
        if line.contains(BEGINNING.0) {
            found.push((number, BEGINNING.0, BEGINNING.1));
        }
    }
    let names = BTreeMap::from(NAMES);
    for (index, &(line, word)) in words.iter().enumerate() {
        found.extend(names.get_key_value(word).map(|(name, better)| (line, *name, *better)));
        let rest = words.get(index..).unwrap_or_default();
        let first = word.as_bytes().first().map(u8::to_ascii_lowercase);
        let follows = |phrase: &str| {
            let mut said = rest.iter().map(|(_, word)| word);
            phrase.split(' ').all(|part| said.next().is_some_and(|word| word.eq_ignore_ascii_case(part)))
        };
        let begun = PHRASES.iter().filter(|(phrase, _)| phrase.as_bytes().first().copied() == first);
        let phrases = begun.filter(|(phrase, _)| follows(phrase));
        found.extend(phrases.map(|&(phrase, better)| (line, phrase, better)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole_word_and_a_phrase_across_lines_and_underscores() {
        let text = "struct Desk;\nstruct DeskLamp;\n/// What they hand\n/// out.\nfn hand_out() {}\n";
        let found: Vec<(usize, &str)> =
            occurrences(text).into_iter().map(|(line, word, _)| (line, word)).collect();
        assert_eq!(found, [(1, "Desk"), (3, "hand out"), (5, "hand out")]);
    }
}
