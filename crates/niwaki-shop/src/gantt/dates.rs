//! What dates add to a chart: when jobs are due, and windows in which operations must lie.

use super::chart::Drawing;
use super::colour::colour;

/// The times between which an operation must lie, where it lies; nothing where it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The operation's machine.
    pub machine: u32,
    /// Its job.
    pub job: u32,
    /// It does not start earlier.
    pub earliest: Option<u32>,
    /// It is done by then.
    pub latest: Option<u32>,
}

/// A rest that must lie between two operations of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Whose.
    pub job: u32,
    /// Machine and time at which the rest begins.
    pub from: (u32, u32),
    /// The next machine, and the first time at which the job may go on there.
    pub to: (u32, u32),
}

impl Drawing<'_> {
    /// Brackets where windows begin and end, and a wedge where a job is due, on the row of its last operation.
    pub(super) fn dates(&mut self) {
        for window in self.options.details.windows.clone() {
            let (top, bottom) = self.row_of(window.machine);
            let name = self.job_name(window.job);
            for (time, wing, what) in [(window.earliest, 4.0, "not before"), (window.latest, -4.0, "done by")]
            {
                let Some(time) = time.filter(|&time| f64::from(time) <= self.span) else { continue };
                let x = self.x(f64::from(time));
                self.put(&format!(
                    "<path class=\"window\" data-j=\"{}\" d=\"M{:.2} {top:.1}H{x:.2}V{bottom:.1}H{:.2}\">{}</path>",
                    window.job,
                    x + wing,
                    x + wing,
                    self.titled(&format!("job {name}: {what} {}", self.when(time)))
                ));
            }
        }
        for lag in self.options.details.lags.clone() {
            let middle = |machine: u32| self.row * (f64::from(machine) + 0.5);
            let (from, to) = (self.x(f64::from(lag.from.1)), self.x(f64::from(lag.to.1)));
            let title = format!("job {}: waits until {}", self.job_name(lag.job), self.when(lag.to.1));
            let (job, way) =
                (lag.job, format!("M{from:.2} {:.1}L{to:.2} {:.1}", middle(lag.from.0), middle(lag.to.0)));
            // In the page's ink on a strip of its paper, so that it is seen over bars of any colour.
            self.put(&format!(
                "<path class=\"under\" data-j=\"{job}\" d=\"{way}\"/><path class=\"lag\" data-j=\"{job}\" d=\"{way}\">{}</path>",
                self.titled(&title)
            ));
        }
        for job in self.jobs() {
            let due = self.options.details.due.get(job as usize).copied().flatten();
            let last = self.last.get(&job).copied();
            let (Some(due), Some(last)) = (due.filter(|&due| f64::from(due) <= self.span), last) else {
                continue;
            };
            let (x, (top, _)) = (self.x(f64::from(due)), self.row_of(last.machine));
            let name = self.job_name(job);
            let before = self.options.details.overdue.get(&job).cloned();
            let when = before.unwrap_or_else(|| self.when(due));
            self.put(&format!(
                "<path class=\"due\" data-j=\"{job}\" fill=\"{}\" d=\"M{:.2} {top:.1}h8l-4 7z\">{}</path>",
                colour(job),
                x - 4.0,
                self.titled(&format!("job {name}: due {when}"))
            ));
        }
    }
}
