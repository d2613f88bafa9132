//! The device itself: finding the driver and its libraries at run time, one context, a stream and one aside, plain allocations.
//!
//! Nothing here is linked: a machine without a GPU loads the same binary and gets one clear line as its
//! error. It knows nothing about graphs or parameters.

use super::staging::{Staging, extent};
use crate::{Error, Result};
use cudarc::driver::{result, sys};
use std::cell::RefCell;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The one error of this engine: the device's name and a line with the mend.
pub(crate) fn refused(reason: impl Into<String>) -> Error {
    Error::Device { device: "cuda", reason: reason.into() }
}

fn missing(library: &str, mend: &str) -> Error {
    refused(format!("{library} is not on this machine; install {mend}, or use the CPU"))
}

pub(crate) trait Named<T> {
    fn named(self, call: &'static str) -> Result<T>;
}

impl<T> Named<T> for std::result::Result<T, result::DriverError> {
    fn named(self, call: &'static str) -> Result<T> {
        self.map_err(|error| refused(format!("{call} failed: {error:?}")))
    }
}

/// Sets up alone: of several engines in a process one at a time takes or gives memory, loads kernels or captures. What
/// waits for the whole device breaks the captures of other threads.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static SETTING_UP: Mutex<()> = Mutex::new(());
    SETTING_UP.lock().unwrap_or_else(PoisonError::into_inner)
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
fn preload(stem: &'static str, mend: &'static str) -> Result<()> {
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

/// One GPU with its context and streams. Not shared between threads.
pub(crate) struct Device {
    handle: sys::CUdevice,
    context: sys::CUcontext,
    /// The stream that all work of this device is queued on.
    pub(crate) stream: sys::CUstream,
    /// A second stream, for work that what follows need not wait for.
    pub(crate) aside: sys::CUstream,
    /// Marks between the two.
    forked: sys::CUevent,
    joined: sys::CUevent,
    /// Marketing name, for reports.
    pub(crate) name: String,
    /// Compute capability, major and minor.
    pub(crate) capability: (i32, i32),
    /// Multiprocessors.
    pub(crate) multiprocessors: i32,
    /// Bytes of shared memory that a block may ask for.
    pub(crate) shared: u32,
    /// Driver version as `major * 1000 + minor * 10`.
    pub(crate) driver_version: i32,
    /// Made when something is first written.
    staging: RefCell<Option<Staging>>,
}

impl Device {
    /// Opens GPU `ordinal`.
    ///
    /// # Errors
    /// If the driver, NVRTC, cuBLASLt or the GPU is not on this machine.
    pub(crate) fn open(ordinal: i32) -> Result<Self> {
        // SAFETY: only probes for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(missing("the NVIDIA driver (libcuda)", "the driver of an NVIDIA GPU"));
        }
        result::init().named("cuInit")?;
        let count = result::device::get_count().named("cuDeviceGetCount")?;
        if ordinal >= count {
            return Err(refused(format!("GPU {ordinal} was asked for and {count} are here; use the CPU")));
        }
        preload_compiler()?;
        preload("cublasLt", "cuBLAS (libcublasLt, CUDA 12 or 13)")?;
        let handle = result::device::get(ordinal).named("cuDeviceGet")?;
        // SAFETY: `handle` came from the driver, and the primary context is retained until drop.
        unsafe {
            let context = result::primary_ctx::retain(handle).named("cuDevicePrimaryCtxRetain")?;
            result::ctx::set_current(context).named("cuCtxSetCurrent")?;
            let attribute =
                |which| result::device::get_attribute(handle, which).named("cuDeviceGetAttribute");
            use sys::CUdevice_attribute as Attribute;
            let capability = (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            );
            if capability.0 < 8 {
                let (major, minor) = capability;
                let mend = "sm_80 (A100) or newer is needed; use the CPU";
                return Err(refused(format!("this GPU is sm_{major}{minor} and {mend}")));
            }
            let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
            let mut driver_version = 0;
            sys::cuDriverGetVersion(&mut driver_version).result().named("cuDriverGetVersion")?;
            let (mut last, mut first) = (0, 0);
            sys::cuCtxGetStreamPriorityRange(&mut last, &mut first)
                .result()
                .named("cuCtxGetStreamPriorityRange")?;
            let create = |priority| {
                let mut stream = std::ptr::null_mut();
                let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
                sys::cuStreamCreateWithPriority(&mut stream, flags, priority)
                    .result()
                    .named("cuStreamCreateWithPriority")?;
                Ok(stream)
            };
            // Work aside takes what room the other leaves.
            let (stream, aside) = (create(first)?, create(last)?);
            let mark =
                || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).named("cuEventCreate");
            let (forked, joined) = (mark()?, mark()?);
            let name = result::device::get_name(handle).named("cuDeviceGetName")?;
            Ok(Self {
                handle,
                context,
                stream,
                aside,
                forked,
                joined,
                name,
                capability,
                multiprocessors,
                shared: shared.unsigned_abs(),
                driver_version,
                staging: RefCell::default(),
            })
        }
    }

