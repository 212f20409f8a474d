//! Inputs to begin with: small, of ours, and sound or nearly so.

use crate::random::RandomNumbers;

/// Metadata: that of every packet case and of the demo trace, which is in packets.
#[must_use]
pub fn metadata() -> Vec<Vec<u8>> {
    let cases = kymo_cases::FILES.iter().flat_map(|text| kymo_cases::parse(text));
    let mut starts: Vec<Vec<u8>> = cases.map(|case| case.metadata.into_bytes()).collect();
    starts.push(include_bytes!("../../../examples/traces/demo/metadata").to_vec());
    starts
}

/// Trace classes and packets for [`crate::packets::hold`].
#[must_use]
pub fn packets() -> Vec<Vec<u8>> {
    (0..64).map(|seed| packet(&mut RandomNumbers::new(seed))).collect()
}

/// A trace class and a packet for [`crate::packets::hold`].
#[must_use]
pub fn packet(random: &mut RandomNumbers) -> Vec<u8> {
    let (choices, bytes) = (random.below(256), random.below(600));
    let mut data = vec![choices as u8, random.any() as u8];
    data.extend((0..choices).map(|_| random.any() as u8));
    data.extend(random.bytes(bytes));
    data
}
