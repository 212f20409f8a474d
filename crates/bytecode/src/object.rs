//! Users' eBPF programs at events of traced programs: their form, its check, and the interpreter.
//!
//! ```text
//! recorder   object, class of events ──> image ──┐
//! program                          image ── copied ── read ──> run(arguments of an event, surroundings) ──> r0
//! ```
//!
//! # The form
//!
//! All numbers are little-endian. An image is a head of 64 bytes, maps of 32 bytes each, moves of 24 bytes each, and instructions of 16
//! bytes each; nothing follows.
//!
//! ```text
//! head         0       4      8        12      16     20    24            28      32     40     48      52    56
//!              "kyOB"  size   context  frames  moves  maps  instructions  number  state  bytes  filter  code  its bytes
//! map          0     1      2  4          8            12       16     24
//!              kind  flags  0  key bytes  value bytes  entries  place  lines
//! move         0     1           2         3      4     8   12     16      20
//!              kind  from bytes  to bytes  flags  from  to  count  stride  length
//! instruction  0   1  2  3  4       8
//!              op  a  b  c  target  constant
//! ```
//!
//! A *move* fills a part of the program's context with an argument of the event. *size* is that of the arguments, *frames* are the functions that
//! are called inside of each other at most. *state* is the place of the object's counts and locks in the shared memory, *place* that of a
//! map; their layout is that of `kymo_lane::objects`. *number* is that of the program in its object. *code* is where the
//! program's arena has its machine code, if that has any bytes.
//!
//! The machine is that of `kymo_ir::machine`: the same addresses, results and faults, but for texts and for the limit of steps.

mod form;
mod helpers;
mod limits;
mod memory;
mod native;
mod numbers;
mod run;
mod surroundings;

pub use form::{
    IMAGE_HEAD_BYTES, ImageHead, ImageInstruction, ImageMap, ImageMapKind, ImageMove, ImageMoveKind, ImageOperand,
    ObjectImage,
};
pub use limits::{FRAME_BYTES, FRAMES_MAX, KEY_BYTES_MAX, STEPS_MAX, UPDATE_BYTES_MAX, has_helper};
pub use memory::text_address;
pub use native::{EventArguments, NativeFunctions, NativeMemory, NativeRun, NativeState};
pub use numbers::ObjectChange;
pub use surroundings::{ObjectFact, ObjectStop, ObjectStopKind, ObjectSurroundings};
