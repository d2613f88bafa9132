//! The family: one file per member, one line per member in [`MEMBERS`].
//!
//! Every member is a point of one normal form, the [`Rule`]: which sum of log-ratios it reads, how strongly, how
//! it bounds what it read, and whether the result multiplies the step's ratio, replaces it, or weighs the
//! step's term from outside. PPO is strength 0 of the tempered member and takes the same instructions. Losses that no such
//! point says (a gate by the sign of the advantage, entropies, statistics of the batch) are [`written`] out instead.

mod adaptive;
mod by_length;
mod cispo;
mod clipped;
mod covariance;
mod ctpo;
mod divergence;
mod dppo;
mod dual_clip;
mod full;
mod gmpo;
mod gpg;
mod gspo;
mod masks;
mod minpro;
mod normalised_tis;
mod outside;
mod penalised;
mod ppo;
mod rejection;
mod sapo;
mod self_normalised;
mod sequence_clamp;
mod sequence_mis;
mod sequence_tis;
mod tempered;
mod token_mis;
mod token_tis;
mod truncated;
mod vespo;

mod correction;
mod member;
mod rule;
pub mod written;

pub use correction::Correction;
pub use member::{Alias, MOST, Member, Parameter};
pub use rule::{Bound, Factor, Form, Reads, Rule};
pub use written::{Steps, Terms, Written};

/// Every member, the paper's first.
///
/// Paper: `tab:variants`, `app:family`
pub static MEMBERS: &[&Member] = &[
    &ppo::MEMBER,
    &full::MEMBER,
    &tempered::MEMBER,
    &truncated::MEMBER,
    &clipped::MEMBER,
    &self_normalised::MEMBER,
    &adaptive::MEMBER,
    &by_length::MEMBER,
    &outside::MEMBER,
    &minpro::MEMBER,
    &ctpo::MEMBER,
    &gspo::MEMBER,
    &token_tis::MEMBER,
    &sequence_tis::MEMBER,
    &token_mis::MEMBER,
    &sequence_mis::MEMBER,
    &cispo::MEMBER,
    &dual_clip::MEMBER,
    &gpg::MEMBER,
    &rejection::TOKEN_K1,
    &rejection::TOKEN_K2,
    &rejection::TOKEN_K3,
    &rejection::SEQUENCE_K1,
    &rejection::MEAN_K1,
    &divergence::SEQUENCE_K2,
    &divergence::SEQUENCE_K3,
    &divergence::MEAN_K2,
    &divergence::MEAN_K3,
    &divergence::MAX_K2,
    &divergence::MAX_K3,
    &sequence_clamp::MEMBER,
    &normalised_tis::NORMALISED_TOKEN_TIS,
    &normalised_tis::NORMALISED_SEQUENCE_TIS,
    &sapo::MEMBER,
    &vespo::MEMBER,
    &gmpo::MEMBER,
    &dppo::DPPO_TV,
    &dppo::DPPO_KL,
    &covariance::CLIP_COV,
    &covariance::KL_COV,
    &penalised::DRO,
    &penalised::KL_PENALTY,
    &penalised::KL_CORRECTED,
    &masks::OFF_POLICY_MASK,
    &masks::TOP_ENTROPY,
];

/// The twelve variants that the paper evaluates on the testbed, as names.
///
/// Paper: `app:testbed-protocol`
pub const TESTBED: [&str; 12] = [
    "ppo",
    "tempered:0.05",
    "tempered:0.1",
    "tempered:0.25",
    "tempered:0.5",
    "full",
    "truncated:1",
    "truncated:2",
    "truncated:4",
    "clipped:0.1,1",
    "clipped:0.25,1",
    "clipped:0.25,2",
];
