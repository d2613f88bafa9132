//! Two arms that share their seeds: mean difference, verdict, interval.

#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use niwaki_stats::{Error, Paired};

fn main() -> Result<(), Error> {
    let corrected = [0.61, 0.72, 0.58, 0.66, 0.70, 0.63, 0.69, 0.64];
    let control = [0.55, 0.70, 0.60, 0.57, 0.66, 0.60, 0.61, 0.62];
    let paired = Paired::new(&corrected, &control)?;
    let (found, signs) = (paired.decide(0.95)?, paired.sign_test());
    println!("mean difference {:+.3}: {}, p = {:.3}", found.mean, found.verdict, found.p);
    if let Some(interval) = found.interval {
        println!("95% interval {:+.3} to {:+.3}", interval.low, interval.high);
    }
    println!("ahead on {} of {} seeds", signs.wins, signs.untied());
    Ok(())
}
