//! Shops that a spec names: where they come from, what they pay, and their optima.

use super::check::refuse;
use super::size::check_instances;
use super::task::{RECORD, TEXT, TaskKind};
use super::{AdvantageKind, Played, Recipe, Spec};
use crate::Error;
use crate::policy::graph_policy;
use crate::trained::TrainedGraph;
use niwaki_shop::Bounds;
use niwaki_shop::Instance;
use niwaki_shop::construct::JobOrder;
use niwaki_shop::generate::Size;
use niwaki_tasks::{
    Construction, Generator, GraphSizes, GraphTask, InstanceFolder, Numbers, OptimaProgress, Payment,
    Reading, Shop, ShopPool, Source, construct,
};
use niwaki_words::nearest;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Seconds for which the optimum of one instance may be sought.
pub(super) const PATIENCE: f64 = 10.0;
/// So many times the optimum a makespan may be.
pub(super) const DEADLINE: f64 = 1.05;
/// Instances to learn from, and to be judged on.
pub(super) const TRAINING: usize = 256;
pub(super) const VALIDATION: usize = 128;
/// The most seconds that make sense.
const MOST_PATIENCE: f64 = 86_400.0;

/// Shops, what a schedule pays, and what is played once their optima are known.
#[derive(Clone, Debug)]
pub struct Shops {
    /// The instances.
    pub pool: ShopPool,
    /// What a schedule pays.
    pub payment: Payment,
    /// Whether they are shown as graphs.
    graphs: bool,
    built: Option<ShopView>,
}

/// Shops as their policy sees them.
#[derive(Clone, Debug)]
pub enum ShopView {
    /// Candidates with features.
    Candidates(Arc<dyn Construction>),
    /// Operations and machines.
    Graph(Arc<GraphTask>),
}

impl ShopView {
    /// The instances' numbers and optima.
    #[must_use]
    pub fn numbers(&self) -> &Numbers {
        match self {
            Self::Candidates(task) => task.numbers(),
            Self::Graph(task) => task.numbers(),
        }
    }
}

impl Shops {
    /// What is played; the optima are sought now where that was not done.
    ///
    /// # Errors
    /// If the instances cannot be drawn.
    pub fn view(&self) -> Result<ShopView, Error> {
        match &self.built {
            Some(built) => Ok(built.clone()),
            None => self.build(None, &|_, _| {}),
        }
    }

    fn build(&self, known: Option<Vec<Bounds>>, progress: OptimaProgress<'_>) -> Result<ShopView, Error> {
        let (instances, training): (Vec<Instance>, usize) = self.pool.instances()?;
        let bounds = known.unwrap_or_else(|| self.pool.seek(&instances, progress));
        let reading = self.pool.reading;
        Ok(if self.graphs {
            ShopView::Graph(Arc::new(GraphTask::new(instances, bounds, training, reading.order)?))
        } else {
            ShopView::Candidates(construct(instances, bounds, training, reading)?)
        })
    }
}

impl Recipe {
    /// Seeks the optima of shops, unless they are known, so that cohorts made of this recipe and its copies begin at
    /// once. Other tasks need nothing.
    ///
    /// # Errors
    /// If the instances cannot be drawn, or `known` bounds are not those of the instances.
    pub fn prepare(&mut self, known: Option<Vec<Bounds>>, progress: OptimaProgress<'_>) -> Result<(), Error> {
        if let Played::Shops(shops) = &mut self.task
            && shops.built.is_none()
        {
            shops.built = Some(shops.build(known, progress)?);
        }
        Ok(())
    }

    /// How many instances there are, where shops are played.
    #[must_use]
    pub fn shops(&self) -> usize {
        match &self.task {
            Played::Shops(Shops { pool: ShopPool { source, .. }, .. }) => match source {
                Source::Generated(drawn) => drawn.training + drawn.validation,
                Source::Folder(given) => given.instances().len(),
            },
            Played::Tokens(_) | Played::Texts(_) => 0,
        }
    }

