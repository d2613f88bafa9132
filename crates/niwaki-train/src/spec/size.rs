//! What a run takes of memory, known before anything is made: a spec that no machine can hold is refused with the number.

use super::check::refuse;
use super::shop::Shops;
use super::{OptimiserKind, Played, PolicyKind, Recipe, Spec};
use crate::Error;
use niwaki_shop::Instance;
use niwaki_shop::generate::Size;
use niwaki_tasks::{Generator, Shop, ShopPool, Source};

/// What a run may take at most, in bytes.
pub const MEMORY: u128 = 64 << 30;

/// What the program itself takes for each block of a network, in bytes.
const PER_BLOCK: u128 = 16 << 10;

/// The product of some sizes, or the largest number.
#[must_use]
pub fn times(sizes: &[usize]) -> u128 {
    sizes.iter().fold(1, |product: u128, &size| product.saturating_mul(size as u128))
}

/// A number of bytes in words.
#[must_use]
pub fn bytes_in_words(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut number = bytes as f64;
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024.0, unit + 1);
    }
    if number < 10.0 && unit > 0 {
        format!("{number:.1} {}", UNITS[unit])
    } else {
        format!("{number:.0} {}", UNITS[unit])
    }
}

/// Parameters of the blocks of a transformer.
#[must_use]
pub fn block_parameters(blocks: usize, width: usize, hidden: usize) -> u128 {
    let each = [times(&[4, width, width]), times(&[2, width, hidden]), times(&[5, width]), hidden as u128];
    each.into_iter().fold(0_u128, u128::saturating_add).saturating_mul(blocks as u128)
}

/// What a run takes of memory, in bytes, and how many parameters its network has.
struct Sizes {
    parameters: u128,
    network: u128,
    batch: u128,
}

impl Recipe {
    /// What a run takes of memory at least, in bytes: its network with what the optimiser remembers, and one batch.
    ///
    /// # Errors
    /// Where the model of a pretrained decoder cannot be read.
    pub fn bytes(&self) -> Result<u128, Error> {
        let Sizes { network, batch, .. } = self.spec.sizes(&self.task)?;
        Ok(network.saturating_add(batch))
    }

    /// What its batch takes, in bytes.
    pub(crate) fn batch_bytes(&self) -> Result<u128, Error> {
        Ok(self.spec.sizes(&self.task)?.batch)
    }

    /// Refuses a run that takes more than the memory that is left.
    pub(super) fn check_fits(&self, left: Option<u64>) -> Result<(), Error> {
        fits(self.bytes()?, left)
    }
}

/// Refuses what takes more than the memory that is left.
pub(crate) fn fits(needed: u128, left: Option<u64>) -> Result<(), Error> {
    match left.map(u128::from).filter(|&left| needed > left) {
        Some(left) => {
            let (needed, left) = (bytes_in_words(needed), bytes_in_words(left));
            let reason =
                format!("the run needs about {needed} of memory and {left} are left; give smaller sizes");
            Err(refuse("policy, rollout.lanes", reason))
        }
        None => Ok(()),
    }
}

impl Spec {
    /// Refuses heads that do not divide the width, and sizes that no machine holds.
    pub(super) fn check_size(&self, task: &Played) -> Result<(), Error> {
        let (policy, width) = (&self.policy, self.width());
        if self.attends() && !width.is_multiple_of(policy.heads) {
            let reason = format!("{} heads do not divide a width of {width} into equal parts", policy.heads);
            return Err(refuse("policy.heads", reason));
        }
        let Sizes { parameters, network, batch } = self.sizes(task)?;
        if network > MEMORY {
            return Err(too_large("policy", &format!("{parameters} parameters"), network));
        }
        if batch > MEMORY {
            let (lanes, (steps, choices)) = (self.rollout.lanes, played(task));
            let what = format!("{lanes} lanes of {steps} steps with {choices} choices each");
            return Err(too_large("rollout.lanes", &what, batch));
        }
        Ok(())
    }

