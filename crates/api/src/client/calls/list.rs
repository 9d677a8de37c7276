//! Calls of lists, which are read page by page.

use serde::de::DeserializeOwned;

use super::super::connection::{Client, DEFAULT_DEADLINE};
use super::super::error::CallError;
use super::super::list_options::ListOptions;
use crate::v1::page::Page;

/// Most items of a page.
const PAGE: u64 = 1_000;

impl Client {
    /// Reads all pages of a list as one, up to the limit of [`listing`](Self::listing). The path may have a query.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Page<T>, CallError> {
        let mut whole: Page<T> = self.page(path, self.list.limit, None).await?;
        while let Some(after) = whole.next.take() {
            let left = self.list.limit.map(|limit| limit.saturating_sub(whole.items.len() as u64));
            if left == Some(0) {
                break;
            }
            let page: Page<T> = self.page(path, left, Some(&after)).await?;
            whole.items.extend(page.items);
            whole.next = page.next;
        }
        Ok(whole)
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        limit: Option<u64>,
        after: Option<&str>,
    ) -> Result<Page<T>, CallError> {
        let query = self.list.query(limit.map(|limit| limit.min(PAGE)), after);
        self.get(&with_query(path, &query), DEFAULT_DEADLINE).await
    }

    /// The number of items of a list.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn count(&self, path: &str) -> Result<u64, CallError> {
        let options = ListOptions { fields: None, ..(*self.list).clone() };
        let mut query = options.query(Some(1), None);
        query.push("count=true".to_owned());
        let page: Page<serde_json::Value> = self.get(&with_query(path, &query), DEFAULT_DEADLINE).await?;
        Ok(page.count.unwrap_or_default())
    }
}

fn with_query(path: &str, query: &[String]) -> String {
    match (query.is_empty(), path.contains('?')) {
        (true, _) => path.to_owned(),
        (false, true) => format!("{path}&{}", query.join("&")),
        (false, false) => format!("{path}?{}", query.join("&")),
    }
}
