//! Device work written down once and replayed: kernels, products and fills, then one CUDA graph of them all. Work comes one after the
//! other, but for what runs aside, which only what says so waits for, and the tape's end.
//!
//! Knows addresses and launch shapes; nothing of ops or members.

use super::blas::{Blas, Places, Product};
use super::device::{Device, Named, alone, refused};
use super::event::Event;
use super::map::Tiled;
use crate::Result;
use cudarc::driver::{result, sys};
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;

/// Arguments of a kernel, eight bytes each; a kernel reads the low bytes of what it declares smaller.
#[derive(Clone, Default)]
pub(crate) struct Arguments {
    words: Vec<u64>,
    /// Whether all are one argument.
    one: bool,
    /// Matrices that the argument begins with, once the driver has said how the copy engine finds their tiles.
    tiled: Vec<Tiled>,
}

/// Something that a kernel takes by value.
pub(crate) trait Argument {
    /// Its bits, low bytes first.
    fn bits(self) -> u64;
}

impl Argument for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Argument for usize {
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Argument for bool {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Argument for f32 {
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Argument for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// An address that may be absent.
impl Argument for Option<u64> {
    fn bits(self) -> u64 {
        self.unwrap_or(0)
    }
}

impl Arguments {
    /// Adds one.
    #[must_use]
    pub(crate) fn with(mut self, argument: impl Argument) -> Self {
        self.words.push(argument.bits());
        self
    }

    /// A structure of so many words.
    pub(crate) fn one(words: Vec<u64>) -> Self {
        Self { words, one: true, tiled: Vec::new() }
    }

    /// The same behind what the copy engine is told of some arrays, which is aligned: the structure is a multiple of 64 bytes long.
    /// These have their places when the kernel is queued, not before.
    pub(crate) fn behind(tiled: Vec<Tiled>, words: &[u64]) -> Self {
        let mut all = vec![0; tiled.len() * Tiled::WORDS];
        all.extend(words);
        all.resize(all.len().next_multiple_of(8), 0);
        Self { words: all, one: true, tiled }
    }

    /// Asks the driver, once.
    fn settle(&mut self) -> Result<()> {
        for (tiled, words) in self.tiled.drain(..).zip(self.words.chunks_exact_mut(Tiled::WORDS)) {
            words.copy_from_slice(&tiled.words()?);
        }
        Ok(())
    }
}

/// Packs a kernel's arguments in order.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { $crate::cuda::tape::Arguments::default()$(.with($argument))* };
}
pub(crate) use arguments;

/// How a kernel is queued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queued {
    /// Aside: it reads and writes nothing that what follows writes before it waits.
    pub(crate) aside: bool,
    /// While the kernel before it ends: it waits for that one itself, in every block.
    pub(crate) early: bool,
}

enum Work {
    Kernel {
        function: sys::CUfunction,
        grid: (u32, u32, u32),
        block: u32,
        shared: u32,
        arguments: Arguments,
        early: bool,
    },
    Product {
        product: Product,
        places: Places,
    },
    Zero {
        at: u64,
        bytes: usize,
    },
    /// Waits for a mark that is set anew before each time.
    Await {
        mark: Event,
    },
}

struct Entry {
    label: &'static str,
    work: Work,
    /// Whether it runs aside.
    aside: bool,
    /// The work aside that it waits for, by place; what was queued aside before that has then run, too.
    waits: Option<usize>,
}

/// A list of device work with a label each, and its CUDA graph once captured.
#[derive(Default)]
pub(crate) struct Tape {
    works: Vec<Entry>,
    /// The work aside that the next work waits for.
    waits: Option<usize>,
    /// The last work aside.
    last_aside: Option<usize>,
    /// When works aside that others wait for have run, by place.
    marks: BTreeMap<usize, Event>,
    /// Whether it waits by itself for what is left beside.
    awaits: bool,
    /// Whether everything was queued once.
    queued: bool,
    graph: Option<Captured>,
}

impl Tape {
    /// Adds a kernel.
    pub(crate) fn kernel(
        &mut self,
        label: &'static str,
        function: sys::CUfunction,
        grid: (usize, usize, usize),
        block: u32,
        shared: u32,
        arguments: Arguments,
    ) -> Result<()> {
        self.kernel_queued(label, function, grid, block, shared, arguments, Queued::default())
    }

