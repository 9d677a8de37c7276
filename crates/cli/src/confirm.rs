//! The question before something is deleted or stopped: one rule for every command.

use std::io::IsTerminal;

use crate::args::Consent;
use crate::exit::{Exit, Failure};
use crate::show::tell;

/// Asks at the terminal, unless consent was given on the command line.
///
/// # Errors
/// Wrong usage where nobody can answer, because stdin is not a terminal; "no" when the answer is not yes.
pub(crate) fn confirm(question: &str, consent: Consent) -> Result<(), Failure> {
    if consent.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let message = format!("confirmation needed, and stdin is not a terminal: {question}");
        return Err(Failure::stated(Exit::Usage, message).hint("pass --yes to confirm"));
    }
    tell(&format!("{question} [y/N]"));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        Ok(_) | Err(_) => Err(Failure::stated(Exit::No, "not confirmed; nothing was changed")),
    }
}
