//! Every element of the crate on one page: `cargo run -p niwaki-page --example gallery -- OUT.html`.
//!
//! The curves are made up, by formulas below, to show the drawing and nothing else.

use std::process::ExitCode;

use niwaki_page::{
    Axis, BarChart, Bars, Callout, Cell, Cloud, Column, Figure, ForestChart, Format, Grid, Heatmap,
    Histogram, Interval, Legend, LineChart, Made, Page, ScatterChart, Section, Series, Table, Tile, Tone,
};

/// A fixed wiggle in −1 … 1 that looks like noise.
fn wiggle(i: usize, salt: usize) -> f64 {
    let mix = (i * 2_654_435_761 + salt * 40_503 + 12_345) % 1_000_003;
    let mix = (mix * mix + i * 7919 + salt * 104_729) % 1_000_003;
    mix as f64 / 500_001.5 - 1.0
}

fn curve(rate: f64, seed: usize) -> Vec<(f64, f64)> {
    (0..=80).map(|i| (i as f64 * 5.0, 1.0 - (-rate * i as f64).exp() + 0.05 * wiggle(i, seed))).collect()
}

fn learning(title: &str, rates: &[(&str, f64)]) -> LineChart {
    let mut chart =
        LineChart::new(title).x(Axis::linear("update").whole()).y(Axis::linear("success rate").percent());
    for (nth, (name, rate)) in rates.iter().enumerate() {
        let seeds: Vec<_> = (0..6).map(|seed| curve(*rate, seed + 10 * nth)).collect();
        let over = |i: usize| seeds.iter().map(move |seed| seed[i].1);
        let mean: Vec<_> = (0..=80).map(|i| (seeds[0][i].0, over(i).sum::<f64>() / 6.0)).collect();
        let band = mean.iter().map(|&(x, y)| (x, y - 0.03, y + 0.03)).collect::<Vec<_>>();
        let mut series = Series::new(*name, mean).band(band);
        for seed in seeds {
            series = series.run(seed);
        }
        chart = chart.series(series);
    }
    chart
}

fn league() -> Table {
    let number = |name: &str| Column::number(name).format(Format::significant(3));
    Table::new("Exact error of each estimator on a tree of depth 8. Lower is better.")
        .column(Column::text("estimator"))
        .column(number("bias").group("gradient").format(Format::scientific(2)))
        .column(number("variance").group("gradient"))
        .column(number("cosine").group("gradient").format(Format::fixed(3)))
        .column(Column::number("ESS").group("data").format(Format::percent(1)))
        .column(Column::number("lanes").group("data"))
        .heading("Reuse 4")
        .row([
            Cell::from("PPO"),
            Cell::from(1.3e-2),
            Cell::from(0.412).best(),
            Cell::from(0.913),
            Cell::from(0.871),
            Cell::from(256),
        ])
        .row([
            Cell::from("tempered, `α = 0.5`"),
            Cell::from(1.84e-3),
            Cell::from(0.562),
            Cell::from(0.981).best(),
            Cell::from(0.624),
            Cell::from(256),
        ])
        .row([
            Cell::from("full prefix"),
            Cell::from(9.2e-12).best(),
            Cell::from(14.7),
            Cell::from(0.874),
            Cell::from(0.0912),
            Cell::from(1024),
        ])
        .heading("Reuse 16")
        .row([
            Cell::from("PPO"),
            Cell::from(-4.1e-2),
            Cell::from(0.398).best(),
            Cell::from(0.804),
            Cell::from(0.512),
            Cell::from(256),
        ])
        .row([
            Cell::from("tempered, `α = 0.5`"),
            Cell::from(5.27e-3),
            Cell::from(1.31),
            Cell::from(0.958).best(),
            Cell::from(0.287),
            Cell::from(256),
        ])
        .row([
            Cell::from("full prefix").muted(),
            Cell::from(f64::NAN).muted().hint("weights overflowed"),
            Cell::from(1234.5),
            Cell::from(0.31),
            Cell::from(0.004),
            Cell::from(12_800),
        ])
        .note("Cosine is with the true gradient. The last line's weights overflowed.")
}

