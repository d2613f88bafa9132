//! The drawing.

use super::colour::colour;
use super::dates::Window;
use crate::{Placed, Schedule};

/// What a chart shows besides its schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gantt {
    /// What is drawn, e.g. the instance's name.
    pub title: String,
    /// Number of machines, so that idle ones have a row too; those of the schedule if zero.
    pub machines: usize,
    /// When everything should be done.
    pub deadline: Option<u32>,
    /// The best lower bound known, drawn where it is below the makespan.
    pub bound: Option<u32>,
    /// What a general shop adds, if it is one.
    pub details: Details,
}

/// What a general shop shows: names, closed times, setups, due dates, and times in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// `[machine]`; numbers where absent.
    pub machines: Vec<String>,
    /// `[job]`; numbers where absent.
    pub jobs: Vec<String>,
    /// When each machine is closed: `[machine]`.
    pub closed: Vec<Vec<(u32, u32)>>,
    /// Setups: machine, from, to.
    pub setups: Vec<(u32, u32, u32)>,
    /// `[job]`; jobs that end later are marked.
    pub due: Vec<Option<u32>>,
    /// Windows of operations, where they lie.
    pub windows: Vec<Window>,
    /// Marks of the axis: a time and what it is called; numbers where there is none.
    pub ticks: Vec<(u32, String)>,
    /// The end of the last operation in words; a number where absent.
    pub end: Option<String>,
}

/// A drawing is this wide, or wider where a machine runs so many operations that their numbers would not fit.
const NARROWEST: f64 = 1200.0;
const WIDEST: f64 = 4800.0;
/// Room for one operation on the busiest machine.
const ROOM: f64 = 24.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 24.0;
const HEAD: f64 = 62.0;
const AXIS: f64 = 34.0;
/// Width of a digit in the letters of a bar.
const DIGIT: f64 = 6.6;
const SWATCH: f64 = 46.0;

const STYLE: &str = "\
svg{color-scheme:light dark;font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;\
--paper:#fff;--ink:#1b1f24;--soft:#59626d;--hair:#dde1e6;--wash:#f6f7f9;--bad:#b03a00;--good:#005f97}\
@media (prefers-color-scheme:dark){svg{--paper:#14171b;--ink:#e4e7eb;--soft:#a2abb6;--hair:#343a42;--wash:#1b1f24;\
--bad:#ff9a5c;--good:#7cc4f0}}\
.paper{fill:var(--paper)}.wash{fill:var(--wash)}text{fill:var(--ink)}.soft{fill:var(--soft)}\
.title{font-size:15px;font-weight:600}.grid{stroke:var(--hair);stroke-width:1}\
.bar{stroke:var(--paper);stroke-width:.75}.in{fill:#14171b;font-size:11px;text-anchor:middle;pointer-events:none}\
.deadline{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:5 4}.deadline-text{fill:var(--bad);font-weight:600}\
.end{stroke:var(--ink);stroke-width:1.5}.bound{stroke:var(--good);stroke-width:1.5;stroke-dasharray:2 3}\
.bound-text{fill:var(--good)}.closed{fill:var(--hair);fill-opacity:.75}.pause{fill:var(--hair);fill-opacity:.8;pointer-events:none}.setup{fill:none;stroke:var(--soft);stroke-width:1;stroke-dasharray:2 2}\
.window{fill:none;stroke-width:1.5}.due{stroke:var(--ink);stroke-width:.6}.late{stroke:var(--bad);stroke-width:1.8}.overdue{stroke:var(--bad);stroke-width:3}.late-text{fill:var(--bad);font-weight:600}.halo{stroke:var(--paper);stroke-width:4.5;stroke-opacity:.85}.mid{text-anchor:middle}.right{text-anchor:end}";

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
    machines: usize,
    makespan: u32,
    width: f64,
    /// The last time that is drawn.
    pub(super) span: f64,
    row: f64,
    svg: String,
}

