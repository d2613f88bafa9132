//! A table for the terminal: aligned columns, a rule under the header, no boxes.

use super::cell::{Content, Weight};
use super::{Cell, Column, Row, Table, spans};
use crate::inline::visible;

const GAP: usize = 2;
/// A column of words is never wrapped below this width.
const NARROWEST: usize = 10;

/// A column laid out: the widths left and right of the decimal point, or of its words.
struct Laid<'a> {
    column: &'a Column,
    at: usize,
    head: usize,
    tail: usize,
    width: usize,
}

pub(super) fn render(table: &Table, width: usize) -> String {
    let columns = table.full_columns();
    let mut laid: Vec<Laid> = columns.iter().enumerate().map(|(at, column)| lay(table, column, at)).collect();
    squeeze(&mut laid, width);

    let mut out = String::new();
    if !table.caption.is_empty() {
        for line in wrap(&table.caption, width) {
            out.push_str(&(line + "\n"));
        }
        out.push('\n');
    }
    for (i, block) in blocks(&laid, width).into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        render_block(table, &block, &mut out);
    }
    let best = table.body().flatten().any(|cell| cell.weight == Weight::Best);
    let notes =
        best.then(|| "* best".to_string()).into_iter().chain(table.notes.iter().map(|note| unmarked(note)));
    for note in notes {
        for line in wrap(&note, width) {
            out.push_str(&(line + "\n"));
        }
    }
    // Words of a file may act on a terminal.
    visible(&out).into_owned()
}

fn lay<'a>(table: &Table, column: &'a Column, at: usize) -> Laid<'a> {
    let mut laid = Laid { column, at, head: 0, tail: 0, width: longest_word(&column.name) };
    if !column.numeric {
        laid.width = laid.width.max(count(&column.name));
    }
    for cell in table.body().filter_map(|cells| cells.get(at)) {
        match pieces(cell, column) {
            (head, Some(tail)) => {
                laid.head = laid.head.max(count(&head));
                laid.tail = laid.tail.max(count(&tail));
            }
            (words, None) => laid.width = laid.width.max(count(&words)),
        }
    }
    laid.width = laid.width.max(laid.head + laid.tail);
    laid
}

/// A number gives what stands before and after its point; anything else gives its words.
fn pieces(cell: &Cell, column: &Column) -> (String, Option<String>) {
    let star = if cell.weight == Weight::Best { "*" } else { "" };
    match cell.content(column.format) {
        Content::Blank => (String::new(), None),
        Content::Words(text) | Content::Code(text) => (format!("{text}{star}"), None),
        Content::Odd(text) => (text + star, None),
        Content::Number(shape) => (shape.head.clone(), Some(shape.tail_text() + star)),
    }
}

/// Narrows the widest column of words, one step at a time, until the table fits or nothing can give.
fn squeeze(laid: &mut [Laid], width: usize) {
    while total(laid.iter()) > width {
        let widest =
            laid.iter_mut().filter(|l| !l.column.numeric && l.width > NARROWEST).max_by_key(|l| l.width);
        match widest {
            Some(column) => column.width -= 1,
            None => break,
        }
    }
}

fn total<'a>(laid: impl IntoIterator<Item = &'a Laid<'a>>) -> usize {
    laid.into_iter().map(|l| l.width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Cuts the columns into runs that fit, each after the first led by the first column again.
fn blocks<'a>(laid: &'a [Laid<'a>], width: usize) -> Vec<Vec<&'a Laid<'a>>> {
    let mut blocks: Vec<Vec<&Laid>> = vec![Vec::new()];
    for column in laid {
        let current = &blocks[blocks.len() - 1];
        if current.len() > 1 && total(current.iter().copied()) + GAP + column.width > width {
            blocks.push(vec![&laid[0]]);
        }
        if let Some(last) = blocks.last_mut() {
            last.push(column);
        }
    }
    blocks
}

fn render_block(table: &Table, block: &[&Laid], out: &mut String) {
    let columns: Vec<Column> = block.iter().map(|l| l.column.clone()).collect();
    if columns.iter().any(|column| column.group.is_some()) {
        let (mut names, mut rules, mut at) = (Vec::new(), Vec::new(), 0);
        for (group, count) in spans(&columns) {
            let width = total(block[at..at + count].iter().copied());
            names.push(centre(group.unwrap_or(""), width));
            rules.push((if group.is_some() { "─" } else { " " }).repeat(width));
            at += count;
        }
        push_line(out, &names);
        push_line(out, &rules);
    }
    let names: Vec<Vec<String>> = block.iter().map(|l| wrap(&l.column.name, l.width)).collect();
    let depth = names.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..depth {
        // Names sit on the rule: short ones are padded from above.
        let cells = block.iter().zip(&names).map(|(l, name)| {
            let text =
                (line + name.len()).checked_sub(depth).and_then(|i| name.get(i)).map_or("", String::as_str);
            if l.column.numeric { right(text, l.width) } else { left(text, l.width) }
        });
        push_line(out, &cells.collect::<Vec<_>>());
    }
    out.push_str(&("─".repeat(total(block.iter().copied())) + "\n"));
    for row in &table.rows {
        match row {
            Row::Heading(heading) => out.push_str(&format!("{heading}\n")),
            Row::Cells(cells) => render_row(cells, block, out),
        }
    }
}

fn render_row(cells: &[Cell], block: &[&Laid], out: &mut String) {
    let blank = Cell::blank();
    let columns: Vec<Vec<String>> = block
        .iter()
        .map(|l| match pieces(cells.get(l.at).unwrap_or(&blank), l.column) {
            (head, Some(tail)) => {
                let aligned = format!("{}{}", right(&head, l.head), left(&tail, l.tail));
                vec![if l.column.numeric { right(&aligned, l.width) } else { left(&aligned, l.width) }]
            }
            (words, None) if l.column.numeric => vec![right(&words, l.width)],
            (words, None) => wrap(&words, l.width),
        })
        .collect();
    for line in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let fields: Vec<String> = block
            .iter()
            .zip(&columns)
            .map(|(l, lines)| left(lines.get(line).map_or("", String::as_str), l.width))
            .collect();
        push_line(out, &fields);
    }
}

fn push_line(out: &mut String, fields: &[String]) {
    out.push_str(fields.join(&" ".repeat(GAP)).trim_end());
    out.push('\n');
}

/// Prose marks mean nothing in a terminal.
fn unmarked(text: &str) -> String {
    text.replace(['`'], "").replace("**", "")
}

fn count(text: &str) -> usize {
    text.chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(count).max().unwrap_or(0)
}

fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(count(text))))
}

fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(count(text))))
}

fn centre(text: &str, width: usize) -> String {
    let before = width.saturating_sub(count(text)) / 2;
    left(&format!("{}{text}", " ".repeat(before)), width)
}

/// Breaks `text` at spaces into lines of at most `width`; a longer word is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width) {
            let last = lines.len() - 1;
            let used = count(&lines[last]);
            if used > 0 && used + 1 + piece.len() > width {
                lines.push(piece.iter().collect());
            } else {
                if used > 0 {
                    lines[last].push(' ');
                }
                lines[last].extend(piece);
            }
        }
    }
    lines
}
