//! The correction family, the surrogate and its exact cotangent, diagnostics and schedules, on plain slices.
