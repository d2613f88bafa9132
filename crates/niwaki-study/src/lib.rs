//! Studies: the paper's tables and figures as specifications, runs and reports.
