//! Kernels: CUDA C++ to machine code by NVRTC, once, kept on disk.
//!
//! A cache file is named by a hash of source, options, architecture, driver and NVRTC version, and carries a checksum;
//! one that fails it, or that the driver refuses, is rebuilt. Writes go to a temporary file and are renamed.

use super::device::{alone, refused};
use crate::Result;
use cudarc::driver::{result, sys};
use cudarc::nvrtc;
use niwaki_files::Digest;
use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"niwakiK1";

/// FNV-1a over bytes: names a cache file and checks its contents (no adversary, only accidents).
fn fnv(parts: &[&[u8]]) -> u64 {
    parts.iter().fold(Digest::default(), |sum, part| sum.and(part).and([0xff])).value()
}

/// Where compiled kernels are kept: `NIWAKI_CACHE`, else the user's cache folder; `None` where there is no home.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("NIWAKI_CACHE") {
        return Some(PathBuf::from(folder));
    }
    if let Some(folder) = std::env::var_os("XDG_CACHE_HOME") {
        return Some(PathBuf::from(folder).join("niwaki"));
    }
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/niwaki"))
}

/// What machine code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Compute capability, major and minor.
    pub(crate) capability: (i32, i32),
    /// The driver's version.
    pub(crate) driver: i32,
    /// Bytes of shared memory that a block may ask for there.
    pub(crate) shared: u32,
}

/// Machine code, and whether NVRTC had to run for it.
pub(crate) struct Image {
    bytes: Vec<u8>,
    path: Option<PathBuf>,
    /// Whether it came from the cache.
    pub(crate) cached: bool,
}

impl Image {
    /// Machine code of `source` for `target`, compiled only if the cache has no sound copy. Needs no context, so
    /// several may be made at once on several threads.
    ///
    /// # Errors
    /// If the source does not compile.
    pub(crate) fn make(target: Target, name: &str, source: &str, cache: Option<&Path>) -> Result<Self> {
        let (major, minor) = target.capability;
        let options = options(target);
        let versions = format!("{}/{:?}", target.driver, nvrtc_version()?);
        let key = fnv(&[source.as_bytes(), options.join(" ").as_bytes(), versions.as_bytes()]);
        let path = cache.map(|folder| folder.join(format!("{name}-sm{major}{minor}-{key:016x}.cubin")));
        if let Some(bytes) = path.as_deref().and_then(read_checked) {
            return Ok(Self { bytes, path, cached: true });
        }
        let bytes = compile(name, source, &options)?;
        if let Some(path) = &path {
            // A cache that cannot be written costs a second at the next start and nothing else.
            let _ = write_checked(path, &bytes);
        }
        Ok(Self { bytes, path, cached: false })
    }

    /// Gives up on the cached copy: removes it and compiles anew.
    fn remake(self, target: Target, name: &str, source: &str) -> Result<Vec<u8>> {
        let bytes = compile(name, source, &options(target))?;
        if let Some(path) = &self.path {
            let _ = write_checked(path, &bytes);
        }
        Ok(bytes)
    }
}

fn options(target: Target) -> [String; 3] {
    let (major, minor) = target.capability;
    // Hopper's own instructions (wgmma) exist only under the architecture's `a` name.
    let suffix = if target.capability == (9, 0) { "a" } else { "" };
    [
        format!("--gpu-architecture=sm_{major}{minor}{suffix}"),
        "--std=c++17".to_owned(),
        "--extra-device-vectorization".to_owned(),
    ]
}

/// A loaded set of kernels.
pub(crate) struct Module {
    module: sys::CUmodule,
}

impl Module {
    /// Loads an image into the current context; a cached one that the driver refuses is compiled anew.
    ///
    /// # Errors
    /// If the driver refuses fresh machine code.
    pub(crate) fn load(target: Target, name: &str, source: &str, image: Image) -> Result<Self> {
        if let Ok(module) = load_image(&image.bytes) {
            return Ok(Self { module });
        }
        Ok(Self { module: load_image(&image.remake(target, name, source)?)? })
    }

