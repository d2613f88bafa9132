//! The drawing: its frame, rows, axis and legend. Bars are in `bars`, dates in `dates`.

use super::colour::colour;
use super::dates::{Lag, Window};
use crate::{Placed, Schedule};
use std::collections::{BTreeMap, HashMap};

/// What a chart shows besides its schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gantt {
    /// What is drawn, e.g. the instance's name.
    pub title: String,
    /// Number of machines, so that idle ones have a row too; those of the schedule if zero.
    pub machines: usize,
    /// When everything should be done.
    pub deadline: Option<u32>,
    /// The best lower bound known, drawn where it is below the makespan.
    pub bound: Option<u32>,
    /// The drawing's width, where it should not grow with the number of operations.
    pub width: Option<f64>,
    /// What a general shop adds, if it is one.
    pub details: Details,
}

/// What a general shop shows: names, closed times, setups, due dates, and times in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// `[machine]`; numbers where absent.
    pub machines: Vec<String>,
    /// `[job]`; numbers where absent.
    pub jobs: Vec<String>,
    /// `[job][operation]`; numbers where absent.
    pub operations: Vec<Vec<String>>,
    /// When each machine is closed: `[machine]`.
    pub closed: Vec<Vec<(u32, u32)>>,
    /// Setups: machine, from, to.
    pub setups: Vec<(u32, u32, u32)>,
    /// `[job]`; jobs that end later are marked.
    pub due: Vec<Option<u32>>,
    /// The due dates of jobs that were due before the chart begins, in words; they are drawn at its beginning.
    pub overdue: BTreeMap<u32, String>,
    /// Windows of operations, where they lie.
    pub windows: Vec<Window>,
    /// Rests that must lie between operations of a job.
    pub lags: Vec<Lag>,
    /// Marks of the axis: a time and what it is called; numbers where there is none.
    pub ticks: Vec<(u32, String)>,
    /// Times in words; numbers where absent.
    pub words: BTreeMap<u32, String>,
    /// The date of time 0 in seconds since 1970, and the seconds of one unit, where the shop has dates.
    pub clock: Option<(i64, f64)>,
}

/// A drawing is this wide, or wider where a machine runs so many operations that their numbers would not fit.
const NARROWEST: f64 = 1200.0;
const WIDEST: f64 = 4800.0;
/// Room for one operation on the busiest machine.
const ROOM: f64 = 24.0;
/// Below this width a drawing is for a phone: short names, nothing under the pointer.
const SMALL: f64 = 600.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const HEAD: f64 = 62.0;
const AXIS: f64 = 34.0;
/// Width of a digit in the letters of a bar.
pub(super) const DIGIT: f64 = 6.6;
const SWATCH: f64 = 46.0;

const STYLE: &str = "\
.gantt{color-scheme:light dark;font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;\
--paper:#fff;--ink:#1b1f24;--soft:#59626d;--hair:#dde1e6;--wash:#f6f7f9;--bad:#b03a00;--good:#005f97}\
@media (prefers-color-scheme:dark){.gantt{--paper:#14171b;--ink:#e4e7eb;--soft:#a2abb6;--hair:#343a42;--wash:#1b1f24;\
--bad:#ff9a5c;--good:#7cc4f0}}\
.gantt .paper{fill:var(--paper)}.gantt .wash{fill:var(--wash)}.gantt text{fill:var(--ink)}.gantt .soft{fill:var(--soft)}\
.gantt .title{font-size:15px;font-weight:600}.gantt .grid{stroke:var(--hair);stroke-width:1}.gantt .tick{stroke:var(--soft)}\
.gantt .bar{stroke:var(--paper);stroke-width:.75;cursor:pointer}.gantt text.in{fill:#14171b;font-size:11px;text-anchor:middle;pointer-events:none}\
.gantt .deadline{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:5 4}.gantt .deadline-text{fill:var(--bad);font-weight:600}\
.gantt .end{stroke:var(--ink);stroke-width:1.5}.gantt .bound{stroke:var(--good);stroke-width:1.5;stroke-dasharray:2 3}\
.gantt .bound-text{fill:var(--good)}.gantt .closed{fill:var(--hair);fill-opacity:.75}.gantt .pause{fill:var(--hair);fill-opacity:.8;pointer-events:none}.gantt .setup{fill:none;stroke:var(--soft);stroke-width:1;stroke-dasharray:2 2}\
.gantt .window,.gantt .lag{fill:none;stroke:var(--ink);stroke-width:1.3}.gantt .lag{stroke-dasharray:.5 3;stroke-linecap:round}\
.gantt .under{fill:none;stroke:var(--paper);stroke-width:3.5;stroke-opacity:.6;pointer-events:none}.gantt text.rest{fill:var(--ink)}.gantt .due{stroke:var(--ink);stroke-width:.6}\
.gantt .bar.late{stroke:var(--bad);stroke-width:1.8}.gantt .overdue{stroke:var(--bad);stroke-width:3}.gantt .late-text{fill:var(--bad);font-weight:600}\
.gantt .halo{stroke:var(--paper);stroke-width:4.5;stroke-opacity:.85}.gantt .mid{text-anchor:middle}.gantt .right{text-anchor:end}\
.gantt .key{cursor:pointer}.gantt.lit [data-j]{opacity:.13}.gantt.lit [data-j].on{opacity:1}.gantt .off{display:none}";

