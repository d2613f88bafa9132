//! The figure and the number that decide, by the question that did.

use super::figures;
use crate::measure::{AMPLIFIED, Measured};
use crate::verdict::{Evidence, Ground, INERT, MATERIAL, Verdict};
use niwaki_page::{Axis, Figure, ForestChart, Format, Interval, LineChart, Series, Tone};

/// What decides: a figure, the name of a curve that is then not shown again, and a number with its label and format.
pub(super) struct Shown {
    pub(super) figure: Option<Figure>,
    pub(super) shows: Curve,
    pub(super) tile: Option<(&'static str, &'static str, Format)>,
}

/// A curve of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    Lives,
    Ess,
    Shares,
    Other,
}

pub(super) fn shown(measured: &Measured, verdict: &Verdict) -> Shown {
    let short = Format::significant(2);
    let with = |figure: Figure, shows: Curve, tile| Shown { figure: Some(figure), shows, tile };
    match verdict.ground {
        Ground::Silent => Shown {
            figure: (measured.iterations.len() > 1).then(|| figures::shares(measured)),
            shows: if measured.iterations.len() > 1 { Curve::Shares } else { Curve::Other },
            tile: Some(("Without an advantage", "zero_signal", Format::percent(0))),
        },
        Ground::NoInterval => Shown { figure: None, shows: Curve::Other, tile: None },
        Ground::Fresh => with(
            figures::lives(measured, Some(INERT)),
            Curve::Lives,
            Some(("Log-ratio where the advantage lives", "contested_drift", short)),
        ),
        Ground::Stale => with(
            figures::ess(measured),
            Curve::Ess,
            Some(("ESS as drift foretells it", "ess_forecast", Format::percent(0))),
        ),
        Ground::Ceiling => Shown {
            figure: figures::rewards(measured),
            shows: Curve::Other,
            tile: Some(("Left to gain", "headroom", Format::percent(0))),
        },
        Ground::Amplified => with(
            longer(measured),
            Curve::Other,
            Some(("Gradient at α = 0.1, times PPO's", "amplification", short)),
        ),
        Ground::Bias | Ground::Slight | Ground::NoBias | Ground::Undecided | Ground::Undecidable => {
            with(bias(measured), Curve::Other, Some(("Bias Σ b", "bias_total", short.signed())))
        }
    }
}

/// The bias beside what matters.
fn bias(measured: &Measured) -> Figure {
    let evidence = Evidence::new(measured);
    let (low, high) = evidence.ends();
    let batch = Format::auto().text(measured.facts.batch);
    let chart = ForestChart::new("Is the bias of PPO's estimate larger than what matters?")
        .x(Axis::linear(format!("bias over the noise of a batch of {batch}"))
            .include(0.0)
            .include(2.0 * MATERIAL))
        .line(Interval::new("this dump, 95%", evidence.size(), low, high))
        .reference(MATERIAL, "matters from here");
    Figure::new(&chart).caption(
        "What the dropped ratio adds to a batch's estimate, in units of how much batches differ by chance. Right of the dashed \
         line the bias matters; an interval that crosses the line leaves it open.",
    )
}

/// The gradient's length beside what is allowed.
fn longer(measured: &Measured) -> Figure {
    let points = measured.amplifications.iter().map(|row| (row.alpha, row.amplification));
    let chart = LineChart::new("How much longer does a correction make the gradient?")
        .x(Axis::linear("α"))
        .y(Axis::linear("times PPO's").include(0.0))
        .series(Series::new("gradient", points).markers().tone(Tone::Hue(0)))
        .level(AMPLIFIED, "advised at most");
    Figure::new(&chart).caption(
        "The norm of the corrected gradient over PPO's on this dump, at each strength of the correction.",
    )
}
