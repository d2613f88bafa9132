//! What the log-probs of any RL run say about stale data.
//!
//! A trainer that reuses its batches already has everything: the log-probs of each step under the policy that
//! sampled it and under the policy as it is now, and an advantage. From a dump of those this crate measures drift,
//! weights, the bias that PPO's dropped correction leaves and what a correction would cost, and turns them into a
//! verdict with its reasons. Files of any size take constant memory.
//!
//! ```text
//! files → Dump → Chunk (checked, packed) → Measure (sums) → Measured (numbers with intervals) → Verdict → text, JSON, page
//! ```
//!
//! # The rooms
//!
//! | module | what belongs there |
//! |---|---|
//! | [`schema`] | fields and the names under which other trainers write them |
//! | [`read`] | JSONL, npz and parquet as bounded chunks |
//! | [`mod@write`] | dumps of our own: parquet, thinned by a budget |
//! | [`trajectory`] | checks and packing of one trajectory |
//! | [`keys`] | keys of groups |
//! | [`measure`] | streaming sums, what they say, and intervals by the jackknife |
//! | [`verl`] | verl's `rollout_corr/*` metrics, with raw twins |
//! | [`verdict`] | what to do, and why |
//! | [`gate`] | conditions that fail a check |
//! | [`text`], [`page`] | the summary and the report |
//! | [`series`], [`Comparison`] | which files are one run, and runs side by side |
//! | [`advise()`] | the door: dumps in, advice out |
//!
//! # Example
//!
//! ```
//! use niwaki_advise::measure::{Measure, Settings};
//! use niwaki_advise::schema::Field;
//! use niwaki_advise::trajectory::{Came, Chunk, Record};
//!
//! let mut chunk = Chunk::default();
//! let mut record = Record::default();
//! for (old, new, advantage) in [([-1.2, -0.7], [-1.1, -0.8], 0.5), ([-0.9, -1.1], [-1.0, -1.0], -0.5)] {
//!     record.clear();
//!     record.fill(Field::OldLogProb, Came::Many).extend(old);
//!     record.fill(Field::NewLogProb, Came::Many).extend(new);
//!     record.fill(Field::Advantage, Came::One).push(advantage);
//!     chunk.push(&record, None)?;
//! }
//! let mut measure = Measure::new(Settings::default());
//! measure.add(&chunk);
//! assert_eq!(measure.finish().facts.steps, 4);
//! # Ok::<(), niwaki_advise::Fault>(())
//! ```

mod advise;
mod compare;
mod error;
pub mod gate;
pub mod keys;
pub mod measure;
pub mod page;
pub mod read;
pub mod schema;
pub mod series;
pub mod text;
pub mod trajectory;
pub mod verdict;
pub mod verl;
pub mod write;

pub use advise::{Advice, Question, advise};
pub use compare::Comparison;
pub use error::{Error, Fault, Place};

/// The README's example is run with the other ones.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
