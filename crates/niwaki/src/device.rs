//! Where networks train: the flags that choose a device, and what they mean to the trainer.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use niwaki_train::Device;

/// Flags that choose a device.
#[derive(Args, Clone, Copy)]
pub(crate) struct DeviceArgs {
    /// Where networks train; tables always train on the CPU.
    #[arg(long, value_enum, ignore_case = true, default_value = "cpu")]
    pub(crate) device: Place,
    /// Precision of matrix products: always f32 on the CPU; tf32 if absent on CUDA.
    #[arg(long, value_enum)]
    precision: Option<Precision>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    Cpu,
    #[value(alias = "gpu")]
    Cuda,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    F32,
    Tf32,
    Bf16,
}

impl DeviceArgs {
    /// A place with its own precision.
    pub(crate) const fn of(device: Place) -> Self {
        Self { device, precision: None }
    }

    /// The device.
    pub(crate) fn choose(self) -> Result<Device> {
        self.on_cuda()?.map_or(Ok(Device::Cpu), cuda)
    }

    /// The name of the device, for work that other machines do: this one need not have it.
    pub(crate) fn planned(self) -> Result<String> {
        Ok(self
            .on_cuda()?
            .map_or_else(|| Device::Cpu.name(), |precision| format!("cuda {}", name(precision))))
    }

    /// The precision on CUDA; nothing on the CPU.
    fn on_cuda(self) -> Result<Option<Precision>> {
        match (self.device, self.precision) {
            (Place::Cpu, None | Some(Precision::F32)) => Ok(None),
            (Place::Cpu, Some(other)) => {
                bail!("--precision {} needs --device cuda: the CPU computes in f32", name(other))
            }
            (Place::Cuda, precision) => Ok(Some(precision.unwrap_or(Precision::Tf32))),
        }
    }

    /// The CUDA engine's options.
    #[cfg(feature = "cuda")]
    pub(crate) fn options(self) -> niwaki_nn::cuda::Options {
        options(self.precision.unwrap_or(Precision::Tf32))
    }
}

pub(crate) fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::Tf32 => "tf32",
        Precision::Bf16 => "bf16",
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(_precision: Precision) -> Result<Device> {
    bail!("--device cuda: this binary was built without it; build with --features cuda")
}

#[cfg(feature = "cuda")]
fn cuda(precision: Precision) -> Result<Device> {
    Ok(Device::Cuda(options(precision)))
}

/// The CUDA engine's options with products of this precision.
#[cfg(feature = "cuda")]
pub(crate) fn options(precision: Precision) -> niwaki_nn::cuda::Options {
    use niwaki_nn::cuda::{Options, Precision as Rounding};
    let precision = match precision {
        Precision::F32 => Rounding::F32,
        Precision::Tf32 => Rounding::Tf32,
        Precision::Bf16 => Rounding::Bf16,
    };
    Options { precision, ..Options::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_devices_as_the_trainer_does() {
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            let asked = DeviceArgs { device: Place::Cuda, precision: Some(precision) };
            assert_eq!(asked.planned().unwrap(), format!("cuda {}", name(precision)));
            if let Ok(device) = asked.choose() {
                assert_eq!(asked.planned().unwrap(), device.name());
            }
        }
        assert_eq!(DeviceArgs::of(Place::Cpu).planned().unwrap(), Device::Cpu.name());
        assert_eq!(DeviceArgs::of(Place::Cuda).planned().unwrap(), "cuda tf32");
    }
}