    /// Makes this the device of the calling thread.
    pub(crate) fn move_here(&self) -> Result<()> {
        // SAFETY: the context is retained until drop.
        unsafe { result::ctx::set_current(self.context).named("cuCtxSetCurrent") }
    }

    /// What is queued aside from now on waits for what has been queued.
    pub(crate) fn fork(&self) -> Result<()> {
        Self::order(self.forked, self.stream, self.aside)
    }

    /// What is queued from now on waits for what has been queued aside.
    pub(crate) fn join(&self) -> Result<()> {
        Self::order(self.joined, self.aside, self.stream)
    }

    fn order(mark: sys::CUevent, first: sys::CUstream, then: sys::CUstream) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and streams are live.
        unsafe {
            result::event::record(mark, first).named("cuEventRecord")?;
            result::stream::wait_event(then, mark, flags).named("cuStreamWaitEvent")
        }
    }

    /// Marks this place in the queue aside.
    pub(crate) fn mark_aside(&self, event: &Event) -> Result<()> {
        // SAFETY: event and stream are live.
        unsafe { result::event::record(event.at, self.aside).named("cuEventRecord") }
    }

    /// What is queued from now on waits for a mark.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are live.
        unsafe { result::stream::wait_event(self.stream, event.at, flags).named("cuStreamWaitEvent") }
    }

    /// Waits for everything that was queued before a mark, which nothing was written after.
    pub(crate) fn catch_up(&self, mark: &Event) -> Result<()> {
        mark.wait()?;
        self.rewind();
        Ok(())
    }

    /// Waits for everything queued.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.drain()?;
        self.rewind();
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream).named("cuStreamSynchronize") }
    }

    fn rewind(&self) {
        if let Some(staging) = &mut *self.staging.borrow_mut() {
            staging.rewind();
        }
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        result::mem_get_info().named("cuMemGetInfo")
    }

    /// Takes `bytes` of device memory (at least one), uninitialised.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Buffer> {
        let (free, _) = self.memory()?;
        if bytes > free {
            return Err(refused(format!(
                "{bytes} bytes of memory needed, {free} free; use fewer members or lanes"
            )));
        }
        let _alone = alone();
        // SAFETY: a plain allocation in the current context; freed by `Buffer`.
        let at = unsafe { result::malloc_sync(bytes.max(256)).named("cuMemAlloc")? };
        Ok(Buffer { at })
    }

    /// Queues a copy of host values to `at`. They are free again at once: the device reads them from memory of its own.
    pub(crate) fn write<T: Plain>(&self, at: u64, values: &[T]) -> Result<()> {
        self.write_together(&[(at, bytes(values))])
    }

    /// The same for pieces that go to places one behind the other, in order; what lies between them is overwritten, too. They travel together
    /// where they are small.
    pub(crate) fn write_together(&self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let (mut staging, length) = (self.staging.borrow_mut(), extent(pieces));
        if staging.as_ref().is_some_and(|staging| staging.is_narrow_for(length)) {
            self.drain()?;
            *staging = None;
        }
        let staging = match &mut *staging {
            Some(staging) => staging,
            none => none.insert(Staging::new(length)?),
        };
        staging.write(self, pieces)
    }

    /// Copies from `at` to host values after all queued work.
    pub(crate) fn read<T: Copy>(&self, at: u64, values: &mut [T]) -> Result<()> {
        // SAFETY: as in `write`; the stream is drained before `values` is read.
        unsafe { result::memcpy_dtoh_async(values, at, self.stream).named("cuMemcpyDtoH")? };
        self.synchronize()
    }

    /// Queues a copy from `at` to pinned values, which must not be read before [`Device::synchronize`].
    pub(crate) fn fetch<T: Copy>(&self, at: u64, values: &mut [T]) -> Result<()> {
        // SAFETY: the caller's range is inside one of this device's buffers and outlives the copy.
        unsafe { result::memcpy_dtoh_async(values, at, self.stream).named("cuMemcpyDtoH") }
    }

    /// Queues a copy of pinned values to `at`; they must not change before [`Device::synchronize`].
    pub(crate) fn send<T: Copy>(&self, at: u64, values: &[T]) -> Result<()> {
        // SAFETY: as in `fetch`.
        unsafe { result::memcpy_htod_async(at, values, self.stream).named("cuMemcpyHtoD") }
    }

    /// Queues a copy within the device.
    pub(crate) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's ranges are inside live buffers of this device's context.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream).named("cuMemcpyDtoD") }
    }

    /// Queues a fill with zero bytes.
    pub(crate) fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's range is inside one of this device's buffers.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream).named("cuMemsetD8") }
    }

    /// Queues one kernel.
    ///
    /// # Safety
    /// `arguments` must match the kernel's parameters in number, size and order, and every address in them must be
    /// inside a live buffer of this device.
    pub(crate) unsafe fn launch(
        &self,
        kernel: sys::CUfunction,
        grid: (u32, u32, u32),
        block: u32,
        shared: u32,
        arguments: &mut [*mut c_void],
        aside: bool,
    ) -> Result<()> {
        let stream = if aside { self.aside } else { self.stream };
        // SAFETY: passed on to the caller.
        unsafe {
            result::launch_kernel(kernel, grid, (block, 1, 1), shared, stream, arguments)
                .named("cuLaunchKernel")
        }
    }

    /// Marks this place in the queue.
    pub(crate) fn mark(&self, event: &Event) -> Result<()> {
        // SAFETY: event and stream are live.
        unsafe { result::event::record(event.at, self.stream).named("cuEventRecord") }
    }

    /// Milliseconds that `work` takes on the device, by events around it.
    pub(crate) fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f32> {
        let (start, end) = (Event::new()?, Event::new()?);
        self.mark(&start)?;
        work()?;
        self.mark(&end)?;
        end.wait()?;
        // SAFETY: both events were recorded and have happened.
        unsafe { result::event::elapsed(start.at, end.at).named("cuEventElapsedTime") }
    }
}

