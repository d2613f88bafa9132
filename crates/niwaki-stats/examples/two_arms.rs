//! Two arms that share their seeds: mean difference, interval, exact sign test.

#![expect(clippy::print_stdout, reason = "an example tells what it found")]

use niwaki_stats::{Bootstrap, Error, Paired};

fn main() -> Result<(), Error> {
    let corrected = [0.61, 0.72, 0.58, 0.66, 0.70, 0.63, 0.69, 0.64];
    let control = [0.55, 0.70, 0.60, 0.57, 0.66, 0.60, 0.61, 0.62];
    let paired = Paired::new(&corrected, &control)?;
    let interval = paired.bca_interval(&Bootstrap::from_seed(1))?;
    let signs = paired.sign_test();
    println!(
        "mean difference {:+.3}, 95% interval {:+.3} to {:+.3}",
        paired.mean(),
        interval.low,
        interval.high
    );
    println!("ahead on {} of {} seeds, p = {:.3}", signs.wins, signs.untied(), signs.two_sided());
    Ok(())
}
