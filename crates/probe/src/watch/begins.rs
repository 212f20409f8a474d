//! Times of begins, by their keys.
//!
//! ```text
//! by the thread that runs     memory of the thread itself: 8 bytes, which go with it
//! by anything else            a map of 65,536 keys, of which the kernel forgets those not seen for longest
//! ```
//!
//! Memory of a thread is found without a hash, and one thread's is no other's, so that nothing is forgotten. Kernels before 5.12 do not
//! have it; there threads are keys as all others. A begin stays in its place with the time 0 after its end: most keys come again, and
//! putting one in and out takes longer than looking it up.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::fields::WatchSource;
use super::parts::{ReadPart, StackOverflow, StackRoom, described, level_parts, part, parts, update};
use super::pieces::PiecePlaces;
use super::{WatchableEvents, WatchedBegin};
use crate::assembly::{BpfAssembly, Condition, KernelFunction, R0, R1, R2, R3, R4, R6, R7, STACK};
use crate::error::KernelAction;
use crate::linux::{BpfMapShape, Loaded, MapKind, storage};
use crate::loading::{load, map, told};

/// Things that have begun, at most, that are known by a key.
const BEGINS_MAX: u32 = 1 << 16;
/// The kernel's word for memory that is made if it is not there.
const CREATE: i32 = 1;

/// Begins, by their keys.
#[derive(Debug)]
pub(crate) struct BegunThings {
    map: OwnedFd,
    is_by_thread: bool,
}

/// The same, for programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginsOfPrograms<'a> {
    map: BorrowedFd<'a>,
    is_by_thread: bool,
}

/// Keys of an event that begins something, and the number of the tracepoint's type.
pub(crate) type PlannedBegin = (Vec<ReadPart>, u32);

/// Programs of events that begin something.
pub(crate) fn begins(begins: &[WatchedBegin], events: &WatchableEvents) -> Result<Vec<PlannedBegin>, String> {
    let planned = |begin: &WatchedBegin| {
        let fields = described(events, &begin.name, false)?;
        let parts = begin.keys.iter().map(|path| part(&fields, path)).collect::<Result<Vec<_>, _>>()?;
        Ok((parts, fields.number))
    };
    begins.iter().map(planned).collect()
}

/// What will have begun, with the loaded programs of the events that begin it; `others` are keys of other events. All keys become of one size.
pub(crate) fn begin_programs(
    planned: &mut [PlannedBegin],
    mut others: Vec<&mut Vec<ReadPart>>,
) -> Result<(Option<BegunThings>, Vec<Loaded>), String> {
    if planned.is_empty() {
        return Ok((None, Vec::new()));
    }
    let of_thread = |parts: &[ReadPart]| matches!(parts, [ReadPart { source: WatchSource::Thread, .. }]);
    let is_by_thread = planned.iter().all(|(parts, _)| of_thread(parts)) && others.iter().all(|parts| of_thread(parts));
    let all = planned.iter_mut().map(|(parts, _)| parts).chain(others.iter_mut().map(|parts| &mut **parts));
    level_parts(all.collect())?;
    let loaded = |things: BegunThings| {
        let programs = planned.iter().map(|(parts, number)| {
            let code = begun(parts, things.of_programs()).map_err(|problem| problem.to_string())?;
            load(&code, "kymo_begin", *number)
        });
        let programs = programs.collect::<Result<_, String>>()?;
        Ok((Some(things), programs))
    };
    if is_by_thread {
        let made = BegunThings::of_threads().and_then(loaded);
        // Another kernel does without.
        if made.is_ok() {
            return made;
        }
    }
    loaded(BegunThings::of_keys(planned[0].0.iter().map(ReadPart::bytes).sum())?)
}

impl BegunThings {
    fn of_threads() -> Result<Self, String> {
        let map = storage::create_thread_map("kymo_begins").map_err(told(KernelAction::Map))?;
        Ok(Self { map, is_by_thread: true })
    }