    /// What is known of the instances' optima, where shops are played and that was sought.
    #[must_use]
    pub fn bounds(&self) -> Option<&[Bounds]> {
        match &self.task {
            Played::Shops(shops) => shops.built.as_ref().map(|built| &built.numbers().bounds[..]),
            Played::Tokens(_) | Played::Texts(_) => None,
        }
    }
}

impl Spec {
    /// Relative paths of instances, records and models are meant beside the spec's own file where they are there, else in
    /// the working directory.
    #[must_use]
    pub fn beside(mut self, file: &Path) -> Self {
        let Some(home) = file.parent() else { return self };
        let Self { task, policy, .. } = &mut self;
        for named in [&mut task.folder, &mut task.file, &mut policy.model, &mut policy.start] {
            if let Some(beside) = named.as_ref().map(|path| home.join(path)).filter(|path| path.exists()) {
                *named = Some(beside);
            }
        }
        self
    }

    /// The kind of shop with its keys.
    pub(super) fn dialled(&self, shop: Shop) -> Result<Shop, Error> {
        Ok(match shop {
            Shop::TwoOrders { .. } => {
                Shop::TwoOrders { both: self.task.both.unwrap_or(false), slack: self.task.slack }
            }
            Shop::Flexible { draw } => {
                let known = Shop::FLEXIBLE.iter().map(|draw| (draw.name(), *draw)).collect::<Vec<_>>();
                Shop::Flexible {
                    draw: named("task.draw", "distribution", self.task.draw.as_deref(), &known, draw)?,
                }
            }
            other => other,
        })
    }

    /// Whether shops are shown as graphs.
    fn shows_graphs(&self) -> bool {
        self.policy.kind.reads_graphs()
    }

    pub(super) fn shops(&self, shop: Shop) -> Result<Shops, Error> {
        let seconds = self.task.patience.unwrap_or(PATIENCE);
        if !(seconds > 0.0 && seconds <= MOST_PATIENCE) {
            let reason = format!("{seconds} is not a number of seconds above 0 and up to {MOST_PATIENCE}");
            return Err(refuse("task.patience", reason));
        }
        let payment = self.payment(shop)?;
        let source = match &self.task.folder {
            Some(folder) => Source::Folder(Arc::new(self.given(folder, shop)?)),
            None => Source::Generated(self.drawn(shop)?),
        };
        if let Source::Generated(drawn) = &source {
            check_instances(drawn)?;
        }
        let (patience, reading) = (Duration::from_secs_f64(seconds), self.reading()?);
        let pool = ShopPool { source, patience, reading };
        pool.check().map_err(|error| refuse("task", error.to_string()))?;
        Ok(Shops { pool, payment, graphs: self.shows_graphs(), built: None })
    }

    /// How the spec reads its kind of shop.
    ///
    /// # Errors
    /// Where it names an order that there is none of.
    pub fn reading(&self) -> Result<Reading, Error> {
        let mut reading = Reading::default();
        let known: &[(&str, JobOrder)] =
            if self.shows_graphs() { &GraphTask::ORDERS } else { &Reading::ORDERS };
        reading.order = named("task.order", "order", self.task.order.as_deref(), known, reading.order)?;
        reading.hidden = self.task.hidden.unwrap_or(reading.hidden);
        Ok(reading)
    }

    /// The size of the shops, as far as the spec says it.
    pub(crate) fn size(&self, shop: Shop) -> Size {
        let own = shop.size();
        Size {
            jobs: self.task.jobs.unwrap_or(own.jobs),
            machines: self.task.machines.unwrap_or(own.machines),
        }
    }

    fn drawn(&self, shop: Shop) -> Result<Generator, Error> {
        let task = &self.task;
        if task.digest.is_some() {
            return Err(refuse("task.digest", "it belongs to task.folder; leave it out".to_owned()));
        }
        Ok(Generator {
            shop,
            size: self.size(shop),
            training: task.training.unwrap_or(TRAINING),
            validation: task.validation.unwrap_or(VALIDATION),
            seed: task.pool.unwrap_or(0),
        })
    }

