//! Rendering with a bound on memory and processor time: each template, and each condition of a task, in a short-lived process of this
//! same program, which limits itself before it reads what it is to render. Touches no file.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use bellwether_api::condition;
use bellwether_api::template::{self, MAX_TEXT_BYTES};
use minijinja::value::Serde;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The argument by which the program becomes a renderer.
pub const COMMAND: &str = "template-renderer";

/// This same program, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";

/// Most memory of a renderer, in bytes: the catalogue of ten thousand instances needs a quarter of that.
const MAX_MEMORY_BYTES: u64 = 256 << 20;

/// Most processor time of a renderer, in seconds: two million steps take some tenths of one, and a step over a long text takes long.
const MAX_PROCESSOR_SECONDS: u64 = 10;

/// Longest answer, in bytes: the longest text, each byte of which JSON may write as six.
const MAX_ANSWER_BYTES: u64 = 6 * (MAX_TEXT_BYTES as u64) + 4_096;

/// The exit code of a program that is not used as it is meant (`EX_USAGE`).
const MISUSED: u8 = 64;

/// Whether this program understands [`COMMAND`].
static IS_SEPARATE: OnceLock<()> = OnceLock::new();

/// Held while a renderer runs: however much is to be rendered, it takes the memory of one.
static TURN: Mutex<()> = Mutex::new(());

/// What is rendered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RenderRequest {
    Template(TemplateRequest),
    Condition { text: String, variables: Map<String, Value> },
}

/// A template, as `bellwether_api::template::draw` takes it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateRequest {
    name: String,
    source: String,
    context: Value,
    undefined: String,
}

/// The text, or whether the condition holds; or the reason why there is neither.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RenderAnswer {
    Text(String),
    Holds(bool),
    Refused(String),
}

/// Has this process render in processes of their own from now on. Only for a program that calls [`run`] for [`COMMAND`].
pub fn separate() {
    IS_SEPARATE.get_or_init(|| ());
}

/// Renders what the standard input has, within the limits, and writes the answer to the standard output.
#[must_use]
pub fn run() -> ExitCode {
    let served = limit().map_err(io::Error::from).and_then(|()| {
        let request: RenderRequest = serde_json::from_reader(io::stdin().lock())?;
        let answer = serde_json::to_vec(&answer(request))?;
        io::stdout().lock().write_all(&answer)
    });
    // Nobody listens to it but the agent, which sees that it has ended.
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(MISUSED) }
}

fn limit() -> rustix::io::Result<()> {
    let most = |bound: u64| Rlimit { current: Some(bound), maximum: Some(bound) };
    setrlimit(Resource::Core, most(0))?;
    setrlimit(Resource::Cpu, most(MAX_PROCESSOR_SECONDS))?;
    setrlimit(Resource::Data, most(MAX_MEMORY_BYTES))
}

/// Renders a template; blocks until that is done. `undefined` is the reason given for an undefined variable.
///
/// # Errors
/// One line with the template, the line in it, and the reason.
pub(crate) fn draw(
    name: &str,
    source: &str,
    context: minijinja::Value,
    undefined: &str,
) -> Result<String, String> {
    if IS_SEPARATE.get().is_none() {
        return template::draw(name, source, context, undefined);
    }
    let context = serde_json::to_value(&context).map_err(|error| format!("{name}: {error}"))?;
    let (source, undefined) = (source.to_owned(), undefined.to_owned());
    let request = TemplateRequest { name: name.to_owned(), source, context, undefined };
    match ask(&RenderRequest::Template(request)).map_err(|reason| format!("{name}: {reason}"))? {
        RenderAnswer::Text(text) => Ok(text),
        RenderAnswer::Refused(reason) => Err(reason),
        RenderAnswer::Holds(_) => Err(format!("{name}: the answer is of a condition")),
    }
}

/// Whether a condition holds; blocks until that is known.
///
/// # Errors
/// One line with the position and the reason.
pub(crate) fn holds(text: &str, variables: Map<String, Value>) -> Result<bool, String> {
    if IS_SEPARATE.get().is_none() {
        return condition::holds(text, variables);
    }
    match ask(&RenderRequest::Condition { text: text.to_owned(), variables })? {
        RenderAnswer::Holds(holds) => Ok(holds),
        RenderAnswer::Refused(reason) => Err(reason),
        RenderAnswer::Text(_) => Err("the answer is of a template".to_owned()),
    }
}

fn answer(request: RenderRequest) -> RenderAnswer {
    let answered = match request {
        RenderRequest::Template(TemplateRequest { name, source, context, undefined }) => {
            let context = minijinja::Value::from(Serde(&context));
            template::draw(&name, &source, context, &undefined).map(RenderAnswer::Text)
        }
        RenderRequest::Condition { text, variables } => {
            condition::holds(&text, variables).map(RenderAnswer::Holds)
        }
    };
    answered.unwrap_or_else(RenderAnswer::Refused)
}

/// Asks a renderer.
///
/// # Errors
/// What its end means; fits after the name of what is rendered.
fn ask(request: &RenderRequest) -> Result<RenderAnswer, String> {
    let failed = |error: io::Error| format!("cannot render it in a process of its own: {error}");
    let request = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut child = Command::new(PROGRAM)
        .arg(COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    // It reads all before it writes anything. One that ended early says more by its end than by what could not be written.
    let written = to.map_or(Ok(()), |mut to| to.write_all(&request));
    let mut answer = Vec::new();
    let read = from.map_or(Ok(0), |from| from.take(MAX_ANSWER_BYTES).read_to_end(&mut answer));
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err(reason(status));
    }
    written.and(read.map(drop)).map_err(failed)?;
    serde_json::from_slice(&answer).map_err(|error| failed(error.into()))
}

/// Why a renderer ended without an answer.
fn reason(status: ExitStatus) -> String {
    let is = |signal: rustix::process::Signal| status.signal() == Some(signal.as_raw());
    if is(rustix::process::Signal::ABORT) {
        return format!("rendering takes more than {MAX_MEMORY_BYTES} bytes of memory");
    }
    if is(rustix::process::Signal::XCPU) || is(rustix::process::Signal::KILL) {
        return format!("rendering takes more than {MAX_PROCESSOR_SECONDS} s of processor time");
    }
    format!("cannot render it in a process of its own: {status}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_asked_in_another_process_has_the_same_answer() {
        let (source, undefined) = ("{{ a.n + 1 }} {{ a.b }} {{ a.f }} {{ nope }}", "not there");
        let context = json!({"a": {"n": 18_446_744_073_709_551_615_u64, "b": true, "f": 0.5}});
        let here = template::draw("t", source, minijinja::Value::from(Serde(&context)), undefined);
        let request = TemplateRequest {
            name: "t".to_owned(),
            source: source.to_owned(),
            context,
            undefined: undefined.to_owned(),
        };
        let sent = serde_json::to_vec(&RenderRequest::Template(request)).unwrap();
        let answered = answer(serde_json::from_slice(&sent).unwrap());
        assert_eq!(answered, RenderAnswer::Refused(here.unwrap_err()));
        let condition =
            |text: &str| RenderRequest::Condition { text: text.to_owned(), variables: Map::new() };
        assert_eq!(answer(condition("1 < 2")), RenderAnswer::Holds(true));
        assert!(matches!(answer(condition("1 <")), RenderAnswer::Refused(_)));
    }
}
