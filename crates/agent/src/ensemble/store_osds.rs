//! The OSDs as the store has them: read beside a monitor that is ordered to, with the changes that it makes there. Each question takes half a
//! second of a processor, so that they are rare while nothing changes, and each has a deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::records::osd::{OsdAction, OsdChange, StoreAnswer, StoreOsd, StoreOsdsOrder};
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use serde_json::Value;
use tokio::sync::watch;

use super::ceph::Ceph;
use crate::apply::CommandFacts;
use crate::config::ensembles::CephPrograms;

/// Time between two looks while one is to change.
const OFTEN: Duration = Duration::from_secs(3);

/// The same while none is.
const SELDOM: Duration = Duration::from_secs(60);

/// The same while one that has data is down: it is told soon when it is up again.
const DOWN: Duration = Duration::from_secs(15);

/// The start of what is said of a call that exited with EBUSY: the answer is no.
const BUSY: &str = "exit code 16";

/// What is asked of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    order: StoreOsdsOrder,
    urls: Vec<String>,
}

/// What was read, and what keeps a change from being made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StoreOsdsTold {
    pub(super) osds: Option<BTreeMap<String, StoreOsd>>,
    pub(super) hindered: Option<String>,
}

/// What reads the OSDs of the store, while it is asked to.
#[derive(Debug, Default)]
pub(super) struct StoreOsds(Option<(watch::Sender<Question>, watch::Receiver<StoreOsdsTold>)>);

impl StoreOsds {
    /// What was read last, if there is something to read.
    pub(super) fn told(&self) -> StoreOsdsTold {
        self.0.as_ref().map(|(_, told)| told.borrow().clone()).unwrap_or_default()
    }

    /// Ends reading.
    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    /// Reads as is ordered, from the monitors at these URLs.
    pub(super) fn follow(
        &mut self,
        order: &StoreOsdsOrder,
        urls: Vec<String>,
        (ceph, programs, facts): (&Ceph, CephPrograms, CommandFacts),
        tasks: &Tasks,
    ) {
        let question = Question { order: order.clone(), urls };
        if let Some((asked, _)) = &self.0 {
            asked.send_if_modified(|current| {
                let is_other = *current != question;
                *current = question;
                is_other
            });
            return;
        }
        let (asked, questions) = watch::channel(question);
        let (answers, told) = watch::channel(StoreOsdsTold::default());
        let reader = Reader { ceph: ceph.clone(), programs, facts, answers };
        let token = tasks.token();
        tasks.spawn("store osds", async move {
            tokio::select! {
                () = token.cancelled() => {}
                () = reader.run(questions) => {}
            }
        });
        self.0 = Some((asked, told));
    }
}

struct Reader {
    ceph: Ceph,
    programs: CephPrograms,
    facts: CommandFacts,
    answers: watch::Sender<StoreOsdsTold>,
}

