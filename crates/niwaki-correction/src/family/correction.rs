//! A member with its parameters, or a rule of a user's own; names such as `clipped:0.25,1`.

use super::member::MOST;
use super::written::{Acts, Called, Shape, Steps, Terms};
use super::{MEMBERS, Member, Rule, Written};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// A correction: what `tempered:0.25` or [`Correction::tempered`] names, or a rule of your own.
///
/// ```
/// use niwaki_correction::family::{Bound, Reads};
/// use niwaki_correction::{Correction, Rule};
///
/// assert_eq!("tempered:0.25".parse(), Correction::tempered(0.25));
/// // The last four steps, at half strength and never above 2.
/// let rule = Rule {
///     reads: Reads::Window(4),
///     bound: Bound::Clamp(f64::NEG_INFINITY, 2.0_f64.ln()),
///     ..Rule::tempered(0.5)
/// };
/// let mine = Correction::custom("mine", rule)?;
/// assert_eq!(mine.to_string(), "mine");
/// # Ok::<(), niwaki_correction::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
pub struct Correction {
    name: &'static str,
    source: Source,
}

/// Where a correction's rule comes from.
#[derive(Clone, Copy)]
enum Source {
    Member(&'static Member, [f64; MOST]),
    Custom(Rule),
    Joined(Rule),
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Member(one, values), Self::Member(other, others)) => {
                one.name == other.name && values == others
            }
            (Self::Custom(one), Self::Custom(other)) | (Self::Joined(one), Self::Joined(other)) => {
                one == other
            }
            _ => false,
        }
    }
}

impl Correction {
    /// A member that has no parameters.
    pub(super) const fn plain(member: &'static Member) -> Self {
        Self { name: member.name, source: Source::Member(member, [0.0; MOST]) }
    }

    /// A member at the values of its parameters.
    pub(super) fn of(member: &'static Member, values: &[f64]) -> Result<Self, Error> {
        let mut kept = [0.0; MOST];
        for ((kept, &value), parameter) in kept.iter_mut().zip(values).zip(member.parameters) {
            *kept = member.check(parameter, value)?;
        }
        Ok(Self { name: member.name, source: Source::Member(member, kept) })
    }

    /// A rule of your own under a name of your own: the surrogate, the exact oracle and the trainer take it like a member.
    ///
    /// # Errors
    /// Where a member has the name, the name is empty or has a space, colon or comma, or the rule is no point of the
    /// normal form ([`Rule::check`]).
    pub fn custom(name: &str, rule: Rule) -> Result<Self, Error> {
        if member_called(name).is_some() {
            return Err(Error::Custom { name: name.to_owned(), why: "a member of the family has that name" });
        }
        if name.is_empty() || name.contains([':', ',', '+']) || name.contains(char::is_whitespace) {
            let why = "a name is one word without colon, comma or plus";
            return Err(Error::Custom { name: name.to_owned(), why });
        }
        rule.check().map_err(|why| Error::Custom { name: name.to_owned(), why })?;
        Ok(Self { name: kept(name), source: Source::Custom(rule) })
    }

