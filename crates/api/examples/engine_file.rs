//! A rollout engine that keeps its state in a file. Each save writes the whole file and replaces the one before, so that the
//! file is complete at any moment.
//!
//! Run with `cargo run -p bellwether-api --example engine_file`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use bellwether_api::v1::entity::Entity;
use bellwether_api::v1::external::ExternalTarget;
use bellwether_api::v1::hook_answers::HookAnswers;
use bellwether_api::v1::progress::Progress;
use bellwether_api::v1::rollout::Rollout;
use bellwether_api::v1::target::TargetState;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::trial::engine::{EngineChange, EngineStore, RolloutEngine, TargetReport};
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

type Failure = Box<dyn Error>;

/// A record in its written form, with the names that are in its key alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Entity { record: Box<Entity> },
    Progress { entity: String, record: Box<Progress> },
    Rollout { entity: String, record: Box<Rollout> },
    Target { entity: String, target: String, record: Box<TargetState> },
    External { entity: String, target: String, record: Box<ExternalTarget> },
    Answers { entity: String, record: Box<HookAnswers> },
}

impl Line {
    #[expect(clippy::wildcard_enum_match_arm, reason = "an engine has these kinds of records alone")]
    fn of(record: &Record) -> Result<Self, Failure> {
        let key = record.key();
        Ok(match record {
            Record::Entity(entity) => Self::Entity { record: Box::new(entity.into()) },
            Record::Progress(entity, record) => {
                Self::Progress { entity: entity.to_string(), record: Box::new(record.into()) }
            }
            Record::Rollout(entity, record) => {
                Self::Rollout { entity: entity.to_string(), record: Box::new(record.into()) }
            }
            Record::Target(entity, target, record) => {
                let (entity, target) = (entity.to_string(), target.to_string());
                Self::Target { entity, target, record: Box::new(record.into()) }
            }
            Record::ExternalTarget(entity, target, record) => {
                let (entity, target) = (entity.to_string(), target.to_string());
                Self::External { entity, target, record: Box::new(record.into()) }
            }
            Record::HookAnswers(entity, record) => {
                Self::Answers { entity: entity.to_string(), record: Box::new(record.into()) }
            }
            _ => return Err(format!("an engine has no record such as {key:?}").into()),
        })
    }

    fn read(self) -> Result<Record, Failure> {
        Ok(match self {
            Self::Entity { record } => Record::Entity((*record).try_into()?),
            Self::Progress { entity, record } => Record::Progress(entity.parse()?, (*record).try_into()?),
            Self::Rollout { entity, record } => Record::Rollout(entity.parse()?, (*record).try_into()?),
            Self::Target { entity, target, record } => {
                Record::Target(entity.parse()?, target.parse()?, (*record).try_into()?)
            }
            Self::External { entity, target, record } => {
                Record::ExternalTarget(entity.parse()?, target.parse()?, (*record).try_into()?)
            }
            Self::Answers { entity, record } => Record::HookAnswers(entity.parse()?, (*record).try_into()?),
        })
    }
}

/// The state of an engine in a file, a record a line.
struct StateFile {
    path: PathBuf,
    records: BTreeMap<(Namespace, Key), Record>,
}

impl StateFile {
    fn open(path: &Path) -> Result<Self, Failure> {
        let mut records = BTreeMap::new();
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text?,
        };
        for line in text.lines() {
            let (namespace, line): (String, Line) = serde_json::from_str(line)?;
            let record = line.read()?;
            records.insert((namespace.parse()?, record.key()), record);
        }
        Ok(Self { path: path.to_owned(), records })
    }
}

impl EngineStore for StateFile {
    type Error = Failure;

    fn load(&mut self) -> Result<Vec<(Namespace, Record)>, Failure> {
        Ok(self.records.iter().map(|((namespace, _), record)| (namespace.clone(), record.clone())).collect())
    }

