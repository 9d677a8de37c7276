//! Generated documents of ensembles.

use proptest::prelude::*;

use bellwether_api::v1::apply::EnsembleDocument;
use bellwether_api::v1::ensemble::adoption::AdoptSpec;
use bellwether_api::v1::ensemble::restore::RestoreSpec;
use bellwether_api::v1::ensemble::service::{
    CephSpec, EtcdSpec, ExecSpec, ProcessSpec, RedisSpec, ServiceAgentSpec, SystemdSpec,
};
use bellwether_api::v1::ensemble::snapshots::SnapshotSpec;
use bellwether_api::v1::ensemble::{EnsembleMode, EnsembleSize};

use super::{Document, labels, some, texts, word};

pub(super) fn ensembles() -> impl Strategy<Value = Document> {
    let sizes = some(prop_oneof![(1..=7_u32).prop_map(EnsembleSize::Number), Just(EnsembleSize::Quorum)]);
    let spans = (some(word(&["30s", "90m", "7d"])), some(word(&["10s", "24h"])));
    let modes = some(prop_oneof![Just(EnsembleMode::Managed), Just(EnsembleMode::Unmanaged)]);
    let snapshots = some((some(word(&["60s", "6h"])), some(1..=100_u32)));
    let restore = some(word(&["store-1f-1-2a", "my-store-19ab-12-19ac.db"]));
    let (services, data) = (services(), (snapshots, restore));
    (labels(), sizes, services, spans, data, (some(word(&["rack"])), modes, texts())).prop_map(
        |(
            labels,
            size,
            service,
            (failover_after, join_within),
            (snapshots, restore),
            (spread, mode, reason),
        )| {
            let snapshots = snapshots
                .map(|(every, keep)| SnapshotSpec { every: every.filter(|_| service.etcd.is_some()), keep });
            let restore = restore.filter(|_| service.etcd.is_some());
            let without_tls = service.etcd.as_ref().is_some_and(|etcd| etcd.tls == Some(false));
            let adopt = AdoptSpec { endpoints: vec!["http://10.0.0.9:2379".to_owned()] };
            let adopt = (without_tls && restore.is_none()).then_some(adopt);
            let restore = restore.map(|snapshot| RestoreSpec { node: "db-1".to_owned(), snapshot });
            let votes = service.etcd.is_some() || service.redis.is_some() || service.ceph.is_some();
            Document::Ensemble(Box::new(EnsembleDocument {
                name: "x".to_owned(),
                labels,
                size: size.filter(|size| votes || *size != EnsembleSize::Quorum),
                snapshots,
                restore,
                adopt,
                service,
                filter: "role=db".to_owned(),
                spread,
                failover_after,
                join_within,
                mode,
                reason,
                ..Default::default()
            }))
        },
    )
}

/// Every service that an ensemble may have.
fn services() -> impl Strategy<Value = ServiceAgentSpec> {
    let ports = (some(2_000..3_000_u32), some(3_000..4_000_u32), some(any::<bool>()));
    let names = (0..6_usize, word(&["web", "web-2"]), some(0..=6_u32));
    (ports, names).prop_map(|((client_port, peer_port, tls), (kind, name, min_replicas_to_write))| {
        let none = ServiceAgentSpec::default();
        let port = client_port;
        match kind {
            0 => ServiceAgentSpec {
                redis: Some(RedisSpec { port, min_replicas_to_write, tls, password_secrets: Vec::new() }),
                ..none
            },
            1 => {
                let replicas = min_replicas_to_write.map(|number| number + 1);
                let devices = tls.map_or_else(Vec::new, |_| vec![name]);
                ServiceAgentSpec { ceph: Some(CephSpec { port, replicas, devices }), ..none }
            }
            2 => ServiceAgentSpec { process: Some(ProcessSpec { program: name, port }), ..none },
            3 => {
                let unit = format!("{name}@.service");
                ServiceAgentSpec { systemd: Some(SystemdSpec { unit, port }), ..none }
            }
            4 => ServiceAgentSpec { exec: Some(ExecSpec { agent: name, port }), ..none },
            _ => ServiceAgentSpec { etcd: Some(EtcdSpec { client_port, peer_port, tls }), ..none },
        }
    })
}
