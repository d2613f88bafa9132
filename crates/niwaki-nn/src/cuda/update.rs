//! The optimiser on the device: the norm of each member's gradient from its sums of squares, then one pass over the flat buffers.

use super::device::{Buffer, Device, Pinned};
use super::kernels::{Kernels, STEP};
use super::lower::{SCALAR, chunks};
use super::parameters::{Gradient, Parameters};
use super::tape::{Tape, arguments};
use crate::Result;
use crate::engine::check_members;
use crate::optimiser::{Optimiser, SMALLEST_NORM, StepRule};

/// Blocks that share a member's step: so many that those of one large member keep the memory busy.
fn step_blocks(length: usize) -> usize {
    (length >> 12).max(64)
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
        let wide = (step_blocks(length), members, 1);
        let get = |name| kernels.get(STEP, name);
        let gradient_at = gradient.at();
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
        tape.kernel("norm", get("norm_finish")?, (members, 1, 1), 256, 0, finish)?;
        match optimiser.rule {
            StepRule::NormalisedSgd | StepRule::Sgd => {
                let step = arguments![
                    parameters.at(),
                    parameters.rounded_at(),
                    gradient_at,
                    self.factors.at,
                    length
                ];
                tape.kernel("step", get("step_sgd")?, wide, 256, 0, step)?;
                tape.run(device)?;
            }
            StepRule::Adam { first, second, epsilon, decay } => {
                let step = arguments![
                    parameters.at(),
                    parameters.rounded_at(),
                    gradient_at,
                    moments,
                    members * length,
                    self.factors.at,
                    self.settings.at,
                    first as f32,
                    second as f32,
                    epsilon as f32,
                    decay as f32,
                    length,
                ];
                tape.kernel("step", get("step_adam")?, wide, 256, 0, step)?;
                tape.run(device)?;
            }
        }
        device.fetch(self.norms.at, self.host_norms.values_mut())?;
        device.synchronize()?;
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
        member: usize,
        steps: u64,
        moments: &[Vec<f32>],
        length: usize,
    ) -> Result<()> {
        self.steps[member] = steps;
        if !moments.is_empty() {
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
