//! What this machine can do at best, measured: the yardsticks of `bench`.

use crate::cpu::{Matrix, product};
use crate::graph::Graph;
use crate::ops::Op;
use std::hint::black_box;
use std::time::Instant;

/// Rates of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Floating-point operations per second of a large square product in f32.
    pub product: f64,
    /// Bytes per second that a large copy reads and writes together.
    pub copy: f64,
}

/// Measures one large product (1024³) and one large copy (64 MiB) on the calling thread, by the given clock in seconds.
#[must_use]
pub fn measure_limits(seconds: impl Fn() -> f64) -> Limits {
    let side = 1024;
    let (a, b) = (vec![0.5_f32; side * side], vec![0.25_f32; side * side]);
    let mut c = vec![0.0_f32; side * side];
    let mut run = |repeats: usize| {
        let start = seconds();
        for _ in 0..repeats {
            product([side; 3], Matrix::rows(&a, side), Matrix::rows(&b, side), &mut c, side, false);
            black_box(&c);
        }
        (seconds() - start) / repeats as f64
    };
    run(1);
    let product = 2.0 * (side as f64).powi(3) / run(4);
    let from = vec![1_u8; 64 << 20];
    let mut to = vec![0_u8; 64 << 20];
    to.copy_from_slice(&from);
    let start = seconds();
    to.copy_from_slice(black_box(&from));
    black_box(&to);
    Limits { product, copy: 2.0 * from.len() as f64 / (seconds() - start) }
}

/// Seconds of wall time since some moment.
pub fn wall() -> impl Fn() -> f64 {
    let start = Instant::now();
    move || start.elapsed().as_secs_f64()
}

/// Floating-point operations of `linear`'s products for one item of one member: forward, and with `backward` the two
/// products of each backward pass too.
#[must_use]
pub fn product_operations(graph: &Graph, backward: bool) -> f64 {
    let one = |op: &Op| {
        let Op::Linear(linear) = op else { return 0.0 };
        let (from, to) = (graph.shape(linear.input), graph.shape(linear.output));
        2.0 * from.rows as f64 * from.width as f64 * to.width as f64
    };
    graph.ops().iter().map(one).sum::<f64>() * if backward { 3.0 } else { 1.0 }
}
