//! The optimiser on the device: the norm of each member's gradient from its sums of squares, then one pass over the flat buffers.

use super::chunks::{CHUNK, chunks, stirred};
use super::device::{Buffer, Device, Pinned};
use super::event::Event;
use super::kernels::{Kernels, STEP};
use super::lower::SCALAR;
use super::parameters::{Gradient, Parameters};
use super::pieces::Pieces;
use super::tape::{Queued, Tape, arguments};
use crate::Result;
use crate::engine::check_members;
use crate::optimiser::{Optimiser, SMALLEST_NORM, StepRule, Storage};

/// Scalars that a block of a step takes beside a pass: so few that the blocks of one large member keep the memory busy.
pub(super) const TAKEN: usize = CHUNK / 4;

/// The same where nothing runs beside it: two quads for each thread.
const TAKEN_ALONE: usize = CHUNK / 8;

/// Whether a rule leaves parameters alone that never had a gradient, so that chunks that rest may be passed by.
fn moved_by_gradients_alone(rule: &StepRule) -> bool {
    match *rule {
        StepRule::NormalisedSgd | StepRule::Sgd => true,
        StepRule::Adam { epsilon, decay, .. } => epsilon as f32 > 0.0 && decay == 0.0,
    }
}

/// Settings per member: rate and Adam's two corrections.
const SETTINGS: usize = 3;

/// State and scratch of the optimiser.
pub(super) struct Update {
    members: usize,
    steps: Vec<u64>,
    /// Adam's moments, `[2, member, length]`, once there are some.
    moments: Option<Buffer>,
    settings: Buffer,
    norms: Buffer,
    factors: Buffer,
    host_settings: Pinned<f64>,
    host_norms: Pinned<f64>,
    /// When the norms have reached the host, which need not wait for the rest.
    fetched: Event,
}

impl Update {
    pub(super) fn new(device: &Device, members: usize) -> Result<Self> {
        Ok(Self {
            members,
            steps: vec![0; members],
            moments: None,
            settings: device.allocate(members * SETTINGS * size_of::<f64>())?,
            norms: device.allocate(members * size_of::<f64>())?,
            factors: device.allocate(members * SCALAR)?,
            host_settings: Pinned::new(members * SETTINGS)?,
            host_norms: Pinned::new(members)?,
            fetched: Event::new()?,
        })
    }

    fn moments(&mut self, device: &Device, length: usize) -> Result<u64> {
        if let Some(buffer) = &self.moments {
            return Ok(buffer.at);
        }
        let bytes = 2 * self.members * length * SCALAR;
        let buffer = device.allocate(bytes)?;
        device.zero(buffer.at, bytes)?;
        Ok(self.moments.insert(buffer).at)
    }

