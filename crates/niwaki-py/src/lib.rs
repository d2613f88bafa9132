//! Python's door onto the libraries: what `python/niwaki` wraps into documented functions.
//!
//! Everything here takes checked, contiguous arrays and returns plain values; the Python half owns names, shapes,
//! defaults and docstrings. Work runs without the interpreter's lock, so other threads go on.
//!
//! | module | what belongs there |
//! |---|---|
//! | `correction` | the family by name, objective, cotangent, channels and diagnostics of a batch |
//! | `rule` | a member's normal form on its way to and from Python |

mod correction;
mod rule;

/// The compiled half of the `niwaki` package.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::correction::{Surrogate, alpha_for_drift, members, parse};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
