//! `explain`: the meaning, default and an example of a field.

use crate::args::Global;
use crate::exit::{CommandResult, Exit};
use crate::fields::{self, Field};
use crate::show::Show;

pub(super) fn run(global: &Global, asked: Option<&str>) -> CommandResult {
    let table = fields::all()?;
    let found = match asked {
        None => table,
        Some(asked) => fields::find(&table, asked)?,
    };
    let names = || found.iter().map(|field| field.field.clone()).collect();
    let text = |_| found.iter().map(Field::text).collect::<Vec<_>>().join("\n\n");
    Show::new(global).data(&found, names, text)?;
    Ok(Exit::Yes)
}
