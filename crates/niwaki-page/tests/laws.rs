//! Laws of pages, tables and charts that hold for any input, and snapshots of one small piece of each kind.

mod markup;

use markup::check_markup;
use niwaki_page::{
    Axis, BarChart, Bars, Callout, Cell, Chart, Cloud, Column, Figure, ForestChart, Format, Grid, Heatmap,
    Histogram, Interval, Legend, LineChart, Made, Page, Scale, ScatterChart, Section, Series, Table, Tile,
};
use proptest::prelude::*;

/// Any float, with the awkward ones drawn often.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..10.0f64,
        2 => any::<f64>(),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5e-324, 1e300, -1e300]),
    ]
}

/// Text with the characters that markup, CSV and prose give a meaning to.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z<>&\"'`* ,\n]{0,14}",
        Just("</style><script>alert(1)</script>".to_string()),
        any::<String>()
    ]
}

fn any_points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((any_number(), any_number()), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn linear_ticks_cover_the_range(a in -1e12..1e12f64, span in 1e-9..1e12f64, power in -200..200i32, most in 0usize..20) {
        let (low, high) = (a * 10f64.powi(power), (a + span) * 10f64.powi(power));
        let scale = Scale::linear(low, high, most);
        let ticks: Vec<f64> = scale.ticks().iter().map(|tick| tick.value).collect();
        prop_assert!((2..=10).contains(&ticks.len()), "{ticks:?}");
        prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
        let domain = scale.domain();
        prop_assert!(domain.0 <= low && high <= domain.1);
        prop_assert!(domain.0 <= ticks[0] && ticks[ticks.len() - 1] <= domain.1);
        // No data reaches more than 0.35 of a step beyond the outer ticks (0.36 leaves room for rounding).
        let step = ticks[1] - ticks[0];
        prop_assert!(ticks[0] - low <= 0.36 * step && high - ticks[ticks.len() - 1] <= 0.36 * step);
    }

    #[test]
    fn tick_labels_name_their_values(a in -1e6..1e6f64, span in 1e-3..1e6f64, power in -30..30i32) {
        let scale = Scale::linear(a * 10f64.powi(power), (a + span) * 10f64.powi(power), 8);
        let unit = 10f64.powi(scale.factor().unwrap_or(0));
        let step = scale.ticks()[1].value - scale.ticks()[0].value;
        for tick in scale.ticks() {
            let read: f64 = tick.label.replace(',', "").replace('−', "-").parse().unwrap();
            prop_assert!((read * unit - tick.value).abs() <= 0.01 * step, "{} for {}", tick.label, tick.value);
        }
    }

    #[test]
    fn log_ticks_cover_the_range(low in -250.0..250.0f64, width in 0.0..40.0f64, most in 0usize..20) {
        let (low, high) = (10f64.powf(low), 10f64.powf(low + width));
        let scale = Scale::log(low, high, most);
        let (from, to) = scale.domain();
        prop_assert!(from <= low && high <= to);
        prop_assert!((2..=10).contains(&scale.ticks().len()), "{:?}", scale.ticks());
        prop_assert!(scale.ticks().windows(2).all(|pair| pair[0].value < pair[1].value));
        for value in scale.ticks().iter().map(|t| t.value).chain(scale.minor().iter().copied()) {
            let unit = scale.unit(value).unwrap();
            prop_assert!((-1e-6..=1.0 + 1e-6).contains(&unit), "{value} at {unit}");
        }
    }

    #[test]
    fn scales_rise(a in any_number(), b in any_number(), x in any_number(), y in any_number(), log: bool) {
        let scale = if log { Scale::log(a, b, 6) } else { Scale::linear(a, b, 6) };
        let (low, high) = scale.domain();
        prop_assert!(low < high && low.is_finite() && high.is_finite());
        prop_assert_eq!((scale.unit(low), scale.unit(high)), (Some(0.0), Some(1.0)));
        if let (Some(at_x), Some(at_y)) = (scale.unit(x), scale.unit(y)) {
            prop_assert!(x > y || at_x <= at_y, "{x} at {at_x}, {y} at {at_y}");
        }
    }

    #[test]
    fn numbers_meet_at_the_point(values in prop::collection::vec(-1e5..1e5f64, 1..8), decimals in prop::collection::vec(1usize..5, 8)) {
        let mut table = Table::new("").column(Column::text("name")).column(Column::number("value"));
        for (value, decimals) in values.iter().zip(decimals) {
            table.push([Cell::from("row"), Cell::from(*value).format(Format::fixed(decimals))]);
        }
        let text = table.to_text(80);
        let points: Vec<usize> = text.lines().skip(2).map(|line| line.chars().position(|c| c == '.').unwrap()).collect();
        prop_assert!(points.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }

    #[test]
    fn text_tables_keep_to_the_width(words in prop::collection::vec("[a-z]{1,30}( [a-z]{1,9}){0,6}", 1..5), numbers in 1usize..14, width in 60usize..120) {
        let mut table = Table::new(words.join(" ")).column(Column::text("what"));
        for i in 0..numbers {
            table = table.column(Column::number(format!("number {i}")).group(if i % 4 < 2 { "a" } else { "b" }));
        }
        for word in &words {
            table.push([Cell::from(word.as_str())].into_iter().chain((0..numbers).map(|i| Cell::from(1.5 * i as f64).error(0.25))));
        }
        for line in table.to_text(width).lines() {
            prop_assert!(line.chars().count() <= width, "{line}");
        }
    }

    #[test]
    fn csv_keeps_every_bit(values in prop::collection::vec(any::<f64>(), 1..6), word in any_text()) {
        let mut table = Table::new("").column(Column::text("word")).column(Column::number("value"));
        for value in &values {
            table.push([Cell::text(word.clone()), Cell::from(*value)]);
        }
        let rows = markup::read_csv(&table.to_csv());
        prop_assert_eq!(rows.len(), values.len() + 1);
        for (row, value) in rows[1..].iter().zip(&values) {
            // A word that a spreadsheet would take for a formula is shown as a word.
            let guarded = row[0].strip_prefix('\'').filter(|_| word.starts_with(['=', '+', '-', '@', '\t', '\r']));
            prop_assert_eq!(guarded.unwrap_or(&row[0]), &word);
            let read: f64 = row[1].parse().unwrap();
            prop_assert!(read == *value || (read.is_nan() && value.is_nan()));
        }
    }

    #[test]
    fn any_data_makes_sound_charts(points in any_points(), more in any_points(), name in any_text(), logs: (bool, bool), ends: bool) {
        let axis = |log: bool| if log { Axis::log(name.clone()) } else { Axis::linear(name.clone()) };
        let spread: Vec<_> = points.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
        let values: Vec<f64> = points.iter().map(|p| p.1).collect();
        let names: Vec<String> = values.iter().map(|_| name.clone()).collect();
        let line = || LineChart::new(name.clone())
            .x(axis(logs.0))
            .y(axis(logs.1))
            .series(Series::new(name.clone(), points.clone()).band(spread.clone()).run(more.clone()))
            .series(Series::new("b", more.clone()).errors(spread.clone()).markers())
            .level(1.0, name.clone())
            .post(2.0, name.clone())
            .legend(if ends { Legend::Ends } else { Legend::Below });
        let scatter = ScatterChart::new("s").x(axis(logs.0)).y(axis(logs.1)).diagonal("d").cloud(Cloud::new(name.clone(), points.clone()).fit());
        let bars = BarChart::new("b", names).values(axis(logs.1)).bars(Bars::new(name.clone(), values.clone()));
        let lying = bars.clone().lying();
        let histogram = Histogram::new("h", values.clone()).x(axis(logs.0));
        let heat = Heatmap::new("h", [values.clone(), vec![]]).name(name.clone());
        let mut forest = ForestChart::new("f").x(axis(logs.0)).reference(0.0, name.clone());
        for &(x, low, high) in &spread {
            forest = forest.line(Interval::new(name.clone(), x, low, high));
        }
        let grid = Grid::new("g").panel(line()).panel(histogram.clone()).share_x().share_y();
        for svg in [line().to_svg(), line().to_svg_file(), scatter.to_svg(), bars.to_svg(), lying.to_svg(), histogram.to_svg(), heat.to_svg(), forest.to_svg(), grid.to_svg()] {
            check_markup(&svg)?;
        }
    }

    #[test]
    fn any_text_is_escaped_everywhere(text in any_text()) {
        let t = || text.clone();
        let table = Table::new(t())
            .column(Column::text(t()).group(t()))
            .column(Column::number(t()))
            .heading(t())
            .row([Cell::text(t()).hint(t()), Cell::code(t())])
            .note(t());
        let chart = LineChart::new(t()).series(Series::new(t(), [(1.0, 2.0)]));
        let page = || Page::new(t())
            .subtitle(t())
            .lead(t())
            .tile(Tile::new(t(), t()).note(t()))
            .section(
                Section::new(t()).id(t()).prose(t()).note(t()).callout(Callout::bad(t(), t())).list([t()]).code(t()).command(t(), t()).table(table.clone()).figure(Figure::new(&chart).caption(t())),
            )
            .section(Section::new(t()))
            .made(Made::new(t()).fact(t(), t()))
            .footer(t());
        let html = page().to_html();
        check_markup(&html)?;
        // Prose and code may show the word; a tag of it may not exist.
        prop_assert_eq!(html.matches("<script").count(), 1, "the page's own alone");
        prop_assert_eq!(html, page().to_html());
    }
}

#[test]
fn a_page_needs_nothing_from_outside() {
    let html = small_page().to_html();
    for asset in
        ["http:", "https:", "src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!html.contains(asset), "{asset}");
    }
}

#[test]
fn sections_with_one_heading_get_two_anchors() {
    let html = Page::new("p").section(Section::new("A b")).section(Section::new("A b")).to_html();
    assert!(html.contains(r#"id="a-b""#) && html.contains(r#"id="a-b-2""#));
}

#[test]
fn ten_thousand_points_stay_small() {
    let wave = |i: u32| (f64::from(i), f64::from(i * 7919 % 1000));
    let line = LineChart::new("l").series(
        Series::new("s", (0..10_000).map(wave)).band((0..10_000).map(|i| (f64::from(i), 0.0, wave(i).1))),
    );
    let cloud = ScatterChart::new("c").cloud(Cloud::new("s", (0..10_000).map(wave)));
    // Four points per pixel column at most, about 12 bytes each, for a line and both edges of a band.
    assert!(line.to_svg().len() < 4 * 880 * 3 * 14, "{}", line.to_svg().len());
    assert!(cloud.to_svg().len() < 700_000, "{}", cloud.to_svg().len());
}

#[test]
fn shared_axes_have_the_same_ticks_and_names_the_same_hue() {
    let panel = |title: &str, names: [&str; 2], top: f64| {
        let mut chart = LineChart::new(title);
        for name in names {
            chart = chart.series(Series::new(name, [(0.0, 0.0), (1.0, top)]));
        }
        chart
    };
    let svg = Grid::new("g")
        .panel(panel("one", ["a", "b"], 1.0))
        .panel(panel("two", ["b", "c"], 40.0))
        .share_y()
        .to_svg();
    assert_eq!(svg.matches(">40</text>").count(), 2, "both panels reach the larger one's top tick");
    assert_eq!(svg.matches(r#"<path class="line t1""#).count(), 2, "b is the second hue in both panels");
    assert_eq!(svg.matches(r#"<path class="line t2""#).count(), 1);
}

fn small_table() -> Table {
    Table::new("Bias of two estimators")
        .column(Column::text("arm"))
        .column(Column::number("bias").group("gradient").format(Format::scientific(1)))
        .column(Column::number("lead").group("gradient").format(Format::fixed(2).signed()))
        .column(Column::number("lanes"))
        .heading("Reuse 4")
        .row([Cell::from("PPO"), Cell::from(1.3e-2), Cell::blank(), Cell::from(256)])
        .row([
            Cell::from("tempered"),
            Cell::from(-1.8e-4).best(),
            Cell::from(0.124).error(0.02),
            Cell::from(12_800),
        ])
        .heading("Reuse 16")
        .row([Cell::code("full"), Cell::from(f64::NAN).muted(), Cell::from(-1.0).interval(-1.5, -0.5)])
        .note("Made up.")
}

fn small_chart() -> LineChart {
    LineChart::new("Two lines")
        .x(Axis::linear("update").whole())
        .y(Axis::log("bias"))
        .series(Series::new("PPO", [(0.0, 1.0), (1.0, 0.5), (2.0, f64::NAN), (3.0, 0.4)]))
        .series(Series::new("tempered", [(0.0, 1.0), (1.0, 0.1), (3.0, 0.0)]).markers())
        .post(1.0, "warmup")
        .height(120.0)
}

fn small_page() -> Page {
    Page::new("A small page")
        .lead("One sentence with `code`.")
        .tile(Tile::new("ESS", "62.4 %").note("of 256"))
        .section(
            Section::new("Result")
                .callout(Callout::good("Fine", "It is."))
                .table(small_table())
                .figure(Figure::new(&small_chart()).caption("See.")),
        )
        .made(Made::new("niwaki oracle").fact("commit", "abc"))
        .footer("End.")
}

#[test]
fn snapshots() {
    insta::assert_snapshot!("table_text", small_table().to_text(80));
    insta::assert_snapshot!("table_narrow", small_table().to_text(40));
    insta::assert_snapshot!("table_csv", small_table().to_csv());
    insta::assert_snapshot!("line_svg", markup::lines(&small_chart().to_svg()));
    let forest = ForestChart::new("Lead").reference(0.0, "none").line(Interval::new("a", 0.5, -0.1, 1.0));
    insta::assert_snapshot!("forest_svg", markup::lines(&forest.to_svg()));
    let bars = BarChart::new("Time", ["a", "b"]).bars(Bars::new("x", [1.0, -2.0])).height(80.0);
    insta::assert_snapshot!("bar_svg", markup::lines(&bars.to_svg()));
    let heat = Heatmap::new("Map", [vec![0.0, 1.0], vec![f64::NAN, 0.25]])
        .columns("c", ["x", "y"])
        .rows("r", ["1", "2"]);
    insta::assert_snapshot!(
        "heatmap_svg",
        markup::lines(&heat.to_svg()).replace(" shape-rendering=\"crispEdges\"", "")
    );
    let html = small_page().to_html();
    let (head, rest) = html.split_once("<style>").unwrap();
    let (style, body) = rest.split_once("</style>").unwrap();
    assert!(style.contains("prefers-color-scheme:dark") && style.contains("@media print"));
    // The style and the chart have their own tests; here they would only add noise.
    let (before, chart) = body.split_once("<svg").unwrap();
    let (_, after) = chart.rsplit_once("</svg>").unwrap();
    insta::assert_snapshot!("page", markup::lines(&format!("{head}{before}[chart]{after}")));
}

/// WCAG 2 contrast of two colours such as `#0072b2`.
fn contrast(a: &str, b: &str) -> f64 {
    let luminance = |colour: &str| {
        let digits = colour.trim_start_matches('#');
        let wide = if digits.len() == 3 {
            digits.chars().flat_map(|c| [c, c]).collect()
        } else {
            digits.to_string()
        };
        let channel = |at: usize| {
            f64::from(
                u8::from_str_radix(&wide[at..at + 2], 16).unwrap_or_else(|_| panic!("{colour} is no colour")),
            ) / 255.0
        };
        let linear = |c: f64| if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(channel(0)) + 0.7152 * linear(channel(2)) + 0.0722 * linear(channel(4))
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn both_themes_can_be_read() {
    // Black on white is 21 to 1 by definition.
    assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
    let html = Page::new("p").to_html();
    let themes: Vec<&str> = html.split("--paper:").skip(1).collect();
    assert_eq!(themes.len(), 2, "a light and a dark theme");
    for theme in themes {
        let colour =
            |name: &str| theme.split(&format!("--{name}:")).nth(1).unwrap().split([';', '}']).next().unwrap();
        let paper = theme.split(';').next().unwrap();
        // WCAG AA asks 4.5 of text and 3 of graphics.
        for text in ["ink", "soft", "link", "good", "bad"] {
            assert!(contrast(colour(text), paper) >= 4.5, "{text} on {paper}");
        }
        for series in 0..8 {
            let name = format!("s{series}");
            assert!(contrast(colour(&name), paper) >= 3.0, "{name} on {paper}");
        }
        for (text, wash) in
            [("soft", "wash"), ("ink", "good-wash"), ("ink", "bad-wash"), ("ink", "best-wash")]
        {
            assert!(contrast(colour(text), colour(wash)) >= 4.5, "{text} on {wash}");
        }
    }
}

#[test]
fn a_figure_has_a_form_for_a_desk_and_one_for_a_phone() {
    let panel = |title: &str| {
        LineChart::new(title)
            .series(Series::new("one", [(0.0, 0.0), (1.0, 1.0)]))
            .series(Series::new("two", [(0.0, 1.0), (1.0, 0.0)]))
            .legend(Legend::Ends)
    };
    let grid = Grid::new("both").columns(2).panel(panel("a")).panel(panel("b"));
    let (wide, narrow) = (grid.to_svg(), grid.to_narrow_svg());
    assert!(wide.contains(r#"viewBox="0 0 880 "#) && narrow.contains(r#"viewBox="0 0 360 "#));
    // Beside the plot on a desk, below it on a phone, where they can be pressed.
    assert_eq!(
        (wide.matches(r#"<g class="key">"#).count(), narrow.matches(r#"<g class="key">"#).count()),
        (0, 2)
    );
    // One column: the second panel stands below the first, at the same place from the left.
    let places = |svg: &str| -> Vec<String> {
        let panels = svg.split(r#"<g class="panel" transform="translate("#).skip(1);
        panels.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_ne!(places(&wide)[0], places(&wide)[1]);
    assert_eq!(places(&narrow)[0], places(&narrow)[1]);
    let html = Page::new("p").section(Section::new("s").figure(Figure::new(&grid))).to_html();
    assert!(
        html.contains(r#"<div class="drawing wide">"#) && html.contains(r#"<div class="drawing narrow">"#)
    );
}

#[test]
fn a_ribbon_ends_at_the_plots_edge_and_a_share_at_one() {
    let chart = LineChart::new("l")
        .y(Axis::linear("share").share())
        .series(Series::new("s", [(0.0, 0.9), (1.0, 1.0)]).band([(0.0, 0.7, 1.3), (1.0, 0.8, 1.4)]));
    let svg = chart.to_svg();
    let plot = svg.split(r#"<svg class="plot""#).find(|part| part.contains("band")).unwrap();
    // No room around it: what lies beyond is cut there.
    assert!(plot.starts_with(r#" x="0" y="0""#), "{plot}");
    assert!(svg.contains(">100") && !svg.contains(">120"), "{svg}");
}

#[test]
fn a_script_finds_what_the_pixels_mean() {
    let chart = LineChart::new("l")
        .x(Axis::log("x"))
        .y(Axis::linear("y").share())
        .series(Series::new("s", [(1.0, 0.5), (100.0, 0.6)]));
    let svg = chart.to_svg();
    assert!(svg.contains(r#"data-x="1e0 1e2 log""#) && svg.contains(r#"data-y="0e0 1e0 %""#), "{svg}");
    // A category has no values between its slots.
    assert!(!BarChart::new("b", ["a", "b"]).bars(Bars::new("s", [1.0, 2.0])).to_svg().contains("data-x"));
}

#[test]
fn a_page_is_known_by_the_command_that_made_it() {
    let page = |command: &str| Page::new("t").made(Made::new(command).fact("version", "1")).to_html();
    let ours = page("niwaki a & b");
    assert!(Page::is_made_by(&ours, "niwaki a & b"));
    assert!(!Page::is_made_by(&ours, "niwaki a"));
    assert!(!Page::is_made_by(&ours.replace("generator", "author"), "niwaki a & b"));
    assert!(!Page::is_made_by(&Page::new("niwaki a").to_html(), "niwaki a"));
}
