//! TensorBoard's events without the clock's doing.

/// An events file with zeros in the place of each time and of the checksum that covers it.
pub(crate) fn timeless(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    // A frame: its length and that one's checksum (12 bytes), a tag, the time (8), the rest, a checksum (4).
    while let Some(length) =
        bytes.get(at..at + 8).and_then(|length| length.try_into().ok()).map(u64::from_le_bytes)
    {
        let Some(end) = usize::try_from(length).ok().and_then(|length| length.checked_add(at + 12)) else {
            break;
        };
        let Some(sum) = bytes.get_mut(end..end.saturating_add(4)) else { break };
        sum.fill(0);
        if let Some(time) = bytes.get_mut(at + 13..at + 21) {
            time.fill(0);
        }
        at = end + 4;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_left_out() {
        let frame = |time: u8, value: u8| {
            let mut bytes = 10_u64.to_le_bytes().to_vec();
            // The length's checksum, the tag, eight bytes of time, a value, and the checksum.
            bytes.extend([9; 4]);
            bytes.push(9);
            bytes.extend([time; 8]);
            bytes.push(value);
            bytes.extend([time; 4]);
            bytes
        };
        let two = |time: u8, value: u8| [frame(time, value), frame(time, value)].concat();
        assert_eq!(timeless(two(1, 5)), timeless(two(2, 5)));
        assert_ne!(timeless(two(1, 5)), timeless(two(1, 6)));
        // A frame that was cut off stays as it is.
        let cut = frame(1, 5)[..20].to_vec();
        assert_eq!(timeless(cut.clone()), cut);
    }
}
