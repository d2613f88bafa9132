//! What a run is: a TOML file, read strictly, checked, and hashed.
//!
//! The way is text → [`Spec`] (unknown keys refused) → [`Spec::check`] → [`Recipe`]; only a recipe runs. Defaults
//! are the paper's values for the testbed.
//!
//! | file | what belongs there |
//! |---|---|
//! | `raw.rs` | the tables of the file and their defaults |
//! | `read.rs` | reading, `a.b=c` settings, the nearest valid key, the hash |
//! | `fields.rs` | every key: which kinds have it, and its sentence |
//! | `describe.rs` | the resolved file, by its kinds |
//! | `check.rs` | from numbers and names to a recipe that can run |
//! | `effect.rs` | keys that another key leaves without effect |
//! | `task.rs` | what a spec names as its task, and whether its policy can play that |
//! | `size.rs` | what a run takes of memory, before anything is made |
//! | `memory.rs` | what machine, limits and groups leave of memory |
//! | `record.rs` | records: their file, and the pretrained model that fills them |
//! | `shop.rs` | shops: drawn or from a folder, what they pay, their optima |

mod check;
mod describe;
mod effect;
mod fields;
mod foreign;
mod memory;
mod raw;
mod read;
mod record;
mod shop;
mod size;
mod task;

pub use crate::policy::PolicyKind;
pub use check::{MEASURED, Recipe, cohort_of};
pub use memory::available_memory;
pub use raw::{
    AdvantageKind, AdvantageSpec, CheckpointSpec, DumpSpec, EvaluateSpec, GlimpseKind, OptimiserKind,
    OptimiserSpec, PolicySpec, PrimeSpec, RateSchedule, RolloutSpec, Spec, StorageKind, TaskSpec, UpdateSpec,
    WarmupSpec,
};
pub use read::{set, strictly, value_of};
pub use record::Pretrained;
pub use shop::{ShopView, Shops};
pub(crate) use size::fits;
pub use size::{MEMORY, block_parameters, bytes_in_words, times};
pub(crate) use task::is_known as task_is_known;
pub use task::{Played, TaskKind};