    fn given(&self, folder: &Path, shop: Shop) -> Result<InstanceFolder, Error> {
        let task = &self.task;
        for (key, given) in [
            ("task.training", task.training.is_some()),
            ("task.pool", task.pool.is_some()),
            ("task.slack", task.slack.is_some()),
            ("task.both", task.both.is_some()),
            ("task.draw", task.draw.is_some()),
        ] {
            if given {
                let reason = "the instances are those of task.folder; leave it out, or set task.validation";
                return Err(refuse(key, reason.to_owned()));
            }
        }
        let given = InstanceFolder::read(folder, shop, task.validation)
            .map_err(|error| refuse("task.folder", error.to_string()))?;
        let Size { jobs, machines } = given.size();
        for (key, said, came) in [("task.jobs", task.jobs, jobs), ("task.machines", task.machines, machines)]
        {
            if let Some(said) = said.filter(|said| *said != came) {
                let reason =
                    format!("{said}, but the instances in {} have {came}; leave it out", folder.display());
                return Err(refuse(key, reason));
            }
        }
        if let Some(digest) = task.digest.as_deref().filter(|digest| *digest != given.digest()) {
            let reason = format!(
                "the instances in {} are now those of {}, not of {digest}; put them back, or leave it out for a new run",
                folder.display(),
                given.digest()
            );
            return Err(refuse("task.digest", reason));
        }
        Ok(given)
    }

    /// The spec with what its folder of instances, or its record and model, say: so its hash names their content.
    pub(super) fn resolved(&self, task: &Played) -> Result<Self, Error> {
        let mut spec = self.clone();
        if let Played::Shops(Shops { pool: ShopPool { source: Source::Folder(given), .. }, .. }) = task {
            let Size { jobs, machines } = given.size();
            spec.task.jobs = Some(jobs);
            spec.task.machines = Some(machines);
            spec.task.validation = Some(given.instances().len() - given.training());
            spec.task.digest = Some(given.digest().to_owned());
        }
        if [RECORD, TEXT].contains(&self.task.kind.as_str()) {
            spec.task.digest = Some(self.record_digest()?);
        }
        if let (TaskKind::Own(name), Played::Tokens(task)) = (self.task_kind()?, task) {
            spec.task.digest = Some(self.own_digest(name, task.as_ref())?);
        }
        spec.policy.digest = self.start_digest()?;
        Ok(spec)
    }

    /// The content of the weights that a graph network starts from, which are held against it; none where it starts anew.
    fn start_digest(&self) -> Result<Option<String>, Error> {
        let Some(start) = &self.policy.start else {
            return match &self.policy.digest {
                Some(_) => {
                    Err(refuse("policy.digest", "it belongs to policy.start; leave it out".to_owned()))
                }
                None => Ok(None),
            };
        };
        let trained = TrainedGraph::open(start).map_err(|error| refuse("policy.start", error.to_string()))?;
        // Sizes of shops do not matter to weights.
        let any = GraphSizes { jobs: 1, machines: 1, operations: 1, features: trained.features() };
        let critic = self.advantage.kind == AdvantageKind::Critic;
        trained.start(graph_policy(self, any, critic)?)?;
        let digest = trained.digest();
        match self.policy.digest.as_deref().filter(|&said| said != digest) {
            None => Ok(Some(digest)),
            Some(said) => {
                let reason = format!(
                    "the weights in {} are now those of {digest}, not of {said}; put them back, or leave it out for a new run",
                    start.display()
                );
                Err(refuse("policy.digest", reason))
            }
        }
    }

    /// What a schedule is paid for.
    pub(super) fn reward(&self, shop: Shop) -> &str {
        let usual = if shop.has_due_dates() { "due-dates" } else { "deadline" };
        self.task.reward.as_deref().unwrap_or(usual)
    }

