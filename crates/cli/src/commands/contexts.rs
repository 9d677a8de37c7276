//! `context`: connection contexts.

use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::authorities::TrustBundle;
use serde::Serialize;

use crate::args::{ContextVerb, Global};
use crate::confirm::confirm;
use crate::context::{Entry, File, load, read, read_token, save};
use crate::exit::{CA_FILE, CommandResult, Exit, Failure};
use crate::server_addresses::ServerAddresses;
use crate::show::{Show, table};

/// A context as it is listed; its token is not.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    name: &'a str,
    current: bool,
    /// Addresses of the servers, as `--server` takes them.
    server: String,
    namespace: &'a str,
}

pub(super) async fn run(global: &Global, verb: ContextVerb) -> CommandResult {
    let mut file = load(global)?;
    let show = Show::new(global);
    let changed = match verb {
        ContextVerb::List => {
            list(&show, &file)?;
            return Ok(Exit::Yes);
        }
        ContextVerb::Use { name } => {
            file.find(&name)?;
            let changed = format!("context {name}: now the current one");
            file.current = Some(name);
            changed
        }
        ContextVerb::Set { name, token_file } => {
            let server = global.server.clone();
            let server =
                server.ok_or_else(|| Failure::usage(format!("set context {name} without --server")))?;
            if global.ca.is_none() && server.each().any(|address| address.starts_with("https://")) {
                let what =
                    format!("set context {name} without --ca: an https server needs its CA certificate");
                return Err(Failure::usage(what).hint(format!("copy {CA_FILE}")));
            }
            let token = read_token(&token_file)?.trim().to_owned();
            let ca = global.ca.as_ref().map(|path| read(path, "the CA certificate")).transpose()?;
            let changed = format!(
                "context {name}: {} {server}",
                if server.others.is_empty() { "server" } else { "servers" }
            );
            let entry = Entry { server, token, ca, namespace: global.namespace.clone() };
            file.context.insert(name.clone(), entry);
            file.current.get_or_insert(name);
            changed
        }
        ContextVerb::Refresh { name } => refresh(global, &mut file, name).await?,
        ContextVerb::Delete { name, consent } => {
            file.find(&name)?;
            confirm(&format!("delete context {name} and its token?"), consent)?;
            file.context.remove(&name);
            file.current = file.current.filter(|current| *current != name);
            format!("context {name}: deleted")
        }
    };
    save(global, &file)?;
    show.changed(&changed);
    Ok(Exit::Yes)
}

/// Has a context trust whom its servers say; answers what changed.
async fn refresh(global: &Global, file: &mut File, name: Option<String>) -> Result<String, Failure> {
    let name = name.or_else(|| global.context.clone()).or_else(|| file.current.clone());
    let name = name.ok_or_else(|| {
        Failure::usage("find the context to refresh: none is current")
            .hint("name it: bellwether context refresh CONTEXT")
    })?;
    let entry = file.find(&name)?.clone();
    let Some(ca) = &entry.ca else {
        return Ok(format!("context {name}: has no authority, since its connection is not encrypted"));
    };
    let ServerAddresses { first, others } = entry.server.clone();
    // The certificates are not secret: no token is sent for them.
    let access = Access { server: first, ca: Some(ca.clone()), identity: Identity::Nobody };
    let bundle = Client::of_several(&access, &others)?.trust_bundle().await?;
    if bundle.certificates == *ca || bundle.version < TrustBundle::version_in(ca) {
        return Ok(format!("context {name}: trusts the present authorities already"));
    }
    let fresh = Entry { ca: Some(bundle.certificates), ..entry };
    file.context.insert(name.clone(), fresh);
    Ok(format!("context {name}: trusts the authorities of version {}", bundle.version))
}

fn list(show: &Show, file: &File) -> Result<(), Failure> {
    let listed = file.context.iter().map(|(name, entry)| Listed {
        name,
        current: file.current.as_ref() == Some(name),
        server: entry.server.to_string(),
        namespace: entry.namespace.as_deref().unwrap_or("default"),
    });
    let listed: Vec<Listed<'_>> = listed.collect();
    let names = || listed.iter().map(|each| each.name.to_owned()).collect();
    show.data(&listed, names, |_| {
        let rows = listed.iter().map(|each| {
            let mark = if each.current { "*" } else { "" };
            [mark, each.name, &each.server, each.namespace].map(str::to_owned).to_vec()
        });
        table(&["", "name", "server", "namespace"], rows)
    })
}