/// Numbers without padding.
///
/// # Safety
/// Every byte of a value is initialised.
pub(crate) unsafe trait Plain: Copy {}

/// The bytes of some numbers.
pub(crate) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain values have no padding, so that all their bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

// SAFETY: numbers have no padding.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}

/// A place in the queue that the host can wait for.
pub(crate) struct Event {
    at: sys::CUevent,
}

impl Event {
    pub(crate) fn new() -> Result<Self> {
        let at = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).named("cuEventCreate")?;
        Ok(Self { at })
    }

    /// Waits until everything queued before the mark has run.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the event is live.
        unsafe { result::event::synchronize(self.at).named("cuEventSynchronize") }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once. A failure has nobody left to hear it.
        unsafe {
            let _ = result::event::destroy(self.at);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: created in `open`, released once. A failure at exit has nobody left to hear it.
        unsafe {
            // The device may still be reading it.
            let _ = result::stream::synchronize(self.stream);
            drop(self.staging.get_mut().take());
            let _ = result::event::destroy(self.forked);
            let _ = result::event::destroy(self.joined);
            let _ = result::stream::destroy(self.aside);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.handle);
        }
    }
}

/// A stretch of device memory, given back on drop.
pub(crate) struct Buffer {
    /// Address on the device.
    pub(crate) at: u64,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let _alone = alone();
        // SAFETY: allocated in `Device::allocate`, freed once.
        unsafe {
            let _ = result::free_sync(self.at);
        }
    }
}

/// Host memory that the device copies to and from without a detour, `count` values.
pub(crate) struct Pinned<T> {
    at: *mut T,
    count: usize,
}

// SAFETY: plain memory owned by this value alone; nothing about it belongs to a thread.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: as above; shared references only read.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Copy + Default> Pinned<T> {
    /// Takes room for `count` values and fills it with the default.
    ///
    /// # Errors
    /// If the host has no room.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let bytes = (count * size_of::<T>()).max(64);
        let _alone = alone();
        // SAFETY: a fresh allocation of `bytes` in the current context, freed in drop.
        let at = unsafe { result::malloc_host(bytes, 0).named("cuMemHostAlloc")? }.cast::<T>();
        for index in 0..count {
            // SAFETY: inside the allocation, which the driver aligns to a page.
            unsafe { at.add(index).write(T::default()) };
        }
        Ok(Self { at, count })
    }

    /// Where the device finds the `which`th of so many equal parts.
    pub(crate) fn part(&self, which: usize, of: usize) -> u64 {
        self.at.wrapping_add(self.count / of.max(1) * which) as u64
    }

    /// The values.
    pub(crate) fn values(&self) -> &[T] {
        // SAFETY: `count` initialised values; the engine reads none to which a device copy is in flight.
        unsafe { std::slice::from_raw_parts(self.at, self.count) }
    }

    /// The values, to change.
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `values`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.count) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        let _alone = alone();
        // SAFETY: allocated in `new`, freed once.
        unsafe {
            let _ = result::free_host(self.at.cast());
        }
    }
}
