//! `niwaki oracle`: any policy loss, measured exactly.

use crate::output::{self, Out, Piece};
use crate::python::{self, Fault};
use crate::{memory, npy, terminal};
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use niwaki_correction::family::{MEMBERS, TESTBED};
use niwaki_correction::{Correction, Surrogate};
use niwaki_exact::diagnostics::{
    BATCH, Grid, Policies, Progress, Report, iterations_to_csv, oracle, to_csv, to_json,
};
use niwaki_exact::{Payoff, Process, Reward};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measure policy losses exactly on an enumerable process.
#[derive(Args)]
#[command(after_help = losses_in_words(), allow_negative_numbers = true)]
pub(crate) struct Oracle {
    /// Terminal rewards, one or several [early-gate, late-only, sparse-match, two-branch].
    #[arg(long, default_value = "late-only", num_args = 1.., value_delimiter = ',', value_name = "NAME")]
    reward: Vec<Reward>,
    /// Terminal rewards from a file instead: f64 [vocab^horizon], first token most significant.
    #[arg(long, value_name = "R.npy", conflicts_with = "reward")]
    reward_table: Option<PathBuf>,
    /// Number of steps (T).
    #[arg(long, value_name = "T")]
    horizon: Option<usize>,
    /// Number of tokens (V).
    #[arg(long, value_name = "V")]
    vocab: Option<usize>,
    /// Standard deviation of the noise that separates the two policies' logits (δ).
    #[arg(long, default_value_t = 1.0, value_name = "D", conflicts_with = "logits_old")]
    drift: f64,
    /// Number of policy pairs.
    #[arg(long, default_value_t = 25, value_name = "N", conflicts_with = "logits_old")]
    seeds: u64,
    /// Trajectories in the batch whose update is judged [default: 256, or the batch of --run]. Losses are ranked by A(N): the
    /// part of that update that points where the return rises, over its whole size.
    #[arg(long, value_name = "N")]
    batch: Option<u64>,
    /// Losses to measure, separated by spaces or commas, e.g. ppo full tempered:0.25 clipped:0.25,1 truncated:4
    /// [default: the paper's twelve].
    #[arg(long, num_args = 1.., value_name = "LOSS")]
    losses: Vec<String>,
    /// A loss of your own, a function in a Python file: it takes log-ratios and advantages, NumPy arrays [sequences, steps], and
    /// returns the terms of its objective; may be given several times. Needs Python with NumPy.
    #[arg(long = "loss", value_name = "FILE.py:FUNCTION")]
    functions: Vec<String>,
    /// Logits of the policy that sampled: f64 [prefixes, vocab], prefixes breadth first.
    #[arg(long, value_name = "X.npy", requires = "logits_new")]
    logits_old: Option<PathBuf>,
    /// Logits of the policy being updated, in the same layout.
    #[arg(long, value_name = "Y.npy", requires = "logits_old")]
    logits_new: Option<PathBuf>,
    /// A pretrained model, given twice: first the one that sampled, then the one being updated. Each is a Hugging Face folder
    /// or a GGUF file; their predictions at all prefixes of --task are the pair of policies.
    #[arg(long, value_name = "MODEL", requires = "task", conflicts_with_all = ["logits_old", "reward", "reward_table", "drift", "seeds", "horizon", "vocab"])]
    model: Vec<PathBuf>,
    /// The record that the models fill, a TOML file; all its rewards are measured.
    #[arg(long, value_name = "RECORD.toml", requires = "model")]
    task: Option<PathBuf>,
    /// Which of the record's primings the models read first; none if absent.
    #[arg(long, value_name = "NAME", requires = "task")]
    priming: Option<String>,
    /// A run that kept its policies (`--set dump.policies=true` of niwaki train): each iteration is a pair, the policy that
    /// drew its batch and the one that the iteration made of it.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["logits_old", "model", "reward", "reward_table", "drift", "seeds", "horizon", "vocab"])]
    run: Option<PathBuf>,
    /// Clip the ratios to [1 − EPS, 1 + EPS], or [1 − LOW, 1 + HIGH] with two values; without it the unclipped
    /// surrogate is measured, as the paper does.
    #[arg(long, num_args = 1..=2, value_name = "EPS")]
    clip: Vec<f64>,
    /// Detach the prefix: no gradient flows through the correction factor.
    #[arg(long)]
    no_routing: bool,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Where to write a page with figures, and the rows as CSV and JSON: a folder for all, or one file that ends in .html,
    /// .csv or .json.
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// One object per loss under `rows`, full precision.
    Json,
    /// One line per loss, full precision.
    Csv,
}

/// Trajectories to draw for each pair and loss, in batches.
const DRAWN: u64 = 4096;

/// Batches above this are not drawn: their gradient is all but the expected one.
const MOST_DRAWN: u64 = 65_536;

