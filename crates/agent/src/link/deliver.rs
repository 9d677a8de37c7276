//! Delivers the latest value until the control plane acknowledges it: one call at a time, retried with backoff, and sent
//! again on a new connection. Values that were replaced before they were sent are never sent.

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use tokio::sync::watch;

use super::retry::{cannot, retry_after};

/// Changes that come within this are sent together.
const GATHER: Duration = Duration::from_millis(5);

/// Something that is delivered. The value is compared: one that equals the acknowledged one is not sent again.
pub(super) trait Delivery: Send {
    /// What is sent.
    type Value: PartialEq + Send + Sync;

    /// The object of log lines: "cannot send the report".
    const WHAT: &'static str;

    /// The latest value, or `None` while there is nothing to send. Marks the sources as read.
    fn latest(&mut self) -> Option<Self::Value>;

    /// Waits until the latest value may be another one; `false` if it never will be. Must be cancel safe.
    fn changed(&mut self) -> impl Future<Output = bool> + Send;

    /// Sends one value.
    fn send(&self, value: &Self::Value) -> impl Future<Output = Result<(), CallError>> + Send;

    /// Whether an error is an answer that sending again would not change.
    fn is_final(_error: &CallError) -> bool {
        false
    }

    /// The value was acknowledged, or refused for good.
    fn delivered(&mut self, value: &Self::Value);
}