    /// A loss that is a function of the user's own: from the steps of a batch to a term for each, with its derivatives. The
    /// surrogate and the exact oracle take it like a member that is written out.
    ///
    /// # Errors
    /// Where the name is a member's, or none.
    pub fn called(
        name: &str,
        function: impl Fn(&Steps<'_>) -> Terms + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let acts = Acts::Call(Called(Box::leak(Box::new(function))));
        // What it looks at nobody knows, so it is shown whole batches.
        let shape = Shape { coupled: true, ..Shape::new(kept(name), acts) };
        Self::custom(name, Rule::written(Box::leak(Box::new(shape)), [0.0; MOST]))
    }

    /// The same, and text names it from then on in this process: flags, specs and studies take `mine` like a member.
    ///
    /// # Errors
    /// As [`Correction::custom`], and where another rule is registered under the name.
    pub fn register(name: &str, rule: Rule) -> Result<Self, Error> {
        let mine = Self::custom(name, rule)?;
        let mut known = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(mine.name, rule).is_some_and(|before| before != rule) {
            let why = "another rule is registered under that name";
            return Err(Error::Custom { name: name.to_owned(), why });
        }
        Ok(mine)
    }

    /// The rule that is registered under a name, if one is.
    #[must_use]
    pub fn registered(name: &str) -> Option<Rule> {
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    /// The member's name, or a custom rule's.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The block that describes this member; nothing for a rule of a user's own.
    #[must_use]
    pub fn member(&self) -> Option<&'static Member> {
        match self.source {
            Source::Member(member, _) => Some(member),
            Source::Custom(_) | Source::Joined(_) => None,
        }
    }

    /// The parameters, in the member's order; none for a rule of a user's own.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        match &self.source {
            Source::Member(member, values) => &values[..member.parameters.len()],
            Source::Custom(_) | Source::Joined(_) => &[],
        }
    }

    /// Its normal form.
    #[must_use]
    pub fn rule(&self) -> Rule {
        match self.source {
            Source::Member(member, values) => (member.rule)(values),
            Source::Custom(rule) | Source::Joined(rule) => rule,
        }
    }

    /// The same on trajectories of these lengths: a strength that depends on them is settled, so that parts of a batch have
    /// that of the whole ([`Rule::at_lengths`]).
    #[must_use]
    pub fn at_lengths(self, lengths: impl Iterator<Item = usize>) -> Self {
        let rule = self.rule();
        if rule.amplification.is_none() {
            return self;
        }
        Self { source: Source::Custom(rule.at_lengths(lengths)), ..self }
    }

    /// Several weights from outside as one: their product, under their names joined by a plus. verl's rollout correction is such
    /// a product of one weight and any number of rejections.
    ///
    /// # Errors
    /// Where a part is no weight from outside.
    pub fn joined(parts: &[Self]) -> Result<Self, Error> {
        if let Some(part) = parts.iter().find(|part| !part.rule().weighs()) {
            return Err(Error::Join { part: part.to_string() });
        }
        let name = parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
        let rules: Vec<Rule> = parts.iter().map(Self::rule).collect();
        let written = Some(Written::Product(kept_rules(&name, rules)));
        Ok(Self { name: kept(&name), source: Source::Joined(Rule { written, ..Rule::tempered(0.0) }) })
    }

    /// A human label such as `Tempered α = 0.25`.
    #[must_use]
    pub fn label(&self) -> String {
        let Some(member) = self.member() else { return self.name.to_owned() };
        let name = member.title;
        match (member.parameters, self.values()) {
            ([only], [value]) if only.name == "alpha" => format!("{name} α = {value}"),
            ([only], [value]) if only.name == "window" => format!("{name} k = {value}"),
            (_, []) => name.to_owned(),
            (_, values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("{name} ({})", values.join(", "))
            }
        }
    }

    /// One sentence on what it does.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self.source {
            Source::Member(member, _) => member.summary,
            Source::Custom(_) => "A rule of your own.",
            Source::Joined(_) => "Several weights, multiplied.",
        }
    }
}

impl fmt::Debug for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Correction({self})")
    }
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (index, value) in self.values().iter().enumerate() {
            write!(f, "{}{value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Correction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.contains('+') {
            return Self::joined(&text.split('+').map(str::parse).collect::<Result<Vec<_>, _>>()?);
        }
        let (name, written) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some(member) = member_called(name) else {
            if let (Some(rule), "") = (Self::registered(name), written) {
                return Self::custom(name, rule);
            }
            return Err(Error::UnknownName { came: name.to_owned(), nearest: nearest(name) });
        };
        Ok(Self { name: member.name, source: Source::Member(member, member.read(written)?) })
    }
}

/// Rules of a user's own that text may name.
static REGISTERED: Mutex<BTreeMap<&str, Rule>> = Mutex::new(BTreeMap::new());

/// A custom name for as long as the program runs, kept once however often it is given: corrections are copied freely.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

/// The rules of a joined name, kept like the name.
fn kept_rules(name: &str, rules: Vec<Rule>) -> &'static [Rule] {
    static RULES: Mutex<BTreeMap<&str, &[Rule]>> = Mutex::new(BTreeMap::new());
    let mut known = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(kept(name)).or_insert_with(|| Box::leak(rules.into_boxed_slice()))
}

/// The member of a name or of an alias; underscores are read as hyphens, as trainers write them.
fn member_called(name: &str) -> Option<&'static Member> {
    let name = name.replace('_', "-");
    let known =
        |member: &&&Member| member.name == name || member.aliases.iter().any(|alias| alias.name == name);
    MEMBERS.iter().find(known).copied()
}

/// The member's name with the smallest edit distance, if at most one letter in three differs.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.split('(').next().unwrap_or(name).trim().to_ascii_lowercase().replace('_', "-");
    let far = |known: &str| edit_distance(&name, known);
    let best = MEMBERS.iter().map(|member| member.name).min_by_key(|known| far(known))?;
    if far(best) <= name.len().max(best.len()).div_ceil(3) {
        return Some(best);
    }
    // `ppo_clip`: a loss by its first word.
    let first = name.split('-').next()?;
    MEMBERS.iter().map(|member| member.name).find(|known| *known == first)
}

