//! A gate in front of the tasks of a simulated process: while it is shut, none of them continues, as if the process were
//! stopped by a signal; once it is broken, all of them end at once, as if it were killed. For tests and the simulator only.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A gate. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct TestGate(Arc<Mutex<GateState>>);

#[derive(Debug, Default)]
struct GateState {
    position: GatePosition,
    next: u64,
    /// The tasks behind it, in the order in which they came.
    waiting: BTreeMap<u64, Waker>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum GatePosition {
    #[default]
    Open,
    Shut,
    Broken,
}

impl TestGate {
    /// Stops all tasks behind it.
    pub fn shut(&self) {
        self.set(GatePosition::Shut);
    }

    /// Lets all tasks continue.
    pub fn open(&self) {
        self.set(GatePosition::Open);
    }

    /// Ends all tasks behind it, now and later, for good.
    pub fn broken(&self) {
        self.set(GatePosition::Broken);
    }

    /// Puts `work` behind the gate. Returns `None` if the gate is broken before `work` has ended.
    pub fn behind<F: Future>(&self, work: F) -> Gated<F> {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        drop(state);
        Gated { gate: self.clone(), number, work: Some(Box::pin(work)) }
    }

    fn set(&self, position: GatePosition) {
        let mut state = self.state();
        if state.position == GatePosition::Broken {
            return;
        }
        state.position = position;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waker in waiting.into_values() {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work behind a gate.
#[derive(Debug)]
pub struct Gated<F> {
    gate: TestGate,
    number: u64,
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Gated<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let number = self.number;
        let mut state = self.gate.state();
        let position = state.position;
        if position != GatePosition::Broken {
            state.waiting.insert(number, context.waker().clone());
        }
        drop(state);
        match position {
            GatePosition::Shut => return Poll::Pending,
            GatePosition::Broken => {
                self.work = None;
                return Poll::Ready(None);
            }
            GatePosition::Open => {}
        }
        let Some(work) = self.work.as_mut() else { return Poll::Ready(None) };
        let ended = std::task::ready!(work.as_mut().poll(context));
        self.gate.state().waiting.remove(&number);
        Poll::Ready(Some(ended))
    }
}

impl<F> Drop for Gated<F> {
    fn drop(&mut self) {
        self.gate.state().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::tasks::Tasks;

    /// Counts once a millisecond.
    fn counting(tasks: &Tasks) -> Arc<AtomicU64> {
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        tasks.spawn("counts", async move {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        count
    }

    async fn later() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_shut_gate_nothing_continues_while_time_passes() {
        let gate = TestGate::default();
        let count = counting(&Tasks::new().behind(&gate).child());
        later().await;
        gate.shut();
        let stood = count.load(Ordering::SeqCst);
        later().await;
        assert_eq!(count.load(Ordering::SeqCst), stood);
        gate.open();
        later().await;
        assert!(count.load(Ordering::SeqCst) > stood);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_gate_ends_what_is_behind_it_for_good() {
        let gate = TestGate::default();
        let tasks = Tasks::new().behind(&gate);
        let count = counting(&tasks);
        later().await;
        gate.broken();
        let stood = count.load(Ordering::SeqCst);
        gate.open();
        tasks.stop(Duration::from_secs(1)).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), stood);
        assert_eq!(tasks.spawn("late", async { 7 }).await.unwrap(), None);
    }
}
