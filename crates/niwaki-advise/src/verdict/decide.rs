//! The order of the questions, and the answer.

use super::evidence::{Evidence, FEW, LEAST, MATERIAL, REALISTIC};
use super::known::{Known, percent, text};
use super::{Action, CEILING, COLLAPSED, FAINT, INERT, PAYS, STRONGEST, THIN, WEAKEST, further};
use crate::measure::{AMPLIFIED, Measured};

/// What was decided, and on which ground.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) ground: Ground,
    pub(super) says: String,
    pub(super) sure: String,
    pub(super) idle: String,
    pub(super) because: Vec<String>,
}

/// The question that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    Silent,
    NoInterval,
    Fresh,
    Stale,
    Amplified,
    Ceiling,
    NoBias,
    Bias,
    /// It is there and matters, and is small enough to be the update's own fit.
    Slight,
    Undecided,
    Undecidable,
}

/// Asks in order; the first answer stands.
pub(super) fn decide(measured: &Measured) -> Decision {
    let known = |name: &str| Known::of(measured, name);
    let facts = &measured.facts;
    let evidence = Evidence::new(measured);
    let contested = known("contested_drift");
    if known("zero_signal").value == 1.0 {
        return Decision {
            action: Action::NoSignal,
            ground: Ground::Silent,
            says: "no signal: nothing to correct".to_owned(),
            sure: "certain: it is a count".to_owned(),
            idle: "Every update on such batches is wasted work.".to_owned(),
            because: vec!["Every advantage in the dump is zero, so no loss has a gradient.".to_owned()],
        };
    }
    if facts.folds < 2 {
        let more = (LEAST as u64).saturating_sub(facts.lanes as u64).max(1);
        let why = format!(
            "All {} trajectories are of one group or there is but one, so that nothing can be said of noise.",
            facts.lanes
        );
        return asking(more, Ground::NoInterval, "Unknown.".to_owned(), vec![why]);
    }
    let idle = cost(measured, &evidence);
    // Bias that is there and matters is no fresh data, however little the policy has moved.
    if contested.high < INERT && !evidence.matters() {
        let why = format!(
            "Where the advantage lives, the ratio of everything before a step has a typical log of {}, below {INERT}: \
             each such ratio is close to one (C1 fails).",
            contested.text()
        );
        return Decision {
            action: Action::CorrectionWasted,
            ground: Ground::Fresh,
            says: "correction wasted: the data is fresh".to_owned(),
            sure: format!("sure, since the whole 95% interval lies below {INERT}"),
            idle,
            because: vec![why],
        };
    }
    if let Some(why) = stale(measured) {
        return Decision {
            action: Action::ReduceReuse,
            ground: Ground::Stale,
            says: "reduce reuse: the data is too stale to correct".to_owned(),
            sure: "sure, since drift is known far better than what it biases".to_owned(),
            idle,
            because: vec![why],
        };
    }
    let headroom = known("headroom").value;
    if headroom < CEILING {
        let mut why = format!(
            "Rewards of the last third of the iterations average {} of their range, so {} of it is left to gain",
            percent(1.0 - headroom),
            percent(headroom),
        );
        let silent = known("silent_groups").value;
        why += &if silent.is_finite() {
            format!("; {} of the groups pay all of their trajectories alike.", percent(silent))
        } else {
            ".".to_owned()
        };
        return Decision {
            action: Action::CorrectionWasted,
            ground: Ground::Ceiling,
            says: "correction wasted: rewards are near their ceiling".to_owned(),
            sure: "as sure as the highest reward in the dump is the highest there is".to_owned(),
            idle,
            because: vec![why],
        };
    }
    of_bias(measured, &evidence, idle)
}

/// Why the data is too stale, if it is.
fn stale(measured: &Measured) -> Option<String> {
    let known = |name: &str| Known::of(measured, name);
    let (rule, steps, forecast) = (known("alpha_rule"), known("ess_step"), known("ess_forecast"));
    if rule.high < FAINT || steps.value < THIN {
        return Some(format!(
            "Drift σ²T is {}: the rule licenses α = {} at most, and the step ratios alone keep {} of the batch.",
            known("drift").text(),
            text(rule.value),
            percent(steps.value)
        ));
    }
    (forecast.value < COLLAPSED).then(|| {
        format!(
            "The spread of the prefix log-ratios leaves a full correction {} of the batch. Its weights are then carried by \
             so few trajectories that no realistic number of them would tell what the dropped ratio biases: about {} \
             would be needed for {FEW} to carry it.",
            forecast.percent(),
            text(FEW / forecast.value.powi(4))
        )
    })
}

