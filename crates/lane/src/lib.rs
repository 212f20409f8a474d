//! The memory that a traced program and its recorder share: what lies where, who writes what, and when.
//!
//! It must never know files, what events mean, or the text of filters. A [`Program`] writes, a [`Recorder`] looks; both are written over
//! traits of memory, so that the models in `tests/` check the very lines that programs run.
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
//! A sub-buffer's *owner* is one word: generation, lane and state. Each time that it changes hands the generation is another one.
//!
//! 1. **Take.** Who wants one exchanges the owner of one that is free for itself, *taking*, one generation later; a fence; then its
//!    description and `published` (no bytes); then the owner again, *open* (release).
//! 2. **Write.** Bytes behind what is published, then `published` (release): how many bytes there are and the low half of the last
//!    event's ticks, in one word. What lies behind that does not exist.
//! 3. **Close.** The owner, *full* (release). Nothing more comes.
//! 4. **Look.** The owner (acquire), `published` (acquire), the description, a fence, the owner: of another generation, nothing was seen.
//! 5. **Copy.** Bytes, a fence, the owner: of another generation, what was copied is thrown away.
//! 6. **Free.** When everything was copied, one byte beside the sub-buffer, which tells its generation (release). A sub-buffer is free if
//!    that byte is its owner's.
//!
//! Who looks at sub-buffers one after the other may see one of a lane and not the one before it, which was not there yet: sequence
//! numbers tell, and the recorder takes each in its turn.
//!
//! # The bell
//!
//! A recorder that looks at a quiet program seldom says so, and is rung when the program turns to its next sub-buffer or defines something:
//! never by what an event costs that goes where the last one went. The bell is the program's business (a word that a system call changes and
//! wakes by); here is when it is rung.
//!
//! ```text
//! program   next sub-buffer is there │ fence │ asleep? ── yes: it is 0 now ──> ring      no: nothing
//! recorder  asleep │ fence │ look once more: nothing ──> sleep                           something: awake
//! ```
//!
//! One of both sees what the other has done, as both fences are sequentially consistent: no sub-buffer is turned to of which neither the
//! last look tells nor the bell. Of several threads one rings, and once for each sleep. What is rung in vain, because whoever slept was
//! killed, costs a system call; a program that cannot ring says so, and is not slept on again. What a bell that is lost may cost is as long as the
//! recorder sleeps without it.
//!
//! Filters of events have slots, which are never used twice, so that a site that still goes to an old one finds what belongs to it.
//!
//! Lanes that find no room remember the recorder's *epoch* and do not look again before that is another one.
//!
//! # What has to hold
//!
//! | | because |
//! |---|---|
//! | what is published is whole | 2: bytes before the word, and who sees the word sees them |
//! | nothing is published twice or into what is another's | a lane writes only to what it took, and lets go of it in 3 before anybody can take it |
//! | two lanes never have one sub-buffer | 1 is an exchange, and a free one is of one generation |
//! | what was copied is what was published | 5, with the fences of 1: who has seen a byte of a later generation sees its owner |
//! | what is freed was copied | 6 is a release, and who takes it looks at that byte first |
//! | events are published or counted | 2, or the lane's counter, before the site goes on; killed in between, it is one event of each thread at most |
//! | times never step back in a lane | the clock is asked after there is room, and handlers of signals write to lanes of their own |
//! | no turn to another sub-buffer is slept through | the fences of the bell: it is seen by the last look, or rung for |
//! | the low half of the ticks tells all | a sub-buffer is closed when it is 2^32 ticks old |
//!
//! Handlers of signals write while a write that they interrupt goes on, to lanes of other levels, and may jump over its rest: it is as if it
//! had not begun. Only while a lane turns to its next sub-buffer they must not: whoever calls [`Program::room`] keeps them away meanwhile
//! (a third of a microsecond each time).
//!
//! A recorder that was killed left no lock: positions are the program's, and each step of the recorder's is one byte, or a word of which only
//! matters that it changes. What it copied and did not free is there again for the next one, who knows it by lane and sequence number.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod contexts;

mod bell;
mod identity;
mod layout;
mod mapped;
mod memory;
mod program;
mod recorder;
mod registry;
mod sides;
mod slots;

pub use bell::{Bell, Rings};
pub use identity::{Arena, Clock, Identity, NoArena};
pub use layout::{ABI, CONTEXTS_AT, Layout, MAGIC, READY_AT, Refused};
pub use mapped::Mapped;
pub use memory::{Memory, View};
pub use program::{Lane, Slot};
pub use recorder::{Holder, Losses, Mode, Seen, Wants};
pub use registry::Definition;
pub use sides::{Program, Recorder, Thread};
pub use slots::{Code, FIRST_SLOT, Runs};
