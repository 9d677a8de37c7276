//! The contract on a real etcd, and what only a store in etcd has to prove. Each law has an etcd of its own, as the
//! laws count revisions from 0 on and one by one, which etcd does only for whoever has it alone.

mod cut;
mod followed;
mod killed;
mod large;
mod refusals;
mod resumed;
mod several;
mod space;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::StoreUnderTest;
use bellwether_store::testing::etcd::TestEtcd;

async fn fresh() -> StoreUnderTest {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    StoreUnderTest { store: etcd.store(&tasks).await, keep: Box::new((tasks, etcd)) }
}

bellwether_store::suite!(crate::etcd::fresh);
