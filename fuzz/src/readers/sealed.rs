//! Files whose checksums are made to fit after the change, as a forger would: what stands behind the checksum is reached.

use niwaki_files::Digest;

/// A checkpoint: sixteen digits behind the words, taken with zeros in their place.
pub(super) fn checkpoint(bytes: &[u8]) -> Vec<u8> {
    const BEFORE: &[u8] = br#"\"sum\":\""#;
    let mut sealed = bytes.to_vec();
    let at = sealed.windows(BEFORE.len()).position(|window| window == BEFORE);
    if let Some(place) = at.map(|at| at + BEFORE.len())
        && place + Digest::DIGITS <= sealed.len()
    {
        let place = place..place + Digest::DIGITS;
        sealed[place.clone()].fill(b'0');
        let sum = Digest::of(&sealed).to_string();
        sealed[place].copy_from_slice(sum.as_bytes());
    }
    sealed
}

/// Lines that each end with the checksum of all before them; `chain` is what they begin with.
pub(super) fn lines(text: &str, mut chain: Digest) -> String {
    let mut sealed = String::new();
    for line in text.lines() {
        let body = line.rsplit_once(",\"check\":\"").map_or(line, |(body, _)| body);
        chain = chain.and(body);
        sealed += &format!("{body},\"check\":\"{chain}\"}}\n");
    }
    sealed
}

/// A document that ends with its checksum.
pub(super) fn document(text: &str, chain: Digest) -> String {
    let before = ",\n  \"check\": \"";
    let body = text.rsplit_once(before).map_or(text, |(body, _)| body);
    format!("{body}{before}{}\"\n}}\n", chain.and(body))
}
