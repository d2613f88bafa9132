//! Shops of one shape with their numbers: those to learn from first, then those to be judged on.

use crate::{Error, Numbers};
use niwaki_shop::Bounds;
use std::sync::Arc;

/// Shops with what is known of their optima.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<S> {
    pub(crate) shops: Arc<[S]>,
    pub(crate) numbers: Numbers,
}

impl<S> Numbered<S> {
    /// Refuses what cannot be played: no shop to learn from, shops of several shapes, or not one pair of bounds each.
    pub(crate) fn new(
        task: &'static str,
        shops: Vec<S>,
        bounds: Vec<Bounds>,
        training: usize,
        shape: impl Fn(&S) -> (usize, usize, usize),
    ) -> Result<Self, Error> {
        let sizes = [("training", training, 1), ("instances", shops.len(), training.max(1))];
        for (axis, came, least) in sizes {
            if came < least {
                return Err(Error::TooSmall { task, axis, least, came });
            }
        }
        if bounds.len() != shops.len() {
            return Err(Error::Bounds { task, instances: shops.len(), came: bounds.len() });
        }
        let expected = shape(&shops[0]);
        match shops.iter().map(shape).enumerate().find(|(_, came)| *came != expected) {
            Some((instance, came)) => Err(Error::Shape { task, instance, expected, came }),
            None => Ok(Self { shops: shops.into(), numbers: Numbers { training, bounds } }),
        }
    }
}
