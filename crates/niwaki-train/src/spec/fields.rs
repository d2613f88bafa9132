//! Every key of a spec's file: which kinds of task and policy have it, and what is said of it.
//!
//! One table for all: a file's kinds are read first, then every key is held to the table, and `--print-spec` and `spec.toml`
//! are written by it.

use super::check::refuse;
use super::foreign::foreign;
use super::{PolicyKind, Spec, task};
use crate::{Error, parts};
use niwaki_shop::generate::Task;
use niwaki_tasks::Shop;
use niwaki_words::nearest;
use std::collections::BTreeSet;

/// A key of the file.
pub(super) struct Field {
    /// Its name, with dots between tables.
    pub(super) name: &'static str,
    /// Whether a spec of some kinds has it.
    has: Has,
    /// What is said of it, or the names that the code knows.
    sentence: &'static str,
    names: Option<fn() -> Vec<&'static str>>,
}

impl Field {
    /// Whether a spec of these kinds has it.
    pub(super) fn is_of(&self, kinds: Kinds<'_>) -> bool {
        if kinds.own { OF_OWN.contains(&self.name) } else { (self.has)(kinds) }
    }

    /// What is said of it.
    pub(super) fn sentence(&self) -> String {
        let Some(names) = self.names else { return self.sentence.to_owned() };
        let quoted: Vec<String> = names().iter().map(|name| format!("'{name}'")).collect();
        match quoted.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}.", others.join(", ")),
            _ => format!("{}.", quoted.join("")),
        }
    }
}

/// The kinds that a spec names.
#[derive(Clone, Copy)]
pub(super) struct Kinds<'a> {
    task: &'a str,
    policy: PolicyKind,
    /// Whether the run is another trainer's.
    own: bool,
}

/// Keys of another trainer's run, beside those in `[own]`.
const OF_OWN: [&str; 5] = ["seed", "iterations", "task.kind", "update.correction", "update.reuse"];

