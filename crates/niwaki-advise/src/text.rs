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
            "sampler_drift",
            "sampler_kl",
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
            "headroom_ahead",
        ],
    ),
    (
        "How strong a correction?",
        &[
            "alpha_rule",
            "alpha_floor",
            "alpha_gradient",
            "amplification",
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
            let found = measured.numbers.iter().find(|number| number.name == *name);
            // What compares with the engine that sampled is told where there is one.
            let told = |number: &&Number| !(name.starts_with("sampler") && number.value.is_nan());
            if let Some(number) = found.filter(told) {
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

/// Steps by the age of the policy that sampled them.
#[must_use]
pub fn age_table(measured: &Measured) -> Table {
    let mut table = Table::new("By the age of the policy that sampled a step, in versions")
        .column(Column::number("age"))
        .column(Column::number("steps").format(Format::percent(0)))
        .column(Column::number("old against engine").format(Format::significant(3)))
        .column(Column::number("now against old").format(Format::significant(3)))
        .column(Column::number("drift σ²T").format(Format::significant(3)));
    for row in &measured.ages {
        table.push([
            Cell::from(row.age as f64),
            Cell::from(row.steps),
            Cell::from(row.sampler),
            Cell::from(row.reuse),
            Cell::from(row.drift),
        ]);
    }
    table
}

/// What a limit on the age of a trajectory's oldest step would leave and save.
#[must_use]
pub fn limit_table(measured: &Measured) -> Table {
    let mut table = Table::new("With no trajectory that has an older step")
        .column(Column::number("oldest"))
        .column(Column::number("trajectories left").format(Format::percent(0)))
        .column(Column::number("steps left").format(Format::percent(0)))
        .column(Column::number("drift σ²T").format(Format::significant(3)))
        .column(Column::number("ESS of steps").format(Format::percent(0)));
    for row in &measured.limits {
        table.push([
            Cell::from(row.limit as f64),
            Cell::from(row.trajectories),
            Cell::from(row.steps),
            Cell::from(row.drift),
            Cell::from(row.ess),
        ]);
    }
    table
}

/// How each number is made, as points of a list: `ℓ` is a step's log-ratio, `r` its ratio, `L` and `R = e^L` those of all steps
/// before it, `A` the advantage, N the batch and T the mean length.
const FORMULAS: &[(&str, &str)] = &[
    ("drift", "mean over positions of Var ℓ, by the trajectories that reach them, times T"),
    ("step_variance", "mean over positions of Var ℓ"),
    ("kl_k1", "mean of −ℓ"),
    ("kl_k3", "mean of r − 1 − ℓ"),
    ("mean_ratio", "mean of r"),
    ("sampler_drift", "Var m times T, with m = log old − log engine at the steps that the engine has scored"),
    ("sampler_kl", "mean of e^m − 1 − m"),
    ("chi2_step", "mean of r² − 1"),
    ("chi2_sequence", "mean over trajectories of (Π r)² − 1"),
    ("ess", "(Σ R)² / (n Σ R²) over all steps"),
    ("ess_forecast", "exp(−Var L)"),
    ("ess_step", "(Σ r)² / (n Σ r²)"),
    ("ess_sequence", "(Σ w)² / (n Σ w²) with w = Π r of each trajectory"),
    ("prefix_ess", "least (Σ R)² / (n Σ R²) of a position that a tenth of the trajectories reach"),
    ("clip_fraction", "share of steps with A > 0 and r > 1 + ε, or A < 0 and r < 1 − ε"),
    ("outside_clip", "share of steps with r < 1 − ε or r > 1 + ε"),
    ("bias_total", "Σ over positions of b = mean of (R − 1) r A, by the trajectories that reach them"),
    ("bias_to_noise", "Σ b over the standard deviation of Σ r A, times √N"),
    ("bias_support", "(Σ d²)² / Σ d⁴ of what each trajectory adds to Σ b"),
    ("dose", "Σ |b|"),
    ("rollout_dose", "Σ |mean of (R − 1) A|"),
    ("contested_drift", "mean over positions of rms L, by rms A times the trajectories that reach them"),
    ("lateness", "mean over positions of t / (longest − 1), with the same weights"),
    ("mean_advantage", "mean of A"),
    ("advantage_carry", "mean of A times the next A, over mean A²"),
    ("constant_advantage", "share of trajectories with one A throughout"),
    ("zero_signal", "share of trajectories with A = 0 throughout"),
    ("alpha_rule", "min(1, 1/σ²T)"),
    ("alpha_floor", "largest α with (Σ R^α)² / (n Σ R^2α) at least the ESS floor"),
    ("alpha_gradient", "largest α with an amplification of at most 2"),
    (
        "amplification",
        "‖∂J/∂log π‖ at α = 0.1 over that at α = 0, J the clipped surrogate with credit routed back, over all trajectories",
    ),
    ("alpha_error", "the α of 0, 0.1, …, 1 with the least squared bias plus variance / N"),
    ("error_ratio", "that least squared error over the one at α = 0"),
    ("signal", "S of the paper's eq:dominance with r A for the content, over the estimate's spread"),
    ("cost", "V of eq:dominance, over that spread squared"),
    ("alpha_star", "S N / 2 V"),
    ("peak", "S² N / 4 V"),
    ("collapse_horizon", "ln 10 / σ²"),
    ("batch_over_horizon_squared", "N / T²"),
    ("zero_reward_batches", "iterations whose rewards are all zero, over all"),
    ("silent_batches", "iterations whose rewards are all alike, over all"),
    ("silent_groups", "groups whose advantages are all zero, over all"),
    ("chance_of_none", "(1 − share of rewarded trajectories)^N at the scarcest iteration"),
    ("headroom", "(highest − mean reward of the last third) / (highest − lowest)"),
    ("headroom_ahead", "headroom · (headroom / the same of the first third)³, the factor at most 1"),
];

/// How each number is made, with its interval.
#[must_use]
pub fn formulas(measured: &Measured) -> Vec<String> {
    let point = |number: &Number| {
        let formula =
            FORMULAS.iter().find(|(name, _)| *name == number.name).map_or("", |(_, formula)| *formula);
        let interval = interval(number);
        let interval = if interval.is_empty() { interval } else { format!(" (95%: {interval})") };
        format!("`{}` = {}{interval}: {formula}", number.name, Format::significant(3).text(number.value))
    };
    let told = |number: &&Number| !(number.name.starts_with("sampler") && number.value.is_nan());
    measured.numbers.iter().filter(told).map(point).collect()
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
    let ranks = facts
        .ranks
        .as_ref()
        .map_or_else(String::new, |ranks| format!(", {} of {} ranks", ranks.seen.len(), ranks.world));
    let mut aside = String::new();
    if facts.earlier_uses > 0 {
        let _ = write!(aside, "; {} earlier uses of the same batches left aside", facts.earlier_uses);
    }
    if facts.unscored_steps > 0 {
        let _ =
            write!(aside, "; {} steps that the sampling engine did not score left out", facts.unscored_steps);
    }
    if facts.thinned > 0 {
        let _ = write!(
            aside,
            "; thinned: the steps of {} trajectories were left out, and those that were kept count for them",
            facts.thinned
        );
    }
    if !facts.unread.is_empty() {
        let _ = write!(aside, "; not read: {}", facts.unread.join(", "));
    }
    format!(
        "{} trajectories of {} steps on average (longest {}), {} {}{groups}{ranks}; N = {} per batch{aside}",
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
    let _ = writeln!(text, "\n{}", facts(measured));
    if !measured.ages.is_empty() {
        let _ = write!(
            text,
            "\n{}\n{}",
            age_table(measured).to_text(width),
            limit_table(measured).to_text(width)
        );
    }
    let _ = write!(text, "\n{}", number_table(measured).to_text(width));
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
        let told: Vec<&str> = FORMULAS.iter().map(|(name, _)| *name).collect();
        assert_eq!(told, NAMES, "every number has its formula, in order");
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
    }
}