    /// Adds a kernel that is queued in some way.
    pub(crate) fn kernel_queued(
        &mut self,
        label: &'static str,
        function: sys::CUfunction,
        grid: (usize, usize, usize),
        block: u32,
        shared: u32,
        arguments: Arguments,
        Queued { aside, early }: Queued,
    ) -> Result<()> {
        let (x, y, z) = grid;
        if x == 0 || y == 0 || z == 0 {
            return Ok(());
        }
        if x > i32::MAX as usize || y > 65_535 || z > 65_535 {
            return Err(refused(format!("{label}: {x} × {y} × {z} blocks; use fewer members or lanes")));
        }
        let grid = (x as u32, y as u32, z as u32);
        self.push(label, Work::Kernel { function, grid, block, shared, arguments, early }, aside);
        Ok(())
    }

    /// Adds a product.
    pub(crate) fn product(&mut self, label: &'static str, product: Product, places: Places) {
        self.push(label, Work::Product { product, places }, false);
    }

    /// Adds a product that runs aside, and gives its place: what follows must not write what it reads or writes before
    /// [`Tape::wait_for`].
    pub(crate) fn product_aside(&mut self, label: &'static str, product: Product, places: Places) -> usize {
        self.push(label, Work::Product { product, places }, true);
        self.last()
    }

    /// The place of the last work.
    pub(crate) fn last(&self) -> usize {
        self.works.len().saturating_sub(1)
    }

    /// What follows waits for what runs aside up to a place.
    pub(crate) fn wait_for(&mut self, place: usize) {
        self.waits = self.waits.max(Some(place));
    }

    /// What follows waits for all that runs aside.
    pub(crate) fn wait(&mut self) {
        self.waits = self.last_aside;
    }

    fn push(&mut self, label: &'static str, work: Work, aside: bool) {
        if aside {
            self.last_aside = Some(self.works.len());
        }
        let waits = std::mem::take(&mut self.waits);
        self.works.push(Entry { label, work, aside, waits });
    }

    /// What follows waits for a mark that is set anew before each time the tape is replayed. A tape that does so waits for nothing else
    /// that was left beside.
    pub(crate) fn await_each_time(&mut self, mark: Event) {
        self.awaits = true;
        self.push("await", Work::Await { mark }, false);
    }

    /// Whether it waits by itself for what is left beside.
    pub(crate) fn awaits(&self) -> bool {
        self.awaits
    }

    /// Adds a fill with zeros.
    pub(crate) fn zero(&mut self, label: &'static str, at: u64, bytes: usize) {
        self.push(label, Work::Zero { at, bytes }, false);
    }

    /// Queues one work, aside where asked to; early where it can be and nothing but a kernel of ours is before it.
    fn queue(device: &Device, blas: Option<&Blas>, work: &mut Work, aside: bool, behind: bool) -> Result<()> {
        match work {
            Work::Kernel { function, grid, block, shared, arguments, early } => {
                let queued = Queued { aside, early: *early && behind };
                arguments.settle()?;
                let Arguments { words, one, .. } = arguments;
                let apart = if *one { 1 } else { words.len() };
                let mut pointers: Vec<*mut c_void> =
                    words.iter_mut().take(apart).map(|word| std::ptr::from_mut(word).cast()).collect();
                // SAFETY: lowering packed the arguments for this kernel, with addresses inside the engine's buffers.
                unsafe { device.launch(*function, *grid, *block, *shared, &mut pointers, queued) }
            }
            Work::Product { product, places } => {
                let Some(blas) = blas else { return Err(refused("a product without its library")) };
                // SAFETY: lowering planned the product for the operands at these addresses.
                unsafe { blas.run(device, product, *places, aside) }
            }
            Work::Zero { at, bytes } => device.zero(*at, *bytes),
            Work::Await { mark } => device.wait_each_time(mark),
        }
    }

