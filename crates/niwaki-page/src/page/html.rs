//! Writes a page. The only place that knows the page's markup.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Block, Callout, Figure, Live, Made, Mood, Page, Section, Tile};
use crate::chart::CHART_STYLE;
use crate::inline::{prose, slug, visible};

const THEME: &str = include_str!("../theme.css");
const STYLE: &str = include_str!("page.css");
/// Zoom, toggles and values under the pointer; a page reads the same without it.
const SCRIPT: &str = include_str!("page.js");
/// From this many sections on, a page lists its sections at the head.
const CONTENTS_FROM: usize = 4;
/// The heading over how a page was made.
const MADE: &str = "<h2>How this was made</h2>";

/// Running numbers of the page's tables and figures.
#[derive(Default)]
struct Numbers {
    tables: usize,
    figures: usize,
}

pub(super) fn render(page: &Page) -> String {
    let anchors = anchors(&page.sections);
    let mut numbers = Numbers::default();
    let markup = html! {
        (DOCTYPE)
        html lang="en-GB" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (generator())
                title { (page.title) }
                style { (PreEscaped(THEME)) (PreEscaped(STYLE)) (PreEscaped(CHART_STYLE)) }
                @if let Some(live) = &page.live { style { (PreEscaped(live.style)) } }
            }
            body {
                header {
                    h1 { (inline(&page.title)) }
                    @if let Some(subtitle) = &page.subtitle { p.subtitle { (inline(subtitle)) } }
                    @if let Some(lead) = &page.lead { p.lead { (inline(lead)) } }
                    @if !page.tiles.is_empty() { (tiles(&page.tiles)) }
                    @if page.sections.len() >= CONTENTS_FROM {
                        nav aria-label="Sections" {
                            ol {
                                @for (section, anchor) in page.sections.iter().zip(&anchors) {
                                    li { a href={ "#" (anchor) } { (inline(&section.heading)) } }
                                }
                            }
                        }
                    }
                }
                main {
                    @for (section, anchor) in page.sections.iter().zip(&anchors) {
                        section id=(anchor) {
                            h2 { (inline(&section.heading)) }
                            @for block in &section.blocks { (render_block(block, &mut numbers)) }
                        }
                    }
                    @if let Some(made) = &page.made { (how_made(made)) }
                }
                @if let Some(text) = &page.footer { footer { p { (inline(text)) } } }
                @if page.figures().next().is_some() { script { (PreEscaped(SCRIPT)) } }
                @if let Some(live) = &page.live { (own_script(live)) }
            }
        }
    };
    // What the markup escapes by itself may still act.
    visible(&markup.into_string()).into_owned() + "\n"
}

/// One anchor per section, made unique by a number where two are alike.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::with_capacity(sections.len());
    for section in sections {
        let wish = slug(section.id.as_deref().unwrap_or(&section.heading));
        let free = (1..)
            .map(|n| if n == 1 { wish.clone() } else { format!("{wish}-{n}") })
            .find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

fn inline(text: &str) -> Markup {
    PreEscaped(prose(text))
}

fn render_block(block: &Block, numbers: &mut Numbers) -> Markup {
    match block {
        Block::Prose(text) => html! { p { (inline(text)) } },
        Block::Note(text) => html! { p.note { (inline(text)) } },
        Block::Callout(one) => callout(one),
        Block::Tiles(list) => tiles(list),
        Block::Folded { summary, points } => html! {
            details {
                summary { (inline(summary)) }
                ul { @for point in points { li { (inline(point)) } } }
            }
        },
        Block::FoldedTable { summary, table } => {
            numbers.tables += 1;
            html! { details { summary { (inline(summary)) } (table.to_html(numbers.tables)) } }
        }
        Block::List(points) => html! { ul { @for point in points { li { (inline(point)) } } } },
        Block::Code { label, text } => html! {
            @if let Some(label) = label { p.label { (inline(label)) } }
            pre class=[label.as_ref().map(|_| "command")] tabindex="0" { code { (text) } }
        },
        Block::Link { text, to } => html! { p { a href=(to) { (inline(text)) } } },
        Block::Table(table) => {
            numbers.tables += 1;
            table.to_html(numbers.tables)
        }
        Block::Figure(figure) => {
            numbers.figures += 1;
            render_figure(figure, numbers.figures)
        }
    }
}

fn render_figure(figure: &Figure, number: usize) -> Markup {
    html! {
        figure {
            @match &figure.narrow {
                Some(narrow) => {
                    div.drawing.wide { (PreEscaped(&figure.svg)) }
                    div.drawing.narrow { (PreEscaped(narrow)) }
                }
                None => { div.drawing.scroll tabindex="0" role="region" aria-label={ "Figure " (number) } { (PreEscaped(&figure.svg)) } }
            }
            figcaption {
                span.number { "Figure " (number) "." } " "
                strong { (inline(&figure.title)) @if !figure.title.ends_with(['.', '?', '!']) { "." } }
                " " (inline(&figure.caption))
                @if !figure.hint.is_empty() { " " span.hint { (inline(&figure.hint)) } }
            }
        }
    }
}

fn callout(callout: &Callout) -> Markup {
    // A sign and a word carry the mood for readers who do not see the colour.
    let (class, sign, word) = match callout.mood {
        Mood::Good => ("good", "✓", "Good"),
        Mood::Neutral => ("neutral", "–", "Neutral"),
        Mood::Bad => ("bad", "!", "Bad"),
    };
    html! {
        div class={ "verdict " (class) } role="note" {
            span.sign role="img" aria-label=(word) { (sign) }
            div {
                p.says { (inline(&callout.says)) }
                @if !callout.because.is_empty() { p { (inline(&callout.because)) } }
            }
        }
    }
}

fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        dl.tiles {
            @for tile in tiles {
                div {
                    dt { (inline(&tile.label)) }
                    dd.value { (inline(&tile.value)) }
                    @if let Some(note) = &tile.note { dd.small { (inline(note)) } }
                }
            }
        }
    }
}

/// A script of the page's own, after its data, which no text in it can end.
fn own_script(live: &Live) -> Markup {
    let data = live.data.replace('<', "\\u003c");
    html! {
        script type="application/json" id=(live.id) { (PreEscaped(data)) }
        script {
            (PreEscaped("\"use strict\";\n(() => {\n"))
            @for part in live.scripts { (PreEscaped(part)) }
            (PreEscaped("})();\n"))
        }
    }
}

/// Who wrote the page, for programs.
fn generator() -> Markup {
    html! { meta name="generator" content="niwaki"; }
}

pub(super) fn is_made_by(text: &str, command: &str) -> bool {
    let made = command_line(command).into_string();
    text.contains(&generator().into_string())
        && text.rsplit_once(MADE).is_some_and(|(_, end)| end.starts_with(&made))
}

/// The command that made the page.
fn command_line(command: &str) -> Markup {
    html! { pre.command tabindex="0" { code { (command) } } }
}

fn how_made(made: &Made) -> Markup {
    html! {
        section.made {
            (PreEscaped(MADE))
            @if !made.command.is_empty() { (command_line(&made.command)) }
            @if !made.facts.is_empty() {
                dl { @for (name, value) in &made.facts { div { dt { (name) } dd { (value) } } } }
            }
        }
    }
}