    fn save(&mut self, changes: &[(Namespace, EngineChange)]) -> Result<(), Failure> {
        let mut records = self.records.clone();
        for (namespace, change) in changes {
            match change {
                EngineChange::Put(record) => {
                    records.insert((namespace.clone(), record.key()), (**record).clone());
                }
                EngineChange::Delete(key) => drop(records.remove(&(namespace.clone(), key.clone()))),
            }
        }
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        for ((namespace, _), record) in &records {
            let line = serde_json::to_string(&(namespace.to_string(), Line::of(record)?))?;
            writeln!(file, "{line}")?;
        }
        file.sync_all()?;
        std::fs::rename(&new, &self.path)?;
        self.records = records;
        Ok(())
    }
}

fn minute(number: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(60 * number))
}

/// Four hosts; each runs what the engine returned for it.
struct Fleet(Vec<TargetReport>);

impl Fleet {
    fn new() -> Result<Self, Failure> {
        let host = |number| -> Result<TargetReport, Failure> {
            let target = format!("host-{number}").parse()?;
            Ok(TargetReport { target, running: "v1".parse().ok(), error: None, assignment: None })
        };
        Ok(Self((1..=4).map(host).collect::<Result<_, _>>()?))
    }

    /// Reports every host, saves, and only then lets the hosts run what they are to run; returns that.
    fn round(
        &mut self,
        engine: &mut RolloutEngine,
        file: &mut StateFile,
        (namespace, entity): (&Namespace, &EntityName),
        now: Timestamp,
    ) -> Result<String, Failure> {
        let expected = engine.orchestrate(namespace, entity, &self.0, now);
        engine.save(file)?;
        for (report, (_, version)) in self.0.iter_mut().zip(expected) {
            report.running = version.or(report.running.take());
        }
        let running = self.0.iter().flat_map(|report| &report.running).map(ToString::to_string);
        Ok(running.collect::<Vec<_>>().join(" "))
    }
}

/// A rollout of v2, two hosts at a time; with `restarts`, the program starts anew before every round. Returns each round.
fn rollout(path: &Path, restarts: bool) -> Result<Vec<String>, Failure> {
    let (namespace, entity) = ("production".parse()?, "shop".parse()?);
    let mut file = StateFile::open(path)?;
    let (mut engine, mut fleet) = (RolloutEngine::load(&mut file, minute(0))?, Fleet::new()?);
    let draft = PolicyDraft { batch: "2".parse().ok(), soak: "60s".parse().ok(), ..PolicyDraft::default() };
    engine.set_policy(&namespace, &entity, &Policy::new(draft)?, minute(0))?;
    let mut rounds = Vec::new();
    for number in 0..9 {
        if restarts {
            engine.save(&mut file)?;
            file = StateFile::open(path)?;
            engine = RolloutEngine::load(&mut file, minute(number))?;
        }
        let version = match number {
            0 => Some("v1"),
            2 => Some("v2"),
            _ => None,
        };
        if let Some(version) = version {
            let intent = Annotation::of("alice".parse()?, minute(number));
            engine.set_target_version(&namespace, &entity, version.parse()?, intent)?;
        }
        rounds.push(fleet.round(&mut engine, &mut file, (&namespace, &entity), minute(number))?);
    }
    let good = engine.progress(&namespace, &entity).and_then(|progress| progress.last_known_good.clone());
    rounds.push(format!("last known good: {}", good.map_or_else(String::new, |good| good.to_string())));
    Ok(rounds)
}

fn main() -> Result<(), Failure> {
    let dir = std::env::temp_dir().join(format!("engine-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    for round in rollout(&dir.join("state"), true)? {
        println!("{round}");
    }
    Ok(std::fs::remove_dir_all(&dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_before_every_round_of_a_rollout_changes_nothing() {
        let dir = std::env::temp_dir().join(format!("engine-test-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let once = rollout(&dir.join("once"), false).unwrap();
        let restarted = rollout(&dir.join("restarted"), true).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(restarted, once);
        assert_eq!(once.last().map(String::as_str), Some("last known good: v2"));
        assert!(once.contains(&"v2 v2 v1 v1".to_owned()), "{once:?}");
    }
}
