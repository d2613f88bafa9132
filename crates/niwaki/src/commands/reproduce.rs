//! `niwaki reproduce`: the paper's tables and figures, re-run beside the printed numbers.

use crate::device::DeviceArgs;
use crate::watch::Watch;
use crate::{output, places, terminal};
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use niwaki_page::{Cell, Column, Table};
use niwaki_study::machines::collect;
use niwaki_study::training::{Workplace, judge_lines};
use niwaki_study::verdict::Count;
use niwaki_study::{Asked, Contents, Progress, Report, Study, answering, judged_tables, reproduce, studies};
use niwaki_train::Device;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Re-run tables and figures of the paper.
#[derive(Args)]
pub(crate) struct Reproduce {
    /// Labels of the paper, e.g. tab:diag-summary, `all` for every one, or studies of your own as .toml files.
    #[arg(value_name = "LABEL", required_unless_present = "list")]
    labels: Vec<String>,
    /// List all labels with their cost, and stop.
    #[arg(long)]
    list: bool,
    /// Number of seeds, in place of the study's own.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// First seed of training studies, in place of their own: to see whether results hold on fresh seeds.
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    first_seed: Option<u64>,
    /// Folder for results; each study has its own folder in it, and resumes from what is there.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Train nothing; report what the folder holds.
    #[arg(long)]
    report_only: bool,
    /// Hold the study's statements against the lines of a kept endpoints.csv; train nothing and write nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "first_seed", "report_only", "model"])]
    endpoints: Option<PathBuf>,
    /// Bring the finished runs of a bucket into the folder first, e.g. s3://bucket/runs.
    #[arg(long, value_name = "STORE", requires = "report_only")]
    from: Option<String>,
    /// Largest number of runs that train as one program on a GPU [default: a sixth of all, since six programs share it].
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// The pretrained model of studies that fine-tune one: a Hugging Face folder or a GGUF file (docs/pretrained.md).
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Reproduce {
    /// A study of one's own in a folder, as if it had been asked for.
    pub(super) fn of(study: &Path, out: &Path, device: DeviceArgs, report_only: bool) -> Self {
        Self {
            labels: vec![study.display().to_string()],
            list: false,
            seeds: None,
            first_seed: None,
            out: out.to_owned(),
            report_only,
            endpoints: None,
            from: None,
            members: None,
            model: None,
            device,
        }
    }

    /// Runs a study of one's own on this processor, writes its report, and gives its folder.
    pub(super) fn study(file: &Path, out: &Path) -> anyhow::Result<PathBuf> {
        let asked = Asked {
            seeds: None,
            first_seed: None,
            out,
            workplace: Some(Workplace { device: Device::Cpu, members: None }),
            made: output::made(),
        };
        let bar = terminal::Bar::default();
        let report = reproduce(own(&file.display().to_string())?, &asked, &|progress| match progress {
            // A part of something larger: how fast it went is not the subject.
            Progress::Trained { .. } => {}
            other => show(&bar, other),
        })?;
        write(&report)?;
        Ok(report.folder)
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.list {
            return list();
        }
        self.seeds.map_or(Ok(()), super::check_seeds)?;
        ensure!(self.members != Some(0), "--members 0 trains nothing; give at least 1");
        let mend = "the runs of a bucket are brought into one by --report-only --from";
        places::folder_only("--out", &self.out, mend)?;
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
        if let Some(file) = &self.endpoints {
            return self.judge_lines(chosen, file);
        }
        chosen = self.with_model(chosen)?;
        if let (Some(_), Some(study)) = (
            self.first_seed,
            chosen.iter().find_map(|study| match study {
                Contents::Diagnostics(study) => Some(study),
                Contents::Training(_) => None,
            }),
        ) {
            bail!(
                "--first-seed is for studies that train; {} measures policy pairs: leave it out",
                study.label
            );
        }
        let trains = chosen.iter().any(|study| matches!(study, Contents::Training(_)));
        let asked = Asked {
            seeds: self.seeds,
            first_seed: self.first_seed,
            out: &self.out,
            // What measures policy pairs needs no device.
            workplace: if trains && !self.report_only { Some(self.workplace()?) } else { None },
            made: output::made(),
        };
        let from = self.from.as_deref().map(niwaki_store::open).transpose().context("--from")?;
        for study in chosen {
            match (&study, &from) {
                (Contents::Diagnostics(study), _) => output::make_folder(&self.out.join(study.folder()))?,
                (Contents::Training(study), Some(store)) => {
                    collect(study, self.seeds, self.first_seed, store.clone(), &self.out)?;
                }
                (Contents::Training(_), None) => {}
            }
            let bar = Arc::new(terminal::Bar::default());
            let watch = match &study {
                Contents::Training(study) if asked.workplace.is_some() => {
                    let above = bar.clone();
                    Some(Watch::begin(self.out.join(study.folder()), move |table| above.above(table)))
                }
                _ => None,
            };
            let report = reproduce(study, &asked, &|progress| show(&bar, progress)).map_err(named);
            drop(watch);
            let report = report?;
            write(&report)?;
            conclude(&report);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Judges one study by the lines that are kept of its runs.
    fn judge_lines(&self, chosen: Vec<Contents>, file: &Path) -> anyhow::Result<ExitCode> {
        let named =
            |study: &Contents| matches!(study, Contents::Training(own) if self.labels.contains(&own.label));
        let several = chosen.len() > 1;
        let mut studies = chosen.into_iter().filter(|study| !several || named(study));
        let (Some(Contents::Training(study)), None) = (studies.next(), studies.next()) else {
            bail!("--endpoints: the lines are of one training study; name it alone by its own label");
        };
        let text =
            niwaki_files::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
        let label = study.label.clone();
        let (outcomes, left_out) = judge_lines(*study, file, &text)?;
        for table in judged_tables(&outcomes) {
            terminal::say(&table.to_text(terminal::width()));
        }
        if left_out > 0 {
            terminal::say(&format!("{left_out} statements need curves, pilots or runs that are not kept"));
        }
        terminal::say(&format!("{label}: {}", Count::of(&outcomes)));
        Ok(ExitCode::SUCCESS)
    }

    /// The studies with the model that some of them fine-tune; of all of the paper's, without those where there is none.
    fn with_model(&self, chosen: Vec<Contents>) -> anyhow::Result<Vec<Contents>> {
        let mut ready = Vec::with_capacity(chosen.len());
        for mut study in chosen {
            if let Contents::Training(training) = &mut study
                && training.lacks_model()
            {
                let Some(model) = &self.model else {
                    let missing =
                        format!("{} fine-tunes a pretrained model; name it with --model", training.label);
                    ensure!(self.labels.iter().any(|label| label == "all"), missing);
                    terminal::say(&format!("{missing}: left out"));
                    continue;
                };
                training.base.policy.model = Some(model.clone());
                let pretrained = training.base.pretrained().context("--model")?;
                let name = model.file_name().unwrap_or(model.as_os_str()).to_string_lossy().into_owned();
                training.readings.push(format!("The model of these runs: {name}, {}.", pretrained.digest));
            }
            ready.push(study);
        }
        Ok(ready)
    }

    /// Where missing runs are trained.
    fn workplace(&self) -> anyhow::Result<Workplace> {
        let device = self.device.choose()?;
        Ok(Workplace { device, members: self.members })
    }
}

/// Writes a report's files; rows are signed like every other document.
fn write(report: &Report) -> anyhow::Result<()> {
    for (name, text) in &report.files {
        let text = if name.ends_with(".json") { output::signed(text) } else { text.clone() };
        output::write_whole(&report.folder.join(name), &text)?;
    }
    Ok(())
}

/// Moves the bar, and says how fast a study was made.
fn show(bar: &terminal::Bar, progress: Progress<'_>) {
    match progress {
        Progress::Measures { label, pairs } => bar.begin(terminal::progress(pairs, label.to_owned())),
        Progress::Trains { label, run_iterations } => {
            bar.begin(terminal::run_progress(run_iterations, label.to_owned()));
        }
        Progress::Done(some) => bar.inc(some),
        Progress::Ends => bar.end(),
        Progress::Settled { label, words } => terminal::say(&format!("{label}: {words}")),
        Progress::Trained { label, speed: Some(speed) } => terminal::say(&format!(
            "{label}: {} runs, {} run-iterations in {:.1} s: {:.1} per second, start-up {:.2} s ({})",
            speed.runs,
            speed.run_iterations,
            speed.seconds,
            speed.rate(),
            speed.start_up_seconds,
            speed.device
        )),
        Progress::Trained { label, speed: None } => {
            terminal::say(&format!("{label}: every run was finished already"));
        }
    }
}

/// A refusal with the flag that mends it.
fn named(error: niwaki_study::Error) -> anyhow::Error {
    match error {
        niwaki_study::Error::NoResults { .. } => anyhow!("{error}; run it without --report-only first"),
        other => other.into(),
    }
}

/// A study from a file.
fn own(file: &str) -> anyhow::Result<Contents> {
    let text = niwaki_files::read_text(Path::new(file)).with_context(|| format!("cannot read {file}"))?;
    Ok(Contents::read(file, &text)?)
}

/// Prints what was measured, the paper's statements beside it, and where the page is.
fn conclude(report: &Report) {
    for table in &report.tables {
        terminal::say(&table.to_text(terminal::width()));
    }
    // A study of one's own states nothing.
    if !report.outcomes.is_empty() {
        terminal::say(&format!("{}: {}", report.label, report.count()));
    }
    let written: Vec<PathBuf> = report.files.iter().map(|(name, _)| report.folder.join(name)).collect();
    output::name_written(&written, false);
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