/// What the bias says.
fn of_bias(measured: &Measured, evidence: &Evidence, idle: String) -> Decision {
    let known = |name: &str| Known::of(measured, name);
    let mut because = vec![format!(
        "The dropped ratio biases a batch's estimate by Σ b = {}; a batch of {} estimates it to ±{}, and a bias matters \
         from a quarter of that, {}.",
        evidence.total.text(),
        text(measured.facts.batch),
        text(evidence.noise),
        text(evidence.material())
    )];
    if evidence.support < FEW {
        because.push(format!(
            "About {} trajectories carry that bias; with fewer than {FEW} the interval is read {} times as wide.",
            text(evidence.support),
            text(evidence.reach / evidence.total.half())
        ));
    }
    let (least, most) = evidence.ends();
    if evidence.matters() {
        let (rule, floor) = (known("alpha_rule").value, known("alpha_floor").value);
        let (asked, calm) = (rule.min(floor).min(STRONGEST), known("alpha_gradient").value);
        if calm < asked && calm < WEAKEST {
            return amplified(measured, asked, calm, idle, because);
        }
        let alpha = if calm < asked { down_to_two_digits(calm) } else { two_digits(asked) };
        let amplification = measured.amplification(alpha);
        because.push(if calm < asked {
            format!(
                "α = {}: drift would allow {} and the ESS floor {}, but a stronger correction makes the gradient more than {} times \
                 as long as PPO's ({} times at α = {}), and learning rates do not forgive that.{}",
                text(alpha),
                text(rule),
                text(floor),
                text(AMPLIFIED),
                text(measured.amplification(asked)),
                text(asked),
                credit(measured)
            )
        } else if rule.min(floor) > STRONGEST {
            format!(
                "α = {}: drift would allow {} and the ESS floor {}, but credit that is routed back costs a variance that \
                 weights do not show, and beyond {STRONGEST} it costs more than it repairs. The gradient is {} times as long as \
                 PPO's there.",
                text(alpha),
                text(rule),
                text(floor),
                text(amplification)
            )
        } else {
            format!(
                "α = {}: drift allows {} at most, the ESS floor {}. The gradient is {} times as long as PPO's there.",
                text(alpha),
                text(rule),
                text(floor),
                text(amplification)
            )
        });
        let there = if least >= MATERIAL {
            format!(
                "sure that the bias is there and matters ({} of a batch's noise or more, with 95%)",
                text(least)
            )
        } else {
            let least = percent(least);
            format!(
                "sure that the bias is there, likely that it matters: with 95% it is at least {least} of a batch's noise"
            )
        };
        let then = if further::fitted(measured).is_some() {
            "what a warmup gains is open, since part of it was fitted to these very trajectories"
        } else {
            because.push(
                "If the update was made on these very trajectories, part of b is its fit to them, which bigger batches \
                 shrink; trajectories kept out of the update tell the two apart."
                    .to_owned(),
            );
            "what a warmup gains is open: nothing where the bias is the update's fit to its own batch"
        };
        let scarce = further::scarce(measured);
        let slight = most < PAYS && !scarce;
        if slight {
            because.push(format!(
                "At {} of a batch's noise the bias is small. In the calibration study a warmup gained in none of 3 settings below \
                 {PAYS} and in 18 of 21 above: so small a bias may be the update's fit to its own batch.",
                text(evidence.size())
            ));
        }
        let after = if slight {
            ", but only if trajectories kept out of the update show the bias too"
        } else if scarce {
            ", then plain PPO: rewards are scarce, and it may decide whether the run succeeds"
        } else {
            ", then plain PPO"
        };
        let more = if calm < asked { "; more would make gradients over twice as long" } else { "" };
        return Decision {
            action: Action::ShortWarmup { alpha, amplification },
            ground: if slight { Ground::Slight } else { Ground::Bias },
            says: format!("short warmup at α ≈ {}{after}{more}", text(alpha)),
            sure: format!("{there}; {then}"),
            idle,
            because,
        };
    }
    if evidence.idle() {
        return Decision {
            action: Action::CorrectionWasted,
            ground: Ground::NoBias,
            says: "correction wasted: drift is there, and its bias does not matter".to_owned(),
            sure: if most <= MATERIAL {
                format!("sure, since with 95% the bias is at most {} of a batch's noise", percent(most))
            } else {
                format!(
                    "likely: the bias is measured below a quarter of a batch's noise, and with 95% it is at most {} of it",
                    percent(most)
                )
            },
            idle,
            because,
        };
    }
    let needed = evidence.needed();
    if needed > REALISTIC {
        because.push(format!(
            "To settle it would take about {} trajectories in all, more than a run can give before it has become another. \
             Less reuse narrows the interval faster than more data does.",
            text(needed)
        ));
        return Decision {
            action: Action::ReduceReuse,
            ground: Ground::Undecidable,
            says: "reduce reuse: no realistic amount of data would tell".to_owned(),
            sure: "sure that this data cannot tell; whether a correction would pay is open".to_owned(),
            idle,
            because,
        };
    }
    let more = evidence.missing();
    because.push(format!(
        "The interval does not settle it. It narrows with the root of the data, so about {more} more trajectories would."
    ));
    asking(more, Ground::Undecided, idle, because)
}

