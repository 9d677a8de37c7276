//! `filter`.

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::filter::{Filter, FilterSpec};
use bellwether_api::v1::page::Page;

use super::lists;
use crate::args::{FilterVerb, SetFilter};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: FilterVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        FilterVerb::Set(change) => set(context, change).await?,
        FilterVerb::List(flags) => {
            let read = async |context: &Context| context.client.filters(namespace).await;
            let path = fill(paths::FILTERS, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page)).await;
        }
        FilterVerb::Get { name } => {
            let filter = client.filter(namespace, &name).await?;
            context.show.data(&filter, || vec![filter.name.clone()], |_| sheet(&filter))?;
        }
        FilterVerb::Delete { name, consent } => {
            confirm(&format!("delete filter {name}?"), consent)?;
            client.delete_filter(namespace, &name).await?;
            context.show.changed(&format!("filter {name}: deleted"));
        }
    }
    Ok(Exit::Yes)
}

async fn set(context: &Context, change: SetFilter) -> Result<(), Failure> {
    let SetFilter { name, filter, of, description, if_revision } = change;
    let client =
        if_revision.map_or_else(|| context.client.clone(), |revision| context.client.only_at(revision));
    let spec = FilterSpec { of, filter, description };
    let saved = client.set_filter(&context.namespace, &name, &spec).await;
    let saved = saved.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?;
    context.show.changed(&format!("filter {name}: revision {}", saved.revision));
    context.show.data(&saved, || vec![saved.name.clone()], |_| String::new())
}

fn list(context: &Context, page: &Page<Filter>) -> Result<(), Failure> {
    let names = || page.items.iter().map(|filter| filter.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return "no saved filters".to_owned();
        }
        let rows = page.items.iter().map(|filter| {
            let Filter { name, of, filter, description, .. } = filter;
            vec![name.clone(), of.clone(), filter.clone(), description.clone()]
        });
        table(&["name", "of", "filter", "description"], rows)
    })
}

/// A saved filter with all its fields, one a line.
pub(super) fn sheet(saved: &Filter) -> String {
    let Filter { name, revision, of, filter, by, at_ms, .. } = saved;
    let description = if saved.description.is_empty() { "-" } else { &saved.description };
    format!(
        "name         {name}\nof           {of}\nfilter       {filter}\ndescription  {description}\nrevision     {revision}\n\
         changed      by {by}, {}",
        date(*at_ms)
    )
}
