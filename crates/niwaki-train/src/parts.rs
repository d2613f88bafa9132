//! Token tasks of a user's own, by name: specs then name them like built-in ones.
//!
//! Whatever reads a spec (`train`, `sweep`, studies, workers, trained policies) asks [`super::spec`], which asks here. Nothing else
//! knows that a task is not ours.

use crate::Error;
use niwaki_files::Digest;
use niwaki_stream::Key;
use niwaki_tasks::{Sequence, complete};
use std::fmt::Display;
use std::sync::{Arc, RwLock};

/// Makes a task from its vocabulary and horizon, or says why there is none.
type Make = dyn Fn(usize, usize) -> Result<Arc<dyn Sequence>, String> + Send + Sync;

/// A task that was given a name.
struct Own {
    name: &'static str,
    make: Box<Make>,
}

static TASKS: RwLock<Vec<Own>> = RwLock::new(Vec::new());

/// Sequences that [`content`] draws.
const DRAWN: u64 = 1024;

/// Lets specs name a token task: `task.kind = "NAME"`, with `task.vocab` and `task.horizon` handed to `make`.
///
/// Every policy over sequences plays it then, with all that built-in tasks have: checks, curve, checkpoints, resume, sweeps.
///
/// ```
/// #[derive(Debug)]
/// struct AllEqual { vocab: usize, horizon: usize }
///
/// impl niwaki_tasks::Sequence for AllEqual {
///     fn vocab(&self) -> usize { self.vocab }
///     fn horizon(&self) -> usize { self.horizon }
///     fn reward(&self, tokens: &[usize]) -> f64 {
///         f64::from(u8::from(tokens.iter().all(|token| *token == tokens[0])))
///     }
/// }
///
/// niwaki_train::task("all-equal", |vocab, horizon| Ok::<_, String>(AllEqual { vocab, horizon }))?;
/// let spec = niwaki_train::Spec::read("mine", "task.kind = 'all-equal'\ntask.horizon = 3", &[])?;
/// assert!(spec.check().is_ok());
/// # Ok::<(), niwaki_train::Error>(())
/// ```
///
/// # Errors
/// Where a task has that name already, or the name is not one word.
pub fn task<T: Sequence + 'static, E: Display>(
    name: &str,
    make: impl Fn(usize, usize) -> Result<T, E> + Send + Sync + 'static,
) -> Result<(), Error> {
    let refuse = |reason: &str| Error::Part { name: name.to_owned(), reason: reason.to_owned() };
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    {
        return Err(refuse("a task's name has letters, digits, hyphens and underscores only"));
    }
    if crate::spec::task_is_known(name) {
        return Err(refuse("a task has that name already; choose another"));
    }
    let make: Box<Make> = Box::new(move |vocab, horizon| match make(vocab, horizon) {
        Ok(task) => Ok(Arc::new(task)),
        Err(error) => Err(error.to_string()),
    });
    let mut tasks = TASKS.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    tasks.push(Own { name: Box::leak(name.to_owned().into_boxed_str()), make });
    Ok(())
}

/// The names that were given.
pub(crate) fn names() -> Vec<&'static str> {
    let tasks = TASKS.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    tasks.iter().map(|own| own.name).collect()
}

/// The name as it is kept, where a task has it.
pub(crate) fn called(name: &str) -> Option<&'static str> {
    names().into_iter().find(|known| *known == name)
}

/// The task of that name.
pub(crate) fn made(name: &str, vocab: usize, horizon: usize) -> Result<Arc<dyn Sequence>, String> {
    let tasks = TASKS.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let own = tasks.iter().find(|own| own.name == name).ok_or("no task is called so")?;
    let task = (own.make)(vocab, horizon)?;
    let (tokens, steps) = (task.vocab(), task.horizon());
    if tokens < 2 || steps == 0 {
        return Err(format!("the task says {tokens} tokens and {steps} steps; at least 2 and 1 are needed"));
    }
    Ok(task)
}