fn differences() -> Table {
    Table::new("Lead over PPO, mean ± standard error over eight paired seeds")
        .column(Column::text("task"))
        .column(Column::text("setting"))
        .column(Column::number("lead").format(Format::fixed(3).signed()))
        .column(Column::number("interval").format(Format::fixed(2)))
        .column(Column::number("p").format(Format::significant(2)))
        .row([
            Cell::from("sequence ladder"),
            Cell::code("K=4"),
            Cell::from(0.124).error(0.018).best(),
            Cell::from(0.12).interval(0.09, 0.16),
            Cell::from(0.0078),
        ])
        .row([
            Cell::from("flow shop, seven jobs on twenty machines"),
            Cell::code("K=8"),
            Cell::from(-0.013).error(0.022),
            Cell::from(-0.01).interval(-0.05, 0.03),
            Cell::from(0.73).muted(),
        ])
        .row([
            Cell::from("job shop"),
            Cell::code("K=16"),
            Cell::from(10.25).error(1.5),
            Cell::from(10.25).interval(7.0, 13.5),
            Cell::from(3.1e-7),
        ])
}

fn lines() -> Section {
    let decay = |rate: f64, noise: f64, salt| {
        (0..40)
            .map(move |i| (i as f64, 0.3 * (-rate * i as f64).exp() * (1.0 + noise * wiggle(i, salt))))
            .collect::<Vec<_>>()
    };
    let ends = LineChart::new("Bias on a log axis, lines named at their ends")
        .x(Axis::linear("update").whole())
        .y(Axis::log("mean |bias|"))
        .series(Series::new("PPO", decay(0.01, 0.2, 1)))
        .series(Series::new("per-step clip", decay(0.012, 0.2, 2)))
        .series(Series::new("tempered 0.5", decay(0.16, 0.3, 3)))
        .series(Series::new("full prefix", decay(0.3, 0.3, 4)).dashed())
        .level(1e-4, "noise floor")
        .post(8.0, "warmup ends")
        .post(11.0, "learning rate halves")
        .legend(Legend::Ends);
    let gaps: Vec<(f64, f64)> =
        (0..12).map(|i| (i as f64, if i == 5 { f64::NAN } else { (i as f64 * 0.6).sin() })).collect();
    let spread =
        |points: &[(f64, f64)]| points.iter().map(|&(x, y)| (x, y - 0.2, y + 0.2)).collect::<Vec<_>>();
    let marked = LineChart::new("Markers, error bars and a gap")
        .x(Axis::linear("reuse").whole())
        .y(Axis::linear("effect"))
        .series(Series::new("measured", gaps.clone()).markers().errors(spread(&gaps)))
        .series(
            Series::new("predicted", (0..12).map(|i| (i as f64, (i as f64 * 0.6).cos() * 0.5))).markers(),
        );
    Section::new("Curves")
        .prose("Thin lines are seeds, the bold line their mean, the ribbon its confidence interval. Rest the pointer on a line to read a point.")
        .figure(Figure::new(&learning("Learning curves", &[("PPO", 0.03), ("tempered", 0.06)]).level(0.95, "solved").post(120.0, "warmup ends")).caption("Six seeds per arm."))
        .figure(Figure::new(&ends).caption("Labels move apart where lines end close together."))
        .figure(Figure::new(&marked).caption("The value at 5 is missing, so the line breaks there."))
}

