//! The contract on the embedded back end.

use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use bellwether_store::conformance::StoreUnderTest;

async fn fresh() -> StoreUnderTest {
    let (tasks, dir) = (Tasks::new(), tempfile::tempdir().unwrap());
    StoreUnderTest { store: Store::embedded(dir.path(), &tasks).unwrap(), keep: Box::new((tasks, dir)) }
}

bellwether_store::suite!(crate::embedded::fresh);
