//! The folder of a run, written alike by one run of one's own and by the runs of a study: a kill at any moment costs at
//! most the iterations since the last checkpoint, and the files vouch for each other.
//!
//! | file | what it holds | when it is written |
//! |---|---|---|
//! | `spec.toml` | the resolved spec, its hash in the first line | first |
//! | `optima.json` | what is known of the instances' optima, where shops are played | before the first iteration |
//! | `curve.jsonl` | one [`Record`](crate::Record) per line | on the way |
//! | `dump.jsonl` | trajectories of every n-th iteration, where `[dump]` asks for them | on the way |
//! | `policies.jsonl` | what the policy says at all prefixes before the first iteration and after each, where `[dump]` asks for it | on the way |
//! | `events.out.tfevents.0.niwaki` | the curve for TensorBoard | on the way |
//! | `checkpoint.safetensors` | the member and how far it came | every so often, and last |
//! | `turns.json` | that training diverged, and under which spec it went on | then |
//! | `summary.json` | that the run is done, and its curve in a few numbers | when the run is done |
//! | `index.html` | the run as a page, written by `niwaki train` | every minute, and after all others |
//!
//! **Resume.** Lines are appended; the checkpoint, which is renamed into place after them, says how many count. All else
//! is renamed into place. So the same command goes on from the checkpoint and ends with the same bytes. A run that is
//! written anew loses its page and its summary first, in this order: a page that says that a run is finished never stands beside
//! an unfinished one.
//!
//! **Who vouches for whom.** A run is a pure function of its spec and seed, so these two name it everywhere. The last
//! key of every line of curve, dump and policies is `check`: the checksum of the file's name, spec, seed and all lines up to this
//! one, without the checks. Every line has the same columns that way, as people's tools like them, and any prefix of the
//! file vouches for itself, which a header line or one sum over the file would not give a run that is half-way.
//! `summary.json` and `optima.json` end with such a check too; the summary holds the last checks of those files. The
//! checkpoint holds spec, seed, iteration and a checksum of its own file. Line n is iteration n, and the curve of a
//! finished run has as many lines as its summary says.
//!
//! **Divergence.** Before every save all numbers are finite, or the run stops, the last good checkpoint is kept and
//! `turns.json` says so. Then, and only then, the folder goes on from there under a spec whose optimiser has other numbers.
//! What came before is part of such a run, so its turns stand in the summary and are mixed into all checks after them.
//! Diagnostics that overflow are no divergence: they are stored as the largest number.
//!
//! **Events and the clock.** TensorBoard shows when an iteration was done, so each event keeps the time at which it was
//! first written, also over a resume. The law of equal bytes therefore leaves out the times in the events file, and
//! nothing else. Everything else in that file follows from the curve: where it is missing or is not what the curve says,
//! it is mended from the curve and the mending is told; no report reads it, so none is blocked by it.
//!
//! | module | what belongs there |
//! |---|---|
//! | `train.rs` | one run in one folder, stop and resume |
//! | `runs.rs` | runs that train as one cohort, each in its folder |
//! | `member.rs` | the files of one of them while it trains |
//! | `finished.rs` | a finished run, read back and checked |
//! | `folder.rs` | names, whose folder it is, one process at a time |
//! | `check.rs` | checksums at the end of lines and documents |
//! | `lines.rs` | files of lines that can be cut back |
//! | `own.rs` | the run of another trainer, in the same files |
//! | `optima.rs` | optima that are sought once |
//! | `space.rs` | whether the disk holds the checkpoints, asked before anything is trained |
//! | `dump.rs` | trajectories for `niwaki advise`, policies for `niwaki oracle` |
//! | `page.rs` | which page is a run's own, and when it goes |
//! | `summary.rs` | a run in a few numbers |
//! | `events.rs` | TensorBoard's format |
//! | `turns.rs` | divergence, and other learning rates from the last good checkpoint on |

mod check;
mod dump;
mod events;
mod finished;
mod folder;
mod lines;
mod member;
mod optima;
mod own;
mod page;
mod runs;
mod space;
mod summary;
mod train;
mod turns;

pub use dump::{PolicyTable, Trajectory, read_policies};
pub use events::{NAME as EVENTS, event_times, timeless_events};
pub use finished::{Finished, is_finished, verify};
pub use folder::{
    CHECKPOINT, CURVE, Claim, DUMP, Folder, Identity, Occupied, POLICIES, SPEC, SUMMARY, restore_spec,
};
pub use lines::read_curve;
pub use niwaki_nn::RawTensor;
pub use optima::{OPTIMA, known as known_optima};
pub use own::Own;
pub use page::{OWN_PAGE_COMMAND, PAGE, PAGE_COMMAND, page_is_foreign};
pub use runs::Runs;
pub use summary::Summary;
pub use train::{Ending, Told, train};
pub use turns::{TURNS, Turn, is_lost};
