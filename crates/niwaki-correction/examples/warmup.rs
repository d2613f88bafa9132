//! A correction for the first iterations, PPO afterwards: what each phase does to one stale batch.

#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use niwaki_correction::{Batch, ReuseSchedule, Rows, Surrogate, Workspace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Fifty iterations at α = 0.25 with thirty epochs per batch, then PPO with twelve.
    let schedule = ReuseSchedule::warmup("tempered:0.25".parse()?, 50, 30, 12)?;
    // Two trajectories of three steps, some epochs after they were drawn.
    let now = [-0.7, -1.3, -0.2, -1.6, -0.5, -0.9];
    let then = [-1.0, -1.1, -0.4, -1.2, -0.7, -0.8];
    let advantage = [0.5, 0.5, 0.5, -0.5, -0.5, -0.5];
    let mut workspace = Workspace::default();
    for iteration in [0, 50] {
        let phase = schedule.phase(iteration);
        let batch = Batch::new(Rows::uniform(3), &now, &then, &advantage);
        let evaluation = Surrogate::new(phase.correction).evaluate(&batch, &mut workspace)?;
        println!(
            "iteration {iteration}: {}, {} epochs, objective {:.4}, gradient {:.3?}",
            phase.correction, phase.reuse, evaluation.objective, evaluation.cotangent
        );
    }
    Ok(())
}
