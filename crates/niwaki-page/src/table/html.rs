//! A table for the page: header scopes, column groups, numbers that meet at the decimal point in any font.

use maud::{Markup, PreEscaped, html};

use super::cell::{Content, Weight};
use super::{Cell, Column, Row, Table, spans};
use crate::inline::{percent_encode, prose, slug};
use crate::number::Shape;

pub(super) fn render(table: &Table, number: usize) -> Markup {
    let columns = table.full_columns();
    let tails: Vec<String> = (0..columns.len()).map(|at| widest_tail(table, &columns, at)).collect();
    let file = format!("{}.csv", slug(if table.caption.is_empty() { "table" } else { &table.caption }));
    html! {
        div.table-block {
            // Outside the scrolling part, so that a phone wraps it; the table is tied to it by name.
            p.caption {
                span.number { "Table " (number) "." } " "
                (PreEscaped(prose(&table.caption)))
            }
            div.scroll tabindex="0" role="region" aria-label={ "Table " (number) } {
                table aria-label=(table.caption) {
                    (head(&columns))
                    tbody {
                        @for row in &table.rows {
                            @match row {
                                Row::Heading(heading) => {
                                    tr.heading { th scope="rowgroup" colspan=(columns.len()) { (PreEscaped(prose(heading))) } }
                                }
                                Row::Cells(cells) => {
                                    tr {
                                        @for (at, column) in columns.iter().enumerate() {
                                            (body_cell(cells.get(at), column, at, &tails[at]))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            div.under {
                @for note in &table.notes { p { (PreEscaped(prose(note))) } }
                p.csv {
                    a download=(file) href={ "data:text/csv;charset=utf-8," (percent_encode(&table.to_csv())) } { "CSV" }
                }
            }
        }
    }
}

fn head(columns: &[Column]) -> Markup {
    let grouped = columns.iter().any(|column| column.group.is_some());
    html! {
        thead {
            @if grouped {
                tr.groups {
                    @for (group, count) in spans(columns) {
                        @match group {
                            Some(group) => { th scope="colgroup" colspan=(count) { span { (group) } } }
                            None => { td colspan=(count) {} }
                        }
                    }
                }
            }
            tr {
                @for column in columns {
                    th scope="col" class=[column.numeric.then_some("num")] { (PreEscaped(prose(&column.name))) }
                }
            }
        }
    }
}

fn body_cell(cell: Option<&Cell>, column: &Column, at: usize, widest: &str) -> Markup {
    let Some(cell) = cell else { return html! { td {} } };
    let weight = match cell.weight {
        Weight::Plain => None,
        Weight::Best => Some("best"),
        Weight::Strong => Some("strong"),
        Weight::Muted => Some("muted"),
    };
    let align = column.numeric.then_some("num");
    let class = match (align, weight) {
        (Some(a), Some(b)) => Some(format!("{a} {b}")),
        (a, b) => a.or(b).map(str::to_string),
    };
    let content = match cell.content(column.format) {
        Content::Blank => html! {},
        Content::Words(text) => html! { (PreEscaped(prose(text))) },
        Content::Code(code) => html! { code { (code) } },
        Content::Odd(text) => html! { (text) },
        Content::Number(shape) => number(&shape, widest),
    };
    html! {
        @if at == 0 && !column.numeric {
            th scope="row" class=[class] title=[cell.hint.as_deref()] { (content) }
        } @else {
            td class=[class] title=[cell.hint.as_deref()] { (content) }
        }
    }
}

/// The head is set flush right; the tail sits in a box as wide as the column's widest tail, which the style sheet
/// takes from `data-w`. So points line up whatever the reader's font is.
fn number(shape: &Shape, widest: &str) -> Markup {
    let minus = |text: &str| text.replace('-', "\u{2212}");
    html! {
        (minus(&shape.head))
        @if !widest.is_empty() {
            span.tail data-w=(widest) {
                span {
                    (minus(&shape.tail))
                    @if let Some(power) = shape.exponent { " × 10" sup { (minus(&power.to_string())) } }
                    (shape.unit)
                }
            }
        }
    }
}

fn widest_tail(table: &Table, columns: &[Column], at: usize) -> String {
    let tail = |cell: &Cell| match cell.content(columns[at].format) {
        Content::Number(shape) => {
            let power = shape.exponent.map_or(String::new(), |e| format!(" × 10{e}"));
            Some(format!("{}{power}{}", shape.tail, shape.unit).replace('-', "\u{2212}"))
        }
        _ => None,
    };
    let mut widest = String::new();
    for tail in table.body().filter_map(|cells| tail(cells.get(at)?)) {
        if tail.chars().count() > widest.chars().count() {
            widest = tail;
        }
    }
    widest
}
