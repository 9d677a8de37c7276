//! `namespace`: the isolated fleets of an installation.

use super::lists;
use crate::args::NamespaceVerb;
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit};
use crate::show::table;
use bellwether_api::paths;
use bellwether_api::v1::namespace::NamespaceView;
use bellwether_api::v1::page::Page;

pub(super) async fn run(context: &Context, verb: NamespaceVerb) -> CommandResult {
    match verb {
        NamespaceVerb::List(flags) => {
            let read = async |context: &Context| context.client.namespaces().await;
            let show = async |page: Page<NamespaceView>| {
                let names = || page.items.iter().map(|view| view.name.clone()).collect();
                context.show.data(&page.items, names, |_| {
                    let rows = page.items.iter().map(|view| {
                        let counts = [view.nodes, view.expected, view.entities, view.profiles];
                        let more = [
                            view.freezes,
                            view.pauses,
                            view.slots,
                            view.filters,
                            view.clusters,
                            view.schedules,
                            view.reactions,
                            view.sinks,
                        ];
                        let counts = counts.into_iter().chain(more).map(|count| count.to_string());
                        std::iter::once(view.name.clone()).chain(counts).collect()
                    });
                    let header = ["name", "nodes", "expected", "entities", "profiles"];
                    table(
                        &[
                            &header[..],
                            &[
                                "freezes",
                                "pauses",
                                "slots",
                                "filters",
                                "clusters",
                                "schedules",
                                "reactions",
                                "sinks",
                            ],
                        ]
                        .concat(),
                        rows,
                    )
                })
            };
            return lists::show(context, &flags, paths::NAMESPACES, read, show).await;
        }
        NamespaceVerb::Delete { name, consent } => {
            confirm(&format!("delete namespace {name} and its events?"), consent)?;
            context.client.delete_namespace(&name).await?;
            context.show.changed(&format!("namespace {name}: deleted"));
        }
    }
    Ok(Exit::Yes)
}