/// Delivers until `tasks` are stopped. `moves` changes when another server is used: a call to the one before is cancelled then,
/// and what it did not acknowledge is sent to the new one at once. `seed` spreads the retries.
pub(super) async fn deliver<D: Delivery>(
    mut delivery: D,
    mut moves: watch::Receiver<u64>,
    seed: u64,
    tasks: Tasks,
) {
    let token = tasks.token();
    let mut acknowledged: Option<D::Value> = None;
    let mut failed = 0_u32;
    loop {
        let latest = delivery.latest().filter(|value| acknowledged.as_ref() != Some(value));
        let Some(value) = latest else {
            // All arms only wait; the latest value is read again above.
            tokio::select! {
                () = token.cancelled() => return,
                open = delivery.changed() => if !open { return },
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(GATHER) => {}
            }
            continue;
        };
        moves.mark_unchanged();
        // What is dropped halfway is sent whole: by the next agent, or to the new server.
        let sent = tokio::select! {
            () = token.cancelled() => return,
            () = changed_or_never(&mut moves) => {
                (acknowledged, failed) = (None, 0);
                continue;
            }
            sent = delivery.send(&value) => sent,
        };
        match sent {
            Ok(()) => {}
            Err(error) if D::is_final(&error) => {
                tracing::warn!("cannot send {}: {}; it is not sent again", D::WHAT, cannot(&error));
            }
            Err(error) => {
                if failed == 0 {
                    tracing::warn!("cannot send {}: {}; retrying", D::WHAT, cannot(&error));
                } else {
                    tracing::debug!(failed, "cannot send {}: {}", D::WHAT, cannot(&error));
                }
                // The next answer may come from another server, or from one that has forgotten: send in any case.
                acknowledged = None;
                failed = failed.saturating_add(1);
                tokio::select! {
                    () = token.cancelled() => return,
                    () = changed_or_never(&mut moves) => failed = 0,
                    () = tokio::time::sleep(retry_after(&error, failed, seed).to_duration()) => {}
                }
                continue;
            }
        }
        failed = 0;
        delivery.delivered(&value);
        acknowledged = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bellwether_api::problem::{Code, Problem};
    use tokio::sync::watch;

    use super::*;

    /// Numbers to a server that answers as the script says, in order; then always with success.
    struct Numbers {
        number: watch::Receiver<u32>,
        answers: Arc<Mutex<Vec<Result<(), Code>>>>,
        sent: Arc<Mutex<Vec<u32>>>,
        delivered: watch::Sender<u32>,
    }

    impl Delivery for Numbers {
        type Value = u32;
        const WHAT: &'static str = "the number";

        fn latest(&mut self) -> Option<u32> {
            Some(*self.number.borrow_and_update()).filter(|number| *number > 0)
        }

        async fn changed(&mut self) -> bool {
            self.number.changed().await.is_ok()
        }

        async fn send(&self, number: &u32) -> Result<(), CallError> {
            self.sent.lock().unwrap().push(*number);
            let answer = self.answers.lock().unwrap().pop();
            let refused = |code: Code| Problem {
                status: code.status(),
                code,
                detail: "cannot take it".to_owned(),
                hint: None,
                retry_after_ms: None,
                may_be_made: false,
                conflict: None,
                invalid: None,
            };
            answer.unwrap_or(Ok(())).map_err(|code| CallError::Problem(refused(code)))
        }

        fn is_final(error: &CallError) -> bool {
            matches!(error, CallError::Problem(problem) if problem.code == Code::Invalid)
        }

        fn delivered(&mut self, number: &u32) {
            self.delivered.send_replace(*number);
        }
    }

    struct Running {
        number: watch::Sender<u32>,
        sent: Arc<Mutex<Vec<u32>>>,
        delivered: watch::Receiver<u32>,
        tasks: Tasks,
    }

    /// Starts a delivery whose server gives `answers` first.
    fn running(answers: &[Result<(), Code>]) -> Running {
        let (number, receiver) = watch::channel(0);
        let (delivered, deliveries) = watch::channel(0);
        let (sent, tasks) = (Arc::new(Mutex::new(Vec::new())), Tasks::new());
        let answers = Arc::new(Mutex::new(answers.iter().rev().copied().collect()));
        let numbers = Numbers { number: receiver, answers, sent: sent.clone(), delivered };
        tasks.spawn("deliver", deliver(numbers, watch::channel(0).1, 7, tasks.clone()));
        Running { number, sent, delivered: deliveries, tasks }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_value_is_retried_and_only_the_latest_is_sent() {
        let mut run = running(&[Err(Code::Store), Err(Code::Store)]);
        run.number.send_replace(1);
        run.delivered.wait_for(|number| *number == 1).await.unwrap();
        assert_eq!(*run.sent.lock().unwrap(), [1, 1, 1]);
        run.number.send_replace(2);
        run.number.send_replace(3);
        run.delivered.wait_for(|number| *number == 3).await.unwrap();
        assert_eq!(*run.sent.lock().unwrap(), [1, 1, 1, 3]);
        run.tasks.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn an_acknowledged_value_is_not_sent_again_until_it_changes() {
        let mut run = running(&[]);
        run.number.send_replace(1);
        run.delivered.wait_for(|number| *number == 1).await.unwrap();
        // Sent again without a change.
        run.number.send_replace(1);
        run.number.send_replace(2);
        run.delivered.wait_for(|number| *number == 2).await.unwrap();
        assert_eq!(*run.sent.lock().unwrap(), [1, 2]);
        run.tasks.cancel();
    }

    /// A value whose first call is never answered.
    struct Hanging {
        calls: watch::Sender<u32>,
        delivered: watch::Sender<bool>,
    }

    impl Delivery for Hanging {
        type Value = u32;
        const WHAT: &'static str = "the value";

        fn latest(&mut self) -> Option<u32> {
            Some(1)
        }

        async fn changed(&mut self) -> bool {
            std::future::pending().await
        }

        async fn send(&self, _: &u32) -> Result<(), CallError> {
            self.calls.send_modify(|calls| *calls += 1);
            if *self.calls.borrow() == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        }

        fn delivered(&mut self, _: &u32) {
            self.delivered.send_replace(true);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_to_a_server_that_is_no_longer_used_is_cancelled_and_repeated_at_once() {
        let (calls, mut called) = watch::channel(0);
        let (delivered, mut deliveries) = watch::channel(false);
        let (moves, moved) = watch::channel(0);
        let tasks = Tasks::new();
        let hanging = Hanging { calls, delivered };
        tasks.spawn("deliver", deliver(hanging, moved, 7, tasks.clone()));
        called.wait_for(|calls| *calls == 1).await.unwrap();
        let begun = tokio::time::Instant::now();
        moves.send_replace(1);
        deliveries.wait_for(|delivered| *delivered).await.unwrap();
        assert_eq!((*called.borrow(), begun.elapsed()), (2, Duration::ZERO));
        tasks.cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_is_refused_for_good_is_given_up_without_a_retry() {
        let mut run = running(&[Err(Code::Invalid)]);
        run.number.send_replace(1);
        run.delivered.wait_for(|number| *number == 1).await.unwrap();
        assert_eq!(*run.sent.lock().unwrap(), [1]);
        run.tasks.cancel();
    }
}
