//! What a spec names as its task, and whether its policy can play that.

use super::check::refuse;
use super::shop::Shops;
use super::size::{bytes_in_words, times};
use super::{AdvantageKind, PolicyKind, Spec};
use crate::{Error, parts};
use niwaki_exact::{Process, Reward};
use niwaki_tasks::{Choice, Ladder, Sequence, Shop, Source, Terminal, TextTask};
use niwaki_words::nearest;
use std::sync::Arc;

/// The name of a task beyond ladder and shops.
pub(super) const CHOICE: &str = "choice";

/// The name of records.
pub(super) const RECORD: &str = "record";

/// The name of free text.
pub(super) const TEXT: &str = "text";

/// What a run's policies may take on the disk at most, in bytes.
const POLICIES: u128 = 4 << 30;

/// Which task a spec names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// A rung of the ladder.
    Ladder(Reward),
    /// Free choice and its environments.
    Choice(Terminal),
    /// Records of a file.
    Record,
    /// Free text behind the prompts of a file.
    Text,
    /// Schedules of shops.
    Shop(Shop),
    /// A token task of the user's own.
    Own(&'static str),
}

impl TaskKind {
    /// The shop, where schedules are played.
    #[must_use]
    pub const fn shop(self) -> Option<Shop> {
        match self {
            Self::Shop(shop) => Some(shop),
            Self::Ladder(_) | Self::Choice(_) | Self::Record | Self::Text | Self::Own(_) => None,
        }
    }
}

/// What is played, by its view.
#[derive(Clone, Debug)]
pub enum Played {
    /// Tokens, one after the other.
    Tokens(Arc<dyn Sequence>),
    /// Texts behind prompts.
    Texts(Arc<TextTask>),
    /// Shops, and what a schedule pays.
    Shops(Shops),
}

/// Whether a task is called so.
pub(crate) fn is_known(kind: &str) -> bool {
    [CHOICE, RECORD, TEXT].contains(&kind)
        || Shop::ALL.iter().any(|shop| shop.name() == kind)
        || kind.parse::<Reward>().is_ok()
        || parts::called(kind).is_some()
}

/// What tasks are called.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    Reward::LADDER
        .map(Reward::name)
        .into_iter()
        .chain([CHOICE, RECORD, TEXT])
        .chain(Shop::ALL.map(Shop::name))
        .chain(parts::names())
}

