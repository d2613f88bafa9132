//! Runs side by side.

use crate::advise::Advice;
use crate::measure::{NAMES, Number, PositionRow};
use crate::page::reached;
use crate::series::named;
use niwaki_page::{Axis, Cell, Column, Figure, Format, LineChart, Made, Page, Section, Series, Table, Tone};
use std::fmt::Write as _;

/// The advice for several runs.
#[derive(Debug)]
pub struct Comparison {
    /// The runs, in the order in which they were given.
    pub runs: Vec<Advice>,
}

impl Comparison {
    /// Verdicts, and every number beside the other runs'; of two runs also whether they differ.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for run in &self.runs {
            let _ = writeln!(text, "{}: {}", named(&run.files), run.verdict.says);
            let _ = writeln!(text, "  {}", crate::text::facts(&run.measured));
        }
        let _ = write!(text, "\n{}", self.table().to_text(width));
        text
    }

    /// Every run as [`Advice::json`] gives it, in a list.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let runs: Vec<serde_json::Value> = self.runs.iter().map(Advice::value).collect();
        serde_json::to_string_pretty(&serde_json::json!({ "runs": runs }))
    }

    /// The page: verdicts, the ESS of each run, every number.
    #[must_use]
    pub fn page(&self, made: Made) -> Page {
        let mut verdicts = Table::new("What each run should do")
            .column(Column::text("verdict"))
            .column(Column::text("run"))
            .column(Column::text("how sure"));
        let mut ess = LineChart::new("Effective sample size of the prefix ratio")
            .x(Axis::linear("steps of the policy before it").whole())
            .y(Axis::linear("share of the batch").percent().include(0.0).include(1.0))
            .level(0.1, "collapsed");
        for (at, run) in self.runs.iter().enumerate() {
            let name = named(&run.files);
            verdicts.push([
                Cell::from(run.verdict.says.clone()),
                Cell::from(name.clone()),
                Cell::from(run.verdict.sure.clone()),
            ]);
            let point = |row: &PositionRow| (row.position as f64, row.prefix_ess);
            let curve: Vec<(f64, f64)> = reached(&run.measured.positions).iter().map(point).collect();
            ess = ess.series(Series::new(name, curve).tone(Tone::Hue(at)));
        }
        Page::new(format!("{} runs side by side", self.runs.len()))
            .section(Section::new("Verdicts").table(verdicts))
            .section(
                Section::new("Along the trajectory").figure(
                    Figure::new(&ess)
                        .caption("What a full correction would leave of each run's batch at each step."),
                ),
            )
            .section(Section::new("Every number").table(self.table()))
            .made(made)
    }

    /// Numbers by run.
    fn table(&self) -> Table {
        let mut table = Table::new("Numbers with 95% intervals, by run").column(Column::text("number"));
        for run in &self.runs {
            table = table.column(Column::text(named(&run.files)));
        }
        let pair = self.runs.len() == 2;
        if pair {
            table = table.column(Column::text("apart?"));
        }
        for name in NAMES {
            let found =
                |run: &Advice| run.measured.numbers.iter().find(|number| number.name == name).cloned();
            let numbers: Vec<Option<Number>> = self.runs.iter().map(found).collect();
            let mut row = vec![Cell::code(name)];
            row.extend(
                numbers.iter().map(|number| Cell::from(number.as_ref().map_or_else(String::new, shown))),
            );
            if pair {
                row.push(Cell::from(match (&numbers[0], &numbers[1]) {
                    (Some(one), Some(other)) => apart(one, other),
                    _ => "",
                }));
            }
            table.push(row);
        }
        table
    }
}

fn shown(number: &Number) -> String {
    let digits = Format::significant(3);
    match (number.low, number.high) {
        (Some(low), Some(high)) if low < high => {
            format!("{} ({} to {})", digits.text(number.value), digits.text(low), digits.text(high))
        }
        _ => digits.text(number.value),
    }
}

/// Whether the 95% interval of the difference leaves zero out: half-widths add as the roots of their squares.
fn apart(one: &Number, other: &Number) -> &'static str {
    let half = |number: &Number| Some(0.5 * (number.high? - number.low?));
    match (half(one), half(other)) {
        (Some(a), Some(b)) if a + b > 0.0 => {
            if (one.value - other.value).abs() > a.hypot(b) {
                "yes"
            } else {
                "no"
            }
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_widths_add_as_squares() {
        let number = |value: f64, half: f64| Number {
            name: "drift",
            value,
            low: Some(value - half),
            high: Some(value + half),
            about: "",
        };
        // 3 and 4 make 5: a difference of 5.1 is apart, 4.9 is not.
        assert_eq!(apart(&number(0.0, 3.0), &number(5.1, 4.0)), "yes");
        assert_eq!(apart(&number(0.0, 3.0), &number(4.9, 4.0)), "no");
        assert_eq!(apart(&Number::plain("ess", 1.0, ""), &number(4.9, 4.0)), "");
    }
}
