//! Lists: one function filters, sorts, counts and cuts every list, by the table of fields of what is listed.

pub(crate) mod node;

use axum::response::{IntoResponse, Response};
use bellwether_api::list::JsonRow;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::event::Event;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::filter::field::{Field, FieldTable};
use bellwether_core::words::filter::{Filter, FilterError, FilterSubject, read_field};
use bellwether_core::words::near::slip_of;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::value::Value;
use serde::Serialize;

use super::input::QueryParams;
use super::problem::{Failure, json_response, partial_response};
use super::readable::Readable;
use super::state::AppState;

/// The query parameters of every list.
pub(crate) const LIST_PARAMS: [&str; 7] = ["filter", "sort", "limit", "after", "fields", "slim", "count"];

/// What is asked of a list.
pub(crate) struct ListQuery {
    pub(crate) filter: Filter,
    sort: Option<SortOrder>,
    pub(crate) limit: usize,
    /// Whether something may be left out: by a filter, or since the caller may not read it.
    pub(crate) is_filtered: bool,
    /// What the caller may read.
    readable: Readable,
    after: Option<String>,
    fields: Option<Vec<(String, Field)>>,
    is_count: bool,
    app: AppState,
}

/// An order of a list other than its own.
struct SortOrder {
    field: Field,
    table: &'static FieldTable,
    /// Whether a bare name stands for a label.
    is_bare: bool,
    is_descending: bool,
}

/// A thing in a list.
pub(crate) trait ListRow: FilterSubject {
    /// How it is sent.
    type View: Serialize;

    /// Its name or number, from which the next page goes on.
    fn id(&self) -> String;

    /// The thing as it is sent; `None` if it is gone.
    fn view(&self) -> Option<Self::View>;
}

impl<T: Serialize> ListRow for JsonRow<T> {
    type View = serde_json::Value;

    fn id(&self) -> String {
        JsonRow::id(self)
    }

    fn view(&self) -> Option<serde_json::Value> {
        Some(self.json().clone())
    }
}

/// A page in the form in which it is sent.
#[derive(Serialize)]
struct SentPage<T> {
    items: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    revision: u64,
}

/// The response with a page of a list.
pub(crate) struct ListAnswer {
    encoded: serde_json::Result<Vec<u8>>,
    /// Whether its items have only some of their fields.
    is_partial: bool,
}

impl IntoResponse for ListAnswer {
    fn into_response(self) -> Response {
        if self.is_partial { partial_response(self.encoded) } else { json_response(self.encoded) }
    }
}

impl ListQuery {
    /// Reads the parameters of a list over the fields of a table. Parameters that are neither these nor in `others` are refused.
    pub(crate) fn read(
        query: &QueryParams,
        table: &'static FieldTable,
        others: &[&str],
    ) -> Result<Self, Failure> {
        query.only(&[&LIST_PARAMS, others].concat())?;
        let filter: Option<String> = query.get("filter")?;
        let is_filtered = filter.is_some() || !query.readable.is_all();
        let filter = filter.map_or(Ok(Filter::all()), |text| query.filter(&text, table));
        let filter = filter.map_err(|error| misread("filter", &error))?;
        let sort: Option<String> = query.get("sort")?;
        let sort = sort.map(|text| {
            let name = text.strip_prefix('-').unwrap_or(&text);
            let field = named_field("sort", name, table)?;
            let is_bare = is_bare_label(&field, name);
            Ok::<_, Failure>(SortOrder { field, table, is_bare, is_descending: text.starts_with('-') })
        });
        let fields: Option<String> = query.get("fields")?;
        let is_slim = query.get("slim")?.unwrap_or(false);
        let slim = || table.slim.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names: Option<Vec<String>> = match fields {
            Some(_) if is_slim => return Err(ShapeError::at("slim", "not together with fields").into()),
            Some(fields) => Some(fields.split(',').map(|name| name.trim().to_owned()).collect()),
            None => is_slim.then(slim),
        };
        let known = |name: String| {
            let field = named_field("fields", &name, table)?;
            Ok::<_, Failure>((name, field))
        };
        let fields = names.map(|names| names.into_iter().map(known).collect::<Result<_, _>>());
        Ok(Self {
            filter,
            sort: sort.transpose()?,
            limit: query.limit()?,
            is_filtered,
            readable: query.readable.clone(),
            after: query.get("after")?,
            fields: fields.transpose()?,
            is_count: query.get("count")?.unwrap_or(false),
            app: query.app.clone(),
        })
    }