impl Spec {
    /// Which task the spec names.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn task_kind(&self) -> Result<TaskKind, Error> {
        let terminal = match self.task.terminal.as_str() {
            "chosen" => Terminal::Chosen,
            "modal" => Terminal::Modal,
            other => {
                return Err(refuse("task.terminal", format!("'{other}' is neither 'chosen' nor 'modal'")));
            }
        };
        let named = self.task.kind.as_str();
        if named == CHOICE {
            return Ok(TaskKind::Choice(terminal));
        }
        if named == RECORD {
            return Ok(TaskKind::Record);
        }
        if named == TEXT {
            return Ok(TaskKind::Text);
        }
        if let Some(own) = parts::called(named) {
            return Ok(TaskKind::Own(own));
        }
        if let Some(shop) = Shop::ALL.into_iter().find(|shop| shop.name() == named) {
            return Ok(TaskKind::Shop(self.dialled(shop)?));
        }
        self.task.kind.parse().map(TaskKind::Ladder).map_err(|_| {
            let known = names();
            let mend = match nearest(named, known.clone()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("the tasks are {}", known.collect::<Vec<_>>().join(", ")),
            };
            refuse("task.kind", format!("no task is called '{named}'; {mend}"))
        })
    }

    pub(super) fn played(&self) -> Result<Played, Error> {
        let (vocab, horizon) = (self.task.vocab, self.task.horizon);
        let refused = |error: niwaki_tasks::Error| refuse("task", error.to_string());
        let kind = self.task_kind()?;
        self.check_kinds()?;
        Ok(match kind {
            TaskKind::Ladder(reward) => {
                Played::Tokens(Arc::new(Ladder::new(reward, vocab, horizon).map_err(refused)?))
            }
            TaskKind::Choice(terminal) => Played::Tokens(Arc::new(
                Choice::new(vocab, horizon, terminal, self.task.busy).map_err(refused)?,
            )),
            TaskKind::Record => {
                let task = self.record()?.task(self.task.reward.as_deref());
                Played::Tokens(Arc::new(task.map_err(|error| refuse("task.reward", error.to_string()))?))
            }
            TaskKind::Text => Played::Texts(Arc::new(self.text()?)),
            TaskKind::Shop(shop) => Played::Shops(self.shops(shop)?),
            TaskKind::Own(name) => {
                let made = parts::made(name, vocab, horizon);
                Played::Tokens(made.map_err(|reason| refuse("task", format!("'{name}': {reason}")))?)
            }
        })
    }

    /// What names the content of a task of the user's own.
    pub(super) fn own_digest(&self, name: &str, task: &dyn Sequence) -> Result<String, Error> {
        let digest = parts::content(task).map_err(|reason| refuse("task", format!("'{name}': {reason}")))?;
        match self.task.digest.as_deref().filter(|&said| said != digest) {
            None => Ok(digest),
            Some(said) => {
                let reason = format!(
                    "the code of '{name}' now pays as {digest}, not as {said}; put it back, or leave it out for a new run"
                );
                Err(refuse("task.digest", reason))
            }
        }
    }

    pub(super) fn check_policy(&self, task: &Played) -> Result<(), Error> {
        let kind = self.policy.kind;
        match task {
            Played::Tokens(task) => {
                if kind == PolicyKind::Pointer || kind.reads_graphs() {
                    let reason =
                        format!("'{}' plays shops; task '{}' needs another", kind.name(), self.task.kind);
                    return Err(refuse("policy.kind", reason));
                }
                if kind == PolicyKind::Tabular {
                    Process::new(task.vocab(), task.horizon())
                        .map_err(|error| refuse("policy.kind", error.to_string()))?;
                }
                self.check_decoder()?;
                self.check_prime(task.as_ref())?;
                self.check_policies(task.as_ref())?;
            }
            Played::Texts(_) => self.check_writer()?,
            Played::Shops(shops) => {
                self.check_dispatcher()?;
                self.check_sets(shops)?;
            }
        }
        if kind != PolicyKind::Tabular && self.advantage.kind == AdvantageKind::Exact {
            return Err(refuse("advantage.kind", "'exact' needs policy.kind = 'tabular'".to_owned()));
        }
        let width = self.policy.width.unwrap_or(1);
        if width == 0 || self.policy.heads == 0 || self.policy.hidden == Some(0) {
            return Err(refuse("policy", "width, heads and hidden must be at least 1".to_owned()));
        }
        Ok(())
    }

    /// Whether what the policy says at all prefixes can be kept: the oracle has tables in which every choice is open.
    fn check_policies(&self, task: &dyn Sequence) -> Result<(), Error> {
        let key = match (self.dump.policies, self.evaluate.drift) {
            (false, false) => return Ok(()),
            (true, _) => "dump.policies",
            (false, true) => "evaluate.drift",
        };
        if self.evaluate.drift && !matches!(self.policy.kind, PolicyKind::Tabular | PolicyKind::Decoder) {
            let reason = format!(
                "'{}' is not enumerated, 'tabular' and 'decoder' are; leave it out",
                self.policy.kind.name()
            );
            return Err(refuse("evaluate.drift", reason));
        }
        if task.masked() || task.end().is_some() {
            let reason =
                "the oracle needs the same choices at every step, and this task closes some; leave it out";
            return Err(refuse(key, reason.to_owned()));
        }
        let process =
            Process::new(task.vocab(), task.horizon()).map_err(|error| refuse(key, error.to_string()))?;
        if !self.dump.policies {
            return Ok(());
        }
        // A logit takes about twenty characters.
        let bytes = times(&[process.edges(), self.iterations.saturating_add(1), 20]);
        if bytes > POLICIES {
            let (bytes, most) = (bytes_in_words(bytes), bytes_in_words(POLICIES));
            let reason =
                format!("the tables of this run take {bytes}, more than {most}; set fewer iterations");
            return Err(refuse("dump.policies", reason));
        }
        Ok(())
    }

    fn check_dispatcher(&self) -> Result<(), Error> {
        let (kind, shop) = (self.policy.kind, self.task_kind()?.shop());
        let players: &[PolicyKind] = match shop {
            Some(Shop::Flexible { .. }) => &[PolicyKind::Hgnn, PolicyKind::Dual],
            Some(Shop::Job) => &[PolicyKind::Pointer, PolicyKind::Hgnn, PolicyKind::Dual],
            _ => &[PolicyKind::Pointer],
        };
        if !players.contains(&kind) {
            let names: Vec<String> = players.iter().map(|kind| format!("'{}'", kind.name())).collect();
            let listed = match names.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
                _ => names.join(""),
            };
            let reason = format!("task '{}' is played by {listed} only", self.task.kind);
            return Err(refuse("policy.kind", reason));
        }
        if kind.reads_graphs() {
            let (lanes, group) = (self.rollout.lanes, self.rollout.group);
            if !lanes.is_multiple_of(group) {
                let reason = format!("groups of {group}, one instance each, do not divide {lanes} lanes");
                return Err(refuse("rollout.group", reason));
            }
            return Ok(());
        }
        if self.advantage.kind == AdvantageKind::Critic {
            return Err(refuse(
                "advantage.kind",
                "the pointer has no critic; use 'group' or 'returns'".to_owned(),
            ));
        }
        self.check_groups()
    }

    /// Whether sets of instances that are played for some iterations divide those to learn from.
    fn check_sets(&self, shops: &Shops) -> Result<(), Error> {
        let training = match &shops.pool.source {
            Source::Generated(drawn) => drawn.training,
            Source::Folder(given) => given.training(),
        };
        let set = self.rollout.lanes / self.rollout.group;
        if self.rollout.hold.is_some() && !training.is_multiple_of(set) {
            let reason = format!("sets of {set} instances do not divide {training} to learn from");
            return Err(refuse("rollout.hold", reason));
        }
        Ok(())
    }

    /// Whether groups, which share an instance, divide lanes and minibatches.
    pub(super) fn check_groups(&self) -> Result<(), Error> {
        let (lanes, group) = (self.rollout.lanes, self.rollout.group);
        if !lanes.is_multiple_of(group) {
            let reason = format!("groups of {group}, one instance each, do not divide {lanes} lanes");
            return Err(refuse("rollout.group", reason));
        }
        let parts = self.update.minibatches;
        if !(lanes / group).is_multiple_of(parts) {
            let reason = format!("{parts} parts do not divide {} groups", lanes / group);
            return Err(refuse("update.minibatches", reason));
        }
        Ok(())
    }

    fn check_prime(&self, task: &dyn Sequence) -> Result<(), Error> {
        let Some(prime) = &self.policy.prime else { return Ok(()) };
        if prime.token >= task.vocab() {
            let reason = format!("token {} is not below task.vocab = {}", prime.token, task.vocab());
            return Err(refuse("policy.prime.token", reason));
        }
        if !(prime.mass > 0.0 && prime.mass < 1.0) {
            return Err(refuse("policy.prime.mass", format!("{} is not between 0 and 1", prime.mass)));
        }
        Ok(())
    }
}
