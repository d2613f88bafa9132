//! A job shop of three jobs, solved to a proven optimum, checked and drawn.

#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use niwaki_shop::gantt::{Gantt, gantt};
use niwaki_shop::planning::{self, Method};
use niwaki_shop::{Instance, Limits, formats};
use std::time::Duration;

fn main() -> Result<(), niwaki_shop::Error> {
    // Three jobs on three machines: machine and time of each step.
    let instance: Instance = formats::read("3 3\n0 3 1 2 2 2\n0 2 2 1 1 4\n1 4 2 3 0 1\n")?;
    let limits = Limits::new(Duration::from_secs(1), 0);
    let solved = planning::solve(&instance, Method::Exact, limits, &mut |_| {})?;
    println!("makespan {}, proven {}", solved.verdict.makespan, solved.score.proven());
    let svg = gantt(&solved.schedule, &Gantt { title: "three jobs".to_owned(), ..Gantt::default() });
    println!(
        "{} bytes of chart; {}",
        svg.len(),
        formats::write_schedule_csv(&solved.schedule).lines().count()
    );
    Ok(())
}
