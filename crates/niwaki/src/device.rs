//! `--device` and `--precision`, as every command that trains takes them.

use anyhow::{Result, bail};
use clap::ValueEnum;

/// Where a population runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    Cpu,
    Cuda,
}

/// How products round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    F32,
    Tf32,
    Bf16,
}

/// The device and how it rounds.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct DeviceArgs {
    /// Where the population runs.
    #[arg(long, value_enum, default_value = "cpu")]
    pub(crate) device: Place,
    /// How products round; f32 is the only one on the CPU, tf32 the default on CUDA.
    #[arg(long, value_enum)]
    pub(crate) precision: Option<Precision>,
}

impl DeviceArgs {
    /// The trainer's device.
    ///
    /// # Errors
    /// Where the binary was built without CUDA, or the CPU is asked for another precision.
    pub(crate) fn device(&self) -> Result<niwaki_train::Device> {
        match self.device {
            Place::Cpu => match self.precision {
                None | Some(Precision::F32) => Ok(niwaki_train::Device::Cpu),
                Some(other) => bail!("--precision {other:?} needs --device cuda: the CPU computes in f32"),
            },
            Place::Cuda => self.cuda(),
        }
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda(&self) -> Result<niwaki_train::Device> {
        bail!("--device cuda: this binary was built without it; build with --features cuda")
    }

    #[cfg(feature = "cuda")]
    fn cuda(&self) -> Result<niwaki_train::Device> {
        Ok(niwaki_train::Device::Cuda(self.options()))
    }

    /// The CUDA engine's options.
    #[cfg(feature = "cuda")]
    pub(crate) fn options(&self) -> niwaki_nn::cuda::Options {
        use niwaki_nn::cuda::{Options, Precision as Rounding};
        let precision = match self.precision {
            Some(Precision::F32) => Rounding::F32,
            Some(Precision::Bf16) => Rounding::Bf16,
            Some(Precision::Tf32) | None => Rounding::Tf32,
        };
        Options { precision, ..Options::default() }
    }
}
