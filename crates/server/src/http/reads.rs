//! Reads of people run on threads of their own: a list of much takes a processor for milliseconds without a pause, and a few readers of such lists
//! would keep everything else waiting that shares their threads: stops, reports, and the lease of the leader. The kernel shares the processors
//! between the threads.

use std::future::Future;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use bellwether_api::problem::Code;
use bellwether_core::words::filter::Filter;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

use super::problem::Failure;

/// Stack of each thread: without optimisation, frames are large.
const STACK_BYTES: usize = 8 << 20;

/// The threads for reads.
#[derive(Debug)]
pub struct ReadThreads {
    runtime: Option<Runtime>,
    // Held while a filter is evaluated, never across an await.
    costly: Mutex<()>,
}

impl ReadThreads {
    /// Threads on half of the processors. None where everything runs on one thread, as in tests that have a clock of their own.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start() -> std::io::Result<Self> {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Ok(Self::on(None));
        }
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = processors.div_euclid(2).max(1);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name("reads").thread_stack_size(STACK_BYTES).enable_all();
        Ok(Self::on(Some(builder.build()?)))
    }

    fn on(runtime: Option<Runtime>) -> Self {
        Self { runtime, costly: Mutex::default() }
    }

    /// Evaluates a filter on things of which there may be many, if it has regular expressions: one such filter at a time, beside the threads for
    /// everything else, so that whoever asks for many of them waits for itself alone.
    pub(crate) fn evaluate<T>(&self, filter: &Filter, work: impl FnOnce() -> T) -> T {
        if !filter.has_patterns() {
            return work();
        }
        let alone = || {
            let _alone = self.costly.lock().unwrap_or_else(PoisonError::into_inner);
            work()
        };
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(alone),
            Ok(_) | Err(_) => alone(),
        }
    }

    /// Runs a read to its end on these threads. It is ended when this is dropped, as when its client hangs up.
    ///
    /// # Errors
    /// When it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        let Some(runtime) = &self.runtime else { return Ok(read.await) };
        let done = AbortOnDropHandle::new(runtime.spawn(read)).await;
        done.map_err(|_| Failure::new(Code::Internal, "the read did not finish".to_owned()))
    }
}

impl Drop for ReadThreads {
    fn drop(&mut self) {
        // What still runs there has nobody who waits for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bellwether_api::list::tables::EVENTS;

    use super::*;

    async fn name_of_thread(reads: &ReadThreads) -> Option<String> {
        reads.run(async { thread::current().name().map(str::to_owned) }).await.ok().flatten()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_read_that_takes_the_processor_keeps_nothing_else_waiting() {
        let reads = ReadThreads::start().unwrap();
        assert_eq!(name_of_thread(&reads).await.as_deref(), Some("reads"));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let busy = reads.run(async move { ended.recv().is_ok() });
        // The only thread that this test has is free to end the read.
        let free = async move { end.send(()).is_ok() };
        let (busy, free) = tokio::join!(busy, free);
        assert!(busy.is_ok_and(|received| received) && free);
        let panicked = reads.run(async { panic!("a fault") }).await.map(|(): ()| ());
        assert!(panicked.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_filter_that_takes_the_processor_keeps_no_other_read_waiting() {
        let reads = Arc::new(ReadThreads::start().unwrap());
        let costly = Filter::parse("cause =~ web", &EVENTS).unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let evaluating = reads.clone();
        let busy = reads.run(async move { evaluating.evaluate(&costly, || ended.recv().is_ok()) });
        // On a machine of two processors there is one thread for reads.
        let other = reads.run(async move { end.send(()).is_ok() });
        let both = async { tokio::join!(busy, other) };
        let (busy, other) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
        assert!(busy.is_ok_and(|ended| ended) && other.is_ok_and(|sent| sent));
    }

    #[tokio::test]
    async fn where_everything_runs_on_one_thread_reads_do_too() {
        let own = thread::current().name().map(str::to_owned);
        assert_eq!(name_of_thread(&ReadThreads::start().unwrap()).await, own);
    }
}
