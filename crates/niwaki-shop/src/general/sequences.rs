//! A schedule from the order of jobs on every machine.

use super::Shop;
use super::list::{Flat, List, Pass};
use crate::{Error, Result, Schedule};

/// The schedule in which every machine serves these jobs in this order, each time the next operation of the job's route, and
/// every operation starts as early as it can: `[machine][place]`.
///
/// # Errors
/// If a machine cannot serve what it is given, orders wait for each other, or an operation is left over; by name.
pub fn follow(shop: &Shop, sequences: &[Vec<u32>]) -> Result<Schedule> {
    let flat = Flat::new(shop, None);
    let mut list = List { order: Vec::with_capacity(flat.count()), mode: vec![0; flat.count()] };
    let mut done = vec![false; flat.count()];
    let mut of_job = vec![0; shop.jobs().len()];
    let mut of_machine = vec![0; sequences.len()];
    let name = |machine: usize| &shop.machines()[machine].name;
    loop {
        let before = list.order.len();
        for (machine, sequence) in sequences.iter().enumerate() {
            while let Some(&job) = sequence.get(of_machine[machine]) {
                let Some(number) = shop.of_job(job as usize).nth(of_job[job as usize]) else {
                    return fault(format!(
                        "machine {} serves job {} once more than it has operations",
                        name(machine),
                        shop.jobs()[job as usize].name
                    ));
                };
                let mode = flat.modes[number].iter().position(|mode| mode.0 as usize == machine);
                let ready = flat.before[number].iter().all(|link| done[link.other as usize]);
                let (Some(mode), true) = (mode, ready) else { break };
                list.mode[number] = mode as u32;
                list.order.push(number as u32);
                done[number] = true;
                of_job[job as usize] += 1;
                of_machine[machine] += 1;
            }
        }
        if list.order.len() == before {
            break;
        }
    }
    let waiting = (0..sequences.len()).find(|&machine| of_machine[machine] < sequences[machine].len());
    if let Some(machine) = waiting {
        let job = sequences[machine][of_machine[machine]] as usize;
        return fault(format!(
            "machine {} waits for job {}, which never comes: the orders of machines contradict the routes",
            name(machine),
            shop.jobs()[job].name
        ));
    }
    if let Some(left) = done.iter().position(|done| !done) {
        return fault(format!("{}: is missing", shop.called(left)));
    }
    let mut pass = Pass::default();
    flat.run(&list, &mut pass);
    Ok(flat.schedule(&list, &pass))
}

fn fault<T>(what: String) -> Result<T> {
    Err(Error::Schedule(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::{Measure, Objective};
    use crate::{Instance, JobShop, Operation};

    #[test]
    fn orders_become_times_or_a_line() {
        // Job 0: 3 on machine 0, then 2 on machine 1; job 1: 4 on machine 1, then 1 on machine 0.
        let operation = |machine, time| Operation { machine, time };
        let routes = [vec![operation(0, 3), operation(1, 2)], vec![operation(1, 4), operation(0, 1)]];
        let instance = Instance::Job(JobShop::new(2, &routes).unwrap());
        let shop = Shop::from_instance(&instance, Objective::only(Measure::Makespan)).unwrap();
        // Machine 0 serves 0 then 1, machine 1 serves 1 then 0: 0–3 and 4–5, 0–4 and 4–6.
        let found = follow(&shop, &[vec![0, 1], vec![1, 0]]).unwrap();
        let spans: Vec<_> = found.operations.iter().map(|here| (here.start, here.end)).collect();
        assert_eq!(spans, [(0, 3), (4, 6), (0, 4), (4, 5)]);
        let refusal = |orders: &[Vec<u32>]| follow(&shop, orders).unwrap_err().to_string();
        // Machine 0 wants job 1 first, machine 1 wants job 0 first: both wait.
        assert_eq!(
            refusal(&[vec![1, 0], vec![0, 1]]),
            "machine 0 waits for job 1, which never comes: the orders of machines contradict the routes"
        );
        assert_eq!(refusal(&[vec![0, 1], vec![1]]), "job 0, operation 1: is missing");
        assert_eq!(
            refusal(&[vec![0, 1, 1], vec![1, 0]]),
            "machine 0 serves job 1 once more than it has operations"
        );
    }
}
