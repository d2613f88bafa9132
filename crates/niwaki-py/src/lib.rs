//! Python's door onto the libraries: what `python/niwaki` wraps into documented functions.
//!
//! Everything here takes checked, contiguous arrays and returns plain values; the Python half owns names, shapes,
//! defaults and docstrings. Work runs without the interpreter's lock, so other threads go on.
//!
//! | module | what belongs there |
//! |---|---|
//! | `correction` | the family by name, objective, cotangent, channels and diagnostics of a batch |
//! | `oracle` | losses measured exactly on an enumerable process |
//! | `advise` | dumps as arrays or files: measurements, verdict, summary |
//! | `stats` | paired comparisons, intervals and aggregates |
//! | `shop` | instances, schedules, solvers, charts |
//! | `lanes` | shops under construction, for Gymnasium |
//! | `run` | the folder of a run that Python trains |
//! | `policy` | trained policies: schedules, scores, tensors |
//! | `runs` | runs out of folders: standing, endpoints, curves |
//! | `waiting` | long calls that end on Ctrl-C |
//! | `rule` | members and rules of a user's own on their way to and from Python |

mod advise;
mod correction;
mod lanes;
mod oracle;
mod policy;
mod rule;
mod run;
mod runs;
mod shop;
mod stats;
mod waiting;

/// The compiled half of the `niwaki` package.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::advise::{Advisor, Dump, advise_files, parse_condition};
    #[pymodule_export]
    use crate::correction::{Surrogate, alpha_for_drift, check_rule, members, parse};
    #[pymodule_export]
    use crate::lanes::Lanes;
    #[pymodule_export]
    use crate::oracle::{horizon_of, measure, rewards, testbed};
    #[pymodule_export]
    use crate::policy::{SequencePolicy, ShopPolicy, load_policy};
    #[pymodule_export]
    use crate::run::RunFolder;
    #[pymodule_export]
    use crate::runs::{read_runs, run_endpoint};
    #[pymodule_export]
    use crate::shop::{Instance, draw_gantt, generate, read_instance, tasks};
    #[pymodule_export]
    use crate::stats::{
        aggregate, auc, bca, correlation, paired, probability_of_improvement, profile, sign_test, silence,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::waiting::at_home();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