/// Draws a schedule as SVG.
///
/// Shapes: one row per machine; bars carry their job's number where it fits; the legend wraps.
#[must_use]
pub fn gantt(schedule: &Schedule, options: &Gantt) -> String {
    let highest = schedule.operations.iter().map(|here| here.machine as usize + 1).max().unwrap_or(0);
    Drawing::new(schedule, options, options.machines.max(highest).max(1)).render()
}

pub(super) struct Drawing<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) options: &'a Gantt,
    pub(super) machines: usize,
    pub(super) makespan: u32,
    width: f64,
    left: f64,
    /// The last time that is drawn.
    pub(super) span: f64,
    pub(super) row: f64,
    /// The last operation of each job.
    pub(super) last: HashMap<u32, Placed>,
    svg: String,
}

impl<'a> Drawing<'a> {
    fn new(schedule: &'a Schedule, options: &'a Gantt, machines: usize) -> Self {
        let makespan = schedule.makespan();
        let mut busy = vec![0_u32; machines];
        schedule.operations.iter().for_each(|here| busy[here.machine as usize] += 1);
        let busiest = busy.into_iter().max().unwrap_or(0);
        let grown = (86.0 + RIGHT + ROOM * f64::from(busiest)).clamp(NARROWEST, WIDEST);
        let width = options.width.unwrap_or(grown);
        let left = if width < SMALL { 62.0 } else { 86.0 };
        let last = makespan.max(options.deadline.unwrap_or(0)).max(1);
        let row = match machines {
            0..=6 => 38.0,
            7..=12 => 32.0,
            13..=24 => 26.0,
            _ => 18.0,
        };
        let span = f64::from(last) * 1.01;
        let mut last: HashMap<u32, Placed> = HashMap::new();
        for here in &schedule.operations {
            let known = last.entry(here.job).or_insert(*here);
            if here.end >= known.end {
                *known = *here;
            }
        }
        Self { schedule, options, machines, makespan, width, left, span, row, last, svg: String::new() }
    }

    /// Whether it is drawn for a phone.
    pub(super) fn is_small(&self) -> bool {
        self.width < SMALL
    }

    /// Width of the rows.
    pub(super) fn room(&self) -> f64 {
        self.width - self.left - RIGHT
    }

    /// A time's place, from the left end of the rows.
    pub(super) fn x(&self, time: f64) -> f64 {
        time / self.span * self.room()
    }

    /// Top and bottom of a machine's row, from the top of the rows.
    pub(super) fn row_of(&self, machine: u32) -> (f64, f64) {
        let top = self.row * f64::from(machine);
        (top + 1.0, top + self.row - 1.0)
    }

    /// The floor of the rows.
    pub(super) fn floor(&self) -> f64 {
        self.row * self.machines as f64
    }

    pub(super) fn put(&mut self, line: &str) {
        self.svg.push_str(line);
        self.svg.push('\n');
    }