    /// The query of a list whose handler itself leaves out what the caller may not read: its items are parts of other objects.
    pub(crate) fn by_itself(self) -> (Self, Readable) {
        let readable = self.readable.clone();
        (Self { readable: Readable::everything(), ..self }, readable)
    }

    /// Does what evaluates the filter on many things.
    pub(crate) fn evaluate<T>(&self, work: impl FnOnce() -> T) -> T {
        self.app.traffic.reads.evaluate(&self.filter, work)
    }

    /// Whether the list has an event: the caller may read what it is about, and the filter matches.
    pub(crate) fn has_event(&self, event: &JsonRow<Event>) -> bool {
        let subject = event.json().get("subject").and_then(serde_json::Value::as_str);
        self.readable.has_subject(subject.unwrap_or_default()) && self.filter.matches(event)
    }

    /// Refuses another order and counting, for a list that is never read as a whole.
    pub(crate) fn only_in_own_order(&self) -> Result<(), Failure> {
        let refused = |name: &str| Err(ShapeError::at(name, "not for this list, which has no end").into());
        if self.sort.is_some() {
            return refused("sort");
        }
        if self.is_count { refused("count") } else { Ok(()) }
    }

    /// The item after which the page begins, where nothing but the list's own order and this position decide what comes next. A list
    /// that can find this position in an index begins there.
    pub(crate) fn start(&self) -> Option<&str> {
        self.after.as_deref().filter(|_| self.sort.is_none() && !self.is_count)
    }

    /// The page of these things that the query asks for. `rows` are all of them in the order of the list, which may leave out those
    /// up to [`Self::start`]; `is_after` says whether a thing comes after the one of this name or number.
    pub(crate) fn answer<R: ListRow>(
        &self,
        rows: impl Iterator<Item = R>,
        is_after: impl Fn(&R, &str) -> bool,
        revision: Revision,
    ) -> Result<ListAnswer, Failure> {
        self.evaluate(|| self.evaluated(rows, is_after, revision))
    }

    fn evaluated<R: ListRow>(
        &self,
        rows: impl Iterator<Item = R>,
        is_after: impl Fn(&R, &str) -> bool,
        revision: Revision,
    ) -> Result<ListAnswer, Failure> {
        let is_readable = |row: &R| self.readable.is_all() || self.readable.has(&row.id());
        let rows = rows.filter(|row| is_readable(row) && self.filter.matches(row));
        let (page, next, count) = match (&self.sort, self.is_count) {
            (None, false) => {
                let wanted =
                    rows.filter(|row| self.after.as_deref().is_none_or(|after| is_after(row, after)));
                let (page, next) = self.cut(wanted.take(self.limit + 1).collect());
                (page, next, None)
            }
            (None, true) => {
                let all: Vec<R> = rows.collect();
                let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
                let wanted = |row: &R| self.after.as_deref().is_none_or(|after| is_after(row, after));
                let wanted = all.into_iter().filter(wanted).take(self.limit + 1);
                let (page, next) = self.cut(wanted.collect());
                (page, next, Some(count))
            }
            (Some(sort), _) => {
                let all = sorted(rows, sort)?;
                let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
                let skipped = self.position(&all)?;
                let wanted = all.into_iter().skip(skipped).take(self.limit + 1);
                let (page, next) = self.cut(wanted.collect());
                (page, next, self.is_count.then_some(count))
            }
        };
        Ok(self.page(&page, next, count, revision))
    }