    pub(super) fn step(
        &mut self,
        device: &Device,
        kernels: &Kernels,
        optimiser: &Optimiser,
        rates: &[f64],
        parameters: &Parameters,
        gradient: &Gradient,
        pieces: Option<&Pieces>,
        length: usize,
    ) -> Result<Vec<f64>> {
        let members = self.members;
        check_members("learning rates", members, rates.len())?;
        let moments = if optimiser.moments() > 0 { self.moments(device, length)? } else { 0 };
        let betas = match optimiser.rule {
            StepRule::Adam { first, second, .. } => [first, second],
            StepRule::NormalisedSgd | StepRule::Sgd => [0.0; 2],
        };
        for ((settings, &rate), &steps) in
            self.host_settings.values_mut().chunks_exact_mut(SETTINGS).zip(rates).zip(&self.steps)
        {
            let correct = |beta: f64| 1.0 / (1.0 - beta.powf((steps + 1) as f64));
            settings.copy_from_slice(&[rate, correct(betas[0]), correct(betas[1])]);
        }
        device.send(self.settings.at, self.host_settings.values())?;
        let rule = match optimiser.rule {
            StepRule::NormalisedSgd => 0_usize,
            StepRule::Sgd => 1,
            StepRule::Adam { .. } => 2,
        };
        let mut tape = Tape::default();
        let finish = arguments![
            gradient.squares_at(),
            chunks(length),
            self.settings.at,
            rule,
            optimiser.clip.unwrap_or(0.0),
            SMALLEST_NORM,
            self.norms.at,
            self.factors.at,
        ];
        tape.kernel("norm", kernels.get(STEP, "norm_finish")?, (members, 1, 1), 256, 0, finish)?;
        tape.run(device)?;
        device.fetch(self.norms.at, self.host_norms.values_mut())?;
        device.mark(&self.fetched)?;
        let live = moved_by_gradients_alone(&optimiser.rule).then_some(gradient.live_at());
        let (to, rounded) = (parameters.at(), parameters.rounded_at());
        let (from, places) = (gradient.at(), gradient.places_at());
        let (name, arguments) = match optimiser.rule {
            StepRule::NormalisedSgd | StepRule::Sgd => {
                ("step_sgd", arguments![to, rounded, from, places, live, self.factors.at])
            }
            StepRule::Adam { first, second, epsilon, decay, storage } => {
                let arguments = arguments![to, rounded, from, places, moments, members * length, live]
                    .with(self.factors.at)
                    .with(self.settings.at)
                    .with(first as f32)
                    .with(second as f32)
                    .with(epsilon as f32)
                    .with(decay as f32);
                let name = match storage {
                    Storage::Whole => "step_adam",
                    Storage::Bf16 => "step_adam_bf16",
                };
                (name, arguments)
            }
        };
        let taken = if pieces.is_some() { TAKEN } else { TAKEN_ALONE };
        let arguments = arguments.with(chunks(length)).with(length).with(taken / 4);
        let kernel = kernels.get(STEP, name)?;
        match pieces {
            Some(pieces) => {
                device.fork()?;
                for (blocks, mark) in pieces.iter() {
                    let grid = (blocks.len(), members, 1);
                    let arguments = arguments.clone().with(blocks.start);
                    let queued = Queued { aside: true, early: false };
                    let mut tape = Tape::default();
                    tape.kernel_queued("step", kernel, grid, 256, 0, arguments, queued)?;
                    tape.run(device)?;
                    device.mark_aside(mark)?;
                }
                device.leave_beside();
            }
            None => {
                let blocks = length.div_ceil(taken);
                let mut tape = Tape::default();
                let arguments = arguments.with(0_usize);
                tape.kernel("step", kernel, (blocks, members, 1), 256, 0, arguments)?;
                tape.run(device)?;
            }
        }
        // What follows is queued behind the step: nobody has to wait for it here.
        device.catch_up(&self.fetched)?;
        let norms = self.host_norms.values().to_vec();
        for (steps, &norm) in self.steps.iter_mut().zip(&norms) {
            *steps += u64::from(optimiser.factor(norm).is_some());
        }
        Ok(norms)
    }

    pub(super) fn state(
        &self,
        device: &Device,
        member: usize,
        count: usize,
        length: usize,
    ) -> Result<(u64, Vec<Vec<f32>>)> {
        let mut moments = Vec::new();
        if let Some(buffer) = &self.moments {
            for which in 0..2 {
                let mut flat = vec![0.0; count];
                device.read(self.moment_at(buffer.at, which, member, length), &mut flat)?;
                moments.push(flat);
            }
        }
        Ok((self.steps[member], moments))
    }

    pub(super) fn set_state(
        &mut self,
        device: &Device,
        gradient: &Gradient,
        member: usize,
        steps: u64,
        moments: &[Vec<f32>],
        length: usize,
    ) -> Result<()> {
        self.steps[member] = steps;
        if !moments.is_empty() {
            gradient.wake(device, member, &stirred(moments.iter().map(|moment| &**moment), length))?;
            let base = self.moments(device, length)?;
            for (which, moment) in moments.iter().enumerate().take(2) {
                device.write(self.moment_at(base, which, member, length), moment)?;
            }
        }
        Ok(())
    }

    fn moment_at(&self, base: u64, which: usize, member: usize, length: usize) -> u64 {
        base + ((which * self.members + member) * length * SCALAR) as u64
    }
}
