//! Job shops, flexible or not, with or without rests: what their searches are made of.
//!
//! A dispatching rule or [`insertion`] gives the first schedule and a tabu search shortens it ([`blocks`]). The makespan may count
//! a tail after operations, and operations may have a time before which they do not start: so the tabu search also keeps
//! deadlines and releases. [`relaxation`] has bounds that ignore the order on machines, and cuts that carry them into a proof
//! ([`budget`]); [`edge_finding`] and [`pair`] are constraints of the learning engine. Who puts all this together is the search
//! of general shops (`general/search.rs`): there is no other.

mod balance;
mod blocks;
mod budget;
mod edge_finding;
mod graph;
mod improve;
mod insertion;
mod orders;
mod pair;
mod relaxation;
mod shop;
mod start;

pub(crate) use blocks::Blocks;
pub(crate) use budget::{Budget, Group};
pub(crate) use edge_finding::{Machine, Task};
pub(crate) use graph::Sequences;
pub(super) use improve::improve;
pub(crate) use pair::{Node, Pair};
pub(crate) use relaxation::{Cut, Relaxation};
pub(crate) use shop::{Choice, Shop};
pub(crate) use start::dispatch;
