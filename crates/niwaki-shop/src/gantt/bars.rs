//! The operations themselves, and the setups before them.

use super::chart::{DIGIT, Drawing};
use super::colour::colour;
use crate::Placed;

impl Drawing<'_> {
    /// When a job is due and when it ends, if that is later.
    pub(super) fn overdue(&self, job: u32) -> Option<(u32, u32)> {
        let due = self.options.details.due.get(job as usize).copied().flatten()?;
        self.last.get(&job).map(|last| last.end).filter(|&end| end > due).map(|end| (due, end))
    }

    pub(super) fn bars(&mut self) {
        for (machine, from, to) in self.options.details.setups.clone() {
            let (left, right) = (self.x(f64::from(from)), self.x(f64::from(to)));
            self.put(&format!(
                "<rect class=\"setup\" x=\"{left:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\">{}</rect>",
                self.row * (f64::from(machine) + 1.0 / 3.0),
                right - left,
                self.row / 3.0,
                self.titled("setup")
            ));
        }
        let mut operations: Vec<Placed> = self.schedule.operations.clone();
        operations.sort_by_key(|here| (here.machine, here.start, here.end));
        for here in operations {
            self.bar(here);
        }
    }

    fn bar(&mut self, here: Placed) {
        let pad = if self.row > 20.0 { 3.0 } else { 1.5 };
        let Placed { job, op, machine, start, end } = here;
        let (left, right) = (self.x(f64::from(start)), self.x(f64::from(end)));
        let (top, width, height) = (self.row * f64::from(machine) + pad, right - left, self.row - 2.0 * pad);
        let name = self.job_name(job);
        let late = self.overdue(job);
        let title = format!(
            "job {name}, {}\n{}\n{} to {} ({})",
            self.operation_name(job, op),
            self.machine_name(machine as usize),
            self.when(start),
            self.when(end),
            end - start
        );
        self.put(&format!(
            "<rect class=\"{}\" data-j=\"{job}\" fill=\"{}\" x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" \
             height=\"{height:.1}\" rx=\"2\">{}</rect>",
            if late.is_some() { "bar late" } else { "bar" },
            colour(job),
            width.max(0.75),
            self.titled(&title)
        ));
        let rests = self.pauses(here, top, height);
        if let Some((due, end)) = late.filter(|&(_, last)| last == end) {
            let (from, to, y) = (self.x(f64::from(due)), self.x(f64::from(end)), top + height);
            self.put(&format!(
                "<line class=\"overdue\" x1=\"{from:.2}\" x2=\"{to:.2}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ));
        }
        let wide = DIGIT * name.chars().count() as f64;
        if width > wide + 3.0 && height > 12.0 {
            let (x, y) = (left + width / 2.0, top + height / 2.0 + 4.0);
            // Over a rest the bar's colour is gone, and the name is in the page's ink.
            let resting = rests.iter().any(|&(from, to)| from <= x - wide / 2.0 && x + wide / 2.0 <= to);
            let class = if resting { "in rest" } else { "in" };
            self.put(&format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>"));
        }
    }

    /// The closed times within an operation, during which it rests: from and to, as drawn.
    fn pauses(&mut self, here: Placed, top: f64, height: f64) -> Vec<(f64, f64)> {
        let mut drawn = Vec::new();
        let closed = self.options.details.closed.get(here.machine as usize).cloned().unwrap_or_default();
        for (from, to) in closed.into_iter().filter(|&(from, to)| from < here.end && to > here.start) {
            let (left, right) =
                (self.x(f64::from(from.max(here.start))), self.x(f64::from(to.min(here.end))));
            self.put(&format!(
                "<rect class=\"pause\" x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{height:.1}\"/>",
                right - left
            ));
            drawn.push((left, right));
        }
        drawn
    }

    /// What a pointer is told, where there is one.
    pub(super) fn titled(&self, text: &str) -> String {
        if self.is_small() { String::new() } else { format!("<title>{text}</title>") }
    }
}