impl<'a> Drawing<'a> {
    fn new(schedule: &'a Schedule, options: &'a Gantt, machines: usize) -> Self {
        let makespan = schedule.makespan();
        let mut busy = vec![0_u32; machines];
        schedule.operations.iter().for_each(|here| busy[here.machine as usize] += 1);
        let busiest = busy.into_iter().max().unwrap_or(0);
        let width = (LEFT + RIGHT + ROOM * f64::from(busiest)).clamp(NARROWEST, WIDEST);
        let last = makespan.max(options.deadline.unwrap_or(0)).max(1);
        let row = match machines {
            0..=6 => 38.0,
            7..=12 => 32.0,
            13..=24 => 26.0,
            _ => 18.0,
        };
        Self {
            schedule,
            options,
            machines,
            makespan,
            width,
            span: f64::from(last) * 1.01,
            row,
            svg: String::new(),
        }
    }

    pub(super) fn x(&self, time: f64) -> f64 {
        LEFT + time / self.span * (self.width - LEFT - RIGHT)
    }

    /// Top and bottom of a machine's row.
    pub(super) fn row_of(&self, machine: u32) -> (f64, f64) {
        let top = HEAD + self.row * f64::from(machine);
        (top + 1.0, top + self.row - 1.0)
    }

    /// The floor of the rows.
    fn floor(&self) -> f64 {
        HEAD + self.row * self.machines as f64
    }

    pub(super) fn put(&mut self, line: &str) {
        self.svg.push_str(line);
        self.svg.push('\n');
    }

    fn render(mut self) -> String {
        let width = self.width;
        let jobs = self.jobs();
        let columns = (((self.width - LEFT - RIGHT) / self.swatch()).floor() as usize).max(1);
        let legend_top = self.floor() + AXIS + 16.0;
        let height = legend_top + jobs.len().div_ceil(columns) as f64 * 20.0 + 10.0;
        self.put(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\">"
        ));
        let title = escape(&self.options.title);
        let operations = self.schedule.operations.len();
        self.put(&format!("<title>{title}: makespan {}</title>", self.makespan));
        self.put(&format!("<style>{STYLE}</style>"));
        self.put(&format!("<rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>"));
        self.put(&format!("<text class=\"title\" x=\"{LEFT}\" y=\"24\">{title}</text>"));
        self.put(&format!(
            "<text class=\"soft right\" x=\"{:.1}\" y=\"24\">{} jobs, {} machines, {operations} operations</text>",
            self.width - RIGHT,
            jobs.len(),
            self.machines
        ));
        self.rows();
        self.axis();
        self.bars();
        self.dates();
        self.lines();
        self.legend(&jobs, columns, legend_top);
        self.svg.push_str("</svg>\n");
        self.svg
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

    fn machine_name(&self, machine: usize) -> String {
        let name = self.options.details.machines.get(machine);
        name.map_or_else(|| format!("machine {machine}"), |name| escape(&short(name, 13)))
    }

    /// When a job is due and when it ends, if that is later.
    fn overdue(&self, job: u32) -> Option<(u32, u32)> {
        let due = self.options.details.due.get(job as usize).copied().flatten()?;
        let of_job = self.schedule.operations.iter().filter(|here| here.job == job);
        of_job.map(|here| here.end).max().filter(|&end| end > due).map(|end| (due, end))
    }

