//! CUDA's run-time libraries, found when the engine is made.

use super::device::refused;
use crate::{Error, Result};
use std::path::PathBuf;

pub(super) fn missing(library: &str, mend: &str) -> Error {
    refused(format!("{library} is not on this machine; install {mend}, or use the CPU"))
}

/// Folders beside the loader's own path in which CUDA's libraries are looked for.
fn library_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"] {
        if let Some(root) = std::env::var_os(variable) {
            let root = PathBuf::from(root);
            folders.extend([root.join("lib64"), root.join("lib"), root.join("targets/x86_64-linux/lib")]);
        }
    }
    folders.push(PathBuf::from("/usr/local/cuda/lib64"));
    folders.push(PathBuf::from("/usr/local/nvidia/lib64"));
    // A Python environment with a CUDA wheel is often the only toolkit on a machine.
    if let Some(python) = std::env::var_os("VIRTUAL_ENV") {
        let lib = PathBuf::from(python).join("lib");
        for version in std::fs::read_dir(&lib).into_iter().flatten().flatten() {
            let wheels = version.path().join("site-packages/nvidia");
            for part in ["cu13", "cublas", "cuda_nvrtc"] {
                folders.push(wheels.join(part).join("lib"));
            }
        }
    }
    folders
}

/// Opens one of the run-time libraries so that the later look-up by name finds it already in the process.
pub(super) fn preload(stem: &'static str, mend: &'static str) -> Result<()> {
    let names = [format!("lib{stem}.so.13"), format!("lib{stem}.so.12"), format!("lib{stem}.so")];
    let mut places: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    for folder in library_folders() {
        places.extend(names.iter().map(|name| folder.join(name)));
    }
    for place in &places {
        // SAFETY: loading CUDA's own libraries runs their initialisers, which have no preconditions.
        if let Ok(library) = unsafe { libloading::Library::new(place) } {
            // It must outlive every call into it: keep it for the whole process.
            std::mem::forget(library);
            return Ok(());
        }
    }
    Err(missing(&format!("lib{stem}"), mend))
}

/// Opens NVRTC, which needs no GPU.
pub(crate) fn preload_compiler() -> Result<()> {
    preload("nvrtc", "the CUDA runtime compiler (libnvrtc, CUDA 12 or 13)")
}
