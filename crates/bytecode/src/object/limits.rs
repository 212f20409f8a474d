//! Limits of programs, and the helper functions that they have, by their numbers in Linux.

/// Bytes of stack for each function.
pub const FRAME_BYTES: usize = 512;
/// Functions that are called inside of each other, at most.
pub const FRAMES_MAX: usize = 8;
/// Instructions of a run at most: fewer than in other places, as a thread of the program waits.
pub const STEPS_MAX: u32 = 1 << 16;
/// Bytes of a key at most.
pub const KEY_BYTES_MAX: usize = 64;
/// Bytes of a value that `bpf_map_update_elem` writes, at most.
pub const UPDATE_BYTES_MAX: usize = 512;

pub(super) const LOOK_UP: u32 = 1;
pub(super) const UPDATE: u32 = 2;
pub(super) const DELETE: u32 = 3;
pub(super) const RANDOM: u32 = 7;
pub(super) const CPU: u32 = 8;
pub(super) const PROCESS_AND_THREAD: u32 = 14;
pub(super) const THREAD_NAME: u32 = 16;
pub(super) const COMPARE_TEXT: u32 = 182;

/// Whether there is a helper function of this number.
#[must_use]
pub fn has_helper(number: u32) -> bool {
    is_clock(number)
        || is_copy(number)
        || is_text_copy(number)
        || matches!(number, LOOK_UP | UPDATE | DELETE | RANDOM | CPU | PROCESS_AND_THREAD | THREAD_NAME | COMPARE_TEXT)
}

/// `bpf_ktime_get_ns` and its kind.
pub(super) fn is_clock(number: u32) -> bool {
    matches!(number, 5 | 125 | 160)
}

/// `bpf_probe_read` and its kind.
pub(super) fn is_copy(number: u32) -> bool {
    matches!(number, 4 | 112 | 113)
}

/// `bpf_probe_read_str` and its kind.
pub(super) fn is_text_copy(number: u32) -> bool {
    matches!(number, 45 | 114 | 115)
}
