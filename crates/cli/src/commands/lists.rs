//! Lists: what the flags of every list ask for.

use bellwether_api::client::{CallError, ListOptions};
use bellwether_api::v1::page::Page;
use serde_json::Value;

use crate::args::ListFlags;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;

impl ListFlags {
    /// The context whose client returns what is asked for.
    pub(super) fn context(&self, context: &Context) -> Context {
        let options = ListOptions {
            filter: self.filter().map(str::to_owned),
            sort: self.sort.clone(),
            limit: self.limit,
            fields: self.fields.clone(),
        };
        Context { client: context.client.listing(options), ..context.clone() }
    }
}

/// Shows a list at a path of the API: as a number, by chosen fields, or in its usual form, for which the list is read by `read` and
/// shown by `show`.
pub(super) async fn show<T>(
    context: &Context,
    flags: &ListFlags,
    path: &str,
    read: impl AsyncFnOnce(&Context) -> Result<T, CallError>,
    show: impl AsyncFnOnce(T) -> Result<(), Failure>,
) -> CommandResult {
    let listing = flags.context(context);
    let pointing = |error| Failure::pointing(error, flags.filter());
    if flags.count {
        let count = listing.client.count(path).await.map_err(pointing)?;
        context.show.data(&count, || vec![count.to_string()], |_| count.to_string())?;
    } else if let Some(fields) = &flags.fields {
        let page: Page<Value> = listing.client.list(path).await.map_err(pointing)?;
        let columns: Vec<&str> = fields.split(',').map(str::trim).collect();
        let cell = |item: &Value, column: &str| match item.get(column) {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let row = |item: &Value| columns.iter().map(|column| cell(item, column)).collect::<Vec<_>>();
        let first = || page.items.iter().map(|item| row(item).swap_remove(0)).collect();
        context.show.data(&page.items, first, |_| table(&columns, page.items.iter().map(row)))?;
    } else {
        show(read(&listing).await.map_err(pointing)?).await?;
    }
    Ok(Exit::Yes)
}