/// Levenshtein distance in bytes. This crate has no dependency, so it has its own.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{Bound, Form, Reads, TESTBED};
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in TESTBED.into_iter().chain(["minpro", "gspo", "token-mis:0.5,2", "clipped:0.25,inf"]) {
            let correction: Correction = name.parse().unwrap();
            assert_eq!(correction.to_string(), name);
        }
        assert_eq!("token-tis".parse::<Correction>().unwrap().to_string(), "token-tis:2");
        for (alias, name) in [
            ("grpo", "ppo"),
            ("dr_grpo", "ppo"),
            ("icepop:0.5,5", "token-mis:0.5,5"),
            ("vanilla", "dual-clip:3"),
            ("luspo", "gspo"),
            ("geo_mean:0.2,0.2", "gmpo:0.2,0.2"),
            ("seq_max_k3:0.1", "max-k3:0.1"),
            ("token-tis+seq_mean_k1", "token-tis:2+mean-k1:0.5,2"),
        ] {
            assert_eq!(alias.parse::<Correction>().unwrap().to_string(), name);
        }
        assert_eq!("tempered:0.25".parse::<Correction>().unwrap().label(), "Tempered α = 0.25");
        assert_eq!("clipped:0.1,1".parse::<Correction>().unwrap().label(), "Clipped (0.1, 1)");
        assert_eq!("ppo".parse::<Correction>().unwrap().label(), "PPO");
        assert_eq!("token-tis".parse::<Correction>().unwrap().label(), "Token TIS (2)");
    }

    #[test]
    fn constructors_name_what_names_name() {
        for (name, made) in [
            ("ppo", Ok(Correction::ppo())),
            ("full", Ok(Correction::full())),
            ("tempered:0.25", Correction::tempered(0.25)),
            ("truncated:4", Correction::truncated(4)),
            ("clipped:0.25,1", Correction::clipped(0.25, 1.0)),
            ("self-normalised:0.5", Correction::self_normalised(0.5)),
            ("adaptive:0.8", Correction::adaptive(0.8)),
            ("by-length:3", Correction::by_length(3.0)),
            ("outside:0.3", Correction::outside(0.3)),
            ("minpro", Ok(Correction::minpro())),
            ("ctpo", Ok(Correction::ctpo())),
            ("gspo", Ok(Correction::gspo())),
            ("dual-clip:2", Correction::dual_clip(2.0)),
            ("gpg", Ok(Correction::gpg())),
            ("token-k1:0.4,3", Correction::token_k1(0.4, 3.0)),
            ("token-k2:0.1", Correction::token_k2(0.1)),
            ("token-k3:0.1", Correction::token_k3(0.1)),
            ("sequence-k1:0.4,3", Correction::sequence_k1(0.4, 3.0)),
            ("mean-k1:0.4,3", Correction::mean_k1(0.4, 3.0)),
            ("token-tis:3", Correction::token_tis(3.0)),
            ("sequence-tis:3", Correction::sequence_tis(3.0)),
            ("token-mis:0.4,3", Correction::token_mis(0.4, 3.0)),
            ("sequence-mis:0.4,3", Correction::sequence_mis(0.4, 3.0)),
            ("cispo:0.2,0.3", Correction::cispo(0.2, 0.3)),
            ("sequence-clamp:0.5,2", Correction::sequence_clamp(0.5, 2.0)),
            ("normalised-token-tis:3", Correction::normalised_token_tis(3.0)),
            ("normalised-sequence-tis:3", Correction::normalised_sequence_tis(3.0)),
            ("sequence-k2:0.2", Correction::sequence_k2(0.2)),
            ("sequence-k3:0.2", Correction::sequence_k3(0.2)),
            ("mean-k2:0.2", Correction::mean_k2(0.2)),
            ("mean-k3:0.2", Correction::mean_k3(0.2)),
            ("max-k2:0.2", Correction::max_k2(0.2)),
            ("max-k3:0.2", Correction::max_k3(0.2)),
            ("sapo:1,2", Correction::sapo(1.0, 2.0)),
            ("vespo:1,2,3,4", Correction::vespo(1.0, 2.0, 3.0, 4.0)),
            ("gmpo:0.2,0.3", Correction::gmpo(0.2, 0.3)),
            ("dppo-tv:0.1,0.2,3", Correction::dppo_tv(0.1, 0.2, 3.0)),
            ("dppo-kl:0.1,0.2,3", Correction::dppo_kl(0.1, 0.2, 3.0)),
            ("clip-cov:0.1,1,5", Correction::clip_cov(0.1, 1.0, 5.0)),
            ("kl-cov:0.1,2", Correction::kl_cov(0.1, 2.0)),
            ("dro:0.5", Correction::dro(0.5)),
            ("kl-penalty:0.5", Correction::kl_penalty(0.5)),
            ("kl-corrected:0.5", Correction::kl_corrected(0.5)),
            ("off-policy-mask:0.5", Correction::off_policy_mask(0.5)),
            ("top-entropy:0.5", Correction::top_entropy(0.5)),
        ] {
            assert_eq!(name.parse(), made, "{name}");
        }
        assert_eq!("tempered:1.5".parse::<Correction>(), Correction::tempered(1.5));
        assert!(Correction::truncated(0).is_err() && Correction::tempered(f64::NAN).is_err());
    }

    #[test]
    fn a_registered_rule_is_named_by_text() {
        let rule = Rule { reads: Reads::Window(3), ..Rule::tempered(0.5) };
        assert!("three-back".parse::<Correction>().is_err());
        let mine = Correction::register("three-back", rule).unwrap();
        assert_eq!("three-back".parse(), Ok(mine));
        assert_eq!(Correction::register("three-back", rule), Ok(mine));
        assert!("three-back:2".parse::<Correction>().is_err());
        let other = Correction::register("three-back", Rule::tempered(0.5)).unwrap_err().to_string();
        assert_eq!(other, "custom loss 'three-back': another rule is registered under that name");
        assert!(Correction::register("full", rule).is_err());
    }

    #[test]
    fn custom_rules_have_names_of_their_own() {
        let rule = Rule { reads: Reads::Window(3), ..Rule::tempered(0.5) };
        let mine = Correction::custom("mine", rule).unwrap();
        assert_eq!((mine.name(), mine.label().as_str(), mine.rule()), ("mine", "mine", rule));
        assert!(mine.member().is_none() && mine.values().is_empty());
        // Kept once, and told apart by the rule.
        let again = Correction::custom(&String::from("mine"), rule).unwrap();
        assert!(std::ptr::eq(mine.name(), again.name()) && mine == again);
        assert_ne!(mine, Correction::custom("mine", Rule::tempered(0.5)).unwrap());
        let refuse = |name, rule| Correction::custom(name, rule).unwrap_err().to_string();
        assert_eq!(refuse("ppo", rule), "custom loss 'ppo': a member of the family has that name");
        assert_eq!(refuse("a b", rule), "custom loss 'a b': a name is one word without colon, comma or plus");
        let wrong = [
            (Rule::tempered(f64::NAN), "the strength must be finite"),
            (
                Rule { bound: Bound::Clamp(1.0, 0.0), ..rule },
                "the bounds must be numbers, the lower one first",
            ),
            (Rule { reads: Reads::Window(0), ..rule }, "a window has at least one step"),
            (Rule { ess_floor: Some(1.5), ..rule }, "an ESS floor lies from 0 to 1"),
            (
                Rule { form: Form::Weigh, self_normalised: true, ..rule },
                "a weight from outside the clip is not normalised by its batch",
            ),
        ];
        for (rule, why) in wrong {
            assert_eq!(refuse("mine", rule), format!("custom loss 'mine': {why}"));
        }
    }

    #[test]
    fn refusals_name_the_mend() {
        let refuse = |text: &str| text.parse::<Correction>().unwrap_err().to_string();
        assert_eq!(refuse("temperd:0.1"), "no loss is called 'temperd'; did you mean 'tempered'?");
        assert_eq!(refuse("ppo_clip"), "no loss is called 'ppo_clip'; did you mean 'ppo'?");
        assert_eq!(
            refuse("Tempered(0.25)"),
            "no loss is called 'Tempered(0.25)'; did you mean 'tempered:0.25'?"
        );
        assert!(refuse("foo").starts_with("no loss is called 'foo'; the losses are ppo, full, tempered, "));
        assert_eq!(refuse("tempered"), "loss 'tempered': alpha is missing; write tempered:ALPHA");
        assert_eq!(
            refuse("tempered:1.5"),
            "loss 'tempered': alpha = 1.5 must be a number from 0 to 1; write tempered:ALPHA"
        );
        assert_eq!(
            refuse("truncated:1.5"),
            "loss 'truncated': window = 1.5 must be a whole number from 1; write truncated:WINDOW"
        );
        assert_eq!(
            refuse("clipped:x,1"),
            "loss 'clipped': alpha = 'x' is not a number; write clipped:ALPHA,CAP"
        );
        assert_eq!(
            refuse("clipped:NaN,1").split(';').next(),
            Some("loss 'clipped': alpha = NaN must be a number from 0 to 1")
        );
        assert_eq!(refuse("ppo:1"), "loss 'ppo': write ppo");
    }
}
