//! `niwaki reproduce`: the paper's tables and figures, re-run beside the printed numbers.

use crate::device::DeviceArgs;
use crate::{output, terminal};
use anyhow::{Context, ensure};
use clap::Args;
use niwaki_page::{Cell, Column, Table};
use niwaki_study::claim::{Judgement, Outcome};
use niwaki_study::diagnostics::{Diagnostics, league_table, study_page, summarise};
use niwaki_study::training::{
    Board, Calibration, Plan, Results, Runner, Strength, Training, comparisons_table, endpoints_csv,
    endpoints_table, training_page,
};
use niwaki_study::verdict::{leads_table, numbers_table, statements_table};
use niwaki_study::{Contents, Study, answering, studies};
use niwaki_train::spec::strictly;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Re-run tables and figures of the paper.
#[derive(Args)]
pub(crate) struct Reproduce {
    /// Labels of the paper, e.g. tab:diag-summary, `all` for every one, or training studies of your own as .toml files.
    #[arg(value_name = "LABEL", required_unless_present = "list")]
    labels: Vec<String>,
    /// List the labels that exist so far, with what they cost.
    #[arg(long)]
    list: bool,
    /// Number of seeds, in place of the study's own.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Folder for results; each study gets a folder of its own in it, and goes on from what is there.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Train nothing; report what the folder holds.
    #[arg(long)]
    report_only: bool,
    /// Most runs that train as one program on a GPU; where absent, a sixth of all, as six programs share it.
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Reproduce {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.list {
            return list();
        }
        self.seeds.map_or(Ok(()), super::check_seeds)?;
        ensure!(self.members != Some(0), "--members 0 trains nothing; give at least 1");
        let mut chosen = Vec::new();
        for label in &self.labels {
            match label.as_str() {
                "all" => {
                    chosen.extend(studies().iter().map(Study::read).collect::<Result<Vec<_>, _>>()?);
                }
                file if file.ends_with(".toml") => chosen.push(own(file)?),
                label => {
                    chosen.extend(answering(label)?.iter().map(Study::read).collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
        for study in chosen {
            match study {
                Contents::Diagnostics(spec) => self.measure(&spec)?,
                Contents::Training(spec) => self.train(*spec)?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, spec: &Diagnostics) -> anyhow::Result<()> {
        let grid = spec.grid(self.seeds)?;
        let folder = self.out.join(spec.label.replace(':', "-"));
        output::make_folder(&folder)?;
        let bar = terminal::progress(grid.pairs() as u64, spec.label.clone());
        let rows = grid.run(|| bar.inc(1));
        bar.finish_and_clear();
        let rows = rows?;
        let summaries = summarise(&rows)?;
        let outcomes = spec.judge(&summaries)?;

        let page = study_page(spec, &outcomes, &rows, &summaries, output::made());
        output::write_whole(&folder.join("rows.csv"), &output::summaries_as_csv(&summaries))?;
        output::write_whole(&folder.join("rows.json"), &output::summaries_as_json(&summaries)?)?;
        output::write_whole(&folder.join("index.html"), &page.to_html())?;

        if grid.drifts.len() == 1 {
            terminal::say(&league_table(&spec.title, &summaries).to_text(terminal::width()));
        }
        conclude(&spec.label, &outcomes, &folder);
        Ok(())
    }

    /// Runs a study and reports it; where it has a pilot, that first, so that its cells are settled before any arm runs.
    fn train(&self, spec: Training) -> anyhow::Result<()> {
        let spec = match spec.pilot_study() {
            None => spec,
            Some(pilot) => {
                let seeds = self.seeds.map(|seeds| seeds.min(pilot.seeds));
                let plan = Plan::new(pilot, seeds)?;
                self.make(&plan)?;
                let results = Results::read(&plan, &self.out)?;
                let calibration = Calibration::choose(&spec, &Board { plan: &plan, results: &results })?;
                calibration.write(&self.out.join(spec.folder()))?;
                spec.calibrated(calibration)?
            }
        };
        let plan = self.settle(Plan::new(spec, self.seeds)?)?;
        let label = &plan.study.label;
        self.make(&plan)?;
        let results = Results::read(&plan, &self.out)?;
        let board = Board { plan: &plan, results: &results };
        let (outcomes, comparisons) = (board.judge()?, board.comparisons()?);

        let folder = self.out.join(plan.folder());
        let page = training_page(&board, &outcomes, &comparisons, output::made())?;
        output::write_whole(&folder.join("endpoints.csv"), &endpoints_csv(&board))?;
        output::write_whole(&folder.join("index.html"), &page.to_html())?;

        terminal::say(&endpoints_table(&plan.study.title, &board)?.to_text(terminal::width()));
        if !comparisons.is_empty() {
            let table = comparisons_table("Paired comparisons", &board, &comparisons);
            terminal::say(&table.to_text(terminal::width()));
        }
        conclude(label, &outcomes, &folder);
        Ok(())
    }

    /// Measures the strengths that a plan leaves to the rule, or reads them where nothing is to be trained.
    fn settle(&self, plan: Plan) -> anyhow::Result<Plan> {
        if !plan.measures() {
            return Ok(plan);
        }
        let strengths = if self.report_only {
            Strength::read(&self.out.join(plan.folder()))?
        } else {
            let (device, device_name) = self.device.choose()?;
            let (out, members) = (self.out.as_path(), self.members);
            Runner { out, device, device_name, members, tick: &|_| {} }.strengths(&plan)?
        };
        for strength in &strengths {
            terminal::say(&format!("{}: {}", plan.study.label, strength.words()));
        }
        Ok(plan.settled(&strengths)?)
    }

    /// Trains the runs of a plan that are missing, unless nothing is to be trained.
    fn make(&self, plan: &Plan) -> anyhow::Result<()> {
        if self.report_only {
            return Ok(());
        }
        let label = &plan.study.label;
        let (device, device_name) = self.device.choose()?;
        let bar = terminal::run_progress(label.clone());
        let tick = |done: u64| bar.inc(done);
        let runner = Runner { out: &self.out, device, device_name, members: self.members, tick: &tick };
        bar.set_length(runner.pending(plan)?);
        let speed = runner.run(plan);
        bar.finish_and_clear();
        match speed? {
            Some(speed) => terminal::say(&format!(
                "{label}: {} runs, {} run-iterations in {:.1} s: {:.1} per second, start-up {:.2} s ({})",
                speed.runs,
                speed.run_iterations,
                speed.seconds,
                speed.rate(),
                speed.start_up_seconds,
                speed.device
            )),
            None => terminal::say(&format!("{label}: every run was finished already")),
        }
        Ok(())
    }
}

/// A training study from a file.
fn own(file: &str) -> anyhow::Result<Contents> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    Ok(Contents::Training(Box::new(strictly(file, &text)?)))
}

/// Prints the paper's statements beside ours, and where the page is.
fn conclude(label: &str, outcomes: &[Outcome], folder: &Path) {
    if outcomes.iter().any(|outcome| outcome.paper.is_some()) {
        terminal::say(&numbers_table("The paper beside this run", outcomes).to_text(terminal::width()));
    }
    if let Some(table) = leads_table("The paper's leads beside this run", outcomes) {
        terminal::say(&table.to_text(terminal::width()));
    }
    if let Some(table) = statements_table("The paper's other statements", outcomes) {
        terminal::say(&table.to_text(terminal::width()));
    }
    let agree = outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Agrees).count();
    terminal::say(&format!("{label}: {agree} of {} statements agree", outcomes.len()));
    terminal::say(&format!("report: {}", folder.join("index.html").display()));
}

fn list() -> anyhow::Result<ExitCode> {
    let mut table = Table::new("").columns([
        Column::text("label"),
        Column::text("what it is"),
        Column::text("cost"),
        Column::number("statements"),
    ]);
    for study in studies() {
        let contents = study.read()?;
        let labels = std::iter::once(study.label.to_owned()).chain(study.also()?);
        table.push([
            Cell::code(labels.collect::<Vec<_>>().join(", ")),
            Cell::from(contents.title()),
            Cell::from(contents.cost()?),
            Cell::from(contents.statements() as f64),
        ]);
    }
    terminal::say(&table.to_text(terminal::width()));
    Ok(ExitCode::SUCCESS)
}
