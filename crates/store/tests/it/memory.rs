//! The contract on the memory back end.

use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use bellwether_store::conformance::StoreUnderTest;

async fn fresh() -> StoreUnderTest {
    let tasks = Tasks::new();
    StoreUnderTest { store: Store::memory(&tasks), keep: Box::new(tasks) }
}

bellwether_store::suite!(crate::memory::fresh);
