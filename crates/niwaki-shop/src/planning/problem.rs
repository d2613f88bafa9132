//! Files of any layout: special problems and plans, read and turned into each other.

use crate::formats::{self, Format, Recognised};
use crate::general::{self, Measure, Objective, Shop};
use crate::plan::Plan;
use crate::{Error, Instance, Result, Schedule};
use std::path::Path;

/// A layout of files: a special problem's, or a plan's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A layout of one of the special problems.
    Special(Format),
    /// A plan's tables as CSV.
    Csv,
    /// A plan's tables as JSON.
    Json,
    /// A plan's tables as a spreadsheet, which is read but not written.
    Xlsx,
}

impl Layout {
    /// The layout's name, as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Special(format) => format.name(),
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Xlsx => "xlsx",
        }
    }

    /// The layout of a name.
    ///
    /// # Errors
    /// If no layout has it.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            "xlsx" => Ok(Self::Xlsx),
            _ => Format::named(name).map(Self::Special).map_err(|_| {
                let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
                Error::Choice(format!("expected one of {}, csv, json or xlsx, got {name}", known.join(", ")))
            }),
        }
    }
}

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Problem {
    /// One of the special problems.
    Special(Instance),
    /// A general shop with names and dates.
    Plan(Box<Plan>),
}

/// A file that was understood.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The problem.
    pub problem: Problem,
    /// The layout in which it was read.
    pub layout: Layout,
    /// What the file leaves open and how it was settled, if anything.
    pub open: Option<&'static str>,
}

/// Reads a file, in a layout that is named or in the one that it has. A name that ends in `.csv` or `.xlsx` is a plan's.
///
/// # Errors
/// If the file cannot be read, or its first mistake; both name the file.
pub fn open(path: &Path, layout: Option<Layout>) -> Result<Opened> {
    let named = |error: Error| match error {
        known @ Error::File { .. } => known,
        other => Error::File { path: path.display().to_string(), what: other.to_string() },
    };
    let ends = |wanted: &str| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(wanted));
    let by_ending = if ends("csv") { Some(Layout::Csv) } else { ends("xlsx").then_some(Layout::Xlsx) };
    let plan = |plan: Plan, layout| Opened { problem: Problem::Plan(Box::new(plan)), layout, open: None };
    match layout.or(by_ending) {
        Some(Layout::Xlsx) => {
            let bytes =
                niwaki_files::read_bytes(path).map_err(|error| named(Error::Instance(error.to_string())))?;
            Plan::read_xlsx(&bytes).map(|read| plan(read, Layout::Xlsx)).map_err(named)
        }
        Some(layout @ (Layout::Csv | Layout::Json)) => {
            let text = formats::text_of(path)?;
            Plan::read(&text).map(|read| plan(read, layout)).map_err(named)
        }
        Some(Layout::Special(format)) => special(formats::recognise(path, Some(format))?),
        None => {
            let text = formats::text_of(path)?;
            if text.trim_start().starts_with('{') {
                if formats::is_plan(&text).map_err(named)? {
                    return Plan::read(&text).map(|read| plan(read, Layout::Json)).map_err(named);
                }
                if let Some((shop, format)) = formats::read_general(&text).map_err(named)? {
                    let read = Plan::from_shop(shop).map_err(named)?;
                    return Ok(plan(read, Layout::Special(format)));
                }
            }
            special(formats::recognise(path, None)?)
        }
    }
}

fn special(read: Recognised) -> Result<Opened> {
    let Recognised { instance, format, open } = read;
    Ok(Opened { problem: Problem::Special(instance), layout: Layout::Special(format), open })
}

impl Problem {
    /// A schedule of this problem: with numbers or names as we write it, or the orders of jobs as JobShopLib does, which are
    /// then followed as early as they can be.
    ///
    /// # Errors
    /// The first mistake, with its place; or what of the orders cannot be followed.
    pub fn read_schedule(&self, text: &str) -> Result<Schedule> {
        let (jobs, machines) = match self {
            Self::Special(instance) => (instance.jobs(), instance.machines()),
            Self::Plan(plan) => (plan.shop.jobs().len(), plan.shop.machines().len()),
        };
        if let Some(sequences) = formats::read_job_sequences(text, jobs, machines)? {
            return match self {
                Self::Special(instance) => {
                    general::follow(&Shop::from_instance(instance, usual_objective(instance))?, &sequences)
                }
                Self::Plan(plan) => general::follow(&plan.shop, &sequences),
            };
        }
        match self {
            Self::Special(_) => formats::read_schedule(text),
            Self::Plan(plan) => plan.read_schedule(text),
        }
    }

    /// The problem in another layout. Names and dates are kept by the two layouts of plans; the others have no place for
    /// them.
    ///
    /// # Errors
    /// If the layout has no place for the problem.
    pub fn write(&self, layout: Layout) -> Result<String> {
        let plan = || match self {
            Self::Plan(plan) => Ok((**plan).clone()),
            Self::Special(instance) => Plan::from_instance(instance, usual_objective(instance)),
        };
        match (self, layout) {
            (_, Layout::Csv) => Ok(plan()?.to_csv()),
            (_, Layout::Json) => Ok(plan()?.to_json()),
            (_, Layout::Xlsx) => {
                Err(Error::Choice("spreadsheets are read, not written: write csv or json".into()))
            }
            (Self::Special(instance), Layout::Special(format)) => format.write(instance),
            (Self::Plan(plan), Layout::Special(format)) => {
                let instance = plan.shop.as_instance().ok_or_else(|| {
                    Error::Choice(format!(
                        "the layout {} has no place for what this shop has beside routes: dates, calendars, setups, \
                         other precedences or another objective; write it as csv or json",
                        format.name()
                    ))
                })?;
                match (&instance, format.write(&instance)) {
                    // A job shop is a flexible one where a layout asks for that.
                    (Instance::Job(shop), Err(_)) => {
                        format.write(&Instance::Flexible(crate::FlexibleShop::from_job_shop(shop)?))
                    }
                    (_, written) => written,
                }
            }
        }
    }
}

/// What the solvers of a special problem minimise.
#[must_use]
pub fn usual_objective(instance: &Instance) -> Objective {
    match instance {
        Instance::Single(_) => Objective::only(Measure::TardyJobs),
        _ => Objective::only(Measure::Makespan),
    }
}