/// What names a task's content: sizes, and what sequences drawn from it pay. A run is not resumed with other rewards.
pub(crate) fn content(task: &dyn Sequence) -> Result<String, String> {
    let (vocab, horizon, end) = (task.vocab(), task.horizon(), task.end());
    let mut digest = Digest::of(format!("{vocab} {horizon} {} {end:?}", task.masked()));
    let mut open = vec![true; vocab];
    for lane in 0..DRAWN {
        let mut uniforms = Key::new(0, "own task").lane(lane).open();
        let mut tokens: Vec<usize> = Vec::with_capacity(horizon);
        while tokens.len() < horizon && tokens.last().is_none_or(|last| Some(*last) != end) {
            task.open(&tokens, &mut open);
            let ways: Vec<usize> = (0..vocab).filter(|&token| open[token]).collect();
            if ways.is_empty() {
                return Err(format!("no token is open after {tokens:?}"));
            }
            tokens.push(ways[uniforms.below(ways.len() as u64) as usize]);
        }
        let reward = task.reward(complete(task, &tokens));
        if !reward.is_finite() {
            return Err(format!("it pays {reward} for {tokens:?}; a reward is a finite number"));
        }
        digest = digest.and(reward.to_bits().to_le_bytes());
    }
    Ok(digest.to_string())
}

#[cfg(test)]
mod tests {
    use crate::{Device, Spec, gather};
    use niwaki_tasks::Sequence;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Pays where every token is one more than the one before, or one less: tests turn it in mid-run.
    #[derive(Debug)]
    struct Stairs(usize, usize);

    static DOWN: AtomicBool = AtomicBool::new(false);

    impl Sequence for Stairs {
        fn vocab(&self) -> usize {
            self.0
        }
        fn horizon(&self) -> usize {
            self.1
        }
        fn reward(&self, tokens: &[usize]) -> f64 {
            let step = if DOWN.load(Ordering::Relaxed) { self.0 - 1 } else { 1 };
            let fits = tokens.windows(2).filter(|pair| pair[1] == (pair[0] + step) % self.0).count();
            fits as f64 / (self.1 - 1) as f64
        }
    }

    #[test]
    fn a_task_of_ones_own_is_named_trained_and_held_to_its_code() {
        let read = |text: &str| Spec::read("mine", text, &[]);
        assert!(read("task.kind = 'stairs'").unwrap().check().unwrap_err().to_string().contains("'stairs'"));
        let make = |vocab, horizon| {
            if horizon > 1 { Ok(Stairs(vocab, horizon)) } else { Err("a stair has two steps") }
        };
        crate::task("stairs", make).unwrap();
        let spec = read("task.kind = 'stairs'\ntask.vocab = 3\ntask.horizon = 5\niterations = 60\nseed = 3")
            .unwrap();
        let recipe = spec.check().unwrap();
        let digest = recipe.spec.task.digest.clone().unwrap();
        let mut cohort = gather(vec![recipe.clone()], &Device::Cpu).unwrap();
        let mut last = None;
        for _ in 0..60 {
            last = cohort.advance().unwrap().pop();
        }
        assert!(last.unwrap().eta.unwrap() > 0.8);

        // The name is known to whatever reads a spec, and its keys are those of token tasks.
        let text = recipe.spec.to_commented_toml().unwrap();
        assert!(text.contains(&digest), "{text}");
        let refused = |text: &str| read(text).and_then(|spec| spec.check()).unwrap_err().to_string();
        assert!(refused("task.kind = 'stair'").contains("did you mean 'stairs'?"));
        let jobs = refused("task.kind = 'stairs'\ntask.jobs = 3");
        assert!(jobs.contains("has no key 'jobs'"), "{jobs}");
        let short = read("task.kind = 'stairs'\ntask.horizon = 1").unwrap().check().unwrap_err().to_string();
        assert_eq!(short, "task: 'stairs': a stair has two steps");
        for name in ["stairs", "record", "two-branch", "a b", ""] {
            assert!(crate::task(name, make).is_err(), "{name}");
        }

        // Other code under the same name is another task.
        DOWN.store(true, Ordering::Relaxed);
        let refused = recipe.spec.check().unwrap_err().to_string();
        assert!(refused.starts_with("task.digest: the code of 'stairs' now pays as"), "{refused}");
        assert_ne!(spec.check().unwrap().spec.hash().unwrap(), recipe.spec.hash().unwrap());
    }
}
