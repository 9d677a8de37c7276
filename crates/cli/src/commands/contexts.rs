//! `context`: where commands go, and as whom.

use crate::args::{ContextVerb, Global};
use crate::context::{Entry, load, read, save};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::{print, table, tell};

pub(super) fn run(global: &Global, verb: ContextVerb) -> CommandResult {
    let mut file = load(global)?;
    match verb {
        ContextVerb::List => {
            let rows = file.context.iter().map(|(name, entry)| {
                let mark = if file.current.as_ref() == Some(name) { "*" } else { "" };
                let namespace = entry.namespace.clone().unwrap_or_else(|| "default".to_owned());
                vec![mark.to_owned(), name.clone(), entry.server.clone(), namespace]
            });
            print(&table(&["", "name", "server", "namespace"], rows));
            return Ok(Exit::Yes);
        }
        ContextVerb::Use { name } => {
            find(&file, &name)?;
            tell(&format!("now using {name}"));
            file.current = Some(name);
        }
        ContextVerb::Set { name, token_file } => {
            let server =
                global.server.clone().ok_or_else(|| Failure::usage("set a context without --server"))?;
            let token = read(&token_file, "the token")?.trim().to_owned();
            let ca = global.ca.as_ref().map(|path| read(path, "the CA certificate")).transpose()?;
            let entry = Entry { server, token, ca, namespace: global.namespace.clone() };
            file.context.insert(name.clone(), entry);
            file.current.get_or_insert(name);
        }
        ContextVerb::Delete { name } => {
            find(&file, &name)?;
            file.context.remove(&name);
            file.current = file.current.filter(|current| *current != name);
        }
    }
    save(global, &file)?;
    Ok(Exit::Yes)
}

fn find(file: &crate::context::File, name: &str) -> Result<(), Failure> {
    if file.context.contains_key(name) {
        return Ok(());
    }
    Err(Failure::new(Exit::No, format!("find context {name:?}")).hint("bellwether context list"))
}
