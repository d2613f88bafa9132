//! The summary for a terminal, and the tables that it shares with the page.

use crate::measure::{Measured, Number};
use crate::verdict::Verdict;
use niwaki_page::{Cell, Column, Format, Table};
use std::fmt::Write as _;

/// The numbers in the order in which they are read, under headings.
const ORDER: &[(&str, &[&str])] = &[
    (
        "How stale is the data?",
        &[
            "drift",
            "kl_k1",
            "kl_k3",
            "mean_ratio",
            "chi2_step",
            "chi2_sequence",
            "clip_fraction",
            "outside_clip",
        ],
    ),
    (
        "What would a full correction leave of the batch?",
        &["ess", "ess_forecast", "prefix_ess", "ess_sequence", "ess_step", "collapse_horizon"],
    ),
    (
        "What does PPO's dropped ratio bias?",
        &["bias_total", "bias_to_noise", "bias_support", "dose", "rollout_dose"],
    ),
    (
        "Do the conditions hold?",
        &[
            "contested_drift",
            "lateness",
            "advantage_carry",
            "mean_advantage",
            "zero_signal",
            "silent_groups",
            "silent_batches",
            "zero_reward_batches",
            "chance_of_none",
            "headroom",
        ],
    ),
    (
        "How strong a correction?",
        &[
            "alpha_rule",
            "alpha_floor",
            "alpha_error",
            "error_ratio",
            "alpha_star",
            "peak",
            "batch_over_horizon_squared",
        ],
    ),
];

/// All numbers with their intervals.
#[must_use]
pub fn number_table(measured: &Measured) -> Table {
    let mut table = Table::new("Numbers with 95% intervals, where the data allows one")
        .column(Column::text("number"))
        .column(Column::number("value").format(Format::significant(3)))
        .column(Column::text("95% interval"))
        .column(Column::text("what it is"));
    for (heading, names) in ORDER {
        table.push_heading(*heading);
        for name in *names {
            if let Some(number) = measured.numbers.iter().find(|number| number.name == *name) {
                table.push([
                    Cell::code(number.name),
                    Cell::from(number.value),
                    Cell::from(interval(number)),
                    Cell::from(number.about),
                ]);
            }
        }
    }
    table
}

fn interval(number: &Number) -> String {
    let digits = Format::significant(3);
    match (number.low, number.high) {
        (Some(low), Some(high)) if low < high => format!("{} to {}", digits.text(low), digits.text(high)),
        _ => String::new(),
    }
}

/// How much data there is, in a sentence.
#[must_use]
pub fn facts(measured: &Measured) -> String {
    let facts = &measured.facts;
    let groups = if facts.groups > 0 { format!(", {} groups", facts.groups) } else { String::new() };
    let mut aside = String::new();
    if facts.earlier_uses > 0 {
        let _ = write!(aside, "; {} earlier uses of the same batches left aside", facts.earlier_uses);
    }
    if facts.unscored_steps > 0 {
        let _ =
            write!(aside, "; {} steps that the sampling engine did not score left out", facts.unscored_steps);
    }
    format!(
        "{} trajectories of {} steps on average (longest {}), {} {}{groups}; N = {} per batch{aside}",
        facts.trajectories,
        Format::significant(3).text(facts.mean_length),
        facts.longest,
        facts.iterations,
        if facts.iterations == 1 { "iteration" } else { "iterations" },
        Format::auto().text(facts.batch),
    )
}

/// The whole summary, for a terminal of `width` columns.
#[must_use]
pub fn summary(measured: &Measured, verdict: &Verdict, width: usize) -> String {
    let mut text = String::new();
    let mut entry = |mark: &str, said: &str| {
        let (indent, room) = (mark.chars().count(), width.saturating_sub(mark.chars().count()).max(20));
        for (at, line) in wrapped(said, room).into_iter().enumerate() {
            let _ =
                if at == 0 { writeln!(text, "{mark}{line}") } else { writeln!(text, "{:indent$}{line}", "") };
        }
    };
    entry("verdict: ", &verdict.says);
    entry("how sure: ", &verdict.sure);
    entry("if nothing changes: ", &verdict.idle);
    for advised in &verdict.set {
        entry(&format!("in {}: ", advised.trainer.name()), &advised.what);
    }
    entry("why:", "");
    verdict.because.iter().for_each(|reason| entry("  - ", reason));
    let _ = write!(text, "\n{}\n\n{}", facts(measured), number_table(measured).to_text(width));
    text
}

/// Lines of at most `width` characters, broken at spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::NAMES;

    #[test]
    fn every_number_in_the_summary_exists() {
        let shown: Vec<&str> = ORDER.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert!(shown.iter().all(|name| NAMES.contains(name)));
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
    }
}