    /// The page of things whose form in JSON is all there is to know, in the order of their names.
    pub(crate) fn answer_json<T: Serialize>(
        &self,
        (table, now): (&'static FieldTable, Timestamp),
        things: impl Iterator<Item = T>,
        revision: Revision,
    ) -> Result<ListAnswer, Failure> {
        let rows = things.map(|thing| JsonRow::new(&thing, table, now));
        self.answer_rows(rows, |row, after| row.id().as_str() > after, revision)
    }

    /// As [`Self::answer`], of things in their form in JSON.
    pub(crate) fn answer_rows<T: Serialize>(
        &self,
        rows: impl Iterator<Item = serde_json::Result<JsonRow<T>>>,
        is_after: impl Fn(&JsonRow<T>, &str) -> bool,
        revision: Revision,
    ) -> Result<ListAnswer, Failure> {
        let mut failed = None;
        let rows = rows.map_while(|row| row.map_err(|error| failed = Some(error)).ok());
        let answer = self.answer(rows, is_after, revision);
        match failed {
            None => answer,
            Some(error) => Err(Failure::new(Code::Internal, format!("cannot encode the list: {error}"))),
        }
    }

    /// Number of things in a sorted list up to and including the last one of the page before.
    fn position<R: ListRow>(&self, all: &[R]) -> Result<usize, Failure> {
        let Some(after) = &self.after else { return Ok(0) };
        let found = all.iter().position(|row| row.id() == *after);
        found.map(|index| index + 1).ok_or_else(|| {
            let reason = format!("{after} is not in the list any more; read it again from its start");
            ShapeError::at("after", reason).into()
        })
    }

    fn cut<R: ListRow>(&self, mut rows: Vec<R>) -> (Vec<R>, Option<String>) {
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| has_more).map(R::id);
        (rows, next)
    }

    /// The page with these things, which were found and cut already.
    pub(crate) fn page<R: ListRow>(
        &self,
        rows: &[R],
        next: Option<String>,
        count: Option<u64>,
        revision: Revision,
    ) -> ListAnswer {
        let revision = revision.get();
        let encoded = match &self.fields {
            None => {
                let items: Vec<R::View> = rows.iter().filter_map(R::view).collect();
                serde_json::to_vec(&SentPage { items, next, count, revision })
            }
            Some(fields) => {
                let items: Vec<_> = rows.iter().map(|row| projected(row, fields)).collect();
                serde_json::to_vec(&SentPage { items, next, count, revision })
            }
        };
        ListAnswer { encoded, is_partial: self.fields.is_some() }
    }
}

/// The things in another order; those without a value come last, those with the same one in the order of the list.
fn sorted<R: ListRow>(rows: impl Iterator<Item = R>, sort: &SortOrder) -> Result<Vec<R>, Failure> {
    let key = |row: &R| row.value(&sort.field).map(|value| value.into_value());
    let mut all: Vec<(Option<Value>, R)> = rows.map(|row| (key(&row), row)).collect();
    if sort.is_bare && !all.is_empty() && all.iter().all(|(key, _)| key.is_none()) {
        return Err(unknown_key(sort));
    }
    all.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) if sort.is_descending => other.cmp(one),
        (Some(one), Some(other)) => one.cmp(other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
    Ok(all.into_iter().map(|(_, row)| row).collect())
}

/// The error for an order by a name that is no field, and the label of nothing in the list.
fn unknown_key(sort: &SortOrder) -> Failure {
    let (plural, key) = (sort.table.plural, sort.field.key());
    let fields: Vec<&str> = sort.table.fields.iter().map(|spec| spec.name).collect();
    let fields = fields.join(", ");
    let reason = format!(
        "{plural} have no field {key}, and none in this list has a label of this name, which label.{key} asks for; fields: {fields}"
    );
    ShapeError::at("sort", reason).into()
}

/// The values of some fields, by the fields as they were written.
fn projected<R: ListRow>(row: &R, fields: &[(String, Field)]) -> serde_json::Value {
    let values = fields.iter().filter_map(|(name, field)| {
        Some((name.clone(), bellwether_api::value::json(&row.value(field)?.into_value())))
    });
    serde_json::Value::Object(values.collect())
}

/// The field that a parameter names. A bare name may be a label, but not one that is a slip of a field.
fn named_field(parameter: &str, text: &str, table: &'static FieldTable) -> Result<Field, Failure> {
    let field = read_field(text, table).map_err(|error| misread(parameter, &error))?;
    let meant = is_bare_label(&field, text)
        .then(|| slip_of(text, table.fields.iter().map(|spec| spec.name)))
        .flatten();
    let refused = |meant: &str| {
        let plural = table.plural;
        let reason = format!(
            "{plural} have no field {text}; did you mean {meant}? A label of this name is label.{text}"
        );
        ShapeError::at(parameter, reason).into()
    };
    meant.map_or(Ok(field), |meant| Err(refused(meant)))
}

/// Whether a field was written as a bare name, which stands for a label.
fn is_bare_label(field: &Field, text: &str) -> bool {
    field.name() == "label" && field.key() == text
}

/// The error for a parameter with a filter or field that cannot be read.
fn misread(parameter: &str, error: &FilterError) -> Failure {
    ShapeError::misread(parameter, error).into()
}
