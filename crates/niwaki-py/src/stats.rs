//! Paired comparisons, intervals and aggregates on NumPy arrays.

use crate::waiting;
use niwaki_stats::{Bootstrap, Error, Interval, Paired, Profile, Scores, SignTest};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Ends = (f64, f64, f64);
type Resampling = (u64, usize, f64);
type Values<'py> = PyReadonlyArray1<'py, f64>;
type Matrix<'py> = PyReadonlyArray2<'py, f64>;

/// Wins, losses, ties, then the exact p-values: greater, less, two-sided.
type Signs = (u64, u64, u64, f64, f64, f64);

/// Differences, mean, standard error, verdict, p-value, interval where there is one, sign test.
type Compared<'py> = (Bound<'py, PyArray1<f64>>, f64, f64, &'static str, f64, Option<Ends>, Signs);

fn refuse(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

const fn ends(interval: Interval) -> Ends {
    (interval.low, interval.high, interval.level)
}

const fn bootstrap((seed, resamples, level): Resampling) -> Bootstrap {
    Bootstrap { seed, resamples, level }
}

fn signs(test: SignTest) -> Signs {
    (test.wins, test.losses, test.ties, test.greater(), test.less(), test.two_sided())
}

/// Scores of runs × tasks that outlive the call which brought them: resampling goes on in a thread of its own.
struct Owned {
    values: Vec<f64>,
    runs: usize,
    tasks: usize,
}

impl Owned {
    fn new(values: &Matrix<'_>) -> PyResult<Self> {
        let (runs, tasks) = (values.shape()[0], values.shape()[1]);
        let owned = Self { values: values.as_slice()?.to_vec(), runs, tasks };
        owned.scores().map_err(refuse)?;
        Ok(owned)
    }

    fn scores(&self) -> Result<Scores<'_>, Error> {
        Scores::new(&self.values, self.runs, self.tasks)
    }
}

/// Two arms that share seeds.
#[pyfunction]
pub(crate) fn paired<'py>(
    py: Python<'py>,
    first: Values<'py>,
    second: Values<'py>,
    level: f64,
) -> PyResult<Compared<'py>> {
    let paired = Paired::new(first.as_slice()?, second.as_slice()?).map_err(refuse)?;
    let (sem, found) = (paired.sem().map_err(refuse)?, paired.decide(level).map_err(refuse)?);
    let differences = PyArray1::from_slice(py, paired.differences());
    let (verdict, interval) = (found.verdict.words(), found.interval.map(ends));
    Ok((differences, found.mean, sem, verdict, found.p, interval, signs(paired.sign_test())))
}

/// Wins, losses, ties and exact p-values of pairs.
#[pyfunction]
pub(crate) fn sign_test(first: Values<'_>, second: Values<'_>) -> PyResult<Signs> {
    SignTest::of_pairs(first.as_slice()?, second.as_slice()?).map(signs).map_err(refuse)
}

/// Chance that groups of trajectories at some success rates carry no signal.
#[pyfunction]
pub(crate) fn silence(rates: Values<'_>, size: u32, groups: u64) -> PyResult<f64> {
    niwaki_stats::silence(rates.as_slice()?, size, groups).map_err(refuse)
}

/// BCa interval of the mean or the median of a sample.
#[pyfunction]
pub(crate) fn bca(
    py: Python<'_>,
    sample: Values<'_>,
    median: bool,
    resampling: Resampling,
) -> PyResult<Ends> {
    let (sample, bootstrap) = (sample.as_slice()?.to_vec(), bootstrap(resampling));
    let middle = |values: &[f64]| niwaki_stats::median(values).unwrap_or(f64::NAN);
    let mean = |values: &[f64]| niwaki_stats::mean(values).unwrap_or(f64::NAN);
    let found =
        waiting::run(
            py,
            move |_| {
                if median { bootstrap.bca(&sample, middle) } else { bootstrap.bca(&sample, mean) }
            },
        )?;
    found.map(ends).map_err(refuse)
}