    fn render(mut self) -> String {
        let width = self.width;
        let jobs = self.jobs();
        let columns = ((self.room() / self.swatch()).floor() as usize).max(1);
        let legend_top = HEAD + self.floor() + AXIS + 16.0;
        let height = legend_top + jobs.len().div_ceil(columns) as f64 * 20.0 + 10.0;
        self.put(&format!(
            "<svg class=\"gantt\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}: makespan {}\">",
            escape(&self.options.title),
            self.makespan
        ));
        self.put(&format!("<style>{STYLE}</style>"));
        self.put(&format!("<rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>"));
        self.head(jobs.len());
        self.names();
        let clock = self
            .options
            .details
            .clock
            .map_or(String::new(), |(from, unit)| format!(" data-clock=\"{from} {unit}\""));
        self.put(&format!(
            "<g class=\"panel\" transform=\"translate({} {HEAD})\" data-size=\"{:.1} {:.1}\" data-x=\"0 {}\"{clock}>",
            self.left,
            self.room(),
            self.floor(),
            self.span
        ));
        self.rows();
        self.put("<g class=\"ticks\">");
        self.axis();
        let lines = self.lines();
        self.put("</g>");
        self.put(&format!(
            "<svg class=\"plot\" width=\"{:.1}\" height=\"{:.1}\" y=\"-8\" viewBox=\"0 -8 {:.1} {:.1}\">",
            self.room() + RIGHT / 2.0,
            self.floor() + 8.0,
            self.room() + RIGHT / 2.0,
            self.floor() + 8.0
        ));
        self.closed();
        self.bars();
        self.dates();
        self.put(&lines);
        self.put("</svg></g>");
        self.legend(&jobs, columns, legend_top);
        self.svg.push_str("</svg>\n");
        self.svg
    }

    fn head(&mut self, jobs: usize) {
        let title = escape(&short(&self.options.title, if self.is_small() { 22 } else { 60 }));
        self.put(&format!(
            "<text class=\"title\" x=\"{}\" y=\"24\">{title}</text>",
            if self.is_small() { 4.0 } else { self.left }
        ));
        let (machines, operations) = (self.machines, self.schedule.operations.len());
        let size = if self.is_small() {
            format!("{jobs} × {machines}")
        } else {
            format!("{jobs} jobs, {machines} machines, {operations} operations")
        };
        self.put(&format!(
            "<text class=\"soft right\" x=\"{:.1}\" y=\"24\">{size}</text>",
            self.width - RIGHT
        ));
    }

    /// Room for one job in the legend.
    fn swatch(&self) -> f64 {
        let longest = self.options.details.jobs.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        SWATCH.max(34.0 + DIGIT * longest.min(28) as f64)
    }

    pub(super) fn job_name(&self, job: u32) -> String {
        self.options
            .details
            .jobs
            .get(job as usize)
            .map_or_else(|| job.to_string(), |name| escape(&short(name, 28)))
    }

    pub(super) fn operation_name(&self, job: u32, operation: u32) -> String {
        let name =
            self.options.details.operations.get(job as usize).and_then(|all| all.get(operation as usize));
        name.map_or_else(|| format!("operation {operation}"), |name| escape(&short(name, 28)))
    }

    pub(super) fn machine_name(&self, machine: usize) -> String {
        let name = self.options.details.machines.get(machine);
        let (long, word) = if self.is_small() { (8, "m") } else { (13, "machine ") };
        name.map_or_else(|| format!("{word}{machine}"), |name| escape(&short(name, long)))
    }

    /// A time in words.
    pub(super) fn when(&self, time: u32) -> String {
        self.options.details.words.get(&time).map_or_else(|| time.to_string(), |words| escape(words))
    }

