//! The task of one sink: sends its events in order, and records how far it is, at most about once a second.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_api::v1::event::Event as EventShape;
use bellwether_core::decide::sinks::{FailedAttempt, MAX_UNRECORDED, SinkTurn, turn};
use bellwether_core::records::event::{Event, EventDraft};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::sink::Sink;
use bellwether_core::records::sink_state::SinkState;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{Revision, Sequence, SinkRevision, Term};
use bellwether_core::words::name::{Namespace, SinkName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_rt::fail::{self, FailPoint};
use tokio_util::sync::CancellationToken;

use super::checked_secrets::CheckedSecrets;
use super::context::SinkContext;
use super::receiver::{Receiver, SendingContext, is_for};
use super::signature::keys;
use crate::event_log;
use crate::reconcile::{LOOK_AGAIN, as_decider};
use crate::records::commit::CommitError;
use crate::repeated_failure::RepeatedFailure;
use crate::sleep::sleep_until;
use crate::transactor::CommitContext;

/// Time between two records of how far a sink is: what is delivered in between is delivered again after a crash.
const RECORD_EVERY: Span = Span::from_secs(1);

/// Events that are read at once.
const PAGE: usize = 256;

/// The task of one sink.
#[derive(Debug)]
pub(super) struct SinkWorker {
    context: SinkContext,
    term: Term,
    namespace: Namespace,
    name: SinkName,
    position: SinkPosition,
    events: VecDeque<EventShape>,
    receiver: Option<(SinkRevision, Receiver)>,
    secrets: Option<CheckedSecrets>,
    /// What it could not do last; what the receiver does not take is in the sink's record.
    failure: RepeatedFailure,
}

/// How far the sink is, and what of that is recorded.
#[derive(Debug)]
struct SinkPosition {
    state: SinkState,
    /// The revision of the record that it began with, or that has it.
    recorded: Option<Revision>,
    /// Events that are to be told with the next record.
    told: Vec<EventDraft>,
    /// Whether something was sent since.
    is_dirty: bool,
    /// The last event that the record has done with.
    cursor: Sequence,
    /// When it was recorded last.
    at: Timestamp,
    /// From when on it is tried again, if it could not be recorded.
    not_before: Timestamp,
}

/// Whether the task goes on.
enum Next {
    GoOn,
    End,
}

impl SinkPosition {
    /// When it is to be recorded; `None` if there is nothing worth it.
    fn due(&self) -> Option<Timestamp> {
        let passed = self.state.cursor.get().saturating_sub(self.cursor.get());
        let at = match (self.told.is_empty(), self.is_dirty || passed >= MAX_UNRECORDED) {
            (false, _) => Timestamp::EPOCH,
            (true, true) => self.at.plus(RECORD_EVERY),
            (true, false) => return None,
        };
        Some(at.max(self.not_before))
    }
}

impl SinkWorker {
    pub(super) fn new(context: SinkContext, term: Term, (namespace, name): (Namespace, SinkName)) -> Self {
        let position = SinkPosition {
            state: SinkState::new(name.clone(), Sequence::ZERO),
            recorded: None,
            told: Vec::new(),
            is_dirty: false,
            cursor: Sequence::ZERO,
            at: Timestamp::EPOCH,
            not_before: Timestamp::EPOCH,
        };
        Self {
            context,
            term,
            namespace,
            name,
            position,
            events: VecDeque::new(),
            receiver: None,
            secrets: None,
            failure: RepeatedFailure::default(),
        }
    }

    /// Runs until the sink is deleted, the leadership is lost, or `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        self.work(&stop).await;
        // What is not recorded is sent again by the next one; a server that is stopped leaves nothing of that.
        if stop.is_cancelled() && self.position.due().is_some() {
            self.record().await;
        }
    }

    async fn work(&mut self, stop: &CancellationToken) {
        let mut worlds = self.context.transactor.follow();
        let mut leadership = self.context.leadership.clone();
        while leadership.is_in(self.term) && !stop.is_cancelled() {
            let world = Arc::clone(&worlds.borrow_and_update());
            let Some((sink, last)) = self.look(&world) else { return };
            self.check_secrets(&world, &sink, stop).await;
            let now = self.context.transactor.now();
            if self.position.due().is_some_and(|at| at <= now) {
                match self.record().await {
                    Next::GoOn => continue,
                    Next::End => return,
                }
            }
            let turn = turn(&sink, &self.position.state, last, now);
            let wait = match self.take(&world, &sink, turn, stop).await {
                Ok(None) => continue,
                Ok(Some(wait)) => wait,
                Err(Next::GoOn) => Some(now.plus(LOOK_AGAIN)),
                Err(Next::End) => return,
            };
            let again = self.secrets.as_ref().and_then(|checked| checked.again);
            let wake = [wait, self.position.due(), again].into_iter().flatten().min();
            // All arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                () = leadership.changed() => {}
                changed = worlds.changed() => if changed.is_err() { return },
                () = sleep_until(self.context.transactor.clock(), wake) => {}
            }
        }
    }

    /// The sink as it is, and the last event; `None` if it was deleted. What somebody else wrote of how far it is counts more than what this
    /// task has not recorded.
    fn look(&mut self, world: &World) -> Option<(Sink, Sequence)> {
        let fleet = world.fleets.get(&self.namespace)?;
        let sink = (*fleet.sinks.get(&self.name)?.value).clone();
        let kept = fleet.sink_states.get(&self.name)?;
        if self.position.recorded.is_none_or(|known| kept.revision > known) {
            let (at, not_before) = (self.position.at, self.position.not_before);
            self.position = SinkPosition {
                state: (*kept.value).clone(),
                recorded: Some(kept.revision),
                told: Vec::new(),
                is_dirty: false,
                cursor: kept.value.cursor,
                at,
                not_before,
            };
            // What was found of them may not be in the record.
            self.secrets = None;
        }
        Some((sink, fleet.last_event()))
    }

    /// Does what is to be done now. Answers `None` if something was done, or when there is something to do without a change.
    async fn take(
        &mut self,
        world: &World,
        sink: &Sink,
        turn: SinkTurn,
        stop: &CancellationToken,
    ) -> Result<Option<Option<Timestamp>>, Next> {
        let after = match turn {
            SinkTurn::Wait(until) => return Ok(Some(until)),
            SinkTurn::After(after) => after,
            SinkTurn::Again(event) => {
                let again = Sequence::new(event.get().saturating_sub(1));
                let found = self.read(world, again, 1).await?.pop_front();
                match found.filter(|found| found.seq == event.get()) {
                    Some(found) => self.send(world, sink, &found, stop).await?,
                    // It is not kept any more.
                    None => self.pass(event),
                }
                return Ok(None);
            }
        };
        if self.events.front().is_none_or(|event| event.seq != after.next().get()) {
            self.events = self.read(world, after, PAGE).await?;
        }
        let Some(event) = self.events.front().cloned() else { return Err(Next::GoOn) };
        let now = self.context.transactor.now();
        if let Some(said) = self.position.state.skip_to(sink, Sequence::new(event.seq)) {
            self.position.told.push(said);
        } else if is_for(sink, &event, now) {
            self.send(world, sink, &event, stop).await?;
        } else {
            self.pass(Sequence::new(event.seq));
            tokio::task::consume_budget().await;
        }
        if self.position.state.cursor.get() >= event.seq {
            self.events.pop_front();
        }
        Ok(None)
    }

    /// Reads the secrets of the sink before there is an event to sign: once, when one of them or the sink changes, and again and again while
    /// they cannot sign.
    async fn check_secrets(&mut self, world: &World, sink: &Sink, stop: &CancellationToken) {
        let Some(fleet) = world.fleets.get(&self.namespace) else { return };
        let now = self.context.transactor.now();
        if sink.disabled || self.secrets.as_ref().is_some_and(|checked| checked.is_fresh(fleet, sink, now)) {
            return;
        }
        let secrets = (self.context.transactor.keyring(), &self.context.providers);
        let read = tokio::select! {
            read = keys(secrets, (fleet, &self.namespace), sink) => read,
            // Nothing is noted.
            () = stop.cancelled() => return,
        };
        let unusable = read.err();
        self.position.is_dirty |= self.position.state.note_secrets(sink, unusable.as_deref(), now);
        self.secrets = Some(CheckedSecrets::of(fleet, sink, unusable.map(|_| now)));
    }

    fn pass(&mut self, event: Sequence) {
        self.position.is_dirty |= !self.position.state.resend.is_empty();
        self.position.state.pass(event);
    }

    /// Logs a failure once, when it changes, and each minute.
    fn tell(&mut self, what: &str, error: &impl std::fmt::Display) {
        if self.failure.is_news(&format!("{what}: {error}")) {
            tracing::warn!(namespace = %self.namespace, sink = %self.name, %error, "{what}");
        }
    }

    async fn read(
        &mut self,
        world: &World,
        after: Sequence,
        limit: usize,
    ) -> Result<VecDeque<EventShape>, Next> {
        let read = event_log::read(world, &self.context.store, (&self.namespace, after), limit).await;
        read.map(VecDeque::from).map_err(|error| {
            self.tell("cannot read events; it is tried again", &error);
            Next::GoOn
        })
    }

    /// Sends one event, and notes what became of it. What was delivered before is recorded meanwhile if the receiver takes its time.
    async fn send(
        &mut self,
        world: &World,
        sink: &Sink,
        event: &EventShape,
        stop: &CancellationToken,
    ) -> Result<(), Next> {
        let mut receiver = self.receiver(sink);
        let own = self.context.clone();
        let namespace = self.namespace.clone();
        // What is in a file is recorded once the disk has it, which is not while it is written.
        let due = self.position.due().filter(|_| matches!(receiver, Receiver::Webhook(_)));
        let outgoing = CloudEvent::of(&own.installation, namespace.as_str(), event.clone());
        let now = own.transactor.now();
        let context = sending(&own, &namespace);
        let sent = {
            let mut sending = pin!(receiver.send(context, world, (sink, &outgoing), now));
            let first = tokio::select! {
                sent = &mut sending => Some(sent),
                () = stop.cancelled() => return Err(Next::End),
                // It goes on below.
                () = sleep_until(own.transactor.clock(), due) => None,
            };
            match first {
                Some(sent) => sent,
                None => {
                    if let Next::End = self.record().await {
                        return Err(Next::End);
                    }
                    tokio::select! {
                        sent = &mut sending => sent,
                        () = stop.cancelled() => return Err(Next::End),
                    }
                }
            }
        };
        self.receiver = Some((sink.revision, receiver));
        self.note(sink, event, sent);
        Ok(())
    }

    fn note(&mut self, sink: &Sink, event: &EventShape, sent: Result<String, FailedAttempt>) {
        let now = self.context.transactor.now();
        self.position.is_dirty = true;
        match sent {
            Ok(answer) => {
                fail::pass(FailPoint::DeliverySent);
                self.position.state.deliver(Sequence::new(event.seq), &answer, now);
            }
            Err(failed) => {
                tracing::debug!(namespace = %self.namespace, sink = %self.name, event = event.seq, reason = failed.reason, "not delivered");
                // What was stored was read, so it is valid.
                let Ok(event) = Event::try_from(event.clone()) else { return };
                let said = self.position.state.fail(sink, &event, &failed, now);
                self.position.told.extend(said);
            }
        }
    }

    /// The receiver, kept for as long as the sink is the same.
    fn receiver(&mut self, sink: &Sink) -> Receiver {
        let kept = self.receiver.take().filter(|(revision, _)| *revision == sink.revision);
        kept.map_or_else(|| Receiver::of(sink, sending(&self.context, &self.namespace)), |(_, kept)| kept)
    }

    /// Records how far the sink is. If somebody else wrote that meanwhile, it is read again.
    async fn record(&mut self) -> Next {
        let now = self.context.transactor.now();
        if let Some((_, receiver)) = &self.receiver
            && let Err(error) = receiver.sync().await
        {
            self.tell("cannot write to the disk; events are written again", &error);
            self.receiver = None;
            self.position.recorded = None;
            self.position.not_before = now.plus(LOOK_AGAIN);
            return Next::GoOn;
        }
        let world = self.context.transactor.world();
        let kept = world.fleets.get(&self.namespace).and_then(|fleet| fleet.sink_states.get(&self.name));
        if kept.map(|kept| kept.revision) != self.position.recorded {
            // A newer one is read again; an older one is that of a world that does not show the last record yet.
            self.position.not_before = now.plus(LOOK_AGAIN);
            return Next::GoOn;
        }
        let writes = vec![Write::put(Record::SinkState(self.position.state.clone()))];
        let changeset = Changeset { writes, events: self.position.told.clone() };
        let by = CommitContext { seen: vec![Key::Sink(self.name.clone()).into()], ..as_decider(self.term) };
        let committed = self.context.transactor.commit(&world, &self.namespace, by, vec![changeset]).await;
        self.position.not_before = now.plus(LOOK_AGAIN);
        match committed {
            Ok(revision) => {
                (self.position.at, self.position.not_before) = (now, Timestamp::EPOCH);
                self.failure.is_over();
                self.position.recorded = Some(revision);
                self.position.cursor = self.position.state.cursor;
                (self.position.told, self.position.is_dirty) = (Vec::new(), false);
                fail::pass(FailPoint::DeliveryRecorded);
            }
            Err(CommitError::LostTerm) => {
                self.context.leadership.give_up(self.term);
                return Next::End;
            }
            Err(CommitError::Closed) => return Next::End,
            Err(CommitError::Conflict { at }) => {
                self.context.transactor.after_conflict(&world, at).await;
                self.position.recorded = None;
            }
            Err(error) => {
                self.tell("cannot record how far the sink is", &error);
            }
        }
        Next::GoOn
    }
}

fn sending<'a>(context: &'a SinkContext, namespace: &'a Namespace) -> SendingContext<'a> {
    SendingContext {
        settings: &context.settings,
        keyring: context.transactor.keyring(),
        providers: &context.providers,
        namespace,
    }
}