    /// Looks up one kernel and raises its limit of dynamic shared memory to `shared` bytes, or to what there is.
    ///
    /// # Errors
    /// If there is no such kernel.
    pub(crate) fn kernel(&self, name: &str, shared: u32, target: Target) -> Result<sys::CUfunction> {
        let shared = shared.min(target.shared);
        let symbol = CString::new(name).map_err(|_| refused(format!("kernel name `{name}` has a NUL")))?;
        let fail = |error: result::DriverError| refused(format!("kernel `{name}`: {error}"));
        // SAFETY: the module is loaded and never unloaded while the process runs.
        unsafe {
            let function = result::module::get_function(self.module, symbol).map_err(fail)?;
            if shared > 48 * 1024 {
                result::function::set_function_attribute(
                    function,
                    sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    shared as i32,
                )
                .map_err(fail)?;
            }
            Ok(function)
        }
    }
}

fn nvrtc_version() -> Result<(i32, i32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both out-pointers are live.
    unsafe { nvrtc::sys::nvrtcVersion(&mut major, &mut minor).result() }
        .map_err(|error| refused(format!("version: {error:?}")))?;
    Ok((major, minor))
}

fn load_image(image: &[u8]) -> Result<sys::CUmodule> {
    let _alone = alone();
    // SAFETY: the image is a whole cubin (checked by its sum, or fresh from NVRTC).
    unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }
        .map_err(|error| refused(format!("module refused: {error}")))
}

fn compile(name: &str, source: &str, options: &[String]) -> Result<Vec<u8>> {
    let code = CString::new(source).map_err(|_| refused(format!("{name}: source has a NUL")))?;
    let label = CString::new(format!("{name}.cu")).map_err(|_| refused(format!("{name}: bad name")))?;
    let program = nvrtc::result::create_program(&code, Some(&label))
        .map_err(|error| refused(format!("{name}: {error:?}")))?;
    // SAFETY: `program` lives until it is destroyed below, once; buffers have the sizes NVRTC reports.
    unsafe {
        let built = nvrtc::result::compile_program(program, options);
        let image = built.map_err(|error| {
            let log = nvrtc::result::get_program_log(program).unwrap_or_default();
            let log: Vec<u8> = log.iter().map(|&c| c as u8).collect();
            refused(format!("{name}: {error:?}: {}", String::from_utf8_lossy(&log)))
        });
        let image = image.and_then(|()| {
            let fail = |error| refused(format!("{name}: {error:?}"));
            let mut size = 0;
            nvrtc::sys::nvrtcGetCUBINSize(program, &mut size).result().map_err(fail)?;
            let mut image = vec![0_u8; size];
            nvrtc::sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast::<c_char>()).result().map_err(fail)?;
            Ok(image)
        });
        let _ = nvrtc::result::destroy_program(program);
        image
    }
}

/// Compiles a source and throws the machine code away.
#[cfg(test)]
pub(crate) fn try_out(target: Target, name: &str, source: &str) -> Result<()> {
    super::libraries::preload_compiler()?;
    compile(name, source, &options(target)).map(|_| ())
}

fn read_checked(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let body = bytes.strip_prefix(MAGIC.as_slice())?;
    let (sum, image) = body.split_at_checked(8)?;
    (sum == fnv(&[image]).to_le_bytes()).then(|| image.to_vec())
}

fn write_checked(path: &Path, image: &[u8]) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(fnv(&[image]).to_le_bytes());
    bytes.extend(image);
    niwaki_files::write_atomically(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_foreign_cache_file_is_not_believed() {
        let folder = std::env::temp_dir().join(format!("niwaki-cache-{}", std::process::id()));
        let path = folder.join("k.cubin");
        write_checked(&path, b"machine code").unwrap();
        assert_eq!(read_checked(&path).as_deref(), Some(b"machine code".as_slice()));
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_checked(&path), None, "one flipped bit");
        std::fs::write(&path, &bytes[..12]).unwrap();
        assert_eq!(read_checked(&path), None, "cut short");
        std::fs::write(&path, b"something else entirely").unwrap();
        assert_eq!(read_checked(&path), None, "foreign");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