    fn attends(&self) -> bool {
        matches!(self.policy.kind, PolicyKind::Causal | PolicyKind::Pointer)
    }

    /// What a run takes, part by part.
    fn sizes(&self, task: &Played) -> Result<Sizes, Error> {
        let policy = &self.policy;
        let (width, hidden) = (self.width(), self.hidden());
        let blocks = if self.attends() { policy.blocks } else { 0 };
        let ends = match task {
            Played::Tokens(task) => {
                let (vocab, horizon) = (task.vocab(), task.horizon());
                times(&[2, vocab, width]).saturating_add(times(&[horizon, width.saturating_add(vocab)]))
            }
            Played::Texts(_) => 0,
            Played::Shops(_) => times(&[10, width, width]),
        };
        let parameters = match policy.kind {
            PolicyKind::Decoder => self.decoder_parameters()?,
            // Three rounds of a few layers, then actor and critic.
            PolicyKind::Dual => times(&[21, width, width]).saturating_add(times(&[
                2,
                hidden,
                hidden.saturating_add(width.saturating_mul(4)),
            ])),
            // Two rounds of five perceptrons.
            PolicyKind::Hgnn => {
                times(&[10, hidden, hidden]).saturating_add(times(&[24, hidden, width.saturating_add(8)]))
            }
            _ => block_parameters(blocks, width, hidden).saturating_add(ends),
        };
        // The parameters and their gradient; what Adam remembers; what the run began with.
        let moments = if self.optimiser.kind == OptimiserKind::Adam { 2 } else { 0 };
        let copies = 2 + moments + u128::from(self.update.reference_kl > 0.0);
        let network = if policy.kind == PolicyKind::Tabular {
            0
        } else {
            parameters.saturating_mul(4 * copies).saturating_add(times(&[blocks]).saturating_mul(PER_BLOCK))
        };
        let (lanes, (steps, choices)) = (self.rollout.lanes, played(task));
        // Five numbers of eight bytes per step, and a byte per choice that may be open.
        let batch = times(&[lanes, steps]).saturating_mul(40 + choices as u128);
        Ok(Sizes { parameters, network, batch })
    }

    /// The width of the policy's network.
    pub(crate) fn width(&self) -> usize {
        self.policy.width.unwrap_or(self.policy.kind.width())
    }

    /// The bound on the pointer's logits; none where it is zero.
    pub(crate) fn bound(&self) -> f64 {
        self.policy.bound.unwrap_or(10.0)
    }

    /// The width inside a block of the policy's network.
    pub(crate) fn hidden(&self) -> usize {
        let times = match self.policy.kind {
            PolicyKind::Pointer | PolicyKind::Dual => 2,
            PolicyKind::Hgnn => 16,
            _ => 4,
        };
        self.policy.hidden.unwrap_or(self.width().saturating_mul(times))
    }
}

/// Refuses instances that no machine holds, before one of them is drawn.
pub(super) fn check_instances(drawn: &Generator) -> Result<(), Error> {
    let Size { jobs, machines } = drawn.size;
    let count = drawn.training.saturating_add(drawn.validation);
    let taken = times(&[8, count, jobs, machines]);
    if taken <= MEMORY {
        return Ok(());
    }
    let what = format!("{count} instances of {jobs} jobs and {machines} machines");
    Err(too_large("task", &what, taken))
}

fn too_large(key: &'static str, what: &str, taken: u128) -> Error {
    let (taken, limit) = (bytes_in_words(taken), bytes_in_words(MEMORY));
    refuse(key, format!("{what} need about {taken} of memory and the limit is {limit}; give smaller sizes"))
}

/// What a state of a graph takes, in bytes: features, times and arcs of its operations, and pairs.
fn graph_bytes(operations: usize, machines: usize, jobs: usize) -> usize {
    let rows = operations.saturating_mul(machines.saturating_mul(5).saturating_add(40));
    rows.saturating_add(jobs.saturating_mul(machines))
}