    /// Queues a tape without products, work by work: for one that is written anew each time.
    pub(crate) fn run(&mut self, device: &Device) -> Result<()> {
        self.works
            .iter_mut()
            .try_for_each(|entry| Self::queue(device, None, &mut entry.work, entry.aside, false))
    }

    /// Queues everything, work aside on the second stream.
    fn queue_all(&mut self, device: &Device, blas: &Blas) -> Result<()> {
        let awaited: BTreeSet<usize> = self.works.iter().filter_map(|entry| entry.waits).collect();
        let mut behind = false;
        for (place, Entry { work, aside, waits, .. }) in self.works.iter_mut().enumerate() {
            if let Some(mark) = waits.and_then(|waits| self.marks.get(&waits)) {
                device.wait_for(mark)?;
            }
            if *aside {
                device.fork()?;
            }
            Self::queue(device, Some(blas), work, *aside, behind && waits.is_none())?;
            if !*aside {
                behind = matches!(work, Work::Kernel { .. });
            }
            if awaited.contains(&place) {
                let mark = match self.marks.entry(place) {
                    Occupied(mark) => mark.into_mut(),
                    Vacant(free) => free.insert(Event::new()?),
                };
                device.mark_aside(mark)?;
            }
        }
        if self.last_aside.is_some() { device.join() } else { Ok(()) }
    }

    /// Queues everything: work by work on the first call, then as a CUDA graph, unless it is one kernel. The libraries load their kernels when
    /// these are first queued, which waits for the whole device and so breaks any capture under way.
    pub(crate) fn replay(&mut self, device: &Device, blas: &Blas) -> Result<()> {
        if self.works.is_empty() {
            return Ok(());
        }
        if let [Entry { work: work @ Work::Kernel { .. }, aside: false, .. }] = &mut self.works[..] {
            return Self::queue(device, Some(blas), work, false, false);
        }
        if self.graph.is_none() || !self.awaits {
            device.settle()?;
        }
        if self.graph.is_none() {
            let _alone = alone();
            if !std::mem::replace(&mut self.queued, true) {
                return self.queue_all(device, blas);
            }
            self.graph = Some(Captured::record(device, || self.queue_all(device, blas))?);
        }
        match &self.graph {
            Some(graph) => graph.launch(device),
            None => Ok(()),
        }
    }

    /// Runs everything once, work by work, and gives each one's milliseconds.
    pub(crate) fn profile(&mut self, device: &Device, blas: &Blas) -> Result<Vec<(&'static str, f32)>> {
        let mut times = Vec::with_capacity(self.works.len());
        for Entry { label, work, .. } in &mut self.works {
            if matches!(work, Work::Await { .. }) {
                continue;
            }
            let took = device.time(|| Self::queue(device, Some(blas), work, false, false))?;
            times.push((*label, took));
        }
        Ok(times)
    }
}

struct Captured {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
}

impl Captured {
    fn record(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is the device's own and is not capturing; graph and executable are destroyed once, in drop.
        unsafe {
            result::stream::begin_capture(device.stream, mode).named("cuStreamBeginCapture")?;
            let queued = work();
            let graph = result::stream::end_capture(device.stream).named("cuStreamEndCapture");
            queued?;
            let graph = graph?;
            let flags = sys::CUgraphInstantiate_flags(0);
            let executable = result::graph::instantiate(graph, flags).named("cuGraphInstantiate")?;
            Ok(Self { graph, executable })
        }
    }

    fn launch(&self, device: &Device) -> Result<()> {
        // SAFETY: both are live.
        unsafe { result::graph::launch(self.executable, device.stream).named("cuGraphLaunch") }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // SAFETY: made in `record`, destroyed once; a failure has nobody left to hear it.
        unsafe {
            let _ = result::graph::exec_destroy(self.executable);
            let _ = result::graph::destroy(self.graph);
        }
    }
}
