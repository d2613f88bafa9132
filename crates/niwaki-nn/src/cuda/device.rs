//! The device itself: finding the driver and its libraries at run time, one context, a stream and one aside, plain allocations.
//!
//! Nothing here is linked: a machine without a GPU loads the same binary and gets one clear line as its
//! error. It knows nothing about graphs or parameters.

use super::event::Event;
use super::libraries::{missing, preload, preload_compiler};
use super::staging::{Staging, extent};
use super::tape::Queued;
use crate::{Error, Result};
use cudarc::driver::{result, sys};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The one error of this engine: the device's name and a line with the mend.
pub(crate) fn refused(reason: impl Into<String>) -> Error {
    Error::Device { device: "cuda", reason: reason.into() }
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
    /// Whether work aside is under way that no queued work waits for yet.
    beside: Cell<bool>,
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
                beside: Cell::default(),
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

    /// Says that work aside is under way. All that is queued from now on waits for it first, but for tapes that wait for its marks.
    pub(crate) fn leave_beside(&self) {
        self.beside.set(true);
    }

    /// What is queued from now on waits for such work.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.beside.replace(false) { self.join() } else { Ok(()) }
    }

    /// What is queued from now on waits for a mark that is set anew before each time: also when it is recorded.
    pub(crate) fn wait_each_time(&self, event: &Event) -> Result<()> {
        use sys::CUstreamCaptureStatus_enum as Status;
        let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is live, and the place for the answer, too.
        unsafe { sys::cuStreamIsCapturing(self.stream, &raw mut status) }
            .result()
            .named("cuStreamIsCapturing")?;
        let flags = match status {
            Status::CU_STREAM_CAPTURE_STATUS_NONE => sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT,
            _ => sys::CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL,
        };
        // SAFETY: event and stream are live.
        unsafe { result::stream::wait_event(self.stream, event.raw(), flags).named("cuStreamWaitEvent") }
    }

    /// Marks this place in the queue aside.
    pub(crate) fn mark_aside(&self, event: &Event) -> Result<()> {
        // SAFETY: event and stream are live.
        unsafe { result::event::record(event.raw(), self.aside).named("cuEventRecord") }
    }

    /// What is queued from now on waits for a mark.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are live.
        unsafe { result::stream::wait_event(self.stream, event.raw(), flags).named("cuStreamWaitEvent") }
    }

    /// Waits for everything that was queued before a mark, which nothing was written after.
    pub(crate) fn catch_up(&self, mark: &Event) -> Result<()> {
        mark.wait()?;
        self.rewind();
        Ok(())
    }

    /// Waits for everything queued.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.settle()?;
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
        self.settle()?;
        // SAFETY: as in `write`; the stream is drained before `values` is read.
        unsafe { result::memcpy_dtoh_async(values, at, self.stream).named("cuMemcpyDtoH")? };
        self.synchronize()
    }

    /// Queues a copy from `at` to pinned values, which must not be read before [`Device::synchronize`].
    pub(crate) fn fetch<T: Copy>(&self, at: u64, values: &mut [T]) -> Result<()> {
        self.settle()?;
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
        self.settle()?;
        // SAFETY: the caller's ranges are inside live buffers of this device's context.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream).named("cuMemcpyDtoD") }
    }

    /// Queues a fill with zero bytes.
    pub(crate) fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.settle()?;
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
        Queued { aside, early }: Queued,
    ) -> Result<()> {
        if !aside {
            self.settle()?;
        }
        let stream = if aside { self.aside } else { self.stream };
        // Only Hopper and what came after it know how.
        if !early || self.capability.0 < 9 {
            // SAFETY: passed on to the caller.
            return unsafe {
                result::launch_kernel(kernel, grid, (block, 1, 1), shared, stream, arguments)
                    .named("cuLaunchKernel")
            };
        }
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.0,
            gridDimY: grid.1,
            gridDimZ: grid.2,
            blockDimX: block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        // SAFETY: passed on to the caller; the configuration outlives the call.
        unsafe {
            sys::cuLaunchKernelEx(&raw const config, kernel, arguments.as_mut_ptr(), std::ptr::null_mut())
                .result()
                .named("cuLaunchKernelEx")
        }
    }

    /// Marks this place in the queue.
    pub(crate) fn mark(&self, event: &Event) -> Result<()> {
        // SAFETY: event and stream are live.
        unsafe { result::event::record(event.raw(), self.stream).named("cuEventRecord") }
    }

    /// Milliseconds that `work` takes on the device, by events around it.
    pub(crate) fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f32> {
        let (start, end) = (Event::new()?, Event::new()?);
        self.mark(&start)?;
        work()?;
        self.mark(&end)?;
        end.wait()?;
        // SAFETY: both events were recorded and have happened.
        unsafe { result::event::elapsed(start.raw(), end.raw()).named("cuEventElapsedTime") }
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
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: created in `open`, released once. A failure at exit has nobody left to hear it.
        unsafe {
            // The device may still be reading it.
            let _ = result::stream::synchronize(self.stream);
            let _ = result::stream::synchronize(self.aside);
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
