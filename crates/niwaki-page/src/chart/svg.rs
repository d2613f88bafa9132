//! The small change of SVG writing: coordinates, text widths, the style a drawing needs when it stands alone.

use crate::inline::escape;

/// The style sheet of charts; a page includes it once.
pub(crate) const CHART_STYLE: &str = include_str!("chart.css");
const THEME: &str = include_str!("../theme.css");

/// The style for an SVG file of its own: theme, chart, and paper behind it.
pub(crate) fn own_style() -> String {
    format!("<style>{}</style>", escape(&format!("{THEME}{CHART_STYLE}svg.chart{{background:var(--paper)}}")))
}

/// A coordinate with at most two decimals and no trailing zeros; held within what renderers accept.
pub(crate) fn px(value: f64) -> String {
    let written = format!("{:.2}", value.clamp(-99_999.0, 99_999.0));
    let short = written.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// An estimate of the width of `text` in a common sans-serif face, in pixels at `size`.
///
/// Layout cannot ask the reader's font; the estimate errs on the wide side.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | '['
        | ']' | ' ' => 0.37,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '∞' => 0.96,
        '−' | '+' | '±' | '×' | '=' => 0.84,
        'A'..='Z' => 0.7,
        c if (c as u32) > 0x2e80 => 1.0,
        _ => 0.64,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// `text` cut to `width` with an ellipsis; the flag says whether anything was cut.
pub(crate) fn fit(text: &str, width: f64, size: f64) -> (String, bool) {
    if text_width(text, size) <= width {
        return (text.to_string(), false);
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_width(&short, size) + size * 1.6 > width {
            break;
        }
        short.push(c);
    }
    (format!("{}…", short.trim_end()), true)
}

/// Text at a point; `attributes` is written as it stands, and a text that was cut keeps its whole as a hover title.
pub(crate) fn label(out: &mut String, x: f64, y: f64, attributes: &str, text: &str, width: f64) {
    let (shown, cut) = fit(text, width, 12.0);
    let title = if cut { format!("<title>{}</title>", escape(text)) } else { String::new() };
    let (x, y) = (px(x), px(y));
    out.push_str(&format!(r#"<text x="{x}" y="{y}"{attributes}>{title}{}</text>"#, escape(&shown)));
}

/// A straight line.
pub(crate) fn rule(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(px);
    out.push_str(&format!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
}

/// The outline of a polyline, for a path's `d`.
pub(crate) fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.into_iter().enumerate() {
        d.push_str(&format!("{}{} {}", if i == 0 { 'M' } else { 'L' }, px(x), px(y)));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, 1.5, 0.126, -0.001, 1e9].map(px), ["1", "1.5", "0.13", "0", "99999"]);
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        let (short, cut) = fit("a very long label indeed", 60.0, 12.0);
        assert!(cut && short.ends_with('…') && text_width(&short, 12.0) <= 66.0, "{short}");
        assert_eq!(fit("short", 60.0, 12.0), ("short".into(), false));
    }
}
