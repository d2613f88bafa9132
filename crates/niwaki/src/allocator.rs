//! The program's allocator, which ends a process that the system has no more memory for with one line.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Exit code of what is not the user's to mend, as in `sysexits.h`.
const OUT_OF_MEMORY: i32 = 70;

/// Whether some thread has begun to end the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Keeps what one measurement returns for the next.
pub(crate) struct Allocator;

// SAFETY: every call is `MiMalloc`'s, and what it does not give is never returned.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { MiMalloc.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { MiMalloc.realloc(at, layout, size) }, size)
    }
}

/// Memory that was given; where none was, the end.
#[inline]
fn there(at: *mut u8, size: usize) -> *mut u8 {
    if at.is_null() {
        end(size);
    }
    at
}

/// Says how much was refused, and allocates nothing for it. Every file is whole at any moment.
#[cold]
fn end(size: usize) -> ! {
    // One thread speaks; others that fall with it wait for its end.
    while ENDING.swap(true, Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(1));
    }
    let mut line = [0_u8; 160];
    let mut rest = &mut line[..];
    // The line is longer than the text.
    let _ = writeln!(
        rest,
        "niwaki: out of memory: the system refused {size} bytes more; give smaller sizes, or a machine or limit with more"
    );
    let left = rest.len();
    let _ = std::io::stderr().write_all(&line[..line.len() - left]);
    std::process::exit(OUT_OF_MEMORY)
}
