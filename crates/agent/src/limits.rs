//! Limits of what an entity runs: memory, processor time and open files, as configured. A program with limits is started by this same
//! program, which limits itself and then becomes it.

mod cgroup;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use cgroup::CgroupLimits;
pub(crate) use cgroup::CgroupScope;

/// The argument by which the program becomes another one with limits.
pub const COMMAND: &str = "limited-program";

/// The default directory of the cgroups of runs.
pub const DEFAULT_CGROUP: &str = "/sys/fs/cgroup/bellwether";

/// This same program, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Least memory, in bytes: a shell does not start with less.
const LEAST_MEMORY_BYTES: u64 = 8 << 20;

/// Fewest open files: a program needs those of its standard streams and of its libraries to start.
const FEWEST_FILES: u64 = 16;

/// Most percent of one processor: a thousand of them.
const MOST_PERCENT: u32 = 100_000;

/// The exit codes of a shell for a program that it cannot start, and for one that it does not find.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The limits of each run of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Most memory, in bytes.
    pub memory_max_bytes: Option<u64>,
    /// Most processor time, in percent of one processor.
    pub cpu_quota_percent: Option<u32>,
    /// Most open files of a process.
    pub nofile: Option<u64>,
    /// The directory in which each run has a cgroup of its own; its parent is in a hierarchy of cgroup v2.
    pub cgroup: PathBuf,
}

/// What a program that is to be limited is told of itself.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramLimits {
    /// The cgroup that it joins.
    cgroup: Option<PathBuf>,
    /// Its address space, in bytes.
    address_space_bytes: Option<u64>,
    nofile: Option<u64>,
    /// User and group that it changes to, after all else.
    user: Option<(u32, u32)>,
}

/// A program that is to be started with limits.
#[derive(Debug)]
pub(crate) struct LimitedProgram {
    /// What is started, before the arguments of the program.
    pub(crate) command: tokio::process::Command,
    /// The cgroup of the run, to be kept until the program has ended.
    pub(crate) scope: Option<CgroupScope>,
}

impl ResourceLimits {
    /// How `program` of `entity` is started with these limits, as the user and group given.
    ///
    /// # Errors
    /// A limit that cannot be enforced here.
    pub(crate) fn program(
        &self,
        program: &str,
        entity: &str,
        user: Option<(u32, u32)>,
    ) -> io::Result<LimitedProgram> {
        let (memory_bytes, cpu_percent) = (self.memory_max_bytes, self.cpu_quota_percent);
        let scope = match CgroupScope::new(&self.cgroup, CgroupLimits { memory_bytes, cpu_percent }, entity) {
            Ok(scope) => scope,
            // One process at a time can be limited without a cgroup, in memory alone.
            Err(error) if self.cpu_quota_percent.is_none() => {
                tracing::debug!(%error, "no cgroup: the address space of each process is limited");
                None
            }
            Err(error) => return Err(error),
        };
        let limits = ProgramLimits {
            cgroup: scope.as_ref().map(|scope| scope.dir().to_owned()),
            address_space_bytes: self.memory_max_bytes.filter(|_| scope.is_none()),
            nofile: self.nofile,
            user,
        };
        let mut command = tokio::process::Command::new(PROGRAM);
        command.arg0("bellwether").arg(COMMAND).arg(serde_json::to_string(&limits)?).arg(program);
        Ok(LimitedProgram { command, scope })
    }

    /// Why a quota of processor time cannot be enforced here; `None` if it can be.
    pub(crate) fn quota_is_refused(&self) -> Option<String> {
        self.cpu_quota_percent.and_then(|_| cgroup::missing(&self.cgroup, "cpu"))
    }
}

/// Reads a number of bytes: a number, and K, M, G or T for powers of 1024.
///
/// # Errors
/// What is written instead.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (text.strip_suffix('K'), 10),
        Some(b'M') => (text.strip_suffix('M'), 20),
        Some(b'G') => (text.strip_suffix('G'), 30),
        Some(b'T') => (text.strip_suffix('T'), 40),
        Some(_) | None => (Some(text), 0),
    };
    let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let bytes = number.and_then(|digits| digits.parse::<u64>().ok()).and_then(|n| n.checked_mul(1 << shift));
    let bytes = bytes.ok_or_else(|| format!("{text:?} is not a size like \"512M\" or \"2G\""))?;
    if bytes < LEAST_MEMORY_BYTES {
        return Err(format!("{text:?} is less than 8M, with which no program starts"));
    }
    Ok(bytes)
}

/// Reads a share of processor time, like `150%`.
///
/// # Errors
/// What is written instead.
pub(crate) fn quota(text: &str) -> Result<u32, String> {
    let digits = text.strip_suffix('%').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let percent = digits.and_then(|digits| digits.parse().ok());
    percent
        .filter(|percent| (1..=MOST_PERCENT).contains(percent))
        .ok_or_else(|| format!("{text:?} is not a share of one processor like \"50%\", or \"200%\" for two"))
}

/// Reads a number of open files.
///
/// # Errors
/// How many there may be.
pub(crate) fn open_files(number: u64) -> Result<u64, String> {
    if number < FEWEST_FILES {
        return Err(format!("{number} is less than {FEWEST_FILES}, with which no program starts"));
    }
    Ok(number)
}

/// Limits this process and becomes the program that the words name: the limits, the program, its arguments. Returns only if that
/// cannot be, and says why on the standard error.
#[must_use]
pub fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let limits = words.next().and_then(|word| word.into_string().ok());
    let (Some(limits), Some(program)) = (limits, words.next()) else { return ExitCode::from(NOT_STARTED) };
    let name = program.to_string_lossy().into_owned();
    let mut command = Command::new(program);
    command.args(words);
    let error = match limit(&limits, &mut command) {
        Ok(()) => command.exec(),
        Err(error) => error,
    };
    // Its exit code says the same.
    drop(writeln!(io::stderr(), "cannot start {name}: {error}"));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
}

fn limit(limits: &str, command: &mut Command) -> io::Result<()> {
    let limits: ProgramLimits = serde_json::from_str(limits)?;
    if let Some((user, group)) = limits.user {
        command.uid(user).gid(group);
    }
    if let Some(dir) = &limits.cgroup {
        CgroupScope::join(dir)?;
    }
    let most = |bound: u64| Rlimit { current: Some(bound), maximum: Some(bound) };
    if let Some(files) = limits.nofile {
        setrlimit(Resource::Nofile, most(files)).map_err(|error| refused("nofile", error.into()))?;
    }
    if let Some(bytes) = limits.address_space_bytes {
        setrlimit(Resource::As, most(bytes)).map_err(|error| refused("memory_max", error.into()))?;
    }
    Ok(())
}

fn refused(limit: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{limit}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_shares_and_numbers_are_read_or_refused() {
        assert_eq!(memory("512M"), Ok(512 << 20));
        assert_eq!(memory("16777216"), Ok(16 << 20));
        assert_eq!(memory("2G"), Ok(2 << 30));
        for text in ["", "M", "1.5G", "-1", "1 G", "4M", "99999999T", "512MB", "+9M"] {
            assert!(memory(text).is_err(), "{text}");
        }
        assert_eq!(quota("150%"), Ok(150));
        for text in ["", "%", "0%", "50", "1e3%", "-5%", "+5%", "100001%"] {
            assert!(quota(text).is_err(), "{text}");
        }
        assert_eq!(open_files(1_024), Ok(1_024));
        assert!(open_files(15).is_err());
    }
}
