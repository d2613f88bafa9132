//! The one check command, the paper map and the layering test.
fn main() {}
