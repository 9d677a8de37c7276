//! Tables.

use std::io::IsTerminal;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::{screen, visible};

/// Narrowest column that a text is wrapped within.
const NARROWEST: usize = 20;

/// A table without frames: columns line up, and nothing else is in the way of `cut` and `awk`.
/// What does not fit a terminal is wrapped within its widest column, if that has room left.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns = std::io::stdout().is_terminal().then(|| screen::size().0);
    table_within(columns, header, rows)
}

fn table_within(columns: Option<usize>, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|text| text.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| visible::line(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(columns) = columns {
        wrap(&mut table, columns);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Wraps the widest column, so that the table fits: names and numbers in the others stay whole.
fn wrap(table: &mut Table, columns: usize) {
    let widths = table.column_max_content_widths();
    let Some((widest, width)) =
        widths.iter().map(|width| usize::from(*width)).enumerate().max_by_key(|of| of.1)
    else {
        return;
    };
    let others = widths.iter().map(|width| usize::from(*width) + 2).sum::<usize>() - width - 2;
    // The spaces after the last column are not shown.
    let after = if widest + 1 == widths.len() { 0 } else { 2 };
    let room = columns.saturating_sub(others + after);
    if room >= width || room < NARROWEST {
        return;
    }
    let Ok(room) = u16::try_from(room + 2) else { return };
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::MAX);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_constraint(match index == widest {
            true => ColumnConstraint::UpperBoundary(Width::Fixed(room)),
            false => ColumnConstraint::ContentWidth,
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
        assert_eq!(shown(Some(30)), whole);
    }
}
