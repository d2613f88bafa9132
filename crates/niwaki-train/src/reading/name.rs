//! What endpoints are called in files and on the command line.

use super::Endpoint;
use niwaki_words::nearest;
use std::fmt;

/// Numbers of iterations, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

impl Stretch {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let stretch = Self { first: first.parse().ok()?, last: last.parse().ok()? };
        (stretch.first <= stretch.last).then_some(stretch)
    }
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last > self.first { write!(f, "-{}", self.last) } else { Ok(()) }
    }
}

/// Some tokens in the first place of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTokens {
    /// One bit for each of the first 64 tokens.
    tokens: u64,
    /// Iterations before the batch was drawn.
    pub(super) after: usize,
}

impl FirstTokens {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (tokens, after) = text.split_once('@')?;
        let bits = tokens.split('+').map(|token| 1_u64.checked_shl(token.parse().ok()?));
        let tokens = bits.collect::<Option<Vec<u64>>>()?.into_iter().fold(0, |all, bit| all | bit);
        Some(Self { tokens, after: after.parse().ok()? })
    }

    pub(super) fn words(self) -> String {
        self.each().map(|token| token.to_string()).collect::<Vec<_>>().join(" or ")
    }

    pub(super) fn each(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |token| self.tokens >> token & 1 == 1)
    }
}

impl fmt::Display for FirstTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens: Vec<String> = self.each().map(|token| token.to_string()).collect();
        write!(f, "{}@{}", tokens.join("+"), self.after)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(iteration) = text.strip_prefix("at:").and_then(|count| count.parse().ok()) {
            return Ok(Self::At(iteration));
        }
        if let Some(count) = text.strip_prefix("dose:").and_then(|count| count.parse().ok()) {
            return Ok(Self::Dose(count));
        }
        if let Some(count) = text.strip_prefix("silent:").and_then(|count| count.parse().ok()) {
            return Ok(Self::Silent(count));
        }
        if let Some(stretch) = text.strip_prefix("greedy-mean:").and_then(Stretch::parse) {
            return Ok(Self::GreedyMean(stretch));
        }
        if let Some(stretch) = text.strip_prefix("erosion:").and_then(Stretch::parse) {
            return Ok(Self::Erosion(stretch));
        }
        if let Some(stretch) = text.strip_prefix("mean:").and_then(Stretch::parse) {
            return Ok(Self::Mean(stretch));
        }
        if let Some(stretch) = text.strip_prefix("batch:").and_then(Stretch::parse) {
            return Ok(Self::Batch(stretch));
        }
        if let Some(first) = text.strip_prefix("commits:").and_then(FirstTokens::parse) {
            return Ok(Self::Commits(first));
        }
        if let Some(first) = text.strip_prefix("first:").and_then(FirstTokens::parse) {
            return Ok(Self::First(first));
        }
        let named = Self::NAMED.into_iter().find(|(name, _)| *name == text);
        named.map(|(_, endpoint)| endpoint).ok_or_else(|| {
            let known = Self::NAMED.map(|(name, _)| name);
            let mend = match nearest(&text, known) {
                Some(near) => format!("the nearest valid one is '{near}'"),
                None => format!("the valid ones are {}", known.join(", ")),
            };
            let more =
                "at:N, dose:N, silent:N, mean:A-B, greedy-mean:A-B, erosion:A-B, batch:A-B, first:T+T@N, commits:T+T@N";
            format!("unknown endpoint '{text}'; {mend} (or {more})")
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(iteration) => write!(f, "at:{iteration}"),
            Self::Dose(count) => write!(f, "dose:{count}"),
            Self::Silent(count) => write!(f, "silent:{count}"),
            Self::Mean(stretch) => write!(f, "mean:{stretch}"),
            Self::GreedyMean(stretch) => write!(f, "greedy-mean:{stretch}"),
            Self::Erosion(stretch) => write!(f, "erosion:{stretch}"),
            Self::Batch(stretch) => write!(f, "batch:{stretch}"),
            Self::First(first) => write!(f, "first:{first}"),
            Self::Commits(first) => write!(f, "commits:{first}"),
            other => {
                let named = Self::NAMED.into_iter().find(|(_, endpoint)| endpoint == other);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Endpoint {
    const NAMED: [(&'static str, Self); 21] = [
        ("final", Self::Final),
        ("auc", Self::Auc),
        ("solved", Self::Solved),
        ("break-through", Self::BreakThrough),
        ("success", Self::Success),
        ("greedy-final", Self::GreedyFinal),
        ("greedy-start", Self::GreedyStart),
        ("greedy-auc", Self::GreedyAuc),
        ("greedy-first-half", Self::GreedyFirstHalf),
        ("greedy-second-half", Self::GreedySecondHalf),
        ("batch-auc", Self::BatchAuc),
        ("batch-final", Self::BatchFinal),
        ("reached", Self::Reached),
        ("gap-final", Self::GapFinal),
        ("first-drift", Self::FirstDrift),
        ("first-conditional-drift", Self::FirstConditionalDrift),
        ("first-prefix-variance", Self::FirstPrefixVariance),
        ("drift", Self::Drift),
        ("mean-drift", Self::MeanDrift),
        ("strength", Self::Strength),
        ("zero-signal", Self::ZeroSignal),
    ];
}
