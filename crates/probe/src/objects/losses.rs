//! Records that find no room in ring buffers.
//!
//! The kernel does not count them: `bpf_ringbuf_reserve` and its kind return an error, and programs go on. So programs of our own run
//! where these functions return, and count errors of the ring buffers of one object.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::assembly::{BpfAssembly, Condition, KernelFunction, R0, R1, R2, R3, R6, STACK};
use crate::btf::KernelTypes;
use crate::error::KernelAction;
use crate::linux::tables::{self, EntryBytes};
use crate::linux::{self, BpfMapShape, MapKind};
use crate::loading::{attach, map, put, told};

/// Functions that take room, how many arguments they have, and whether they return an address.
const TAKING: [(&str, i16, bool); 3] =
    [("bpf_ringbuf_reserve", 3, true), ("bpf_ringbuf_output", 4, false), ("bpf_ringbuf_reserve_dynptr", 4, false)];
/// The place of the number of a ring buffer on the stack.
const NUMBER: i16 = -4;
const NUMBER_BYTES: i32 = 4;

/// Counts of some ring buffers.
pub(super) struct RingLosses {
    counts: OwnedFd,
    rings: Vec<(String, u32)>,
    _links: Vec<OwnedFd>,
}

impl RingLosses {
    /// Counts from now on for ring buffers with these numbers; `None`: there is none.
    pub(super) fn count(rings: Vec<(String, u32)>, types: &KernelTypes) -> Result<Option<Self>, String> {
        if rings.is_empty() {
            return Ok(None);
        }
        let number_at = types.place("bpf_map", &["id"]).ok_or("the kernel does not describe its maps")?;
        let shape = shape(rings.len());
        let counts = map(shape, "kymo_lost")?;
        for (_, number) in &rings {
            put(&counts, shape, *number, &0_u64.to_ne_bytes())?;
        }
        let mut links = Vec::new();
        for (function, arguments, is_address) in TAKING {
            // Older kernels have no `dynptr`.
            let Some(number) = types.function(function) else { continue };
            let code = counted(counts.as_fd(), arguments, is_address, number_at as i32);
            let program = linux::load_function_end(&code, "kymo_lost", number).map_err(told(KernelAction::Load))?;
            links.push(attach(&program)?);
        }
        if links.is_empty() {
            return Err("the kernel does not describe the functions of ring buffers".to_owned());
        }
        Ok(Some(Self { counts, rings, _links: links }))
    }

    /// The counts, of those that lost something.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let bytes = EntryBytes { key: 4, value: 8, is_hash: true, entries: self.rings.len() as u32 };
        let Ok(entries) = tables::entries(self.counts.as_fd(), bytes) else { return Vec::new() };
        let keys = entries.keys.chunks_exact(4).zip(entries.values.chunks_exact(8));
        let lost = keys.filter_map(|(key, count)| {
            let number = u32::from_ne_bytes(*key.first_chunk()?);
            let count = u64::from_ne_bytes(*count.first_chunk()?);
            let (name, _) = self.rings.iter().find(|(_, known)| *known == number)?;
            (count > 0).then(|| (name.clone(), count))
        });
        let mut lost: Vec<(String, u64)> = lost.collect();
        lost.sort_unstable();
        lost
    }
}

fn shape(rings: usize) -> BpfMapShape<'static> {
    BpfMapShape { kind: MapKind::Hash, key_bytes: 4, value_bytes: 8, entries: rings as u32, flags: 0, inner: None }
}

/// Counts errors of a function whose first argument is the address of a map, which has its number there.
fn counted(counts: BorrowedFd<'_>, arguments: i16, is_address: bool, number_at: i32) -> Vec<[u8; 8]> {
    let mut code = BpfAssembly::default();
    let (is_lost, end) = (code.label(), code.label());
    code.copy(R6, R1);
    code.load(R1, (R6, 8 * arguments), 8);
    // No address, or the negative number of an error.
    let error = if is_address { Condition::Equal } else { Condition::LessSigned };
    code.jump_if(error, R1, 0, is_lost);
    code.jump(end);
    code.place(is_lost);
    code.load(R3, (R6, 0), 8);
    code.add(R3, number_at);
    code.copy(R1, STACK);
    code.add(R1, NUMBER.into());
    code.set(R2, NUMBER_BYTES);
    code.call(KernelFunction::ReadKernel);
    code.jump_if(Condition::NotEqual, R0, 0, end);
    code.look_up(counts, NUMBER);
    code.jump_if(Condition::Equal, R0, 0, end);
    code.set(R1, 1);
    code.add_to((R0, 0), R1);
    code.place(end);
    code.exit();
    code.finish()
}
