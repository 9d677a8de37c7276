//! Providers: programs on the server that read secrets from elsewhere, as the server's configuration names them. What they answer is
//! kept in memory for a short time, and never stored.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::records::secret::MAX_SECRET_BYTES;
use bellwether_core::words::name::ProviderName;
use bellwether_core::words::time::Span;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Most programs that run at once.
const AT_ONCE: usize = 4;

/// Longest line of a program's complaint that is shown, in characters.
const MAX_COMPLAINT: usize = 200;

/// How a provider is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    /// The program and its arguments; the reference follows them as the last one.
    pub command: Vec<String>,
    /// Longest time that it may take.
    pub timeout: Span,
    /// How long an answer is used again.
    pub cache: Span,
}

/// The providers of a server. Cheap to clone.
#[derive(Clone, Default)]
pub struct Providers(Arc<ProviderTable>);

#[derive(Default)]
struct ProviderTable {
    specs: BTreeMap<ProviderName, ProviderSpec>,
    running: Running,
    answers: Mutex<BTreeMap<(ProviderName, String), (Instant, Value)>>,
}

/// Limits how many programs run.
struct Running(Semaphore);

impl Default for Running {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Providers").field(&self.0.specs).finish()
    }
}

impl Providers {
    /// The providers of a configuration.
    #[must_use]
    pub fn new(specs: BTreeMap<ProviderName, ProviderSpec>) -> Self {
        Self(Arc::new(ProviderTable { specs, ..ProviderTable::default() }))
    }

    /// The names of the providers.
    pub fn names(&self) -> impl Iterator<Item = &ProviderName> {
        self.0.specs.keys()
    }

    /// What a provider answers for a reference.
    ///
    /// # Errors
    /// Why there is no answer, as a sentence that names the provider and not the answer.
    pub async fn read(&self, name: &ProviderName, reference: &str) -> Result<Value, String> {
        let failed = |reason: String| format!("provider {name}: {reason}");
        let Some(spec) = self.0.specs.get(name) else {
            return Err(failed(
                "the configuration of this server has no secret_providers of this name".to_owned(),
            ));
        };
        let key = (name.clone(), reference.to_owned());
        if let Some(value) = self.kept(&key) {
            return Ok(value);
        }
        let _place = self.0.running.0.acquire().await.map_err(|error| failed(error.to_string()))?;
        // Another request may have asked while this one waited.
        if let Some(value) = self.kept(&key) {
            return Ok(value);
        }
        let within = spec.timeout.to_duration();
        let ran = tokio::time::timeout(within, run(&spec.command, reference)).await;
        let value = match ran {
            Ok(answer) => answer.map_err(failed)?,
            Err(_) => return Err(failed(format!("no answer within {}", spec.timeout))),
        };
        let until = Instant::now() + spec.cache.to_duration();
        let mut answers = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|_, (until, _)| *until > Instant::now());
        answers.insert(key, (until, value.clone()));
        Ok(value)
    }

    fn kept(&self, key: &(ProviderName, String)) -> Option<Value> {
        let answers = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, value) = answers.get(key)?;
        (*until > Instant::now()).then(|| value.clone())
    }
}

/// Runs the program; it is killed when the future is dropped.
async fn run(command: &[String], reference: &str) -> Result<Value, String> {
    let (program, arguments) = command.split_first().ok_or("it has no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg(reference)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let (out, complaint) = (child.stdout.take(), child.stderr.take());
    let (out, complaint) = tokio::join!(read(out), read(complaint));
    let ended = child.wait().await.map_err(|error| error.to_string())?;
    if !ended.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let short: String = last.chars().take(MAX_COMPLAINT).collect();
        return Err(if short.is_empty() { ended.to_string() } else { format!("{ended}: {short}") });
    }
    if out.len() > MAX_SECRET_BYTES {
        return Err(format!("it answered more than {MAX_SECRET_BYTES} bytes"));
    }
    let text = String::from_utf8(out).map_err(|_| "its answer is not UTF-8")?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if text.is_empty() { Err("its answer is empty".to_owned()) } else { Ok(Value::String(text.to_owned())) }
}

/// What a program writes, up to a little more than is allowed; the rest is read and dropped, so that it does not block.
async fn read(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut chunk = [0_u8; 4_096];
    while let Ok(read) = from.read(&mut chunk).await {
        if read == 0 {
            break;
        }
        if kept.len() <= MAX_SECRET_BYTES {
            kept.extend(chunk.iter().take(read));
        }
    }
    kept
}

/// The default of a provider's `timeout`.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);

/// The default of a provider's `cache`.
pub const DEFAULT_CACHE: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(script: &str, timeout: u64) -> (Providers, ProviderName) {
        let name = ProviderName::parse("vault").unwrap();
        let command = ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
        let spec = ProviderSpec { command, timeout: Span::from_millis(timeout), cache: Span::from_secs(60) };
        (Providers::new([(name.clone(), spec)].into()), name)
    }

    #[tokio::test]
    async fn a_program_is_asked_once_for_as_long_as_its_answer_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("asked");
        let script = format!("echo x >> {}; echo \"secret of $1\"", count.display());
        let (providers, name) = providers(&script, 60_000);
        for _ in 0..3 {
            assert_eq!(providers.read(&name, "kv/db").await, Ok(Value::String("secret of kv/db".to_owned())));
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 1);
        providers.read(&name, "kv/other").await.unwrap();
        assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 2);
    }

    #[tokio::test]
    async fn a_program_that_fails_hangs_or_says_too_much_is_named_with_the_reason() {
        let failing = async |script: &str, timeout| {
            let (providers, name) = providers(script, timeout);
            providers.read(&name, "kv/db").await.unwrap_err()
        };
        let error = failing("echo 'no such secret' >&2; exit 3", 60_000).await;
        assert!(error.starts_with("provider vault: exit status: 3: no such secret"), "{error}");
        assert!(failing("sleep 1000", 50).await.contains("no answer within 50ms"));
        assert!(failing("true", 60_000).await.contains("its answer is empty"));
        assert!(
            failing("head -c 100000 /dev/zero | tr '\\0' x", 60_000).await.contains("more than 32768 bytes")
        );
        let (providers, _) = providers("true", 1);
        let other = ProviderName::parse("sops").unwrap();
        assert!(providers.read(&other, "a").await.unwrap_err().contains("no secret_providers"));
    }
}
