//! What a list is to show, as typed.

/// What to show of a list.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ListFlags {
    /// Filter of what to list, like 'name =~ "^web-"'
    #[arg(value_name = "FILTER")]
    matching: Option<String>,
    /// Filter of what to list, in place of FILTER
    #[arg(short = 'l', long, conflicts_with = "matching")]
    filter: Option<String>,
    /// Field to sort by, with `-` before it in reverse
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) sort: Option<String>,
    /// Largest number of items
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u64>)]
    pub(crate) limit: Option<u64>,
    /// Fields to show, separated by commas, in place of the usual columns
    #[arg(long, value_name = "FIELDS")]
    pub(crate) fields: Option<String>,
    /// Print the number of items alone
    #[arg(long, conflicts_with_all = ["sort", "limit", "fields"])]
    pub(crate) count: bool,
}

impl ListFlags {
    /// The same flags, with these filters as well.
    pub(crate) fn and(mut self, terms: &[String]) -> Self {
        let own = self.matching.take().or(self.filter.take()).map(|own| format!("({own})"));
        let all: Vec<String> = terms.iter().cloned().chain(own).collect();
        self.filter = (!all.is_empty()).then(|| all.join(" and "));
        self
    }

    /// The filter, if there is one.
    pub(crate) fn filter(&self) -> Option<&str> {
        self.matching.as_deref().or(self.filter.as_deref())
    }
}