fn points() -> Section {
    let cloud = |salt: usize, slope: f64| {
        (0..140).map(move |i| {
            let x = 10f64.powf(wiggle(i, salt) * 1.5);
            (x, x.powf(slope) * 10f64.powf(0.25 * wiggle(i, salt + 1)))
        })
    };
    let scatter = ScatterChart::new("Dose against loss of signal")
        .x(Axis::log("dose"))
        .y(Axis::log("loss of signal"))
        .cloud(Cloud::new("tabular", cloud(3, 0.8)).fit())
        .cloud(Cloud::new("neural", cloud(11, 0.4)).fit())
        .diagonal("equal");
    let histogram = Histogram::new(
        "Log-ratios after four passes",
        (0..4000).map(|i| (wiggle(i, 1) + wiggle(i, 2) + wiggle(i, 5)) * 0.2),
    )
    .x(Axis::linear("log-ratio"))
    .post(-0.2, "clip")
    .post(0.2, "clip");
    Section::new("Points and counts")
        .figure(Figure::new(&scatter).caption("The fits are straight on the axes shown."))
        .figure(Figure::new(&histogram).caption("Four thousand steps."))
}

fn comparisons() -> Section {
    let forest = ForestChart::new("Lead over PPO by task")
        .x(Axis::linear("lead in success rate"))
        .reference(0.0, "no difference")
        .format(Format::fixed(3).signed())
        .line(Interval::new("sequence ladder", 0.124, 0.09, 0.16))
        .line(Interval::new("free choice", 0.051, -0.01, 0.11))
        .line(Interval::new("flow shop 7 × 20", -0.013, -0.05, 0.03))
        .line(Interval::new("job shop 8 × 5", 0.082, 0.03, 0.13))
        .line(Interval::new("all tasks, pooled", 0.061, 0.04, 0.085).tone(Tone::Ink));
    let bars = BarChart::new(
        "Time to a proven optimum",
        ["flow shop 7 × 20", "flow shop 7 × 50", "job shop 8 × 5", "flexible 10 × 5"],
    )
    .values(Axis::log("milliseconds"))
    .bars(Bars::new("branch and bound", [5.0, 12.0, 0.5, 840.0]))
    .bars(Bars::new("constraint solver", [850.0, f64::NAN, 7.0, 5200.0]));
    let signed = BarChart::new("Marginal effect", ["α = 0.25", "α = 0.5", "α = 0.75", "α = 1"])
        .values(Axis::linear("percentage points"))
        .bars(Bars::new("", [2.1, 4.8, 3.2, -1.9]).errors([
            (1.5, 2.7),
            (4.0, 5.6),
            (2.0, 4.4),
            (-3.5, -0.3),
        ]));
    let lying = BarChart::new(
        "Where the time goes",
        ["rollout", "forward pass of the policy", "cotangent", "pull-back", "optimiser"],
    )
    .values(Axis::linear("share of an update").percent())
    .bars(Bars::new("", [0.31, 0.24, 0.02, 0.37, 0.06]))
    .lying();
    Section::new("Comparisons")
        .figure(Figure::new(&forest).caption("Ninety-five per cent intervals over paired seeds."))
        .figure(Figure::new(&bars).caption("The constraint solver did not finish the second family."))
        .figure(Figure::new(&signed))
        .figure(Figure::new(&lying))
}

fn maps() -> Section {
    let values = (0..5).map(|r| {
        (0..7)
            .map(|c| if (r, c) == (3, 2) { f64::NAN } else { 10f64.powf(-(r as f64) * 0.4 - c as f64 * 0.3) })
            .collect()
    });
    let heat = Heatmap::new("Effective sample size", values)
        .columns("position", (0..7).map(|c| (8 * c).to_string()))
        .rows("reuse", ["1", "2", "4", "8", "16"])
        .name("share of the batch")
        .format(Format::significant(2));
    let signed = Heatmap::new(
        "Lead over PPO",
        (0..3).map(|r| (0..5).map(|c| 0.1 * (c as f64 - 1.5) - 0.08 * r as f64).collect()),
    )
    .columns("α", ["0", "0.25", "0.5", "0.75", "1"])
    .rows("", ["short", "medium", "long"])
    .centre(0.0)
    .format(Format::fixed(2).signed());
    let grid = Grid::new("Four tasks, one legend")
        .panel(learning("Sequence ladder", &[("PPO", 0.03), ("tempered", 0.06)]).height(150.0))
        .panel(learning("Free choice", &[("tempered", 0.05), ("full prefix", 0.01)]).height(150.0))
        .panel(learning("Flow shop", &[("PPO", 0.02), ("tempered", 0.025)]).height(150.0))
        .panel(
            LineChart::new("Job shop")
                .x(Axis::linear("update").whole())
                .y(Axis::linear("success rate"))
                .height(150.0),
        )
        .share_y();
    Section::new("Maps and small multiples").figure(Figure::new(&heat)).figure(Figure::new(&signed)).figure(
        Figure::new(&grid).caption("A name has one colour in every panel; the job shop has not been run."),
    )
}

