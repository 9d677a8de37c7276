//! How many durable puts a second the embedded store takes, beside what the disk itself gives; and a store in an etcd
//! of one member on the same machine, beside the embedded one.
//!
//! `cargo run --release -p bellwether-store --example bench_store [directory]`; the directory (the system's
//! temporary one if none is given, which is always etcd's) says which disk is measured. Last come the figures, one a
//! line: `name value unit (peer value, ratio)`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{Op, Store, Txn};
use bytes::Bytes;
use tokio::time::Instant;

/// The size of a status report as an agent sends it, rounded.
const RECORD_BYTES: usize = 300;
/// Keys written over and over: ten for each node of the largest fleet.
const KEYS: u64 = 100_000;
/// How long each figure is measured. Longer brings the same figures.
const SPAN: Duration = Duration::from_secs(2);
/// How many write at once.
const WRITERS: [u64; 3] = [1, 32, 256];
/// Rounds of disk and store in turn, as other work on the machine comes and goes; the median is printed.
const ROUNDS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let base = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(base)?;
    let tasks = Tasks::new();
    let store = Store::embedded(&dir.path().join("store"), &tasks)?;
    fill(&store, &tasks).await?;
    let (mut raw, mut one, mut some, mut many) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        raw.push(append(&dir.path().join("raw"))?);
        for (rates, writers) in [&mut one, &mut some, &mut many].into_iter().zip(WRITERS) {
            rates.push(puts(&store, &tasks, writers).await?);
        }
        println!("round {round}: raw {raw:.0?} 1 {one:.0?} 32 {some:.0?} 256 {many:.0?}");
    }
    store.close().await;
    tasks.stop(SPAN).await?;
    let length = std::fs::metadata(dir.path().join("store/store.redb"))?.len();
    println!("file after the run: {} MiB", length >> 20);
    let theirs = etcd().await?;
    let (peer, ours) = (median(raw), [one, some, many].map(median));
    for (writers, rate) in WRITERS.iter().zip(ours) {
        println!(
            "puts-{writers}-writers {rate:.0} puts/s (raw append+fdatasync {peer:.0}, {:.2})",
            rate / peer
        );
    }
    for ((writers, rate), ours) in WRITERS.iter().zip(theirs).zip(ours) {
        println!("etcd-puts-{writers}-writers {rate:.0} puts/s (embedded {ours:.0}, {:.2})", rate / ours);
    }
    Ok(())
}

/// The rates of a store in etcd.
async fn etcd() -> Result<[f64; 3]> {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = etcd.store(&tasks).await;
    fill(&store, &tasks).await?;
    let mut rates = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        for (rates, writers) in rates.iter_mut().zip(WRITERS) {
            rates.push(puts(&store, &tasks, writers).await?);
        }
        println!("round {round}: etcd {rates:.0?}");
    }
    store.close().await;
    tasks.stop(SPAN).await?;
    Ok(rates.map(median))
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

/// The disk's own rate: append one record to a file, sync, again.
fn append(path: &Path) -> Result<f64> {
    let mut file = File::create(path)?;
    let (start, mut count) = (Instant::now(), 0.0);
    while start.elapsed() < SPAN {
        file.write_all(&[7; RECORD_BYTES])?;
        file.sync_data()?;
        count += 1.0;
    }
    Ok(count / start.elapsed().as_secs_f64())
}

/// Writes every key once.
async fn fill(store: &Store, tasks: &Tasks) -> Result<()> {
    let writers: Vec<_> = (0..256)
        .map(|writer| {
            let store = store.clone();
            tasks.spawn("fill", async move {
                for key in (writer..KEYS).step_by(256) {
                    put(&store, key).await?;
                }
                Result::Ok(())
            })
        })
        .collect();
    for writer in writers {
        writer.await?.unwrap_or_else(|| Err("a writer panicked".into()))?;
    }
    Ok(())
}

/// The store's rate with `writers` at once, each waiting for one put before the next.
async fn puts(store: &Store, tasks: &Tasks, writers: u64) -> Result<f64> {
    let start = Instant::now();
    let running: Vec<_> =
        (0..writers).map(|writer| tasks.spawn("writer", write(store.clone(), writer + 1, start))).collect();
    let mut count = 0.0;
    for writer in running {
        count += writer.await?.unwrap_or_else(|| Err("a writer panicked".into()))?;
    }
    Ok(count / start.elapsed().as_secs_f64())
}

async fn write(store: Store, seed: u64, start: Instant) -> Result<f64> {
    let (mut state, mut count) = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0.0);
    while start.elapsed() < SPAN {
        // xorshift: keys all over the range, the same ones in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        put(&store, state % KEYS).await?;
        count += 1.0;
    }
    Ok(count)
}

async fn put(store: &Store, key: u64) -> Result<()> {
    let value = Bytes::from(vec![7; RECORD_BYTES]);
    let op = Op::Put { key: format!("bench/{key:08}").into(), value, lease: None };
    store.commit(Txn { compares: vec![], ops: vec![op] }).await?;
    Ok(())
}
