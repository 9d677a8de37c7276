//! Tables.

use std::io::IsTerminal;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::{screen, visible};

/// A table without frames: columns line up, and nothing else is in the way of `cut` and `awk`.
/// What does not fit a terminal is wrapped within its widest columns, if no word of theirs has to be broken for that.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = std::io::stdout().is_terminal().then(|| screen::size().0);
    table_within(columns, header, rows)
}

fn table_within(columns: Option<usize>, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|text| text.to_uppercase()));
    let mut widths: Vec<ColumnWidth> = header.iter().map(|text| ColumnWidth::of(text)).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| visible::line(cell).into_owned()).collect();
        for (width, cell) in widths.iter_mut().zip(&cells) {
            *width = width.and(ColumnWidth::of(cell));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(columns) = columns {
        wrap(&mut table, &widths, columns);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// How wide a column is.
#[derive(Debug, Clone, Copy)]
struct ColumnWidth {
    /// Its widest cell.
    whole: usize,
    /// The longest word in it.
    word: usize,
}

impl ColumnWidth {
    fn of(cell: &str) -> Self {
        let width = |text: &str| text.chars().count();
        Self { whole: width(cell), word: cell.split_whitespace().map(width).max().unwrap_or_default() }
    }

    fn and(self, other: Self) -> Self {
        Self { whole: self.whole.max(other.whole), word: self.word.max(other.word) }
    }

    /// How wide it is where none is to be wider than that.
    fn within(self, most: usize) -> usize {
        self.whole.min(most).max(self.word)
    }
}

/// Wraps the widest columns, so that the table fits: names and numbers in the others stay whole.
fn wrap(table: &mut Table, widths: &[ColumnWidth], columns: usize) {
    // The spaces after the last column are not shown.
    let room = (columns + 2).saturating_sub(2 * widths.len());
    let fits = |most: &usize| widths.iter().map(|width| width.within(*most)).sum::<usize>() <= room;
    let Some(most) = (1..=columns).rev().find(fits) else { return };
    if widths.iter().all(|width| width.within(most) == width.whole) {
        return;
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::MAX);
    for (column, width) in table.column_iter_mut().zip(widths) {
        let narrow = u16::try_from(width.within(most) + 2).ok().filter(|_| width.within(most) < width.whole);
        column.set_constraint(match narrow {
            Some(narrow) => ColumnConstraint::UpperBoundary(Width::Fixed(narrow)),
            None => ColumnConstraint::ContentWidth,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: Option<usize>) -> String {
        let rows = [
            ["web-1", "failed", "cannot write the file of the service: no space left on device"],
            ["web-2", "success", ""],
        ];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        table_within(columns, &["node", "state", "reason"], rows.into_iter())
    }

    #[test]
    fn what_does_not_fit_a_terminal_is_wrapped_within_its_widest_column() {
        let wrapped = shown(Some(50));
        assert_eq!(
            wrapped,
            "NODE   STATE    REASON\n\
             web-1  failed   cannot write the file of the\n\
             \x20               service: no space left on device\n\
             web-2  success"
        );
        assert!(wrapped.lines().all(|line| line.chars().count() <= 50), "{wrapped}");
    }

    #[test]
    fn a_table_stays_as_it_is_for_programs_and_where_there_is_room_or_none_at_all() {
        let whole = shown(None);
        assert_eq!(whole.lines().count(), 3);
        assert_eq!(shown(Some(77)), whole);
        assert_ne!(shown(Some(76)), whole);
        assert_eq!(shown(Some(20)), whole, "a word would be broken");
    }

    #[test]
    fn several_columns_are_wrapped_where_one_has_no_room_left() {
        let row = ["2026-11-30 17:17:30 UTC", "node.up", "the node has answered again after a while"];
        let wrapped =
            table_within(Some(44), &["time", "kind", "cause"], [row.map(str::to_owned).to_vec()].into_iter());
        assert!(wrapped.lines().all(|line| line.chars().count() <= 44), "{wrapped}");
        assert!(
            wrapped.contains("2026-11-30") && wrapped.contains("17:17:30") && wrapped.contains("node.up"),
            "{wrapped}"
        );
    }
}
