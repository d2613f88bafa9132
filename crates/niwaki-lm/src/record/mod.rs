//! Records that a model fills slot by slot.
//!
//! | file | what belongs there |
//! |---|---|
//! | `tokens.rs` | a record's tokens: prompt, candidates, what stands between slots |
//! | `tree.rs` | the conditionals at all prefixes of a record, in one pass with shared prefixes |
//! | `conditionals.rs` | what follows from them: return, marginals, tables for the exact oracle |
//! | `policy.rs` | the decoder as a policy: rows of a batch share the prompt, gradient included |

mod conditionals;
mod policy;
mod tokens;
mod tree;

pub use conditionals::Conditionals;
pub use policy::{RecordPolicy, RecordScratch};
pub use tokens::RecordTokens;
pub use tree::{RecordTree, enumerate};
