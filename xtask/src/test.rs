//! The README's test command: installs what the tests need, says so, and runs everything.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell::{self, has, say};

/// Debian packages of programs that the stories use for real, and how to see that they are there.
const PACKAGES: [(&str, &str, &str); 11] = [
    ("nginx-light", "/usr/sbin/nginx", "-v"),
    ("curl", "curl", "--version"),
    ("prometheus", "prometheus", "--version"),
    ("puppet-agent", "puppet", "--version"),
    ("iproute2", "ip", "-V"),
    ("bind9-dnsutils", "dig", "-v"),
    ("faketime", "faketime", "--version"),
    ("haproxy", "/usr/sbin/haproxy", "-v"),
    ("etcd-server", "etcd", "--version"),
    ("etcd-client", "etcdctl", "version"),
    ("python3-consul", "/usr/bin/python3", "-cimport consul"),
];

/// The last Prometheus of Debian's that was built with Consul's discovery: not the one that is installed, which has
/// discovery over HTTP.
struct Fetched {
    /// Where it is unpacked, from the root.
    dir: &'static str,
    /// Where Debian has it, or had it when it was new.
    mirrors: [&'static str; 2],
    path: &'static str,
    sha256: &'static str,
}

const CONSULS_PROMETHEUS: Fetched = Fetched {
    dir: "target/tools/prometheus-2.24.1",
    mirrors: ["http://deb.debian.org/debian", "http://archive.debian.org/debian"],
    path: "pool/main/p/prometheus/prometheus_2.24.1+ds-1+b7_amd64.deb",
    sha256: "7f98887c0fa36e0dd81bb39abc57a9e2535c2a0dc20442a431255ebc0b87b73a",
};

pub(crate) fn run(root: &Path, filter: Option<&str>) -> Result<()> {
    install(root)?;
    fetch(root, &CONSULS_PROMETHEUS)?;
    // The stories start the program itself, so it is built first, as a user would build it.
    shell::run(root, "cargo", &["build", "--workspace", "--locked"])?;
    let mut args = vec!["test", "--workspace", "--locked"];
    args.extend(filter);
    shell::run(root, "cargo", &args)
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

/// Unpacks a package of another Debian beside the build, without installing it.
fn fetch(root: &Path, wanted: &Fetched) -> Result<()> {
    let dir = root.join(wanted.dir);
    if dir.is_dir() {
        return Ok(());
    }
    say(&format!("the tests use a program that this Debian does not have: {}", wanted.path));
    let fresh = dir.with_extension("fresh");
    std::fs::create_dir_all(&fresh).with_context(|| format!("could not make {}", fresh.display()))?;
    let package = fresh.join("package.deb");
    let (file, unpacked) = (package.display().to_string(), fresh.display().to_string());
    let got = wanted.mirrors.iter().any(|mirror| {
        let url = format!("{mirror}/{}", wanted.path);
        shell::run(root, "curl", &["-fsSL", "--retry", "3", "-o", &file, &url]).is_ok()
    });
    if !got {
        bail!(
            "could not fetch {} from Debian; look whether its mirrors can be reached, then run this again",
            wanted.path
        );
    }
    let check = format!("echo '{}  {file}' | sha256sum -c --quiet", wanted.sha256);
    shell::run(root, "sh", &["-c", &check])?;
    shell::run(root, "dpkg-deb", &["-x", &file, &unpacked])?;
    std::fs::remove_file(&package).with_context(|| format!("could not remove {file}"))?;
    std::fs::rename(&fresh, &dir).with_context(|| format!("could not move it to {}", dir.display()))
}

fn install(root: &Path) -> Result<()> {
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