type Has = fn(Kinds<'_>) -> bool;

const fn field(name: &'static str, has: Has, sentence: &'static str) -> Field {
    Field { name, has, sentence, names: None }
}

/// A key whose value is one of the names that the code knows, so that a new one changes no text.
const fn named(name: &'static str, has: Has, names: fn() -> Vec<&'static str>) -> Field {
    Field { name, has, sentence: "", names: Some(names) }
}

const ALL: Has = |_| true;
const SHOPS: Has = |kinds| Shop::ALL.iter().any(|shop| shop.name() == kinds.task);
const RECORDS: Has = |kinds| kinds.task == task::RECORD;
const TEXTS: Has = |kinds| kinds.task == task::TEXT;
const TOKENS: Has = |kinds| !SHOPS(kinds) && !RECORDS(kinds) && !TEXTS(kinds);
const OWN: Has = |kinds| parts::called(kinds.task).is_some();
const CHOICE: Has = |kinds| kinds.task == task::CHOICE;
const JOB_SHOPS: Has = |kinds| kinds.task == Shop::Job.name() && !GRAPHS(kinds);
const FLEXIBLE: Has = |kinds| kinds.task == "flexible-shop";
const TWO_ORDERS: Has = |kinds| kinds.task == Shop::TwoOrders { both: false, slack: None }.name();
const DUE_DATES: Has = |kinds| Shop::ALL.iter().any(|shop| shop.name() == kinds.task && shop.has_due_dates());
const TABLE: Has = |kinds| kinds.policy == PolicyKind::Tabular;
const DECODER: Has = |kinds| kinds.policy == PolicyKind::Decoder;
const ENUMERATED: Has = |kinds| TABLE(kinds) || RECORDS(kinds);
const NETWORKS: Has = |kinds| !TABLE(kinds) && !DECODER(kinds);
const TRANSFORMERS: Has = |kinds| matches!(kinds.policy, PolicyKind::Causal | PolicyKind::Pointer);
const POINTER: Has = |kinds| kinds.policy == PolicyKind::Pointer;
const HGNN: Has = |kinds| kinds.policy == PolicyKind::Hgnn;
const DUAL: Has = |kinds| kinds.policy == PolicyKind::Dual;
const GRAPHS: Has = |kinds| kinds.policy.reads_graphs();
const FIRST_LOGITS: Has = |kinds| matches!(kinds.policy, PolicyKind::Tabular | PolicyKind::Bag);

/// All keys, in the order of the file. A key that means something else to another kind stands here once for each.
pub(super) const FIELDS: &[Field] = &[
    field("seed", ALL, "The seed of every stream of the run."),
    field("iterations", ALL, "Iterations: rollout, then update."),
    named("task.kind", ALL, || task::names().collect()),
    field("task.vocab", TOKENS, "Tokens."),
    field("task.horizon", TOKENS, "Steps."),
    field("task.terminal", CHOICE, "What is read at the end: 'chosen' or 'modal'."),
    field("task.busy", CHOICE, "For how many steps a chosen token stays closed."),
    field("task.machines", SHOPS, "Machines of a shop; of a flow shop's, 1, 3, 5 and so on are bottlenecks."),
    field("task.jobs", SHOPS, "Jobs of a shop."),
    field(
        "task.deadline",
        SHOPS,
        "A schedule is paid if its makespan is at most this multiple of the optimum.",
    ),
    field(
        "task.reward",
        FLEXIBLE,
        "What a schedule is paid for: 'deadline'; 'makespan' for minus its makespan over the optimum; 'graded' for that and rests that are not too long.",
    ),
    field(
        "task.reward",
        |kinds| SHOPS(kinds) && !FLEXIBLE(kinds),
        "What a schedule is paid for: 'deadline'; 'makespan' for minus its makespan over the optimum; 'due-dates' if nobody is late.",
    ),
    field("task.both", TWO_ORDERS, "Whether both orders have a due date; else only the lag-critical one."),
    field("task.slack", TWO_ORDERS, "How long after its earliest end an order is due; drawn where absent."),
    field(
        "task.order",
        JOB_SHOPS,
        "Which operation is decided next: 'machine', 'non-delay', 'active' or 'list'.",
    ),
    field(
        "task.order",
        GRAPHS,
        "Which pairs of job and machine are open: those of the machine that decides, 'non-delay' or 'active', or of all, 'free'.",
    ),
    named("task.draw", FLEXIBLE, || Shop::FLEXIBLE.map(Task::name).to_vec()),
    field("task.hidden", DUE_DATES, "Whether lags and due dates are kept from the policy."),
    field("task.training", SHOPS, "Instances to learn from."),
    field(
        "task.validation",
        SHOPS,
        "Instances that the likeliest schedules are judged on; the last third of a folder where absent.",
    ),
    field("task.pool", SHOPS, "Seed of the instances, which runs of all seeds share."),
    field(
        "task.folder",
        SHOPS,
        "Folder of instance files to learn from instead of drawn ones, beside the spec or in the working directory.",
    ),
    field(
        "task.file",
        RECORDS,
        "File of the record, beside the spec or in the working directory; the paper's where absent.",
    ),
    field("task.file", TEXTS, "File of the prompts, beside the spec or in the working directory."),
    field(
        "task.priming",
        RECORDS,
        "Which of the record's primings a decoder reads first; none where absent.",
    ),
    field("task.reward", RECORDS, "Which of the record's rewards is paid; the only one where absent."),
    field(
        "task.digest",
        |kinds| RECORDS(kinds) || TEXTS(kinds),
        "Content of the task's file and of the model in 16 digits; filled in, and refused where it has changed.",
    ),
    field(
        "task.digest",
        SHOPS,
        "Names and content of the folder's instances in 16 digits; filled in, and refused where they have changed.",
    ),
    field(
        "task.digest",
        OWN,
        "What sequences drawn from the task pay, in 16 digits; filled in, and refused where the task's code pays otherwise.",
    ),
    field("task.patience", SHOPS, "Seconds for which the optimum of one instance may be sought."),
    named("policy.kind", ALL, || PolicyKind::ALL.map(PolicyKind::name).to_vec()),
    field("policy.scale", TABLE, "Spread of a table's first logits."),
    field("policy.width", NETWORKS, "Width of the network."),
    field("policy.heads", TRANSFORMERS, "Heads of the transformer."),
    field("policy.blocks", TRANSFORMERS, "Blocks of the transformer."),
    field("policy.hidden", TRANSFORMERS, "Width inside a block."),
    field(
        "policy.hidden",
        HGNN,
        "Width inside the perceptrons of operations; actor and critic have half of it.",
    ),
    field("policy.hidden", DUAL, "Width inside actor and critic."),
    field(
        "policy.glimpse",
        POINTER,
        "What is compared with the candidates: the glimpse, 'plain', or with the query added, 'residual'.",
    ),
    field("policy.bound", POINTER, "Bound on the logits, bound · tanh(score); 0 leaves them the scores."),
    field(
        "policy.bounds",
        DUAL,
        "Whether it sees bounds of what is left of a schedule, and what each choice makes of them.",
    ),
    field(
        "policy.model",
        DECODER,
        "The pretrained model: a Hugging Face folder or a GGUF file, beside the spec or in the working directory.",
    ),
    field(
        "policy.start",
        GRAPHS,
        "What it starts from: the folder of a run or of an exported policy, or builtin:NAME; drawn where absent.",
    ),
    field(
        "policy.digest",
        GRAPHS,
        "Content of those weights in 16 digits; filled in, and refused where it has changed.",
    ),
    field(
        "policy.temperature",
        DECODER,
        "What logits are divided by, both when sampling and when learning; 1 where absent.",
    ),
    field("policy.prime.token", FIRST_LOGITS, "The token."),
    field("policy.prime.mass", FIRST_LOGITS, "The probability it starts with."),
    field("rollout.lanes", ALL, "Trajectories per iteration."),
    field(
        "rollout.group",
        ALL,
        "Trajectories that share a baseline where the advantage is 'group', or of which the best is learned where it is 'best'.",
    ),
    field(
        "rollout.hold",
        SHOPS,
        "Iterations for which a set of instances is played before the next one; drawn anew in each where absent.",
    ),
    field(
        "advantage.kind",
        ALL,
        "'returns' minus the batch's mean, 'group' for minus the group's, 'best' for the group's best alone, 'exact' (tabular only) or 'critic'.",
    ),
    field("advantage.standardise", ALL, "Divide by the standard deviation of the batch or group."),
    field("advantage.lambda", ALL, "λ of generalised advantage estimation."),
    field(
        "advantage.standard_returns",
        ALL,
        "Whether a critic learns returns that are standardised over the batch.",
    ),
    field("advantage.fresh", ALL, "Whether a critic's advantages follow its estimates from step to step."),
    field(
        "advantage.shaped",
        GRAPHS,
        "Whether each step is paid for what it does to the estimated makespan, and not the last one for all; needs a critic.",
    ),
    field(
        "advantage.improve",
        GRAPHS,
        "Moves of local search that each group's best schedule is improved by before it is learned; needs 'best'.",
    ),
    field(
        "update.correction",
        ALL,
        "The member of the family, e.g. 'ppo', 'tempered:0.1', or 'tempered:rule' for the strength that the measured drift licenses.",
    ),
    field("update.reuse", ALL, "Epochs on each batch."),
    field("update.minibatches", ALL, "Parts into which a batch is cut, by whole trajectories."),
    field("update.clip", ALL, "Clip range; 0 for none."),
    field("update.clip_high", ALL, "Upper clip range where it differs."),
    field("update.dual_clip", ALL, "Bound on the ratio at negative advantages (dual clip)."),
    field("update.routing", ALL, "Whether gradients flow through the factor to earlier steps."),
    field("update.entropy", ALL, "Weight of the entropy bonus."),
    field("update.reference_kl", ALL, "Weight of the penalty on leaving the initial policy."),
    field("update.value", ALL, "Weight of the critic's loss."),
    field("warmup.iterations", ALL, "How many; 0 for none."),
    field("warmup.correction", ALL, "Its member of the family; that of '[update]' where absent."),
    field("warmup.reuse", ALL, "Its epochs on each batch; those of '[update]' where absent."),
    field("optimiser.kind", ALL, "'n-sgd' for steps of fixed length, 'sgd' or 'adam'."),
    field("optimiser.rate", ALL, "Learning rate; each arm may have its own."),
    field("optimiser.schedule", ALL, "How it changes: 'constant', 'linear' or 'cosine'."),
    field("optimiser.clip_norm", ALL, "Global norm at which gradients are clipped."),
    field("optimiser.decay", ALL, "Adam's decoupled weight decay."),
    field(
        "optimiser.betas",
        ALL,
        "How much of its two moments Adam keeps from step to step; 0.9 and 0.999 where absent.",
    ),
    field("optimiser.epsilon", ALL, "What Adam adds to the root of its second moment; 1e-8 where absent."),
    field(
        "optimiser.storage",
        |kinds| !TABLE(kinds),
        "How Adam keeps weights and moments between steps: 'f32', or 'bf16' without a master copy.",
    ),
    field("evaluate.every", ALL, "Every so many iterations, and after the last one."),
    field(
        "evaluate.lanes",
        ALL,
        "Fresh trajectories whose mean reward estimates η where it is not known exactly; 0 for none.",
    ),
    field("evaluate.greedy", ALL, "Whether the likeliest trajectory is judged too."),
    field("evaluate.initial", ALL, "Whether the untrained policy is measured, too."),
    field(
        "evaluate.drift",
        ENUMERATED,
        "Whether drift is also measured over all states, Σ E[Var(ℓ|s)] as the paper defines it.",
    ),
    field(
        "checkpoint.every",
        ALL,
        "Every so many iterations, and after the last one; 0 for the last one only.",
    ),
    field(
        "checkpoint.keep",
        ALL,
        "Whether the last one is kept once the run is done; the results do not need it.",
    ),
    field(
        "dump.every",
        ALL,
        "Keep the trajectories of every so many iterations for 'niwaki advise'; 0 for none.",
    ),
    field(
        "dump.policies",
        ENUMERATED,
        "Keep what the policy says at all prefixes after every iteration, for 'niwaki oracle --run'.",
    ),
];

/// A key that a file should not have.
pub(super) struct Stranger {
    /// Where it is, table by table.
    pub(super) path: Vec<String>,
    /// What is said of it.
    pub(super) reason: String,
}

/// The first key of a file that specs of its kinds do not have; nothing where a kind is one that there is none of, which is
/// refused as a value.
pub(super) fn stranger(table: &toml::Table) -> Option<Stranger> {
    let plain = Spec::default();
    let named = |home: &str| value_of(table, &format!("{home}.kind"));
    let task = named("task").map_or(Some(plain.task.kind.as_str()), toml::Value::as_str)?;
    if table.contains_key("own") {
        let kinds = Kinds { task, policy: plain.policy.kind, own: true };
        return stranger_below(table, &mut Vec::new(), kinds);
    }
    let policy = named("policy").map_or(Some(plain.policy.kind), |kind| kind.clone().try_into().ok())?;
    task::is_known(task).then_some(())?;
    stranger_below(table, &mut Vec::new(), Kinds { task, policy, own: false })
}

fn stranger_below(table: &toml::Table, path: &mut Vec<String>, kinds: Kinds<'_>) -> Option<Stranger> {
    let home = path.iter().fold(String::new(), |home, part| format!("{home}{part}."));
    // Keys of this table with the kinds that have them, or something below them.
    let keys = || FIELDS.iter().filter_map(|field| Some((field.name.strip_prefix(&home)?, field)));
    let first = |name: &'static str| name.split('.').next().unwrap_or(name);
    for (key, value) in table {
        if kinds.own && home.is_empty() && key == "own" {
            continue;
        }
        path.push(key.clone());
        let mut ours = keys().filter(|(name, field)| first(name) == key && field.is_of(kinds));
        if let Some((name, _)) = ours.next() {
            if let Some(found) = value
                .as_table()
                .filter(|_| first(name) != name)
                .and_then(|below| stranger_below(below, path, kinds))
            {
                return Some(found);
            }
            path.pop();
            continue;
        }
        let reason = if keys().any(|(name, _)| first(name) == key) {
            format!("{} has no key '{key}'; leave it out", kinds.owner(&home))
        } else {
            let mut seen = BTreeSet::new();
            let known: Vec<&str> = keys()
                .filter(|(_, field)| field.is_of(kinds))
                .map(|(name, _)| first(name))
                .filter(|name| seen.insert(*name))
                .collect();
            match (foreign(key), nearest(key, known.iter().copied())) {
                (Some(ours), _) => format!("unknown key '{key}'; niwaki's name for it is '{ours}'"),
                (None, Some(near)) => format!("unknown key '{key}'; the nearest valid one is '{near}'"),
                (None, None) => format!("unknown key '{key}'; the valid ones are {}", known.join(", ")),
            }
        };
        return Some(Stranger { path: std::mem::take(path), reason });
    }
    None
}

impl Kinds<'_> {
    /// Whose the keys of a table are.
    fn owner(&self, table: &str) -> String {
        match table.split('.').next() {
            _ if self.own => "a run of another trainer, which says all else in [own],".to_owned(),
            Some("task") => format!("task '{}'", self.task),
            _ => format!("policy '{}'", self.policy.name()),
        }
    }
}

