//! Every optimum equals CP-SAT's on the paper's shapes. Runs where `NIWAKI_CPSAT_PYTHON` names a Python with
//! `ortools`; `NIWAKI_CPSAT_COUNT` and `NIWAKI_CPSAT_SECONDS` change the number of instances per shape (200) and the
//! seconds that CP-SAT has for each (20).

use super::LIMITS;
use super::peers::{CpSat, HOW};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum;

/// Distribution, jobs, machines. Where CP-SAT does not prove its own within its limit, the bounds must still agree.
const SHAPES: [(Task, usize, usize); 6] = [
    (Task::EasyFlow, 12, 3),
    (Task::JobShop, 8, 5),
    (Task::HardFlow, 20, 7),
    (Task::Flexible, 10, 5),
    (Task::Windows, 10, 5),
    (Task::HardFlow, 50, 7),
];

#[test]
fn optima_equal_cpsat() {
    let setting = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (count, seconds) = (setting("NIWAKI_CPSAT_COUNT", 200), setting("NIWAKI_CPSAT_SECONDS", 20));
    let Some(mut peer) = CpSat::start(seconds as f64) else {
        println!("skipped: {HOW}");
        return;
    };
    for (task, jobs, machines) in SHAPES {
        let (mut ours, mut theirs, mut equal, mut spent) = (0, 0, 0, 0.0);
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
            spent += answer.seconds;
            ours += u32::from(optimum.proven);
            theirs += u32::from(answer.proven);
        }
        println!(
            "{} {jobs} × {machines}: of {count}, proven here {ours}, by CP-SAT {theirs} in {spent:.0} s, by both and \
             equal {equal}",
            task.name()
        );
    }
}
