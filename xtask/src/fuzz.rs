//! Fuzzes what comes from outside, guided by coverage, with the samples of the wire format as a start.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::shell::{self, say};

/// Each target, and how the names of the samples begin that it starts from.
const TARGETS: [(&str, &[&str]); 11] = [
    ("policy", &["entity"]),
    ("entity", &["entity"]),
    ("report", &["report"]),
    ("hook_answer", &["hook_"]),
    ("filter", &[]),
    ("words", &[]),
    (
        "written",
        &["cluster", "ensemble", "external", "filter", "profile", "reaction", "schedule", "sink", "slot"],
    ),
    ("reported", &["node_", "registrations", "local"]),
    ("ordered", &["order"]),
    ("query", &[]),
    ("said", &["node_"]),
];

/// Targets that run at the same time; each has its time, whatever it shares with the others.
const AT_ONCE: usize = 4;

/// The counters of the code that is fuzzed. LLVM's own pass writes them, which the stable compiler has.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

#[derive(Args)]
pub(crate) struct Fuzz {
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u32,
    /// Inputs for each target, however long that takes
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) runs: Option<u64>,
    /// Only this target: policy, entity, report, `hook_answer`, filter, words, written, reported, ordered, query or said
    pub(crate) target: Option<String>,
}

/// Builds the targets and runs each for its time. Fails at the first input that makes one panic, and names it.
pub(crate) fn run(root: &Path, fuzz: &Fuzz) -> Result<()> {
    let wanted = |(name, _): &&(&str, &[&str])| fuzz.target.as_ref().is_none_or(|only| only == name);
    let targets: Vec<_> = TARGETS.iter().filter(wanted).collect();
    if targets.is_empty() {
        bail!("there is no such target; there are {}", TARGETS.map(|(name, _)| name).join(", "));
    }
    let home = shell::target(root).join("fuzz");
    let host = host(root)?;
    build(root, &home, &host)?;
    let programs = home.join(host).join("release");
    let dictionary = dictionary(root, &home)?;
    for abreast in targets.chunks(AT_ONCE) {
        let mut running = Vec::new();
        for (name, samples) in abreast {
            let corpus = corpus(root, &home, name, samples)?;
            let log = home.join(format!("{name}.log"));
            let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
            let child = Command::new(programs.join(name))
                .arg(&corpus)
                .arg(format!("-dict={}", dictionary.display()))
                .arg(format!("-artifact_prefix={}/found-{name}-", home.display()))
                .arg(fuzz.runs.map_or_else(
                    || format!("-max_total_time={}", fuzz.seconds),
                    |runs| format!("-runs={runs}"),
                ))
                .args([
                    "-max_len=16384",
                    "-timeout=10",
                    "-rss_limit_mb=1024",
                    "-print_final_stats=1",
                    "-verbosity=0",
                ])
                .stderr(output)
                .spawn()
                .with_context(|| format!("cannot start fuzz target {name}"))?;
            running.push((*name, log, child));
        }
        let ended: Vec<_> =
            running.into_iter().map(|(name, log, mut child)| (name, log, child.wait())).collect();
        for (name, log, status) in ended {
            let text =
                std::fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
            if !status.with_context(|| format!("cannot wait for fuzz target {name}"))?.success() {
                say(&text);
                let program = programs.join(name);
                bail!(
                    "fuzz target {name} failed; the input is named above. Again: {} INPUT",
                    program.display()
                );
            }
            let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
            let runs = runs.context("a fuzz target prints how many inputs it ran")?.trim();
            say(&format!("fuzz target {name}: {runs} inputs without a finding"));
        }
    }
    Ok(())
}

/// What this machine compiles for. Named, so that build scripts and macros are built without counters.
fn host(root: &Path) -> Result<String> {
    let output =
        Command::new("rustc").args(["-vV"]).current_dir(root).output().context("cannot run rustc")?;
    let text = String::from_utf8(output.stdout).context("rustc prints its version as text")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

/// That the lock file of the targets, a workspace of its own, has what the crates need now: found in a second, and not after all tests.
pub(crate) fn is_locked(root: &Path) -> Result<()> {
    let args = ["metadata", "--locked", "--format-version", "1", "--manifest-path", "fuzz/Cargo.toml"];
    shell::output(root, "cargo", &args).context(
        "fuzz/Cargo.lock is not up to date: cargo update --workspace --manifest-path fuzz/Cargo.toml",
    )?;
    Ok(())
}

fn build(root: &Path, home: &Path, host: &str) -> Result<()> {
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--bins",
            "--locked",
            "--target",
            host,
            "--manifest-path",
            "fuzz/Cargo.toml",
        ])
        .arg("--target-dir")
        .arg(home)
        .env("RUSTFLAGS", format!("{COVERAGE} --cfg fuzzing"))
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    if status.success() { Ok(()) } else { bail!("the fuzz targets do not build") }
}

/// The folder of inputs that a target starts from, and to which it adds what reached new code.
fn corpus(root: &Path, home: &Path, name: &str, samples: &[&str]) -> Result<PathBuf> {
    let corpus = home.join("corpus").join(name);
    std::fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
    for path in samples_of(root)? {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if samples.iter().any(|start| file.starts_with(start)) {
            std::fs::copy(&path, corpus.join(&file)).with_context(|| format!("cannot copy {file}"))?;
        }
    }
    Ok(corpus)
}

fn samples_of(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("crates/api/tests/golden");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Every word in quotes of the samples, so that the fuzzer need not guess field names.
fn dictionary(root: &Path, home: &Path) -> Result<PathBuf> {
    let mut words = BTreeSet::new();
    for path in samples_of(root)? {
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let quoted = text.split('"').skip(1).step_by(2);
        words.extend(quoted.filter(|word| word.is_ascii() && !word.contains('\\')).map(str::to_owned));
    }
    let lines: String =
        words.iter().filter(|word| !word.is_empty()).map(|word| format!("\"{word}\"\n")).collect();
    let path = home.join("dictionary");
    std::fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
