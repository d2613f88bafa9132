//! An allocator that counts what the thread in hand holds, so that a reader's memory can be held to a bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes that a thread may hold. What asks for more is refused, which ends the process: a claim of eighty gigabytes must not
/// take the machine with it.
const CAP: isize = 2 << 30;

/// Counts what each thread holds and held at most, up to a cap; everything is the system's otherwise.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CASE: Cell<(&'static str, u64)> = const { Cell::new(("", 0)) };
}

/// Notes the case that this thread has in hand, for the last words of the process.
pub fn note(reader: &'static str, case: u64) {
    CASE.set((reader, case));
}

#[expect(clippy::print_stderr, reason = "the process ends here")]
fn tell(bytes: isize) {
    let (reader, case) = CASE.try_with(Cell::get).unwrap_or_default();
    eprintln!("{reader} case {case}: asks for {bytes} bytes, beyond the cap of {CAP}");
}

/// Counts bytes that are asked for or given back; false beyond the cap.
fn count(bytes: isize) -> bool {
    // A thread that is ending has no counters any more, and no reader runs in it.
    let counted = HELD.try_with(|held| {
        if bytes > 0 && held.get().saturating_add(bytes) > CAP {
            tell(bytes);
            return false;
        }
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        true
    });
    counted.unwrap_or(true)
}

// SAFETY: every call is the system allocator's own; the counters neither allocate nor touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !count(size as isize - layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// What `work` gives, and the bytes that it held at most beyond those held before, on this thread.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let given = work();
    (given, usize::try_from(PEAK.get() - before).unwrap_or(0))
}
