//! Self-contained report pages and charts.
