//! Every optimum equals CP-SAT's on the paper's shapes. Runs where `NIWAKI_CPSAT_PYTHON` names a Python with
//! `ortools`; `NIWAKI_CPSAT_COUNT` changes the number of instances per shape (200).

use super::LIMITS;
use super::peers::{CpSat, HOW};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum;

/// Distribution, jobs, machines. Where CP-SAT does not prove its own within its limit, the bounds must still agree.
const SHAPES: [(Task, usize, usize); 6] = [
    (Task::EasyFlow, 12, 3),
    (Task::HardFlow, 20, 7),
    (Task::HardFlow, 50, 7),
    (Task::JobShop, 8, 5),
    (Task::Flexible, 10, 5),
    (Task::Windows, 10, 5),
];

#[test]
fn optima_equal_cpsat() {
    let Some(mut peer) = CpSat::start(20.0) else {
        println!("skipped: {HOW}");
        return;
    };
    let count = std::env::var("NIWAKI_CPSAT_COUNT").ok().map_or(200, |count| count.parse().unwrap());
    for (task, jobs, machines) in SHAPES {
        let (mut ours, mut theirs, mut equal, mut seconds) = (0, 0, 0, 0.0);
        for index in 0..count {
            let instance = generate(task, Size { jobs, machines }, 5, index).unwrap();
            let optimum = optimum::solve(&instance, LIMITS, &mut |_| {});
            let answer = peer.solve(&instance);
            assert!(
                answer.lower <= optimum.upper && optimum.lower <= answer.upper,
                "{} {index}",
                task.name()
            );
            if optimum.proven && answer.proven {
                assert_eq!(optimum.upper, answer.upper, "{} {index}", task.name());
                equal += 1;
            }
            seconds += answer.seconds;
            ours += u32::from(optimum.proven);
            theirs += u32::from(answer.proven);
        }
        println!(
            "{} {jobs} × {machines}: of {count}, proven here {ours}, by CP-SAT {theirs} in {seconds:.0} s, by both and \
             equal {equal}",
            task.name()
        );
    }
}