/// An aggregate of runs × tasks with its stratified interval.
#[pyfunction]
pub(crate) fn aggregate(
    py: Python<'_>,
    values: Matrix<'_>,
    name: &str,
    target: f64,
    resampling: Resampling,
) -> PyResult<(f64, Ends)> {
    let owned = Owned::new(&values)?;
    let of = match name {
        "mean" => |scores: Scores<'_>, _: f64| scores.mean(),
        "median" => |scores: Scores<'_>, _: f64| scores.median(),
        "iqm" => |scores: Scores<'_>, _: f64| scores.iqm(),
        "optimality_gap" => |scores: Scores<'_>, target: f64| scores.optimality_gap(target),
        other => {
            return Err(PyValueError::new_err(format!(
                "aggregate is '{other}'; write mean, median, iqm or optimality_gap"
            )));
        }
    };
    let found = waiting::run(py, move |_| {
        let scores = owned.scores()?;
        let interval = scores.interval(&bootstrap(resampling), |scores| of(scores, target))?;
        Ok((of(scores, target), ends(interval)))
    })?;
    found.map_err(refuse)
}

/// The probability that a run of the first arm beats one of the second, with its interval.
#[pyfunction]
pub(crate) fn probability_of_improvement(
    py: Python<'_>,
    first: Matrix<'_>,
    second: Matrix<'_>,
    pairs: bool,
    resampling: Resampling,
) -> PyResult<(f64, Ends)> {
    let (first, second) = (Owned::new(&first)?, Owned::new(&second)?);
    let found = waiting::run(py, move |_| {
        let (first, second, bootstrap) = (first.scores()?, second.scores()?, bootstrap(resampling));
        if pairs {
            let value = niwaki_stats::paired_probability_of_improvement(first, second)?;
            Ok((value, niwaki_stats::paired_probability_of_improvement_interval(first, second, &bootstrap)?))
        } else {
            let value = niwaki_stats::probability_of_improvement(first, second)?;
            Ok((value, niwaki_stats::probability_of_improvement_interval(first, second, &bootstrap)?))
        }
    })?;
    found.map(|(value, interval)| (value, ends(interval))).map_err(refuse)
}

/// Shares of scores above each threshold, with lower and upper ends of their band.
#[pyfunction]
pub(crate) fn profile(
    py: Python<'_>,
    values: Matrix<'_>,
    thresholds: Values<'_>,
    task_means: bool,
    resampling: Resampling,
) -> PyResult<(Vec<f64>, Vec<f64>, Vec<f64>)> {
    let (owned, thresholds) = (Owned::new(&values)?, thresholds.as_slice()?.to_vec());
    let kind = if task_means { Profile::TaskMeans } else { Profile::RunScores };
    let found = waiting::run(py, move |_| {
        let scores = owned.scores()?;
        Ok((kind.of(scores, &thresholds)?, kind.band(scores, &thresholds, &bootstrap(resampling))?))
    })?;
    let (shares, band): (Vec<f64>, Vec<Interval>) = found.map_err(refuse)?;
    Ok((shares, band.iter().map(|at| at.low).collect(), band.iter().map(|at| at.high).collect()))
}

/// Mean of a learning curve by the trapezoid rule, over its own index or over `x`.
#[pyfunction]
#[pyo3(signature = (curve, x=None))]
pub(crate) fn auc(curve: Values<'_>, x: Option<Values<'_>>) -> PyResult<f64> {
    match x {
        None => niwaki_stats::auc(curve.as_slice()?).map_err(refuse),
        Some(x) => niwaki_stats::auc_over(x.as_slice()?, curve.as_slice()?).map_err(refuse),
    }
}

/// Pearson's or Spearman's correlation, or Pearson's within groups, with Fisher's interval.
#[pyfunction]
pub(crate) fn correlation(
    x: Values<'_>,
    y: Values<'_>,
    groups: Option<Vec<usize>>,
    ranks: bool,
    level: f64,
) -> PyResult<(f64, Ends)> {
    let (x, y) = (x.as_slice()?, y.as_slice()?);
    let (found, controls) = match groups {
        Some(groups) => {
            let mut names = groups.clone();
            names.sort_unstable();
            names.dedup();
            (niwaki_stats::pearson_within(x, y, &groups), names.len() - 1)
        }
        None if ranks => (niwaki_stats::spearman(x, y), 0),
        None => (niwaki_stats::pearson(x, y), 0),
    };
    let r = found.map_err(refuse)?;
    niwaki_stats::fisher_interval(r, x.len(), controls, level)
        .map(|interval| (r, ends(interval)))
        .map_err(refuse)
}