/// The answer where the bias matters and every correction that restores some of it makes gradients too long.
fn amplified(measured: &Measured, asked: f64, calm: f64, idle: String, mut because: Vec<String>) -> Decision {
    let times = text(measured.amplification(asked));
    because.insert(
        0,
        format!(
            "A correction of α = {} makes the gradient {times} times as long as PPO's on this dump. Only below α = {} is it at most \
             {} times as long, and so weak a correction restores next to nothing of the bias.{}",
            text(asked),
            text(calm),
            text(AMPLIFIED),
            credit(measured)
        ),
    );
    Decision {
        action: Action::ReduceReuse,
        ground: Ground::Amplified,
        says: format!(
            "reduce reuse: the bias matters, but a correction of α = {} would make gradients {times} times as long",
            text(asked)
        ),
        sure: "sure that the bias is there and that the correction makes gradients so long; less reuse lessens the bias itself"
            .to_owned(),
        idle,
        because,
    }
}

/// Why a correction makes gradients longer, where the advantage says why.
fn credit(measured: &Measured) -> String {
    if Known::of(measured, "constant_advantage").value > 0.5 {
        " With one advantage per trajectory each step is credited with every later one, on fresh data too: step i of T counts \
         1 + α(T − i) times."
            .to_owned()
    } else {
        " Each step is credited with every later one.".to_owned()
    }
}

/// A strength as it is advised: in two digits, so that none is advised away.
fn two_digits(alpha: f64) -> f64 {
    let scale = 10f64.powi(1 - alpha.log10().floor() as i32);
    (alpha * scale).round() / scale
}

/// The same, and never above what it was.
fn down_to_two_digits(alpha: f64) -> f64 {
    let scale = 10f64.powi(1 - alpha.log10().floor() as i32);
    (alpha * scale).floor() / scale
}

fn asking(more: u64, ground: Ground, idle: String, because: Vec<String>) -> Decision {
    Decision {
        action: Action::NotEnoughData { more },
        ground,
        says: format!("not enough data: need about {more} more trajectories"),
        sure: "open: the data at hand does not decide".to_owned(),
        idle,
        because,
    }
}

/// A share of a batch that nobody misses.
const NOTHING: f64 = 0.005;

/// What it costs to do nothing: a bias of x noises turns a squared error of 1 into 1 + x², as fewer trajectories would.
fn cost(measured: &Measured, evidence: &Evidence) -> String {
    let ratio = Known::of(measured, "bias_to_noise").value.abs();
    let (_, worst) = evidence.ends();
    let lost = |ratio: f64| percent(1.0 - 1.0 / (1.0 + ratio * ratio));
    if !ratio.is_finite() {
        return "Unknown.".to_owned();
    }
    if worst.is_finite() && 1.0 - 1.0 / (1.0 + worst * worst) < NOTHING {
        let (ratio, worst) = (text(ratio), text(worst));
        return format!(
            "Nothing: the bias is {ratio} of a batch's noise, at worst {worst}, and costs no data."
        );
    }
    if !worst.is_finite() {
        return format!(
            "A bias of {} of a batch's noise: as if {} of each batch were lost.",
            text(ratio),
            lost(ratio)
        );
    }
    format!(
        "A bias of {} of a batch's noise, as if {} of each batch were lost; at worst {} and {}.",
        text(ratio),
        lost(ratio),
        text(worst),
        lost(worst)
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use crate::measure::{Measure, Settings};
    use crate::schema::Field;
    use crate::trajectory::{Came, Chunk, Record};

    fn judged(advantage: f64) -> Verdict {
        let (mut chunk, mut record) = (Chunk::default(), Record::default());
        record.fill(Field::OldLogProb, Came::Many).extend([-1.0, -2.0]);
        record.fill(Field::NewLogProb, Came::Many).extend([-0.5, -1.0]);
        record.fill(Field::Advantage, Came::One).push(advantage);
        chunk.push(&record, None).unwrap();
        let mut measure = Measure::new(Settings::default());
        measure.add(&chunk);
        Verdict::new(&measure.finish())
    }

    #[test]
    fn a_strength_keeps_two_digits_and_never_becomes_none() {
        assert_eq!([0.1, 0.0956, 0.00314, 1.0].map(two_digits), [0.1, 0.096, 0.0031, 1.0]);
        assert_eq!([0.0299, 0.0956, 0.01].map(down_to_two_digits), [0.029, 0.095, 0.01]);
    }

    #[test]
    fn one_trajectory_settles_nothing() {
        assert_eq!(judged(1.0).action, Action::NotEnoughData { more: 63 });
        assert_eq!(judged(0.0).action, Action::NoSignal);
    }
}