    fn payment(&self, shop: Shop) -> Result<Payment, Error> {
        let named = self.reward(shop);
        let payment = match named {
            "deadline" | "makespan" if shop == Shop::Single => {
                let reason = "on one machine every order ends at the same time; use 'due-dates'";
                return Err(refuse("task.reward", reason.to_owned()));
            }
            "deadline" => Payment::Deadline(self.task.deadline.unwrap_or(DEADLINE)),
            "makespan" => Payment::Makespan,
            "due-dates" if !shop.has_due_dates() => {
                let reason = format!("task '{}' has no due dates; use 'deadline' or 'makespan'", shop.name());
                return Err(refuse("task.reward", reason));
            }
            "due-dates" => Payment::DueDates,
            "graded" if matches!(shop, Shop::Flexible { .. }) => Payment::Graded,
            "graded" => {
                let reason = format!("task '{}' knows no rests; use 'deadline' or 'makespan'", shop.name());
                return Err(refuse("task.reward", reason));
            }
            other => {
                let reason =
                    format!("'{other}' is not one of 'deadline', 'makespan', 'due-dates' and 'graded'");
                return Err(refuse("task.reward", reason));
            }
        };
        if self.task.deadline.is_some() && !matches!(payment, Payment::Deadline(_)) {
            let reason = format!("a reward of '{named}' knows no deadline; leave it out");
            return Err(refuse("task.deadline", reason));
        }
        payment.check().map_err(|error| refuse("task.deadline", error.to_string()))?;
        Ok(payment)
    }
}

