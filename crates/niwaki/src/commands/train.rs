//! `niwaki train`: one run from a spec, in a folder that the same command resumes.

use crate::device::{DeviceArgs, Place};
use crate::{output, terminal};
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use niwaki_page::{Cell, Column, Format, Made, Table};
use niwaki_study::runs::run_page;
use niwaki_train::reading::Run;
use niwaki_train::run::{self, Ending, Summary, Told};
use niwaki_train::spec::PolicyKind;
use niwaki_train::{Device, Recipe, Record, Spec};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Exit code of a run that was interrupted: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// How often the page of a run that goes on is written.
const PAGED: Duration = Duration::from_secs(60);

/// How long an iteration in hand may take to be finished and saved, or left, once the run was asked to stop.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run's spec; the paper's tabular two-branch run if absent.
    file: Option<PathBuf>,
    /// Set a key of the spec, e.g. update.correction=tempered:0.1; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    device: DeviceArgs,
    /// The run's folder; runs/train/NAME-HASH/SEED if absent. An unfinished run in it is resumed.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the resolved spec, with a sentence for every key, and stop.
    #[arg(long)]
    print_spec: bool,
}

impl Args {
    /// Reads and checks the spec, trains, and says what came of it.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let spec = self.read()?;
        spec.check_alone()?;
        let recipe = spec.check()?;
        // What a folder of instances says is part of the spec by now.
        let spec = recipe.spec.clone();
        if self.print_spec {
            terminal::give(spec.to_commented_toml()?.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let device = self.device(&recipe)?;
        let folder = self.folder(&spec)?;
        let asked = Asked::watch(&folder, spec.iterations)?;
        let bar = terminal::run_progress(spec.iterations as u64, "training");
        let progress = |done: usize, of: usize| bar.set_message(format!("optima {done} of {of}"));
        let (mut mended, mut shown, mut paged) = (Vec::new(), Shown::default(), Instant::now());
        let ending = run::train(&recipe, &device, &folder, &asked.stop, &progress, |told| match told {
            Told::Record(record) => {
                shown.show(&bar, record);
                if paged.elapsed() >= PAGED && record.iteration < spec.iterations {
                    if !run::page_is_foreign(&folder) {
                        // What refuses it now is told when the run is done.
                        let _ = write_page(&folder);
                    }
                    paged = Instant::now();
                }
            }
            Told::Saves => asked.saves.store(true, Ordering::SeqCst),
            Told::Saved(iteration) => asked.saved(iteration),
            Told::Mended(path) => mended.push(path.to_owned()),
        });
        asked.saves.store(true, Ordering::SeqCst);
        bar.finish_and_clear();
        for path in mended {
            let reason = "it was not what the curve says, and was written anew from the curve";
            terminal::warn(&format!("{}: {reason}", path.display()));
        }
        match ending? {
            Ending::Done(summary) => {
                terminal::say(&report(&spec, &summary, &folder));
                write_page(&folder)?
                    .iter()
                    .for_each(|path| output::name_written(std::slice::from_ref(path), false));
                Ok(ExitCode::SUCCESS)
            }
            Ending::Stopped { iteration } => {
                terminal::say(&stopped(iteration, spec.iterations, &folder));
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    }

    fn read(&self) -> anyhow::Result<Spec> {
        let Some(file) = &self.file else { return super::spec("the default spec", "", &self.settings) };
        let text =
            niwaki_files::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(super::spec(&file.display().to_string(), &text, &self.settings)?.beside(file))
    }

    /// The folder that was named, or one that other settings and seeds do not share.
    fn folder(&self, spec: &Spec) -> anyhow::Result<PathBuf> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let name = self
            .file
            .as_deref()
            .and_then(Path::file_stem)
            .map_or("default".into(), |stem| stem.to_string_lossy());
        Ok(Path::new("runs/train").join(format!("{name}-{}", spec.hash()?)).join(spec.seed.to_string()))
    }

    fn device(&self, recipe: &Recipe) -> anyhow::Result<Device> {
        if self.device.device == Place::Cuda && recipe.spec.policy.kind == PolicyKind::Tabular {
            bail!("--device cuda: a tabular policy trains on the CPU; leave the flag out");
        }
        self.device.choose()
    }
}

/// What signals ask of a run.
struct Asked {
    stop: AtomicBool,
    /// Whether files are being written that are worth waiting for.
    saves: AtomicBool,
    /// The iteration from which the same command would go on.
    kept: AtomicUsize,
}

impl Asked {
    /// Hears Ctrl-C, and what a batch system or a closed terminal sends. A run that does not end by itself soon after, because
    /// one pass of it takes minutes, is ended; so is one that is asked a second time.
    fn watch(folder: &Path, iterations: usize) -> anyhow::Result<Arc<Self>> {
        let [stop, saves] = [false; 2].map(AtomicBool::new);
        let asked = Arc::new(Self { stop, saves, kept: AtomicUsize::new(0) });
        let (shared, folder) = (asked.clone(), folder.to_owned());
        let end = move |asked: &Self| {
            terminal::say(&stopped(asked.kept.load(Ordering::SeqCst), iterations, &folder));
            // Every file is whole at any moment.
            std::process::exit(i32::from(INTERRUPTED));
        };
        ctrlc::set_handler(move || {
            if shared.stop.swap(true, Ordering::SeqCst) {
                end(&shared);
            }
            let (shared, end) = (shared.clone(), end.clone());
            std::thread::spawn(move || {
                std::thread::sleep(PATIENCE);
                while shared.saves.load(Ordering::SeqCst) {
                    std::thread::sleep(PATIENCE / 20);
                }
                end(&shared);
            });
        })
        .context("cannot watch for signals")?;
        Ok(asked)
    }

    /// Notes what is saved.
    fn saved(&self, iteration: usize) {
        self.kept.store(iteration, Ordering::SeqCst);
        self.saves.store(false, Ordering::SeqCst);
    }
}

/// What is said of a run that was asked to stop.
fn stopped(iteration: usize, of: usize, folder: &Path) -> String {
    let folder = folder.display();
    match iteration {
        0 => format!(
            "stopped before an iteration was saved; the same command goes on from what is in {folder}"
        ),
        _ => format!(
            "stopped and saved after iteration {iteration} of {of} in {folder}; the same command goes on from there"
        ),
    }
}

/// Writes the page of a run and gives its path, unless another program's stands there; its bytes follow from the run alone,
/// wherever its folder lies.
fn write_page(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let path = folder.join(run::PAGE);
    // Half a page that a killed process left.
    niwaki_files::sweep_dead(folder).with_context(|| format!("cannot tidy {}", folder.display()))?;
    if run::page_is_foreign(folder) {
        terminal::warn(&format!(
            "{}: not written by niwaki train, so it stays as it is; to get this run's page, move it and run the same \
             command again",
            path.display()
        ));
        return Ok(None);
    }
    let made = Made::new(run::PAGE_COMMAND).fact("version", env!("CARGO_PKG_VERSION"));
    output::write_whole(&path, &run_page(&Run::read(folder)?, made).to_html())?;
    Ok(Some(path))
}

/// What was measured last: most iterations measure only their batch.
#[derive(Default)]
struct Shown {
    eta: Option<f64>,
    greedy: Option<f64>,
}

impl Shown {
    /// Moves the bar and shows the last score and the last batch.
    fn show(&mut self, bar: &ProgressBar, record: &Record) {
        self.eta = record.eta.or(self.eta);
        self.greedy = record.greedy.or(self.greedy);
        show(bar, record, self.eta, self.greedy);
    }
}

fn show(bar: &ProgressBar, record: &Record, eta: Option<f64>, greedy: Option<f64>) {
    // What an earlier process did counts as done, not as fast.
    if bar.position() == 0 && record.iteration > 1 {
        bar.reset_eta();
    }
    bar.set_position(record.iteration as u64);
    let eta = eta.map_or(String::new(), |eta| format!("eta {eta:.3}, "));
    let greedy = greedy.map_or(String::new(), |greedy| format!("greedy {greedy:.3}, "));
    bar.set_message(format!(
        "{eta}{greedy}drift {:.3}, clipped {:.1}%",
        record.drift,
        100.0 * record.clip_fraction
    ));
}

/// A small table, and where the curve lies.
fn report(spec: &Spec, summary: &Summary, folder: &Path) -> String {
    let title = format!(
        "{} by a {} policy, {}, seed {}, {} iterations",
        spec.task.kind,
        spec.policy.kind.words(),
        spec.update.correction,
        spec.seed,
        summary.done
    );
    let number = |value: Option<f64>| value.map_or(Cell::from("–"), Cell::from);
    let iteration =
        |value: Option<usize>| Cell::from(value.map_or("–".to_owned(), |value| value.to_string()));
    let column = |name: &str| Column::number(name).format(Format::fixed(3));
    let mut columns = Vec::new();
    if summary.final_eta.is_some() || summary.final_greedy.is_none() {
        columns.extend([
            (column("final eta"), number(summary.final_eta)),
            (column("best eta"), number(summary.best_eta)),
            (column("AUC"), number(summary.auc)),
            (Column::text("eta > 0.3 at"), iteration(summary.broke_through)),
            (Column::text("eta >= 0.95 at"), iteration(summary.solved)),
        ]);
    }
    if summary.final_greedy.is_some() {
        columns.push((column("final, likeliest"), number(summary.final_greedy)));
        columns.push((column("AUC, likeliest"), number(summary.greedy_auc)));
    }
    if summary.alpha.is_some() {
        columns.push((column("alpha"), number(summary.alpha)));
    }
    columns.push((column("mean drift"), Cell::from(summary.mean_drift)));
    let batches = iteration(Some(summary.zero_reward_batches));
    columns.push((Column::text("zero-reward batches"), batches));
    let (heads, cells): (Vec<Column>, Vec<Cell>) = columns.into_iter().unzip();
    let table = heads.into_iter().fold(Table::new(title), Table::column).row(cells);
    let unproven = match summary.unproven {
        Some(0) => "every optimum is proven\n".to_owned(),
        Some(count) => format!("{count} optima are not proven: the best known makespan counts there\n"),
        None => String::new(),
    };
    let table = table.to_text(terminal::width());
    format!("{}\n{unproven}curve: {}", table.trim_end(), folder.join(run::CURVE).display())
}
