//! Taillard's generator (1993), bit for bit: from the seeds in his tables come his instances.

use crate::{FlowShop, JobShop, Operation, Result};

/// Bratley, Fox and Schrage's portable generator, modulus 2³¹ − 1.
struct Congruence {
    state: i64,
}

impl Congruence {
    const MULTIPLIER: i64 = 16_807;
    const QUOTIENT: i64 = 127_773;
    const REMAINDER: i64 = 2_836;
    const MODULUS: i64 = 2_147_483_647;

    /// A number from `least` to `most`, both included.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        let quotient = self.state / Self::QUOTIENT;
        self.state = Self::MULTIPLIER * (self.state % Self::QUOTIENT) - quotient * Self::REMAINDER;
        if self.state < 0 {
            self.state += Self::MODULUS;
        }
        let uniform = self.state as f64 / Self::MODULUS as f64;
        least + (uniform * f64::from(most - least + 1)) as u32
    }
}

/// The flow shop of a seed: times 1 to 99, machine after machine.
///
/// # Errors
/// If there is no job or no machine.
pub fn taillard_flow_shop(jobs: usize, machines: usize, seed: u32) -> Result<FlowShop> {
    let mut draw = Congruence { state: i64::from(seed) };
    let mut times = vec![0; jobs * machines];
    for machine in 0..machines {
        for job in 0..jobs {
            times[job * machines + machine] = draw.between(1, 99);
        }
    }
    FlowShop::new(jobs, machines, times)
}

/// The job shop of two seeds: times 1 to 99 from the first, routes from the second.
///
/// # Errors
/// If there is no job or no machine.
pub fn taillard_job_shop(jobs: usize, machines: usize, time_seed: u32, machine_seed: u32) -> Result<JobShop> {
    let mut times = Congruence { state: i64::from(time_seed) };
    let mut swaps = Congruence { state: i64::from(machine_seed) };
    let mut routes = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        let mut order: Vec<u32> = (0..machines as u32).collect();
        for at in 0..machines {
            let other = swaps.between(at as u32, machines as u32 - 1) as usize;
            order.swap(at, other);
        }
        let step = |machine| Operation { machine, time: times.between(1, 99) };
        routes.push(order.into_iter().map(step).collect::<Vec<_>>());
    }
    JobShop::new(machines, &routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_ta001() {
        // Header seed 873654221; its first machine's line begins 54 83 15 71 77.
        let shop = taillard_flow_shop(20, 5, 873_654_221).unwrap();
        let first: Vec<u32> = (0..5).map(|job| shop.time(job, 0)).collect();
        assert_eq!(first, [54, 83, 15, 71, 77]);
    }
}
