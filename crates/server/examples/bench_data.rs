//! Measures shared data: the whole process of `node list` with a filter over ten thousand nodes, and writes of one live profile
//! by 32 writers at once, beside what the store itself takes from as many, and beside what the same clients reach with requests that
//! never come to the store.
//!
//! Run with `cargo xtask bench data`. Results come last, as `name value unit (peer value, ratio)`.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, CallError, Client, Identity};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::{Join, NewJoinToken};
use bellwether_api::v1::profile::{Params, ParamsPatch, ProfileLive};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use bellwether_store::{Op, Store, Txn};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Nodes in the list.
const NODES: usize = 10_000;

/// How many join at the same time.
const ABREAST: usize = 64;

/// Writers of the live profile.
const WRITERS: usize = 32;

/// Length of each measurement.
const SPAN: Duration = Duration::from_secs(5);

/// Lists of nodes; the median is printed.
const LISTS: usize = 9;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<()> {
    let nodes = std::env::args().nth(1).map_or(Ok(NODES), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let mut config = Config::load(None)?;
    config.data_dir = dir.path().join("server");
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let made = init(&config).await?;
    let token_file = made.token_file.clone();
    let server = Server::start(&config, Clock::system()).await?;
    let address = format!("https://{}", server.address);
    let identity = Identity::Token(made.token);
    let admin = Client::new(&Access { server: address.clone(), ca: Some(server.ca_pem.clone()), identity })?;

    let store = puts(&dir.path().join("peer")).await?;
    let reads = calls(&admin, read).await?;
    let refusals = calls(&admin, refused).await?;
    let sets = rounds(&admin, false).await?;
    let races = rounds(&admin, true).await?;
    println!("joining {nodes} nodes");
    join_all(&admin, nodes).await?;
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        let started = Instant::now();
        let mut command = Command::new(program());
        command
            .args(["node", "list", "role = web and exists(label.rack) and zone in (a, b)", "-o", "name"])
            .env("BELLWETHER_SERVER", &address)
            .env("BELLWETHER_CA", &made.ca_file)
            .env("BELLWETHER_TOKEN_FILE", &token_file)
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        ensure!(lines == nodes / 2, "{lines} nodes were listed");
        lists.push(started.elapsed());
    }
    server.stop().await?;
    lists.sort_unstable();
    let list = lists.get(LISTS / 2).context("lists were made")?;
    println!("floor-reads {reads:.0} per_second (store {store:.0}, ratio {:.2})", reads / store);
    println!(
        "floor-refused-changes {refusals:.0} per_second (store {store:.0}, ratio {:.2})",
        refusals / store
    );
    println!("live-profile-sets {sets:.0} per_second (store {store:.0}, ratio {:.2})", sets / store);
    println!(
        "live-profile-races {races:.0} rounds_per_second (store {store:.0}, ratio {:.2})",
        races / store
    );
    println!("node-list-{nodes}-filtered {} ms", list.as_millis());
    Ok(())
}

/// Durable puts per second of the store itself, of as many writers.
async fn puts(path: &std::path::Path) -> Result<f64> {
    let tasks = Tasks::new();
    let store = Store::embedded(path, &tasks)?;
    let started = Instant::now();
    let mut writing = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writing.spawn(async move {
            let mut count = 0_u32;
            while started.elapsed() < SPAN {
                let key = format!("/bench/{writer}/{}", count % 1_000);
                let put = Op::Put { key: key.into(), value: vec![7; 300].into(), lease: None };
                store.commit(Txn { compares: vec![], ops: vec![put] }).await?;
                count += 1;
            }
            anyhow::Ok(count)
        });
    }
    let rate = sum(writing).await? / started.elapsed().as_secs_f64();
    store.close().await;
    tasks.stop(SPAN).await?;
    Ok(rate)
}

/// Calls per second of as many clients as there are writers.
async fn calls<F: Future<Output = Result<()>> + Send>(
    admin: &Client,
    call: impl Fn(Client) -> F + Copy + Send + 'static,
) -> Result<f64> {
    let started = Instant::now();
    let mut calling = JoinSet::new();
    for _ in 0..WRITERS {
        let client = admin.fresh();
        calling.spawn(async move {
            let mut count = 0_u32;
            while started.elapsed() < SPAN {
                call(client.clone()).await?;
                count += 1;
            }
            anyhow::Ok(count)
        });
    }
    Ok(sum(calling).await? / started.elapsed().as_secs_f64())
}