impl Spec {
    /// The kinds that it names.
    pub(super) fn kinds(&self) -> Kinds<'_> {
        Kinds { task: &self.task.kind, policy: self.policy.kind, own: self.own.is_some() }
    }

    /// Refuses a key that the spec's kinds do not have, unless it says what would hold anyway. A spec that was read has none.
    pub(super) fn check_kinds(&self) -> Result<(), Error> {
        let (ours, plain) = (self.to_table()?, Self::default().to_table()?);
        let kinds = self.kinds();
        let known = |name: &str| FIELDS.iter().any(|field| field.name == name && field.is_of(kinds));
        let foreign = |field: &&Field| {
            !known(field.name) && value_of(&ours, field.name) != value_of(&plain, field.name)
        };
        FIELDS.iter().find(foreign).map_or(Ok(()), |field| {
            Err(refuse(
                field.name,
                format!("{} has no such key; leave it out", self.kinds().owner(field.name)),
            ))
        })
    }

    /// The resolved file as a table.
    ///
    /// # Errors
    /// As [`Spec::to_toml`].
    pub fn to_table(&self) -> Result<toml::Table, Error> {
        let whole =
            toml::Table::try_from(self).map_err(|error| Error::Unwritable { reason: error.to_string() })?;
        let Some(own) = &self.own else { return Ok(whole) };
        let mut kept = toml::Table::new();
        for name in OF_OWN {
            if let Some(value) = value_of(&whole, name) {
                super::set(&mut kept, name, value.clone())?;
            }
        }
        kept.insert("own".to_owned(), own.clone().into());
        Ok(kept)
    }

    /// What it says beyond the defaults, so that another kind can be set in it.
    ///
    /// # Errors
    /// As [`Spec::to_toml`].
    pub fn beyond_defaults(&self) -> Result<toml::Table, Error> {
        let mut ours = self.to_table()?;
        if self.own.is_some() {
            return Ok(ours);
        }
        remove_equal(&mut ours, &Self::default().to_table()?);
        Ok(ours)
    }
}