/// What a key names, one of those known.
fn named<T: Copy>(
    key: &'static str,
    what: &str,
    said: Option<&str>,
    known: &[(&str, T)],
    usual: T,
) -> Result<T, Error> {
    let Some(said) = said else { return Ok(usual) };
    let names = || known.iter().map(|(name, _)| *name);
    known.iter().find(|(name, _)| *name == said).map(|(_, found)| *found).ok_or_else(|| {
        let mend = match nearest(said, names()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("the {what}s are {}", names().collect::<Vec<_>>().join(", ")),
        };
        refuse(key, format!("no {what} is called '{said}'; {mend}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[&str]) -> Result<Spec, Error> {
        let base = ["task.kind=flow-shop", "policy.kind=pointer"];
        let settings: Vec<String> = base.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        Spec::read("run.toml", "", &settings)
    }

    fn spec(settings: &[&str]) -> Spec {
        read(settings).unwrap()
    }

    fn refusal(settings: &[&str]) -> String {
        read(settings).and_then(|spec| spec.check()).unwrap_err().to_string()
    }

    fn payment(settings: &[&str]) -> Payment {
        match spec(settings).check().unwrap().task {
            Played::Shops(shops) => shops.payment,
            Played::Tokens(_) | Played::Texts(_) => panic!("{settings:?}"),
        }
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
            "task.jobs=3: task 'choice' has no key 'jobs'; leave it out"
        );
        assert!(refusal(&["task.deadline=0.9"]).starts_with("task.deadline: deadline 0.9 is not a factor"));
        assert!(refusal(&["task.reward=late"]).contains("not one of 'deadline', 'makespan'"));
        for reward in ["task.reward=deadline", "task.reward=makespan"] {
            assert!(
                refusal(&["task.kind=single-machine", reward]).contains("every order ends at the same time")
            );
        }
        assert_eq!(payment(&["task.kind=single-machine"]), Payment::DueDates);
        assert!(refusal(&["task.reward=makespan", "task.deadline=1.1"]).contains("leave it out"));
        assert!(refusal(&["task.reward=due-dates"]).contains("'flow-shop' has no due dates"));
        assert!(
            refusal(&["task.kind=two-orders", "task.deadline=1.1"]).contains("'due-dates' knows no deadline")
        );
        assert!(refusal(&["task.kind=two-orders", "task.jobs=3"]).contains("2 jobs and 2 machines"));
        assert_eq!(
            refusal(&["task.both=true"]),
            "task.both=true: task 'flow-shop' has no key 'both'; leave it out"
        );
        assert_eq!(
            refusal(&["task.kind=job-shop", "task.order=machines"]),
            "task.order: no order is called 'machines'; did you mean 'machine'?"
        );
        // A spec that was made in Rust is held to the same table.
        let mut made = spec(&["task.kind=lags", "task.hidden=true"]);
        made.task.kind = "flow-shop".to_owned();
        assert_eq!(
            made.check().unwrap_err().to_string(),
            "task.hidden: task 'flow-shop' has no such key; leave it out"
        );
        let graph =
            |more: &[&str]| refusal(&[&["task.kind=flexible-shop", "policy.kind=hgnn"], more].concat());
        assert_eq!(graph(&["task.order=fre"]), "task.order: no order is called 'fre'; did you mean 'free'?");
        assert_eq!(
            graph(&["task.draw=sd3"]),
            "task.draw: no distribution is called 'sd3'; did you mean 'sd1'?"
        );
        assert_eq!(
            graph(&["policy.kind=pointer"]),
            "policy.kind: task 'flexible-shop' is played by 'hgnn' and 'dual' only"
        );
        assert!(refusal(&["task.reward=graded"]).contains("'flow-shop' knows no rests"));
        assert!(graph(&["rollout.hold=0"]).contains("hold"));
        assert_eq!(
            graph(&["rollout.hold=20", "rollout.lanes=20", "rollout.group=1"]),
            "rollout.hold: sets of 20 instances do not divide 256 to learn from"
        );
        assert!(graph(&["rollout.group=7"]).contains("groups of 7"));
        assert!(refusal(&["policy.kind=hgnn"]).contains("'flow-shop' is played by 'pointer' only"));
        assert!(refusal(&["task.jobs=1"]).contains("jobs of at least 2"));
        assert!(refusal(&["task.patience=0"]).contains("is not a number of seconds"));
        assert!(refusal(&["rollout.lanes=100"]).contains("do not divide 100 lanes"));
        assert!(refusal(&["update.minibatches=32"]).contains("32 parts do not divide 16 groups"));
        assert!(refusal(&["advantage.kind=critic"]).contains("no critic"));
    }

    #[test]
    fn each_kind_has_its_own_defaults() {
        let size = |kind: &str| {
            let spec = spec(&[&format!("task.kind={kind}")]);
            let shop = Shop::ALL.into_iter().find(|shop| shop.name() == kind).unwrap();
            let Size { jobs, machines } = spec.size(shop);
            (jobs, machines)
        };
        assert_eq!((size("flow-shop"), size("job-shop"), size("two-orders")), ((20, 7), (8, 5), (2, 2)));
        assert_eq!(payment(&["task.kind=job-shop"]), Payment::Deadline(1.05));
        assert_eq!(payment(&["task.kind=two-orders"]), Payment::DueDates);
        assert_eq!(payment(&["task.kind=lags", "task.reward=deadline"]), Payment::Deadline(1.05));
    }

    #[test]
    fn a_folder_names_its_content_in_the_hash() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        for name in ["a.txt", "b.txt", "c.txt"] {
            write(name, "2 2\n0 3 1 2\n0 1 1 4\n");
        }
        let setting = format!("task.folder={:?}", folder.path());
        let recipe = |more: &[&str]| spec(&[&[setting.as_str()], more].concat()).check();
        let first = recipe(&[]).unwrap();
        let task = &first.spec.task;
        assert_eq!((task.jobs, task.machines, task.validation), (Some(2), Some(2), Some(1)));
        // The resolved spec is a spec, and its hash is that of the content, not of the place.
        let again = first.spec.check().unwrap();
        let hash = |recipe: &Recipe| recipe.spec.hash().unwrap();
        assert_eq!(hash(&again), hash(&first));
        let mut moved = first.spec.clone();
        moved.task.folder = Some("elsewhere".into());
        assert_eq!(moved.hash().unwrap(), hash(&first));
        write("b.txt", "2 2\n0 3 1 2\n0 1 1 5\n");
        assert_ne!(hash(&recipe(&[]).unwrap()), hash(&first));
        let refused = first.spec.check().unwrap_err().to_string();
        assert!(refused.starts_with("task.digest: the instances in"), "{refused}");
        let refused = |more: &[&str]| recipe(more).unwrap_err().to_string();
        assert!(refused(&["task.jobs=3"]).starts_with("task.jobs: 3, but the instances in"));
        assert!(refused(&["task.training=2"]).starts_with("task.training: the instances are those"));
        assert!(refused(&["task.kind=lags"]).contains("a.txt: this is a job shop"));
        assert!(refused(&["task.validation=3"]).contains("give a number from 1 to 2"));
    }
}
