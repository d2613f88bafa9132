//! Permutation flow shops on the device: `flow_shop.cu`.

use super::Dynamics;
use niwaki_nn::HostArray;

/// The dynamics of flow shops. Shapes: `times [item, candidate, station]`; `whole [item]` and `unit [item]` are what states
/// are measured in.
pub(in crate::pointer) fn flow_shop<'a>(
    stations: usize,
    times: &'a [i32],
    whole: &'a [f32],
    unit: &'a [f32],
) -> Dynamics<'a> {
    Dynamics {
        name: "flow-shop",
        source: concat!(include_str!("construct.cu"), "\n", include_str!("flow_shop.cu")),
        kernel: "construct_flow_shop",
        tables: vec![
            (times.len() / whole.len().max(1), HostArray::Integers(times)),
            (1, HostArray::Scalars(whole)),
            (1, HostArray::Scalars(unit)),
        ],
        numbers: vec![stations],
        room: stations,
    }
}