    fn of_keys(key_bytes: u32) -> Result<Self, String> {
        let shape = BpfMapShape {
            kind: MapKind::HashOfRecent,
            key_bytes,
            value_bytes: 8,
            entries: BEGINS_MAX,
            flags: 0,
            inner: None,
        };
        Ok(Self { map: map(shape, "kymo_begins")?, is_by_thread: false })
    }

    pub(crate) fn of_programs(&self) -> BeginsOfPrograms<'_> {
        BeginsOfPrograms { map: self.map.as_fd(), is_by_thread: self.is_by_thread }
    }
}

impl BeginsOfPrograms<'_> {
    /// r0 becomes the address of the time of a key, or 0: nothing of this key has begun. r1 to r5 change.
    pub(crate) fn look_up(
        self,
        code: &mut BpfAssembly,
        keys: &[ReadPart],
        room: &mut StackRoom,
        places: PiecePlaces,
    ) -> Result<BeginKey, StackOverflow> {
        if self.is_by_thread {
            self.of_thread(code, 0);
            return Ok(BeginKey(0));
        }
        let key = room.take(keys.iter().map(ReadPart::bytes).sum())?;
        parts(code, keys, key, places);
        code.look_up(self.map, key);
        Ok(BeginKey(key))
    }

    /// Puts a time on the stack into the place of a key that was just looked up and not found.
    pub(crate) fn put(self, code: &mut BpfAssembly, BeginKey(key): BeginKey, time: i16, flag: i32) {
        if !self.is_by_thread {
            return update(code, self.map, key, time, flag);
        }
        let end = code.label();
        self.of_thread(code, CREATE);
        // The kernel makes none while it makes another one on this CPU: the end will be one without a known begin.
        code.jump_if(Condition::Equal, R0, 0, end);
        code.load(R1, (STACK, time), 8);
        code.store((R0, 0), R1, 8);
        code.place(end);
    }

    fn of_thread(self, code: &mut BpfAssembly, flag: i32) {
        code.call(KernelFunction::CurrentTask);
        code.map(R1, self.map);
        code.copy(R2, R0);
        code.set(R3, 0);
        code.set(R4, flag);
        code.call(KernelFunction::ThreadMemory);
    }
}

/// Where a key is on the stack, if it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginKey(i16);

/// Writes the program of an event that begins something.
fn begun(keys: &[ReadPart], begins: BeginsOfPrograms<'_>) -> Result<Vec<[u8; 8]>, StackOverflow> {
    let mut room = StackRoom::default();
    let places = PiecePlaces { scratch: room.take(8)?, took: room.take(8)?, event: 0 };
    let mut code = BpfAssembly::default();
    let (new, end) = (code.label(), code.label());
    code.copy(R6, R1);
    let key = begins.look_up(&mut code, keys, &mut room, places)?;
    code.copy(R7, R0);
    code.jump_if(Condition::Equal, R7, 0, new);
    code.call(KernelFunction::Nanos);
    code.store((R7, 0), R0, 8);
    code.jump(end);
    code.place(new);
    code.call(KernelFunction::Nanos);
    code.store((STACK, places.took), R0, 8);
    begins.put(&mut code, key, places.took, 0);
    code.place(end);
    code.exit();
    Ok(code.finish())
}

/// Writes the program of an event behind which nothing of its key has begun any more.
pub(crate) fn ended(keys: &[ReadPart], begins: BeginsOfPrograms<'_>) -> Result<Vec<[u8; 8]>, StackOverflow> {
    let mut room = StackRoom::default();
    let places = PiecePlaces { scratch: room.take(8)?, took: room.take(8)?, event: 0 };
    let mut code = BpfAssembly::default();
    let end = code.label();
    code.copy(R6, R1);
    begins.look_up(&mut code, keys, &mut room, places)?;
    code.jump_if(Condition::Equal, R0, 0, end);
    code.store_constant((R0, 0), 0, 8);
    code.place(end);
    code.exit();
    Ok(code.finish())
}
