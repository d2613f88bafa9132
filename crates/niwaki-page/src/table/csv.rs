//! A table for a spreadsheet or a script: full precision, no decoration.

use super::cell::Value;
use super::{Cell, Row, Table};

pub(super) fn render(table: &Table) -> String {
    let columns = table.full_columns();
    let grouped = table.rows.iter().any(|row| matches!(row, Row::Heading(_)));
    let extras: Vec<(bool, bool)> = (0..columns.len())
        .map(|at| {
            let has = |wanted: fn(&Value) -> bool| {
                table.body().any(|cells| cells.get(at).is_some_and(|cell| wanted(&cell.value)))
            };
            (
                has(|value| matches!(value, Value::Number { error: Some(_), .. })),
                has(|value| matches!(value, Value::Number { interval: Some(_), .. })),
            )
        })
        .collect();

    let mut header = Vec::new();
    if grouped {
        header.push("group".to_string());
    }
    for (column, (error, interval)) in columns.iter().zip(&extras) {
        let name = match &column.group {
            Some(group) => format!("{group} {}", column.name),
            None => column.name.clone(),
        };
        if *error {
            header.push(format!("{name} error"));
        }
        if *interval {
            header.push(format!("{name} low"));
            header.push(format!("{name} high"));
        }
        // The value stands before its error and interval.
        header.insert(header.len() - usize::from(*error) - 2 * usize::from(*interval), name);
    }

    let mut out = line(header.iter().map(|name| csv_text(name)).collect());
    let mut group = "";
    for row in &table.rows {
        match row {
            Row::Heading(heading) => group = heading,
            Row::Cells(cells) => {
                let mut fields = Vec::new();
                if grouped {
                    fields.push(csv_text(group));
                }
                for (at, extra) in extras.iter().enumerate() {
                    push_fields(&mut fields, cells.get(at), *extra);
                }
                out.push_str(&line(fields));
            }
        }
    }
    out
}

fn push_fields(fields: &mut Vec<String>, cell: Option<&Cell>, (has_error, has_interval): (bool, bool)) {
    let (mut error, mut interval) = (None, None);
    fields.push(match cell.map(|cell| &cell.value) {
        None | Some(Value::Blank) => String::new(),
        Some(Value::Text(text) | Value::Code(text)) => csv_text(text),
        Some(Value::Number { value, error: e, interval: i, .. }) => {
            (error, interval) = (*e, *i);
            value.to_string()
        }
    });
    let written = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
    if has_error {
        fields.push(written(error));
    }
    if has_interval {
        fields.push(written(interval.map(|(low, _)| low)));
        fields.push(written(interval.map(|(_, high)| high)));
    }
}

fn line(fields: Vec<String>) -> String {
    fields.join(",") + "\n"
}

/// A text as a field of CSV: quoted where it must be, and led by an apostrophe where a spreadsheet would take it for a
/// formula (it begins with `=`, `+`, `-` or `@` and is not a number).
#[must_use]
pub fn csv_text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let guarded = format!("{}{text}", if formula { "'" } else { "" });
    match guarded.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", guarded.replace('"', "\"\"")),
        false => guarded,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Column, Table};

    #[test]
    fn errors_and_groups_become_columns() {
        let table = Table::new("t")
            .column(Column::text("arm"))
            .column(Column::number("mean").group("bias"))
            .heading("K = 4")
            .row([Cell::from("a, \"b\""), Cell::from(0.1).error(0.02)])
            .row([Cell::from("c"), Cell::from(2.0)]);
        assert_eq!(
            table.to_csv(),
            "group,arm,bias mean,bias mean error\nK = 4,\"a, \"\"b\"\"\",0.1,0.02\nK = 4,c,2,\n"
        );
    }
    #[test]
    fn formulas_stand_as_text_and_numbers_as_numbers() {
        assert_eq!(super::csv_text("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(
            ["@a", "+b", "-c", "-0.5", "+3", "a-b", "\t=1"].map(super::csv_text),
            ["'@a", "'+b", "'-c", "-0.5", "+3", "a-b", "'\t=1"]
        );
        let table =
            Table::new("t").column(Column::text("=arm")).row([Cell::from("=1+1")]).row([Cell::from(-2.0)]);
        assert_eq!(table.to_csv(), "'=arm\n'=1+1\n-2\n");
    }
}