impl Reader {
    /// Runs until nobody asks any more.
    async fn run(self, mut questions: watch::Receiver<Question>) {
        loop {
            let question = questions.borrow_and_update().clone();
            let told = match self.read(&question).await {
                Ok(told) => told,
                Err(error) => StoreOsdsTold { osds: None, hindered: Some(format!("cannot {error}")) },
            };
            let is_settled = told.osds.is_some() && !question.order.is_changing;
            let is_down = told.osds.iter().flatten().any(|(_, osd)| osd.is_in && !osd.is_up);
            self.answers.send_replace(told);
            let pause = match (is_settled, is_down) {
                (false, _) => OFTEN,
                (true, true) => DOWN,
                (true, false) => SELDOM,
            };
            tokio::select! {
                changed = questions.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn read(&self, question: &Question) -> Result<StoreOsdsTold, String> {
        let mut osds = self.list(question).await?;
        let mut hindered = None;
        if let Some(change) = &question.order.change {
            hindered = self.change(question, change, &osds).await.err();
            osds = self.list(question).await?;
        }
        for number in &question.order.asks {
            let safe = self.is_safe(question, *number).await;
            osds.values_mut().filter(|osd| osd.number == *number).for_each(|osd| osd.safe = safe);
        }
        if let Some(number) = question.order.asks_to_stop {
            let answer = self.answer(question, "ok-to-stop", number).await;
            osds.values_mut().filter(|osd| osd.number == number).for_each(|osd| osd.ok_to_stop = answer);
        }
        Ok(StoreOsdsTold { osds: Some(osds), hindered })
    }

    async fn list(&self, question: &Question) -> Result<BTreeMap<String, StoreOsd>, String> {
        let answer = self.ask(question, &["osd", "dump", "-f", "json"]).await;
        let answer = answer.map_err(|error| format!("read the OSDs of the store: {error}"))?;
        let map: Value = serde_json::from_slice(&answer)
            .map_err(|error| format!("read the OSDs of the store: {error}"))?;
        listed(&map).ok_or_else(|| "read the OSDs of the store: its answer has none".to_owned())
    }

    /// Makes a change, of the OSD that is meant alone: its number may have been given to another one. The error fits after "member 1 ".
    async fn change(
        &self,
        question: &Question,
        change: &OsdChange,
        osds: &BTreeMap<String, StoreOsd>,
    ) -> Result<(), String> {
        let OsdChange { action, uuid, store_number } = change;
        let Some(osd) = osds.get(uuid).filter(|osd| osd.number == *store_number) else { return Ok(()) };
        let number = store_number.to_string();
        let (verb, words): (_, &[&str]) = match action {
            OsdAction::Out if osd.is_in => ("put out", &["osd", "out", &number]),
            OsdAction::In if !osd.is_in => ("put in", &["osd", "in", &number]),
            OsdAction::Out | OsdAction::In => return Ok(()),
            OsdAction::Purge | OsdAction::Destroy if osd.is_up => {
                return Err(format!("waits until osd.{number} has stopped, to have it forgotten"));
            }
            OsdAction::Purge | OsdAction::Destroy => match self.is_safe(question, *store_number).await {
                StoreAnswer::Yes if *action == OsdAction::Destroy => {
                    ("give up", &["osd", "destroy", &number, "--yes-i-really-mean-it"])
                }
                StoreAnswer::Yes => ("have forgotten", &["osd", "purge", &number, "--yes-i-really-mean-it"]),
                StoreAnswer::No | StoreAnswer::Unknown => {
                    return Err(format!(
                        "waits until the store says that osd.{number} can be forgotten without loss"
                    ));
                }
            },
        };
        let asked = self.ask(question, words).await;
        fail::pass(FailPoint::OsdChanged);
        asked.map(drop).map_err(|error| format!("cannot {verb} osd.{number}: {error}"))
    }

    /// Whether one may be removed.
    async fn is_safe(&self, question: &Question, number: u32) -> StoreAnswer {
        self.answer(question, "safe-to-destroy", number).await
    }

    /// Whether something may be done with one: only a clear answer is one.
    async fn answer(&self, question: &Question, verb: &str, number: u32) -> StoreAnswer {
        match self.ask(question, &["osd", verb, &number.to_string()]).await {
            Ok(_) => StoreAnswer::Yes,
            Err(error) if error.starts_with(BUSY) => StoreAnswer::No,
            Err(_) => StoreAnswer::Unknown,
        }
    }

    async fn ask(&self, question: &Question, words: &[&str]) -> Result<Vec<u8>, String> {
        let urls: Vec<&String> = question.urls.iter().collect();
        self.ceph.administer((&self.programs, &self.facts), &urls, words).await
    }
}

/// The OSDs in the store's map, by their ids.
fn listed(map: &Value) -> Option<BTreeMap<String, StoreOsd>> {
    let osd = |osd: &Value| {
        let number = |field: &str| osd.get(field).and_then(Value::as_u64);
        let stored = StoreOsd {
            number: number("osd")?.try_into().ok()?,
            is_up: number("up") == Some(1),
            is_in: number("in") == Some(1),
            safe: StoreAnswer::Unknown,
            ok_to_stop: StoreAnswer::Unknown,
        };
        Some((osd.get("uuid")?.as_str()?.to_owned(), stored))
    };
    Some(map.get("osds")?.as_array()?.iter().filter_map(osd).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn osds_are_read_by_their_ids() {
        let map = json!({"osds": [
            {"osd": 0, "uuid": "a", "up": 1, "in": 1},
            {"osd": 2, "uuid": "b", "up": 0, "in": 0},
        ]});
        let read = listed(&map).unwrap();
        let of = |id: &str| read.get(id).map(|osd| (osd.number, osd.is_up, osd.is_in)).unwrap();
        assert_eq!((of("a"), of("b")), ((0, true, true), (2, false, false)));
        assert_eq!(listed(&json!({})), None, "no map is not an empty one");
    }
}