fn remove_equal(from: &mut toml::Table, other: &toml::Table) {
    from.retain(|key, value| match (value, other.get(key)) {
        (toml::Value::Table(value), Some(toml::Value::Table(other))) => {
            remove_equal(value, other);
            !value.is_empty()
        }
        (value, other) => other != Some(value),
    });
}

/// What a table says of a key.
pub(super) fn value_of<'a>(table: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    let mut parts = name.split('.');
    let first = table.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.as_table()?.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<(String, String)> {
        stranger(&text.parse().unwrap()).map(|found| (found.path.join("."), found.reason))
    }

    #[test]
    fn a_file_has_the_keys_of_its_kinds() {
        let flow = "[task]\nkind = \"flow-shop\"\n";
        let pointer = "[policy]\nkind = \"pointer\"\n";
        for good in [
            "",
            "seed = 1\n[task]\nhorizon = 3\n[policy.prime]\ntoken = 1\nmass = 0.5\n",
            &format!("{flow}jobs = 3\n{pointer}glimpse = \"plain\"\n"),
            // Anything but a table, or an unknown kind, is refused as a value.
            "task = 3\n",
            "[task]\nkind = \"nobody\"\njobs = 3\n",
            "[policy]\nkind = \"nobody\"\n",
        ] {
            assert_eq!(said(good), None, "{good}");
        }
        for (text, path, reason) in [
            ("[task]\njobs = 3\n", "task.jobs", "task 'two-branch' has no key 'jobs'; leave it out"),
            // Not even with the value that it has by default.
            (
                &format!("{flow}vocab = 4\n"),
                "task.vocab",
                "task 'flow-shop' has no key 'vocab'; leave it out",
            ),
            (
                &format!("{flow}order = \"list\"\n"),
                "task.order",
                "task 'flow-shop' has no key 'order'; leave it out",
            ),
            ("[policy]\nheads = 4\n", "policy.heads", "policy 'tabular' has no key 'heads'; leave it out"),
            (
                &format!("{pointer}prime = {{ token = 1, mass = 0.5 }}\n"),
                "policy.prime",
                "policy 'pointer' has no key 'prime'; leave it out",
            ),
            (&format!("{flow}job = 3\n"), "task.job", "unknown key 'job'; the nearest valid one is 'jobs'"),
            // A near miss of another kind's key is no help.
            (
                "[task]\nmachnes = 3\n",
                "task.machnes",
                "unknown key 'machnes'; the valid ones are kind, vocab, horizon",
            ),
            (
                "[policy.prime]\ntoken = 1\nmess = 0.5\n",
                "policy.prime.mess",
                "unknown key 'mess'; the nearest valid one is 'mass'",
            ),
        ] {
            assert_eq!(said(text), Some((path.to_owned(), reason.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_said_beyond_the_defaults_takes_another_kind() {
        let text = "iterations = 3\n[task]\nhorizon = 8\n[rollout]\nlanes = 8\n";
        let mut table = Spec::read("base", text, &[]).unwrap().beyond_defaults().unwrap();
        assert_eq!(table.to_string(), "iterations = 3\n\n[rollout]\nlanes = 8\n");
        crate::spec::set(&mut table, "task.kind", "flow-shop".into()).unwrap();
        crate::spec::set(&mut table, "policy.kind", "pointer".into()).unwrap();
        assert!(Spec::read("cell", &table.to_string(), &[]).is_ok());
    }
}