    /// The jobs that appear, sorted.
    pub(super) fn jobs(&self) -> Vec<u32> {
        let mut jobs: Vec<u32> = self.schedule.operations.iter().map(|here| here.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    fn rows(&mut self) {
        for machine in 0..self.machines {
            let top = HEAD + self.row * machine as f64;
            if machine % 2 == 0 {
                let width = self.width - LEFT - RIGHT;
                self.put(&format!(
                    "<rect class=\"wash\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
                    self.row
                ));
            }
            self.put(&format!(
                "<text class=\"right\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                top + self.row / 2.0 + 4.0,
                self.machine_name(machine)
            ));
            let closed = self.options.details.closed.get(machine).cloned().unwrap_or_default();
            let span = self.span;
            for (from, to) in closed.into_iter().filter(|&(from, _)| f64::from(from) < span) {
                let (left, right) = (self.x(f64::from(from)), self.x(f64::from(to).min(span)));
                self.put(&format!(
                    "<rect class=\"closed\" x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{:.1}\"/>",
                    right - left,
                    self.row
                ));
            }
        }
    }

    fn axis(&mut self) {
        let floor = self.floor();
        if !self.options.details.ticks.is_empty() {
            for (time, label) in self.options.details.ticks.clone() {
                let x = self.x(f64::from(time));
                self.put(&format!(
                    "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{HEAD}\" y2=\"{:.1}\"/>\
                     <text class=\"soft mid\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    floor + 4.0,
                    floor + 18.0,
                    escape(&label)
                ));
            }
            return;
        }
        let step = nice_step(self.span / 12.0);
        let mut tick = 0.0;
        while tick <= self.span {
            let x = self.x(tick);
            self.put(&format!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{HEAD}\" y2=\"{:.1}\"/>\
                 <text class=\"soft mid\" x=\"{x:.1}\" y=\"{:.1}\">{tick:.0}</text>",
                floor + 4.0,
                floor + 18.0
            ));
            tick += step;
        }
    }

    fn bars(&mut self) {
        let pad = if self.row > 20.0 { 3.0 } else { 1.5 };
        let mut operations: Vec<Placed> = self.schedule.operations.clone();
        operations.sort_by_key(|here| (here.machine, here.start, here.end));
        for (machine, from, to) in self.options.details.setups.clone() {
            let (left, right) = (self.x(f64::from(from)), self.x(f64::from(to)));
            self.put(&format!(
                "<rect class=\"setup\" x=\"{left:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"><title>setup</title></rect>",
                HEAD + self.row * f64::from(machine) + self.row / 3.0,
                right - left,
                self.row / 3.0
            ));
        }
        for here in operations {
            let (left, right) = (self.x(f64::from(here.start)), self.x(f64::from(here.end)));
            let (top, width) = (HEAD + self.row * f64::from(here.machine) + pad, right - left);
            let height = self.row - 2.0 * pad;
            self.put(&format!(
                "<rect class=\"{}\" fill=\"{}\" x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{height:.1}\" \
                 rx=\"2\"><title>job {}, operation {}\n{}, {} to {} ({})</title></rect>",
                if self.overdue(here.job).is_some() { "bar late" } else { "bar" },
                colour(here.job),
                width.max(0.75),
                self.job_name(here.job),
                here.op,
                self.machine_name(here.machine as usize),
                here.start,
                here.end,
                here.end - here.start
            ));
            self.pauses(here, top, height);
            let digits = self.job_name(here.job);
            if let Some((due, end)) = self.overdue(here.job).filter(|&(_, end)| end == here.end) {
                self.put(&format!(
                    "<line class=\"overdue\" x1=\"{:.2}\" x2=\"{:.2}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    self.x(f64::from(due)),
                    self.x(f64::from(end)),
                    top + height,
                    top + height
                ));
            }
            if width > DIGIT * digits.chars().count() as f64 + 3.0 && height > 12.0 {
                self.put(&format!(
                    "<text class=\"in\" x=\"{:.1}\" y=\"{:.1}\">{digits}</text>",
                    left + width / 2.0,
                    top + height / 2.0 + 4.0
                ));
            }
        }
    }

    /// The closed times within an operation, during which it rests.
    fn pauses(&mut self, here: Placed, top: f64, height: f64) {
        let closed = self.options.details.closed.get(here.machine as usize).cloned().unwrap_or_default();
        for (from, to) in closed.into_iter().filter(|&(from, to)| from < here.end && to > here.start) {
            let (left, right) =
                (self.x(f64::from(from.max(here.start))), self.x(f64::from(to.min(here.end))));
            self.put(&format!(
                "<rect class=\"pause\" x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{height:.1}\"/>",
                right - left
            ));
        }
    }

    /// The makespan, the bound and the deadline, with labels that give way to each other.
    fn lines(&mut self) {
        let end = self.options.details.end.clone().unwrap_or_else(|| self.makespan.to_string());
        let mut marks = vec![(self.makespan, "end", "", escape(&format!("makespan {end}")))];
        if let Some(bound) = self.options.bound.filter(|&bound| bound < self.makespan) {
            marks.push((bound, "bound", "bound-text", format!("bound {bound}")));
        }
        if let Some(deadline) = self.options.deadline {
            marks.push((deadline, "deadline", "deadline-text", format!("deadline {deadline}")));
        }
        marks.sort_by_key(|mark| mark.0);
        // From the right: each label ends at its line, or where the one to its right begins.
        let mut limit = self.width - RIGHT + 16.0;
        let (top, floor) = (HEAD - 8.0, self.floor());
        for (time, line, text, label) in marks.into_iter().rev() {
            let x = self.x(f64::from(time));
            let width = 7.0 * label.len() as f64;
            let end = (x + width / 2.0).min(limit);
            limit = end - width - 14.0;
            self.put(&format!(
                "<line class=\"halo\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{floor:.1}\"/>\
                 <line class=\"{line}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{floor:.1}\"/>\
                 <text class=\"right {text}\" x=\"{end:.1}\" y=\"{:.1}\">{label}</text>",
                HEAD - 13.0
            ));
        }
    }

    fn legend(&mut self, jobs: &[u32], columns: usize, top: f64) {
        self.put(&format!(
            "<text class=\"right soft\" x=\"{:.1}\" y=\"{:.1}\">jobs</text>",
            LEFT - 8.0,
            top + 10.0
        ));
        for (index, &job) in jobs.iter().enumerate() {
            let left = LEFT + self.swatch() * (index % columns) as f64;
            let top = top + 20.0 * (index / columns) as f64;
            self.put(&format!(
                "<rect fill=\"{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"12\" height=\"12\" rx=\"2\"/>\
                 <text class=\"{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
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
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_bar_and_every_job_a_swatch() {
        let place = |job, machine, start, end| Placed { job, op: 0, machine, start, end };
        let schedule =
            Schedule { operations: vec![place(0, 0, 0, 30), place(1, 1, 0, 12), place(2, 0, 30, 31)] };
        let options = Gantt {
            title: "a < b".into(),
            machines: 4,
            deadline: Some(40),
            bound: Some(29),
            ..Gantt::default()
        };
        let svg = gantt(&schedule, &options);
        assert_eq!(svg.matches("class=\"bar\"").count(), 3);
        assert_eq!(svg.matches(">machine ").count(), 4, "idle machines have a row");
        assert_eq!(escape("a\u{1b}[1m"), "a\\u001b[1m");
        assert!(svg.contains("a &lt; b") && svg.contains(">deadline 40<") && svg.contains(">bound 29<"));
        assert!(svg.contains("job 2, operation 0\nmachine 0, 30 to 31 (1)"));
    }

    #[test]
    fn names_breaks_setups_and_late_jobs_are_drawn() {
        let place = |job, machine, start, end| Placed { job, op: 0, machine, start, end };
        let schedule = Schedule { operations: vec![place(0, 0, 0, 30), place(1, 0, 34, 46)] };
        let details = Details {
            machines: vec!["saw\u{1b}[2J".into()],
            jobs: vec!["A & B".into(), "shaft".into()],
            closed: vec![vec![(10, 12), (1000, 1010)]],
            setups: vec![(0, 30, 34)],
            due: vec![Some(30), Some(40)],
            windows: vec![Window { machine: 0, job: 1, earliest: Some(33), latest: Some(2000) }],
            ticks: vec![(0, "Mon 06:00".into())],
            end: Some("Mon 06:46".into()),
        };
        let svg = gantt(&schedule, &Gantt { details, ..Gantt::default() });
        assert!(
            svg.contains("A &amp; B") && svg.contains(">Mon 06:00<") && svg.contains(">makespan Mon 06:46<")
        );
        assert_eq!((svg.matches("class=\"closed\"").count(), svg.matches("class=\"setup\"").count()), (1, 1));
        // The second job alone is late: its bar, its legend and one line from its due date to its end.
        assert_eq!((svg.matches("\"bar late\"").count(), svg.matches("class=\"late-text\"").count()), (1, 1));
        assert_eq!(svg.matches("class=\"overdue\"").count(), 1);
        // Both jobs have a due date; the window's end lies beyond the chart.
        assert_eq!((svg.matches("class=\"due\"").count(), svg.matches("class=\"window\"").count()), (2, 1));
        assert!(svg.contains("<title>job shaft: not before 33</title>"));
        assert!(!svg.contains('\u{1b}'), "no control characters");
    }

    #[test]
    fn an_empty_schedule_is_drawn() {
        assert!(gantt(&Schedule::default(), &Gantt::default()).ends_with("</svg>\n"));
    }

    #[test]
    fn steps_are_nice() {
        assert_eq!(
            [nice_step(0.0), nice_step(3.0), nice_step(11.0), nice_step(104.0)],
            [1.0, 5.0, 20.0, 200.0]
        );
    }
}
