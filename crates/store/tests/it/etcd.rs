//! The contract on a real etcd. Each law has one of its own, as the laws count revisions from 0 on and one by one,
//! which etcd does only for whoever has it alone.

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::Subject;
use bellwether_store::testing::etcd::TestEtcd;

async fn fresh() -> Subject {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    Subject { store: etcd.store(&tasks).await, keep: Box::new((tasks, etcd)) }
}

bellwether_store::suite!(crate::etcd::fresh);
