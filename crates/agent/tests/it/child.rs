//! This test program again, as a child: an agent that can be killed, or a service that an agent supervises.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bellwether_agent::config::Config;
use bellwether_agent::run::run;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;

/// The variable with a child agent's configuration. Without it, the child's entry point does nothing: then the test runner
/// runs it as a test.
const CONFIG: &str = "AGENT_TEST_CONFIG";

/// The variable with a child service's port, and the file to which it writes its process number.
const SERVICE: &str = "AGENT_TEST_SERVICE";

/// Starts an agent in a process of its own.
pub(crate) fn agent(config: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "child::the_agent", "--nocapture"]).env(CONFIG, config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// A `[entity.web.process]` section that runs the service on `port`.
pub(crate) fn service(port: u16, announce: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "[entity.web.process]\nargv = [{program:?}, \"--exact\", \"child::the_service\", \"--nocapture\"]\n\
         env = {{ {SERVICE} = \"{port} {}\" }}\n",
        announce.display()
    )
}

#[test]
fn the_agent() {
    let Some(path) = std::env::var_os(CONFIG).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tasks = Tasks::new();
    runtime.block_on(run(Config::load(&path).unwrap(), Clock::system(), &tasks)).unwrap();
}

/// Answers 200, or 500 for a bad version, or exits at once for a crashing one.
#[test]
fn the_service() {
    use std::io::{Read, Write};
    let Some(arguments) = std::env::var_os(SERVICE) else { return };
    let arguments = arguments.into_string().unwrap();
    let (port, announce) = arguments.split_once(' ').unwrap();
    let version = std::env::var_os("BELLWETHER_VERSION").unwrap().into_string().unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(announce).unwrap();
    file.write_all(format!("{} {version}\n", std::process::id()).as_bytes()).unwrap();
    if version.starts_with("crash") {
        eprintln!("no such table: users");
        std::process::abort();
    }
    let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let status = if version.starts_with("bad") { "500 No" } else { "200 OK" };
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut request = [0_u8; 1_024];
        if stream.read(&mut request).is_ok_and(|count| count > 0) {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }
}
