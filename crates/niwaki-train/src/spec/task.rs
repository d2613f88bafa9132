//! What a spec names as its task, and whether its policy can play that.

use super::check::refuse;
use super::{AdvantageKind, PolicyKind, Spec, nearest};
use crate::Error;
use niwaki_exact::{Process, Reward};
use niwaki_tasks::{Choice, FlowPool, Ladder, Payment, Sequence, Terminal};
use std::sync::Arc;
use std::time::Duration;

/// Names of tasks beyond the ladder.
const CHOICE: &str = "choice";
const FLOW_SHOP: &str = "flow-shop";

/// How long the optimum of one instance may be sought.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which task a spec names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// A rung of the ladder.
    Ladder(Reward),
    /// Free choice and its environments.
    Choice(Terminal),
    /// Permutation flow shops.
    FlowShop,
}

/// What is played, by its view.
#[derive(Clone, Debug)]
pub enum Played {
    /// Tokens, one after the other.
    Tokens(Arc<dyn Sequence>),
    /// Shops from a pool that is drawn when training begins, and what a schedule pays.
    Shops(FlowPool, Payment),
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
        match self.task.kind.as_str() {
            CHOICE => return Ok(TaskKind::Choice(terminal)),
            FLOW_SHOP => return Ok(TaskKind::FlowShop),
            _ => {}
        }
        self.task.kind.parse().map(TaskKind::Ladder).map_err(|_| {
            let known = Reward::LADDER.map(Reward::name).into_iter().chain([CHOICE, FLOW_SHOP]);
            let nearest = nearest(&self.task.kind, known).unwrap_or_default();
            refuse("task.kind", format!("no task is called '{}'; did you mean '{nearest}'?", self.task.kind))
        })
    }

    pub(super) fn played(&self) -> Result<Played, Error> {
        let (vocab, horizon) = (self.task.vocab, self.task.horizon);
        let refused = |error: niwaki_tasks::Error| refuse("task", error.to_string());
        let kind = self.task_kind()?;
        if !matches!(kind, TaskKind::Choice(_)) && self.task.busy > 0 {
            return Err(refuse("task.busy", format!("only task '{CHOICE}' closes tokens; leave it out")));
        }
        if kind != TaskKind::FlowShop {
            self.refuse_shop_keys()?;
        }
        Ok(match kind {
            TaskKind::Ladder(reward) => {
                Played::Tokens(Arc::new(Ladder::new(reward, vocab, horizon).map_err(refused)?))
            }
            TaskKind::Choice(terminal) => Played::Tokens(Arc::new(
                Choice::new(vocab, horizon, terminal, self.task.busy).map_err(refused)?,
            )),
            TaskKind::FlowShop => {
                let pool = self.pool();
                pool.check().map_err(refused)?;
                Played::Shops(pool, self.payment()?)
            }
        })
    }

    /// A key of shops in another task is a mistake, not a wish to be ignored.
    fn refuse_shop_keys(&self) -> Result<(), Error> {
        let task = &self.task;
        let given = [
            ("task.machines", task.machines.is_some()),
            ("task.jobs", task.jobs.is_some()),
            ("task.deadline", task.deadline.is_some()),
            ("task.reward", task.reward.is_some()),
            ("task.training", task.training.is_some()),
            ("task.validation", task.validation.is_some()),
            ("task.pool", task.pool.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((key, _)) => Err(refuse(key, format!("task '{}' has no shops; leave it out", task.kind))),
            None => Ok(()),
        }
    }

    fn pool(&self) -> FlowPool {
        let task = &self.task;
        FlowPool {
            machines: task.machines.unwrap_or(7),
            jobs: task.jobs.unwrap_or(20),
            training: task.training.unwrap_or(256),
            validation: task.validation.unwrap_or(128),
            seed: task.pool.unwrap_or(0),
            patience: PATIENCE,
        }
    }

    fn payment(&self) -> Result<Payment, Error> {
        let payment = match self.task.reward.as_deref().unwrap_or("deadline") {
            "deadline" => Payment::Deadline(self.task.deadline.unwrap_or(1.05)),
            "makespan" if self.task.deadline.is_some() => {
                let reason = "a reward of 'makespan' knows no deadline; leave it out".to_owned();
                return Err(refuse("task.deadline", reason));
            }
            "makespan" => Payment::Makespan,
            other => {
                return Err(refuse("task.reward", format!("'{other}' is neither 'deadline' nor 'makespan'")));
            }
        };
        payment.check().map_err(|error| refuse("task.deadline", error.to_string()))?;
        Ok(payment)
    }

    pub(super) fn check_policy(&self, task: &Played) -> Result<(), Error> {
        let kind = self.policy.kind;
        match task {
            Played::Tokens(task) => {
                if kind == PolicyKind::Pointer {
                    let reason = format!("'pointer' plays shops; task '{}' needs another", self.task.kind);
                    return Err(refuse("policy.kind", reason));
                }
                if kind == PolicyKind::Tabular {
                    Process::new(task.vocab(), task.horizon())
                        .map_err(|error| refuse("policy.kind", error.to_string()))?;
                }
                self.check_prime(task.as_ref())?;
            }
            Played::Shops(..) => self.check_pointer()?,
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

    fn check_pointer(&self) -> Result<(), Error> {
        if self.policy.kind != PolicyKind::Pointer {
            let reason = format!("task '{}' is played by 'pointer' only", self.task.kind);
            return Err(refuse("policy.kind", reason));
        }
        if self.policy.prime.is_some() {
            return Err(refuse(
                "policy.prime",
                "the pointer has no first logit to raise; leave it out".to_owned(),
            ));
        }
        if self.advantage.kind == AdvantageKind::Critic {
            return Err(refuse(
                "advantage.kind",
                "the pointer has no critic; use 'group' or 'returns'".to_owned(),
            ));
        }
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
        if self.policy.kind == PolicyKind::Causal {
            let reason = "the causal policy has no first logit to raise; use 'bag' or 'tabular'".to_owned();
            return Err(refuse("policy.prime", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(settings: &[&str]) -> String {
        let base = ["task.kind=flow-shop", "policy.kind=pointer"];
        let settings: Vec<String> = base.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        Spec::read("run.toml", "", &settings).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn shops_that_cannot_be_played_are_named() {
        assert_eq!(
            refusal(&["task.kind=flow-shp"]),
            "task.kind: no task is called 'flow-shp'; did you mean 'flow-shop'?"
        );
        assert_eq!(
            refusal(&["policy.kind=bag"]),
            "policy.kind: task 'flow-shop' is played by 'pointer' only"
        );
        assert_eq!(
            refusal(&["task.kind=two-branch"]),
            "policy.kind: 'pointer' plays shops; task 'two-branch' needs another"
        );
        assert_eq!(
            refusal(&["task.kind=choice", "policy.kind=bag", "task.jobs=3"]),
            "task.jobs: task 'choice' has no shops; leave it out"
        );
        assert!(refusal(&["task.deadline=0.9"]).starts_with("task.deadline: deadline 0.9 is not a factor"));
        assert!(refusal(&["task.reward=late"]).contains("neither 'deadline' nor 'makespan'"));
        assert!(refusal(&["task.reward=makespan", "task.deadline=1.1"]).contains("leave it out"));
        assert!(refusal(&["task.jobs=1"]).contains("jobs of at least 2"));
        assert!(refusal(&["rollout.lanes=100"]).contains("do not divide 100 lanes"));
        assert!(refusal(&["update.minibatches=32"]).contains("32 parts do not divide 16 groups"));
        assert!(refusal(&["advantage.kind=critic"]).contains("no critic"));
    }
}
