//! Tasks of the leader, one for each object of a kind: one is started for every object that has none while this server leads, and all of them
//! stop with the leadership. What a task does is not decided here.
//!
//! A task follows its object by itself: it takes up what is changed, and ends when its object is gone.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use bellwether_core::words::counter::Term;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_rt::tasks::Tasks;
use tokio_util::sync::CancellationToken;

use crate::leadership::Leadership;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// A kind of objects that have a task each, and what these tasks work with.
pub(crate) trait TaskPerObject: Clone + Send + Sync + 'static {
    /// Name of an object in its namespace.
    type Name: Clone + Ord + Send + Sync + 'static;

    /// Name of the tasks.
    const TASK: &'static str;

    /// Follows the world.
    fn transactor(&self) -> &Transactor;

    /// When tasks run, and under which term.
    fn leadership(&self) -> &Leadership;

    /// The objects of all namespaces that are to have a task.
    fn objects(world: &World) -> impl Iterator<Item = (Namespace, Self::Name)> + '_;

    /// The task of one object: it ends when the object is gone, the leadership is lost, or on `stop`.
    fn work(
        self,
        term: Term,
        object: (Namespace, Self::Name),
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// Starts the tasks of a kind of objects while this server leads.
#[derive(Debug)]
pub(crate) struct LeaderTasks<T> {
    /// What the tasks work with.
    pub(crate) context: T,
    /// Brings the world up to date with the store.
    pub(crate) relist: RelistHandle,
    /// Parent of the tasks.
    pub(crate) tasks: Tasks,
}

impl<T: TaskPerObject> LeaderTasks<T> {
    /// Runs until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut leadership = self.context.leadership().clone();
        while let Some(term) = leadership.won(&stop).await {
            // In an older world, tasks would do again what those of an earlier leader did.
            if self.relist.bring_up_to_date(&stop).await {
                let level = self.tasks.child();
                self.lead((term, &mut leadership), &level, &stop).await;
                level.cancel();
            }
            leadership.lost(term, &stop).await;
        }
    }

    async fn lead(
        &self,
        (term, leadership): (Term, &mut Leadership),
        level: &Tasks,
        stop: &CancellationToken,
    ) {
        let mut worlds = self.context.transactor().follow();
        let mut running: BTreeMap<(Namespace, T::Name), tokio::task::JoinHandle<Option<()>>> =
            BTreeMap::new();
        while leadership.is_in(term) {
            let world = Arc::clone(&worlds.borrow_and_update());
            running.retain(|_, task| !task.is_finished());
            for object in T::objects(&world) {
                running.entry(object).or_insert_with_key(|object| {
                    let work = self.context.clone().work(term, object.clone(), level.token());
                    level.spawn(T::TASK, work)
                });
            }
            // All arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                () = leadership.changed() => {}
            }
        }
    }
}