/// What was measured to be the same as a trainer's own code.
const EQUALITIES: &str = "\
Equal to the trainers' own code (TRL 1.16, verl 0.9.1):
  gspo               TRL's gspo; with --no-routing, verl's
  cispo:0.2,0.2      verl's cispo
  cispo:1,4          TRL's cispo at epsilon_high = 5
  dual-clip          verl's vanilla; with C = delta, TRL's two-sided grpo
The other losses under a trainer's name are held to its code, too, value and gradient;
docs/losses.md says where a constant or a mean differs.";

/// Columns of the help's list of losses.
const HELP_WIDTH: usize = 98;

/// Every loss as it is written, with what it says of itself.
fn losses_in_words() -> String {
    let losses = MEMBERS.iter().map(|member| (member.usage(), member.summary.to_owned()));
    let aliases = MEMBERS.iter().flat_map(|member| {
        member
            .aliases
            .iter()
            .map(move |alias| (alias.name.to_owned(), format!("{}: {}", member.name, alias.note)))
    });
    format!("Losses:{}\n\nOther names for them:{}\n\n{EQUALITIES}", entries(losses), entries(aliases))
}

/// Names with what is said of each, in a column of its own.
fn entries(list: impl Iterator<Item = (String, String)>) -> String {
    let list: Vec<(String, String)> = list.collect();
    let width = list.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let indent = width + 4;
    let mut text = String::new();
    for (name, says) in list {
        let _ = write!(text, "\n  {name:width$} ");
        let mut column = indent - 1;
        for word in says.split(' ') {
            let letters = word.chars().count();
            if column + 1 + letters > HELP_WIDTH {
                let _ = write!(text, "\n{:indent$}{word}", "");
                column = indent + letters;
            } else {
                let _ = write!(text, " {word}");
                column += 1 + letters;
            }
        }
    }
    text
}

impl Oracle {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let place = self.out.as_deref().map(|path| Out::new(path, &["html", "csv", "json"])).transpose()?;
        let report = self.measure()?;
        let format = if self.json { Format::Json } else { self.format };
        match format {
            Format::Json => terminal::give(output::signed(&to_json(&report.league)).trim_end()),
            Format::Csv => terminal::give(to_csv(&report.league).trim_end()),
            Format::Text => {
                for (table, leaders) in report.tables().iter().zip(report.leaders()) {
                    terminal::say(&table.to_text(terminal::width()));
                    terminal::say(&format!("{leaders}\n"));
                }
            }
        }
        if let Some(out) = place {
            let mut pieces = vec![
                Piece::new("oracle.csv", to_csv(&report.league)),
                Piece::json("oracle.json", &to_json(&report.league)),
            ];
            if report.along {
                pieces.push(Piece::new("iterations.csv", iterations_to_csv(&report.rows)?));
            }
            let page = report.page("What a policy loss is worth", output::made());
            pieces.extend(page.map(|page| Piece::new("index.html", page.to_html())));
            output::name_written(&out.write(&pieces)?, format != Format::Text);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Every loss, measured; with what a page adds where one is to be written.
    pub(super) fn measure(&self) -> anyhow::Result<Report> {
        if let Some(batch @ 0..2) = self.batch {
            bail!("--batch {batch}: a batch must have at least 2 trajectories");
        }
        let (bar, fault) = (terminal::Bar::default(), Fault::default());
        let found = oracle(&self.grid(&fault)?, self.out.is_some(), &|progress| match progress {
            Progress::Begins { what, pairs } => bar.begin(terminal::progress(pairs as u64, what)),
            Progress::Pair => bar.inc(1),
            Progress::Ends => bar.end(),
        });
        fault.check()?;
        Ok(found?)
    }

    fn grid(&self, fault: &Fault) -> anyhow::Result<Grid> {
        if let Some(run) = &self.run {
            return Ok(self.judged(super::models::along(run, self.losses(fault)?, memory::limit())?));
        }
        if let Some(task) = &self.task {
            let (priming, losses) = (self.priming.as_deref(), self.losses(fault)?);
            let grid = super::models::grid(&self.model, task, priming, losses, memory::limit())?;
            return Ok(self.judged(grid));
        }
        let (process, policies) = match (&self.logits_old, &self.logits_new) {
            (Some(old), Some(new)) => self.given(old, new)?,
            _ => {
                let process = process(self.vocab.unwrap_or(4), self.horizon.unwrap_or(6))?;
                super::check_seeds(self.seeds)?;
                ensure!(
                    self.drift.is_finite() && self.drift > 0.0,
                    "--drift {} must be a positive number",
                    self.drift
                );
                (process, Policies::Drawn { rollout_scale: 0.1, seeds: (0..self.seeds).collect() })
            }
        };
        let rewards = match &self.reward_table {
            None => (once_each(self.reward.iter().copied()).into_iter())
                .map(|reward| Ok((reward.name().to_owned(), reward.payoff(process)?)))
                .collect::<anyhow::Result<Vec<_>>>()?,
            Some(path) => {
                let table = npy::read(path)?;
                ensure!(
                    table.shape.len() == 1 || table.shape == vec![process.vocab(); process.horizon()],
                    "--reward-table {} has shape {:?}; save x.reshape(-1), the first token most significant",
                    path.display(),
                    table.shape
                );
                let payoff = Payoff::from_table(process, table.values)
                    .with_context(|| format!("--reward-table {}", path.display()))?;
                vec![(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), payoff)]
            }
        };
        let drift = if self.logits_old.is_some() { 1.0 } else { self.drift };
        let (losses, memory) = (self.losses(fault)?, memory::limit());
        let drifts = vec![drift];
        Ok(self.judged(Grid { process, rewards, drifts, policies, losses, batch: BATCH, drawn: 0, memory }))
    }

