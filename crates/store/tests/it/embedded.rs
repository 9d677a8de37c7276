//! The contract on the embedded back end.

use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use bellwether_store::conformance::Subject;

async fn fresh() -> Subject {
    let (tasks, dir) = (Tasks::new(), tempfile::tempdir().unwrap());
    Subject { store: Store::embedded(dir.path(), &tasks).unwrap(), keep: Box::new((tasks, dir)) }
}

bellwether_store::suite!(crate::embedded::fresh);
