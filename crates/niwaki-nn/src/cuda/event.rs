//! Marks in a device's queues.

use super::device::Named;
use crate::Result;
use cudarc::driver::{result, sys};
use std::rc::Rc;

/// A place in the queue that the host can wait for.
#[derive(Clone)]
pub(crate) struct Event {
    at: Rc<Mark>,
}

struct Mark(sys::CUevent);

impl Event {
    pub(crate) fn new() -> Result<Self> {
        let at = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).named("cuEventCreate")?;
        Ok(Self { at: Rc::new(Mark(at)) })
    }

    /// As the driver knows it.
    pub(super) fn raw(&self) -> sys::CUevent {
        self.at.0
    }

    /// Waits until everything queued before the mark has run.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the event is live.
        unsafe { result::event::synchronize(self.at.0).named("cuEventSynchronize") }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: created in `Event::new`, destroyed once. A failure has nobody left to hear it.
        unsafe {
            let _ = result::event::destroy(self.0);
        }
    }
}