fn edges() -> Section {
    let long = LineChart::new("Ten thousand points").series(Series::new(
        "signal",
        (0..10_000).map(|i| (i as f64, wiggle(i, 3) + (i as f64 / 900.0).sin() * 3.0)),
    ));
    let grid = Grid::new("Odd data")
        .columns(3)
        .panel(LineChart::new("One point").series(Series::new("p", [(3.0, 4.0)])).height(110.0))
        .panel(
            LineChart::new("A constant")
                .series(Series::new("c", (0..9).map(|i| (i as f64, 0.7))))
                .height(110.0),
        )
        .panel(LineChart::new("Nothing").height(110.0))
        .panel(
            LineChart::new("Tiny")
                .series(Series::new("t", (0..9).map(|i| (i as f64, 3e-9 * i as f64))))
                .height(110.0),
        )
        .panel(
            LineChart::new("Huge")
                .series(Series::new("h", (0..9).map(|i| (i as f64 * 1e8, 2e12 * wiggle(i, 2)))))
                .height(110.0),
        )
        .panel(
            LineChart::new("Zero on a log axis")
                .y(Axis::log(""))
                .series(Series::new("z", (0..9).map(|i| (i as f64, i as f64 * 10.0))))
                .height(110.0),
        );
    Section::new("Edges")
        .figure(Figure::new(&long).caption("Thinned to what the screen can show, peaks kept."))
        .figure(Figure::new(&grid))
}

fn page() -> Page {
    Page::new("A gallery of report elements")
        .subtitle("Made-up numbers, real drawing")
        .lead("Every table, chart and callout that a report can use, on one page that needs **no network and no script**.")
        .tile(Tile::new("Effective sample size", Format::percent(1).text(0.624)).note("of 256 lanes"))
        .tile(Tile::new("Bias witness", Format::scientific(1).text(1.8e-3)).note("PPO: 1.3 × 10⁻²"))
        .tile(Tile::new("Lead over PPO", Format::fixed(3).signed().text(0.124)).note("eight paired seeds"))
        .section(
            Section::new("Verdicts and words")
                .callout(Callout::good("Your data is fresh enough", "The drift is 0.02 per step; the correction would change little."))
                .callout(Callout::neutral("Not enough seeds to tell", "Eight paired seeds cannot tell a lead of 0.01 from none."))
                .callout(Callout::bad("Most of the signal is lost", "At position 64 the effective sample size is **3 of 256**. Lower `reuse`, or set `alpha = 0.5`."))
                .prose("A paragraph says what was done and why. It may name a flag such as `--reuse 4` or stress **one thing**.")
                .list(["a list for short points", "each a line or two"])
                .command("To look at your own run:", "niwaki advise dump.npz --out report.html")
                .note("A note carries a caveat that most readers can skip."),
        )
        .section(Section::new("Tables").table(league()).table(differences()))
        .section(lines())
        .section(points())
        .section(comparisons())
        .section(maps())
        .section(edges())
        .made(Made::new("cargo run -p niwaki-page --example gallery -- gallery.html").fact("numbers", "made up by formulas in the example").fact("version", env!("CARGO_PKG_VERSION")))
        .footer("Niwaki, the art of training trees.")
}

fn main() -> ExitCode {
    let Some(out) = std::env::args().nth(1) else { return ExitCode::from(2) };
    match std::fs::write(out, page().to_html()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
