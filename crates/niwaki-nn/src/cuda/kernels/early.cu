// Kernels that begin while the one before them in the queue ends, where they are queued so; elsewhere this does nothing.

// The next kernel may begin; what it reads of this one it has to wait for.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits until the kernel before this one has ended. Nothing that may have been written in the same pass is read, and nothing written,
// before that.
__device__ __forceinline__ void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