    /// The grid at the batch that was asked for, with as many drawn batches as are cheap.
    fn judged(&self, grid: Grid) -> Grid {
        let batch = self.batch.unwrap_or(grid.batch);
        let drawn = if batch > MOST_DRAWN { 0 } else { (DRAWN / batch).clamp(2, 64) as usize };
        Grid { batch, drawn, ..grid }
    }

    /// The process and the two tables of `--logits-old` and `--logits-new`.
    fn given(&self, old: &Path, new: &Path) -> anyhow::Result<(Process, Policies)> {
        let (first, second) = (npy::read(old)?, npy::read(new)?);
        for (path, array) in [(old, &first), (new, &second)] {
            ensure!(
                array.shape.len() == 2,
                "{} has shape {:?}; logits are a table [prefixes, vocab]",
                path.display(),
                array.shape
            );
        }
        ensure!(
            first.shape == second.shape,
            "{} has shape {:?} and {} has {:?}; both must cover the same prefixes",
            old.display(),
            first.shape,
            new.display(),
            second.shape
        );
        let (prefixes, vocab) = (first.shape[0], first.shape[1]);
        ensure!(vocab > 1, "{} has rows of {vocab}; a vocabulary has at least 2 tokens", old.display());
        let horizon = Process::horizon_of(prefixes, vocab).with_context(|| {
            format!(
                "{} has {prefixes} rows of {vocab}; a table for {vocab} tokens has (V^T − 1)/(V − 1) rows, \
                 that is 1, {}, {}, …",
                old.display(),
                1 + vocab,
                1 + vocab + vocab * vocab
            )
        })?;
        for (flag, asked, came) in [("--horizon", self.horizon, horizon), ("--vocab", self.vocab, vocab)] {
            ensure!(
                asked.is_none_or(|asked| asked == came),
                "{flag} {} disagrees with the tables, which say {came}; leave the flag out",
                asked.unwrap_or_default()
            );
        }
        Ok((process(vocab, horizon)?, Policies::Given { old: first.values, new: second.values }))
    }

    fn losses(&self, fault: &Fault) -> anyhow::Result<Vec<Surrogate>> {
        let written: Vec<String> = self.losses.iter().flat_map(|text| split_losses(text)).collect();
        ensure!(
            written.iter().all(|name| !name.is_empty()),
            "--losses {}: a comma has nothing beside it; take it out",
            self.losses.join(" ")
        );
        let names = if written.is_empty() { TESTBED.map(ToOwned::to_owned).to_vec() } else { written };
        let clip = super::clip(&self.clip)?;
        let members = names.iter().map(|name| name.parse().context("--losses"));
        let named = |text: &String| text.rsplit_once(':').map(|(_, name)| name.to_owned());
        let asked = once_each(&self.functions);
        if let Some(again) = asked
            .iter()
            .enumerate()
            .find(|(place, text)| asked[..*place].iter().any(|other| named(other) == named(text)))
        {
            bail!("--loss {}: another function is called so; rename one of them", again.1);
        }
        let functions = asked.into_iter().map(|text| python::loss(text, fault));
        let losses = members.chain(functions).map(|correction: anyhow::Result<Correction>| {
            Ok(Surrogate { clip, routing: !self.no_routing, ..Surrogate::new(correction?) })
        });
        Ok(once_each(losses.collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// A process whose pairs fit the oracle's limit, and what the system has left.
fn process(vocab: usize, horizon: usize) -> anyhow::Result<Process> {
    Process::new(vocab, horizon)?;
    Ok(Process::within(vocab, horizon, memory::limit())?)
}

/// The values without repetitions, which would count as pairs of their own.
fn once_each<X: PartialEq>(values: impl IntoIterator<Item = X>) -> Vec<X> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

/// Losses separated by commas; a number after a comma belongs to the loss before it (`clipped:0.25,1`).
fn split_losses(text: &str) -> Vec<String> {
    let mut losses: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        match losses.last_mut() {
            Some(last) if piece.parse::<f64>().is_ok() && last.contains(':') => {
                *last = format!("{last},{piece}")
            }
            _ => losses.push(piece.to_owned()),
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_from_text() {
        assert_eq!(split_losses("ppo,clipped:0.25,1,full"), ["ppo", "clipped:0.25,1", "full"]);
        assert_eq!(split_losses("clipped:0.25,inf"), ["clipped:0.25,inf"]);
        assert_eq!(split_losses("truncated:4"), ["truncated:4"]);
    }
}
