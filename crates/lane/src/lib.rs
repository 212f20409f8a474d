//! The memory that a traced program and its recorder share: its layout, the writers of each word,
//! and the order of writes.
//!
//! It must never know files, the meaning of events, or the text of filters. A [`ProgramSide`] writes
//! and a [`RecorderSide`] looks; both are generic over memory traits, so that the models in `tests/`
//! check the very lines that programs run.
//!
//! ```text
//! program                                    recorder
//!   control byte of the event? ─ 0: nothing    switch(event, on)
//!   lane of the thread ── room ─ put ─ publish
//!      │ full                                  look: whose, how many bytes, when
//!      └ next sub-buffer: one that nobody has  copy: the bytes that are published
//!        or, in overwrite mode, its own oldest free: anybody may have it
//!        or, with less than its share, of all
//! ```
//!
//! # The protocol
//!
//! A sub-buffer's *owner* is one word: generation, lane and state. Each change of owner increments
//! the generation.
//!
//! 1. **Take.** A lane that needs a sub-buffer replaces the owner of a free one, by
//!    compare-and-swap, with itself, in state *taking*, one generation later. Then it executes a
//!    fence, writes the descriptor and `published` (no bytes), and stores the owner again, in state
//!    *open* (release).
//! 2. **Write.** The lane writes bytes after the published ones, then stores `published` (release):
//!    the number of bytes and the low half of the last event's ticks, in one word. Bytes after the
//!    published ones do not exist for a reader.
//! 3. **Close.** The lane stores the owner in state *full* (release). No more events follow.
//! 4. **Look.** The recorder reads the owner (acquire), `published` (acquire) and the descriptor,
//!    executes a fence, and reads the owner again. If the generation differs, it discards the
//!    snapshot.
//! 5. **Copy.** The recorder copies the bytes, executes a fence, and reads the owner. If the
//!    generation differs, it discards the copy.
//! 6. **Free.** After the recorder has copied everything, it writes one byte beside the sub-buffer,
//!    which encodes the generation (release). A sub-buffer is free if that byte matches its owner.
//!
//! A recorder that looks at sub-buffers one after the other may see one of a lane and miss the one
//! before it, which did not exist yet when the recorder looked there. Sequence numbers reveal this,
//! and the recorder takes sub-buffers in sequence.
//!
//! # The bell
//!
//! A recorder polls a quiet program only seldom. It announces that, and the program then rings the
//! bell when it turns to its next sub-buffer or defines something. An event that goes to the same
//! sub-buffer as the last one never rings. The caller implements the bell itself (a word that a
//! system call changes and that a reader waits on); this crate decides when to ring.
//!
//! ```text
//! program   next sub-buffer is there │ fence │ asleep? ── yes: it is 0 now ──> ring      no: nothing
//! recorder  asleep │ fence │ look once more: nothing ──> sleep                           something: awake
//! ```
//!
//! Both fences are sequentially consistent, so at least one side sees the write of the other: the
//! recorder learns of each turn to another sub-buffer either by its last look or by the bell. Of
//! several threads one rings, and only once for each sleep. If the sleeping recorder was killed, a
//! ring costs one useless system call. A program that cannot ring says so, and the recorder no
//! longer sleeps on it. If a ring is lost, the recorder notices the events only when it wakes by
//! itself.
//!
//! Filters have slots, which are never reused, so that a callsite that still uses an old slot finds
//! the filter that belongs to it.
//!
//! A lane that finds no room remembers the recorder's *epoch*, and does not look again before the
//! epoch changes.
//!
//! # Guarantees
//!
//! | guarantee | because |
//! |---|---|
//! | published events are complete | step 2: bytes before the word; a reader that sees the word sees the bytes |
//! | no event is published twice, or into another lane's sub-buffer | a lane writes only to its own, and lets go in step 3 |
//! | two lanes never own the same sub-buffer | step 1 is a compare-and-swap, and a free sub-buffer has one generation |
//! | copied bytes are published bytes | step 5, with the fence of step 1: a reader of a newer generation's byte sees its owner |
//! | a freed sub-buffer was copied | step 6 is a release, and a lane reads that byte before it takes the sub-buffer |
//! | each event is published or counted as lost | step 2, or the counter, before the callsite continues (see below) |
//! | timestamps never decrease in a lane | the clock is read after room is found; signal handlers have lanes of their own |
//! | the recorder sleeps through no turn | the fences of the bell: the last look sees the turn, or the program rings |
//! | the low half of the ticks is sufficient | the lane closes a sub-buffer that is 2^32 ticks old |
//!
//! If the program is killed in between, at most one event of each thread is neither published nor
//! counted.
//!
//! A signal handler may write while the write that it interrupts is in progress, to the lane of
//! another level. It may also jump out and never return to that write, which then has no effect. A
//! handler must not write while a lane turns to its next sub-buffer: the caller of
//! [`ProgramSide::room`] blocks signals meanwhile (a third of a microsecond each time).
//!
//! A recorder that was killed leaves no lock: the program owns all positions, and each write of the
//! recorder is one byte, or a word for which only a change matters. The next recorder finds again
//! all data that the killed one copied but did not free, and recognizes it by lane and sequence
//! number.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod contexts;

mod bell;
mod identity;
pub mod judgement;
mod layout;
mod mapped;
mod memory;
mod objects;
mod program;
mod recorder;
mod registry;
mod rules;
mod sides;
mod slots;
mod triggers;

pub use bell::{BellIdentity, Rings};
pub use identity::{Arena, ClockSource, Identity, JudgeAddresses, NoArena};
pub use judgement::{VERDICT_BYTES, VERDICT_ID, VERDICT_KEPT, VERDICT_MORE, VERDICT_UNJUDGED};
pub use layout::{
    ABI, CONTEXTS_AT, GROUPS_MAX, KINDS_MAX, LINES_MAX, LayoutRefusal, MAGIC, MemoryLayout, OBJECTS_BYTES, READY_AT,
    RULES_MAX, STOPPED_AT, TRIGGERS_MAX,
};
pub use mapped::Mapped;
pub use memory::{MemoryView, ProgramMemory};
pub use objects::{
    OBJECT_HEAD_BYTES, OBJECT_LINES_MAX, OBJECT_PROGRAMS_MAX, ObjectPlace, ObjectStops, ObjectUser, PlacedMap,
    SharedMap, TableInUse, TakenLine,
};
pub use program::{Lane, Reservation};
pub use recorder::{Holder, Losses, OverflowMode, RecordingSettings, SubBufferSnapshot};
pub use registry::DefinitionPlace;
pub use rules::{KeyHash, KindLimit, KindPlace, RuleCount, RuleCounts, RulePlace};
pub use sides::{ProgramSide, RecorderSide, WriterThread};
pub use slots::{FIRST_SLOT, FilterCode, FilterCodeKind, FilterEngine};
pub use triggers::{Firing, OTHER_GROUPS, RecordingGroups, TriggerAction, TriggerState, merged};