/// The smallest read there is.
async fn read(client: Client) -> Result<()> {
    client.time(SPAN).await?;
    Ok(())
}

/// A change that contradicts itself: authorised, recorded in the audit log and parsed like any other, and refused before it is decided.
async fn refused(client: Client) -> Result<()> {
    let change = ParamsPatch { remove: vec!["leader".to_owned()], ..set("leader", 1) };
    match client.patch_profile("default", "refused", &change).await {
        Err(CallError::Problem(problem)) if problem.code == Code::Invalid => Ok(()),
        other => bail!("it was not refused: {other:?}"),
    }
}

/// Writes per second of one live profile: each writer sets a key of its own; or all set the same key at the revision that they
/// read, and one of them wins each round.
async fn rounds(admin: &Client, is_race: bool) -> Result<f64> {
    let profile = if is_race { "race" } else { "shared" };
    admin.patch_profile("default", profile, &set("begin", 0)).await?;
    admin.set_profile_live("default", profile, &ProfileLive { live: true, ..ProfileLive::default() }).await?;
    let before = admin.profile("default", profile).await?.revision;
    let started = Instant::now();
    let mut writing = JoinSet::new();
    for writer in 0..WRITERS {
        let client = admin.fresh();
        writing.spawn(async move {
            let mut count = 0_u32;
            while started.elapsed() < SPAN {
                count += u32::from(write(&client, profile, (writer, count), is_race).await?);
            }
            anyhow::Ok(count)
        });
    }
    let won = sum(writing).await?;
    let elapsed = started.elapsed().as_secs_f64();
    let after = admin.profile("default", profile).await?.revision;
    #[expect(clippy::cast_precision_loss, reason = "fewer revisions than a float counts")]
    let revisions = (after - before) as f64;
    ensure!(revisions == won, "{won} writes were acknowledged, and there are {revisions} revisions");
    Ok(won / elapsed)
}

/// One write; whether it was made.
async fn write(client: &Client, profile: &str, (writer, count): (usize, u32), is_race: bool) -> Result<bool> {
    if !is_race {
        client.patch_profile("default", profile, &set(&format!("writer-{writer}"), count + 1)).await?;
        return Ok(true);
    }
    let seen = client.profile("default", profile).await?.revision;
    let value = u32::try_from(writer)? << 24 | (count + 1);
    match client.only_at(seen).patch_profile("default", profile, &set("leader", value)).await {
        Ok(_) => Ok(true),
        Err(CallError::Problem(problem)) if problem.code == Code::Conflict => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn set(key: &str, value: u32) -> ParamsPatch {
    ParamsPatch { set: Params::from([(key.to_owned(), value.into())]), ..ParamsPatch::default() }
}

async fn sum(mut writing: JoinSet<Result<u32>>) -> Result<f64> {
    let mut all = 0.0;
    while let Some(done) = writing.join_next().await {
        all += f64::from(done??);
    }
    Ok(all)
}

async fn join_all(admin: &Client, nodes: usize) -> Result<()> {
    let mut joining = JoinSet::new();
    for number in 0..nodes {
        if joining.len() >= ABREAST {
            joining.join_next().await.context("some are joining")???;
        }
        joining.spawn(join(admin.clone(), number));
    }
    while let Some(done) = joining.join_next().await {
        done??;
    }
    Ok(())
}

async fn join(admin: Client, number: usize) -> Result<()> {
    let labels = vec!["*".to_owned()];
    let token = admin.create_join_token(&NewJoinToken { labels, ..NewJoinToken::default() }).await?.secret;
    let key = rcgen::KeyPair::generate()?;
    let zone = ["a", "b", "c", "d"].get(number % 4).copied().unwrap_or_default();
    let labels =
        [("role", "web".to_owned()), ("zone", zone.to_owned()), ("rack", format!("r{}", number % 50))];
    let request = Join {
        token,
        namespace: "default".to_owned(),
        node: format!("node-{number:05}"),
        labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        certificate_request: rcgen::CertificateParams::default().serialize_request(&key)?.pem()?,
    };
    admin.join(&request).await?;
    drop(Secret::new(key.serialize_pem()));
    Ok(())
}

/// The program, as `cargo build --release` makes it.
fn program() -> PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(here, PathBuf::from).join("release/bellwether")
}
