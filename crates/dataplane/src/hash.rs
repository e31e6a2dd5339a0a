//! Computes a short hash of a text that is the same in every build.

/// 32-bit FNV-1a, as a change marker and as a checksum against accidental damage. A change of one byte always changes
/// it.
pub(crate) fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