    /// The jobs that appear, sorted.
    pub(super) fn jobs(&self) -> Vec<u32> {
        let mut jobs: Vec<u32> = self.schedule.operations.iter().map(|here| here.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    fn names(&mut self) {
        for machine in 0..self.machines {
            self.put(&format!(
                "<text class=\"right\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                self.left - 8.0,
                HEAD + self.row * (machine as f64 + 0.5) + 4.0,
                self.machine_name(machine)
            ));
        }
    }

    fn rows(&mut self) {
        for machine in (0..self.machines).step_by(2) {
            self.put(&format!(
                "<rect class=\"wash\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                self.row * machine as f64,
                self.room(),
                self.row
            ));
        }
    }

    fn closed(&mut self) {
        let span = self.span;
        for machine in 0..self.machines {
            let closed = self.options.details.closed.get(machine).cloned().unwrap_or_default();
            for (from, to) in closed.into_iter().filter(|&(from, _)| f64::from(from) < span) {
                let (left, right) = (self.x(f64::from(from)), self.x(f64::from(to).min(span)));
                self.put(&format!(
                    "<rect class=\"closed\" x=\"{left:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"/>",
                    self.row * machine as f64,
                    right - left,
                    self.row
                ));
            }
        }
    }

    fn axis(&mut self) {
        let mut ticks = self.options.details.ticks.clone();
        let step = nice_step(self.span / (self.room() / 90.0).max(2.0));
        if ticks.is_empty() {
            let count = (self.span / step).floor() as u32;
            ticks.extend(
                (0..=count).map(|tick| (tick * step as u32, format!("{:.0}", f64::from(tick) * step))),
            );
        }
        // Labels that would touch the one before them are left out.
        let (floor, mut free) = (self.floor(), f64::NEG_INFINITY);
        for (time, label) in ticks {
            let (x, half) = (self.x(f64::from(time)), 3.5 * label.chars().count() as f64);
            self.put(&format!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{:.1}\"/>",
                floor + 4.0
            ));
            if x - half > free && x + half < self.room() + RIGHT {
                free = x + half + 4.0;
                let y = floor + 18.0;
                self.put(&format!(
                    "<text class=\"soft mid\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
                    escape(&label)
                ));
            }
        }
    }

    /// The makespan, the bound and the deadline: labels above the rows that give way to each other, and the lines.
    fn lines(&mut self) -> String {
        let word = if self.is_small() { "" } else { "makespan " };
        let mut marks = vec![(self.makespan, "end", "", format!("{word}{}", self.when(self.makespan)))];
        if let Some(bound) = self.options.bound.filter(|&bound| bound < self.makespan) {
            marks.push((bound, "bound", "bound-text", format!("bound {}", self.when(bound))));
        }
        if let Some(deadline) = self.options.deadline {
            marks.push((deadline, "deadline", "deadline-text", format!("deadline {}", self.when(deadline))));
        }
        marks.sort_by_key(|mark| mark.0);
        // From the right: each label ends at its line, or where the one to its right begins.
        let (mut limit, floor, mut lines) = (self.room() + 16.0, self.floor(), String::new());
        for (time, line, text, label) in marks.into_iter().rev() {
            let x = self.x(f64::from(time));
            let width = 7.0 * label.chars().count() as f64;
            let end = (x + width / 2.0).min(limit);
            limit = end - width - 14.0;
            self.put(&format!("<text class=\"right {text}\" x=\"{end:.1}\" y=\"-13\">{label}</text>"));
            lines += &format!(
                "<line class=\"halo\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"-8\" y2=\"{floor:.1}\"/>\
                 <line class=\"{line}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"-8\" y2=\"{floor:.1}\"/>"
            );
        }
        lines
    }

    fn legend(&mut self, jobs: &[u32], columns: usize, top: f64) {
        self.put(&format!(
            "<text class=\"right soft\" x=\"{:.1}\" y=\"{:.1}\">jobs</text>",
            self.left - 8.0,
            top + 10.0
        ));
        for (index, &job) in jobs.iter().enumerate() {
            let left = self.left + self.swatch() * (index % columns) as f64;
            let top = top + 20.0 * (index / columns) as f64;
            self.put(&format!(
                "<g class=\"key\" data-j=\"{job}\"><rect fill=\"{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"12\" height=\"12\" \
                 rx=\"2\"/><text class=\"{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
                colour(job),
                if self.overdue(job).is_some() { "late-text" } else { "" },
                left + 16.0,
                top + 10.5,
                self.job_name(job)
            ));
        }
    }
}

/// The least of 1, 2 or 5 times a power of ten that is at least `least`, and at least 1.
fn nice_step(least: f64) -> f64 {
    let mut decade = 1.0;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            if factor * decade >= least {
                return factor * decade;
            }
        }
        decade *= 10.0;
    }
}

/// A name that leaves room for others.
fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Characters that mean something to SVG replaced, and control characters, which it cannot carry, written out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.extend(format!("\\u{:04x}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
