//! Paired comparisons, exact sign tests, bootstrap, IQM and friends on plain slices.
