//! The folder of one run: written so that a kill at any moment costs at most the iterations since the last checkpoint.
//!
//! | file | what it holds | when it is written |
//! |---|---|---|
//! | `spec.toml` | the resolved spec, its hash in the first line | first |
//! | `optima.json` | what is known of the instances' optima, where shops are played | before the first iteration |
//! | `curve.jsonl` | one [`Record`](crate::Record) per line | after each iteration |
//! | `dump.jsonl` | trajectories of every n-th iteration, where `[dump]` asks for them | after such an iteration |
//! | `events.out.tfevents.0.niwaki` | the curve for TensorBoard | before each checkpoint |
//! | `checkpoint.safetensors` | the member and how far it came | every so many iterations, and last |
//! | `summary.json` | the curve in a few numbers | when the run is done |
//!
//! Lines are appended; the checkpoint, which is renamed into place after them, says how many count. All else is
//! renamed into place. So the same command goes on from the checkpoint and ends with the same bytes.
//!
//! | module | what belongs there |
//! |---|---|
//! | `train.rs` | the loop over a folder, stop and resume |
//! | `folder.rs` | names, whose folder it is, one process at a time |
//! | `optima.rs` | optima that are sought once |
//! | `lines.rs` | files of lines that can be cut back |
//! | `dump.rs` | trajectories for `niwaki advise` |
//! | `summary.rs` | endpoints of a curve |
//! | `events.rs` | TensorBoard's format |

mod dump;
mod events;
mod folder;
mod lines;
mod optima;
mod summary;
mod train;

pub use dump::Trajectory;
pub use events::{NAME as EVENTS, encode as encode_events};
pub use folder::{CHECKPOINT, CURVE, DUMP, Folder, SPEC, SUMMARY};
pub use optima::OPTIMA;
pub use summary::Summary;
pub use train::{Ending, train};