/// Steps of a trajectory, and choices per step; of a graph, bytes per step.
fn played(task: &Played) -> (usize, usize) {
    match task {
        Played::Tokens(task) => (task.horizon(), task.vocab()),
        // A text keeps no mask of its choices.
        Played::Texts(task) => (task.tokens(), 0),
        Played::Shops(Shops { pool: ShopPool { source, .. }, .. }) => match source {
            Source::Generated(Generator { shop: Shop::Job, size, .. }) => {
                (size.jobs.saturating_mul(size.machines), size.jobs)
            }
            // Jobs have up to a fifth more operations than there are machines, and every pair is a choice with numbers of
            // its own for each operation.
            Source::Generated(Generator { shop: Shop::Flexible { .. }, size, .. }) => {
                let operations = size.jobs.saturating_mul(size.machines.saturating_mul(6).div_ceil(5));
                (operations, graph_bytes(operations, size.machines, size.jobs))
            }
            Source::Generated(drawn) => (drawn.size.jobs, drawn.size.jobs),
            Source::Folder(given) => match &given.instances()[0] {
                job @ Instance::Job(_) => (job.operations(), job.jobs()),
                Instance::Flexible(_) => {
                    let most = given.instances().iter().map(Instance::operations).max().unwrap_or(0);
                    (most, graph_bytes(most, given.size().machines, given.size().jobs))
                }
                other => (other.jobs(), other.jobs()),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(settings: &[&str]) -> String {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        Spec::read("run.toml", "", &settings).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn blocks_have_the_papers_number_of_parameters() {
        // 4·128² + 2·128·512 + 5·128 + 512: as in the causal policy's own count, 197,760 − 4·128 + 4·128 of norms.
        assert_eq!(block_parameters(4, 128, 512), 791_040);
        assert_eq!(bytes_in_words(1536), "1.5 KiB");
        assert_eq!(bytes_in_words(64 << 30), "64 GiB");
        assert_eq!(times(&[usize::MAX, usize::MAX, usize::MAX]), u128::MAX);
    }

    #[test]
    fn what_this_machine_does_not_hold_is_refused_with_the_number() {
        let settings = ["policy.kind=bag", "policy.width=1000000", "task.horizon=2", "task.vocab=2"];
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let recipe = Spec::read("case", "", &settings).and_then(|spec| spec.check()).unwrap();
        assert!(recipe.check_fits(None).is_ok() && recipe.check_fits(Some(1 << 40)).is_ok());
        let said = recipe.check_fits(Some(1 << 20)).unwrap_err().to_string();
        assert!(said.contains("MiB of memory and 1.0 MiB are left"), "{said}");
    }

    #[test]
    fn what_no_machine_holds_is_refused_with_the_number() {
        let causal = "policy.kind=causal";
        for (settings, key) in [
            (vec![causal, "policy.width=1000000000"], "policy: "),
            (vec![causal, "policy.blocks=1000000000"], "policy: "),
            (
                vec![
                    causal,
                    "policy.width=1",
                    "policy.heads=1",
                    "policy.hidden=1",
                    "policy.blocks=100000000",
                ],
                "policy: ",
            ),
            (vec![causal, "policy.hidden=9223372036854775807"], "policy: "),
            (vec!["policy.kind=bag", "policy.width=9223372036854775807"], "policy: "),
            (vec!["policy.kind=bag", "task.horizon=1048576", "rollout.lanes=16777216"], "rollout.lanes: "),
            (vec!["task.kind=flow-shop", "policy.kind=pointer", "task.jobs=100000"], "rollout.lanes: "),
            (vec!["task.kind=flow-shop", "policy.kind=pointer", "task.training=9000000000"], "task: "),
        ] {
            let said = refusal(&settings);
            assert!(
                said.starts_with(key) && said.contains("of memory and the limit is 64 GiB"),
                "{settings:?}: {said}"
            );
        }
        assert_eq!(
            refusal(&[causal, "policy.heads=3"]),
            "policy.heads: 3 heads do not divide a width of 128 into equal parts"
        );
    }
}
