//! The commands of the prompt.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::bed::Testbed;
use crate::proxy::LinkFaults;

/// The list of commands, for the prompt.
pub const HELP: &str = "\
cut A            pull A's cable out            cut A B     let nothing through between A and B
cut A -> B       let nothing through from A to B; back it goes on
heal             put everything back           heal A B    let everything through between A and B
pause A          SIGSTOP                       resume A    SIGCONT
kill A           SIGKILL                       stop A      SIGTERM, and wait
start A          start what does not run       clock A +1h start A anew with another time of day
start A NAME=VALUE                             start it with this in its environment, once, and wait for nothing
fill A           fill the disk of A            free A      make room again
slow N MS BREAK  the way to etcd-N takes MS milliseconds, and of 1,000 pieces BREAK break their connection
parts            who runs                      quit        end everything
A and B are etcd-N, server-N or agent-N.";

/// Executes a command line and returns what to print.
///
/// # Errors
/// If the line is not a valid command, or the command fails.
pub fn obey(bed: &mut Testbed, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [] => {}
        ["help"] => return Ok(HELP.to_owned()),
        ["parts"] => return parts(bed),
        ["cut", part] => bed.network.cable(bed.host(part)?, false)?,
        ["cut", from, "->", to] => bed.network.cut(bed.host(from)?, bed.host(to)?)?,
        ["cut", one, other] => {
            let (one, other) = (bed.host(one)?, bed.host(other)?);
            bed.network.cut(one, other)?;
            bed.network.cut(other, one)?;
        }
        ["heal"] => bed.network.heal_all()?,
        ["heal", one, other] => {
            let (one, other) = (bed.host(one)?, bed.host(other)?);
            bed.network.heal(one, other)?;
            bed.network.heal(other, one)?;
        }
        ["heal", part] => bed.network.cable(bed.host(part)?, true)?,
        ["pause", part] => bed.part(part)?.pause()?,
        ["resume", part] => bed.part(part)?.resume()?,
        ["kill", part] => bed.part(part)?.kill()?,
        ["stop", part] => bed.part(part)?.stop()?,
        ["start", part] => bed.start_part(part)?,
        ["start", part, variable] => bed.start_part_with(part, variable)?,
        ["clock", part, offset] => bed.set_clock(part, offset)?,
        ["fill", part] => bed.fill(part, true)?,
        ["free", part] => bed.fill(part, false)?,
        ["slow", member, latency_ms, broken] => {
            let latency = Duration::from_millis(latency_ms.parse()?);
            let Some(proxy) = bed.proxy(member.parse()?) else {
                bail!("the ways to etcd are plain: say --proxied");
            };
            proxy.set(LinkFaults { latency, broken_per_mille: broken.parse()?, ..LinkFaults::FAIR });
        }
        _ => bail!("{line:?} makes no sense; these do:\n{HELP}"),
    }
    Ok(String::new())
}

fn parts(bed: &mut Testbed) -> Result<String> {
    let mut lines = Vec::new();
    for name in bed.names() {
        let (address, log) = (bed.address(&name)?, bed.part(&name)?.log.display().to_string());
        let state = if bed.part(&name)?.runs() { "runs" } else { "does not run" };
        lines.push(format!("{name:<10} {address:<13} {state:<13} {log}"));
    }
    Ok(lines.join("\n"))
}
