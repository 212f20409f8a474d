//! The two programs that read texts of system calls: which instructions they have.
//!
//! ```text
//! begin of a call   number in the table? ── no ──> nothing
//!                   a thread that is recorded? ── no ──> nothing
//!                   32-bit caller? ── a record of it
//!                   each text: read ── a record ── could not be read: remembered by the thread
//! end of a call     anything remembered? ── no ──> nothing
//!                   each of its texts: read again ── a record
//! ```
//!
//! They are of the kind `tp_btf`: of a tracepoint itself, so that no other user of it sees anything of them, and the kernel
//! knows the types of their arguments. Records are those of `kymo_ftrace::texts`.

use std::os::fd::BorrowedFd;

use kymo_ftrace::ARGUMENTS_MAX;
use kymo_ftrace::texts::{NO_ARGUMENT, TEXT_AT_EXIT, TEXT_BYTES_MAX, TEXT_COMPAT, TEXT_HEAD_BYTES, TEXT_UNREADABLE};

use crate::assembly::{
    BpfAssembly, Condition, KernelFunction, Label, R0, R1, R2, R3, R4, R6, R7, R8, R9, Register, STACK,
};
use crate::btf::KernelTypes;

/// Calls with higher numbers have no texts; the second half of the table is for 32-bit callers.
pub(crate) const NUMBERS: usize = 512;
/// A bit of the table: if the call succeeds, its texts are gone, and others may be where they were.
pub(crate) const GONE: u8 = 0x80;
/// Bytes of a record at most.
pub(crate) const SCRATCH_BYTES: u32 = (TEXT_HEAD_BYTES + TEXT_BYTES_MAX) as u32;
/// Bytes of an entry of remembered calls: number, flags, texts, time, arguments.
pub(crate) const REMEMBERED_BYTES: u32 = 72;
/// Where counts begin: the number of remembered calls is before them.
pub(crate) const COUNTS_AT: usize = 8;

/// The flag of 32-bit callers in `thread_info.status`: also that of records.
const THREAD_COMPAT: u8 = TEXT_COMPAT;
const NO_WAKEUP: i32 = 1;

/// Places on the stack.
const ZERO: i16 = -4;
const CPU: i16 = -8;
const ARGUMENTS: i16 = -64;
const TIME: i16 = -72;
const FAILED: i16 = -80;
const FLAGS: i16 = -84;
const NUMBER: i16 = -88;
const THREAD: i16 = -96;
/// Places in a remembered call, which is the stack from [`NUMBER`] on.
const IN_FLAGS: i16 = FLAGS - NUMBER;
const IN_FAILED: i16 = FAILED - NUMBER;
const IN_TIME: i16 = TIME - NUMBER;
const IN_ARGUMENTS: i16 = ARGUMENTS - NUMBER;

/// Places in structures of this kernel, and numbers of its tracepoints.
#[derive(Clone, Debug)]
pub(crate) struct CallPlaces {
    /// Numbers of the types of the tracepoints.
    pub(crate) enter: u32,
    pub(crate) exit: u32,
    arguments: [i16; ARGUMENTS_MAX],
    /// Where registers have the number of the call at its end.
    number: (i16, u8),
    compat: Option<CompatPlaces>,
}

/// Those of 32-bit callers.
#[derive(Clone, Debug)]
struct CompatPlaces {
    /// In the description of a thread.
    status: i16,
    arguments: [i16; ARGUMENTS_MAX],
}

impl CallPlaces {
    /// Finds them; `None`: this kernel does not tell them.
    pub(crate) fn find(types: &KernelTypes) -> Option<Self> {
        let small = |place: u32| i16::try_from(place).ok();
        let (enter, exit) = (types.typedef("btf_trace_sys_enter")?, types.typedef("btf_trace_sys_exit")?);
        if cfg!(target_arch = "x86_64") {
            let all = |names: [&str; ARGUMENTS_MAX]| {
                let mut places = [0; ARGUMENTS_MAX];
                for (place, name) in places.iter_mut().zip(names) {
                    *place = small(types.place("pt_regs", &[name])?)?;
                }
                Some(places)
            };
            let status = small(types.place("task_struct", &["thread_info", "status"])?)?;
            let compat = CompatPlaces { status, arguments: all(["bx", "cx", "dx", "si", "di", "bp"])? };
            let arguments = all(["di", "si", "dx", "r10", "r8", "r9"])?;
            let number = (small(types.place("pt_regs", &["orig_ax"])?)?, 8);
            return Some(Self { enter, exit, arguments, number, compat: Some(compat) });
        }
        if cfg!(target_arch = "aarch64") {
            let number = (small(types.place("pt_regs", &["syscallno"])?)?, 4);
            return Some(Self { enter, exit, arguments: [0, 8, 16, 24, 32, 40], number, compat: None });
        }
        None
    }
}

/// The maps of the programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallMaps<'a> {
    /// Threads whose calls are read; `None`: those of all.
    pub(crate) threads: Option<BorrowedFd<'a>>,
    /// Bits of texts by the number of the call.
    pub(crate) table: BorrowedFd<'a>,
    /// Rings by the CPU.
    pub(crate) rings: BorrowedFd<'a>,
    /// A record of each CPU for each of the two programs.
    pub(crate) scratch: BorrowedFd<'a>,
    /// Calls with texts that could not be read, by the thread.
    pub(crate) remembered: BorrowedFd<'a>,
    /// How many those are, and lost records of CPUs.
    pub(crate) counts: BorrowedFd<'a>,
    pub(crate) cpus: u32,
}

/// Writes a program. Registers: r6 the ring, r7 the number of the call, r8 bits of texts, r9 the record.
struct CallProgram<'a> {
    code: BpfAssembly,
    maps: CallMaps<'a>,
    end: Label,
}

impl<'a> CallProgram<'a> {
    fn new(maps: CallMaps<'a>) -> Self {
        let mut code = BpfAssembly::default();
        let end = code.label();
        Self { code, maps, end }
    }

    fn finish(mut self) -> Vec<[u8; 8]> {
        self.code.place(self.end);
        self.code.exit();
        self.code.finish()
    }

    /// r8 has the flag of 32-bit callers.
    fn compat_flag(&mut self, places: &CallPlaces) {
        match &places.compat {
            Some(compat) => {
                self.code.call(KernelFunction::CurrentTask);
                self.code.load(R8, (R0, compat.status), 4);
                self.code.and(R8, THREAD_COMPAT.into());
            }
            None => self.code.set(R8, 0),
        }
        self.code.store((STACK, FLAGS), R8, 4);
    }

    /// r8 has the bits of texts of the call; without any, nothing follows, but for 32-bit callers.
    fn bits(&mut self, offset: usize) {
        self.code.map_value(R1, self.maps.table, offset as i32);
        self.code.add_register(R1, R7);
        self.code.load(R8, (R1, 0), 1);
    }

    /// Copies arguments from registers, which are where r1 says, to the stack.
    fn arguments(&mut self, places: &[i16; ARGUMENTS_MAX], bytes: u8) {
        for (place, to) in places.iter().zip((ARGUMENTS..).step_by(8)) {
            self.code.load(R2, (R1, *place), bytes);
            self.code.store((STACK, to), R2, 8);
        }
    }

    fn thread(&mut self) {
        self.code.call(KernelFunction::ProcessAndThread);
        self.code.store((STACK, THREAD), R0, 4);
    }

    /// Nothing follows for threads that are not recorded.
    fn recorded_thread(&mut self) {
        self.thread();
        if let Some(threads) = self.maps.threads {
            self.code.look_up(threads, THREAD);
            self.code.jump_if(Condition::Equal, R0, 0, self.end);
        }
    }

    /// The ring of this CPU, and the record of this program, with everything that its texts have in common.
    fn record(&mut self, scratch: i32) {
        let code = &mut self.code;
        code.call(KernelFunction::Cpu);
        code.store((STACK, CPU), R0, 4);
        for (to, map, key) in [(R6, self.maps.rings, CPU), (R9, self.maps.scratch, ZERO)] {
            code.store_constant((STACK, ZERO), scratch, 4);
            code.look_up(map, key);
            code.jump_if(Condition::Equal, R0, 0, self.end);
            code.copy(to, R0);
        }
        for (from, to, bytes) in [(TIME, 0, 8), (THREAD, 16, 4), (FLAGS, 23, 1)] {
            code.load(R1, (STACK, from), if from == FLAGS { 4 } else { bytes });
            code.store((R9, to), R1, bytes);
        }
        code.store((R9, 20), R7, 2);
        code.store_constant((R9, 24), 0, 8);
    }

    /// Puts out so many bytes (in r3) of the record, or counts its loss.
    fn output(&mut self) {
        let done = self.code.label();
        let code = &mut self.code;
        code.copy(R1, R6);
        code.copy(R2, R9);
        code.set(R4, NO_WAKEUP);
        code.call(KernelFunction::Output);
        code.jump_if(Condition::Equal, R0, 0, done);
        code.load(R2, (STACK, CPU), 4);
        code.jump_if(Condition::Above, R2, self.maps.cpus as i32 - 1, done);
        code.shift_left(R2, 3);
        code.map_value(R1, self.maps.counts, COUNTS_AT as i32);
        code.add_register(R1, R2);
        code.set(R3, 1);
        code.add_to((R1, 0), R3);
        code.place(done);
    }

    /// A record that only tells of a 32-bit caller.
    fn caller(&mut self) {
        self.code.store_constant((R9, 8), 0, 8);
        self.code.store_constant((R9, 22), NO_ARGUMENT.into(), 1);
        self.code.set(R3, TEXT_HEAD_BYTES as i32);
        self.output();
    }

    /// Reads the text of an argument, if its bit is set and it has an address (loaded from there), and puts it out. `failed` writes
    /// what follows if it cannot be read.
    fn text(&mut self, argument: usize, (base, place): (Register, i16), failed: impl FnOnce(&mut Self)) {
        let (next, unreadable) = (self.code.label(), self.code.label());
        let code = &mut self.code;
        code.copy(R1, R8);
        code.and(R1, 1 << argument);
        code.jump_if(Condition::Equal, R1, 0, next);
        code.load(R3, (base, place + 8 * argument as i16), 8);
        code.jump_if(Condition::Equal, R3, 0, next);
        code.store((R9, 8), R3, 8);
        code.store_constant((R9, 22), argument as i32, 1);
        code.copy(R1, R9);
        code.add(R1, TEXT_HEAD_BYTES as i32);
        code.set(R2, TEXT_BYTES_MAX as i32);
        code.call(KernelFunction::ReadUserText);
        code.jump_if(Condition::AtMostSigned, R0, 0, unreadable);
        code.store((R9, 24), R0, 4);
        code.copy(R3, R0);
        code.add(R3, TEXT_HEAD_BYTES as i32);
        self.output();
        self.code.jump(next);
        self.code.place(unreadable);
        failed(self);
        self.code.place(next);
    }

    fn all_calls(&mut self) {
        self.code.jump_if(Condition::Above, R7, NUMBERS as i32 - 1, self.end);
    }
}

/// The program of the beginning of calls.
pub(crate) fn entry(maps: CallMaps<'_>, places: &CallPlaces) -> Vec<[u8; 8]> {
    let mut program = CallProgram::new(maps);
    let (is_compat, is_wanted) = (program.code.label(), program.code.label());
    program.code.copy(R6, R1);
    program.code.load(R7, (R6, 8), 8);
    program.all_calls();
    program.compat_flag(places);
    program.code.jump_if(Condition::NotEqual, R8, 0, is_compat);
    program.bits(0);
    program.code.jump_if(Condition::Equal, R8, 0, program.end);
    program.code.load(R1, (R6, 0), 8);
    program.arguments(&places.arguments, 8);
    program.code.jump(is_wanted);
    program.code.place(is_compat);
    if let Some(compat) = &places.compat {
        program.bits(NUMBERS);
        program.code.load(R1, (R6, 0), 8);
        program.arguments(&compat.arguments, 4);
    }
    program.code.place(is_wanted);
    program.recorded_thread();
    program.code.call(KernelFunction::Nanos);
    program.code.store((STACK, TIME), R0, 8);
    program.record(0);
    program.code.store_constant((STACK, FAILED), 0, 8);
    let is_native = program.code.label();
    program.code.load(R1, (STACK, FLAGS), 4);
    program.code.jump_if(Condition::Equal, R1, 0, is_native);
    program.caller();
    program.code.place(is_native);
    for argument in 0..ARGUMENTS_MAX {
        program.text(argument, (STACK, ARGUMENTS), |program| {
            program.code.load(R1, (STACK, FAILED), 8);
            program.code.or(R1, 1 << argument);
            program.code.store((STACK, FAILED), R1, 8);
            // The flags of the others go back below.
            program.code.load(R1, (STACK, FLAGS), 4);
            program.code.or(R1, TEXT_UNREADABLE.into());
            program.code.store((R9, 23), R1, 1);
            program.code.set(R3, TEXT_HEAD_BYTES as i32);
            program.output();
            program.code.load(R1, (STACK, FLAGS), 4);
            program.code.store((R9, 23), R1, 1);
        });
    }
    remember(&mut program);
    program.finish()
}

/// Remembers a call with texts that could not be read.
fn remember(program: &mut CallProgram<'_>) {
    let code = &mut program.code;
    code.load(R1, (STACK, FAILED), 8);
    code.jump_if(Condition::Equal, R1, 0, program.end);
    let stays = code.label();
    code.and(R8, GONE.into());
    code.jump_if(Condition::Equal, R8, 0, stays);
    code.or(R1, GONE.into());
    code.store((STACK, FAILED), R1, 8);
    code.place(stays);
    code.store((STACK, NUMBER), R7, 4);
    code.map(R1, program.maps.remembered);
    code.copy(R2, STACK);
    code.add(R2, THREAD.into());
    code.copy(R3, STACK);
    code.add(R3, NUMBER.into());
    code.set(R4, 0);
    code.call(KernelFunction::Update);
    code.jump_if(Condition::NotEqual, R0, 0, program.end);
    code.map_value(R1, program.maps.counts, 0);
    code.set(R2, 1);
    code.add_to((R1, 0), R2);
}

/// The program of the end of calls.
pub(crate) fn exit(maps: CallMaps<'_>, places: &CallPlaces) -> Vec<[u8; 8]> {
    let mut program = CallProgram::new(maps);
    let again = program.code.label();
    program.code.copy(R6, R1);
    program.code.load(R1, (R6, 0), 8);
    program.code.load(R7, (R1, places.number.0), places.number.1);
    program.all_calls();
    // r6 becomes the ring; what the call returned is kept where arguments would be.
    program.code.load(R1, (R6, 8), 8);
    program.code.store((STACK, ARGUMENTS), R1, 8);
    program.compat_flag(places);
    program.code.jump_if(Condition::Equal, R8, 0, again);
    program.code.or(R8, TEXT_AT_EXIT.into());
    program.code.store((STACK, FLAGS), R8, 4);
    program.recorded_thread();
    program.code.call(KernelFunction::Nanos);
    program.code.store((STACK, TIME), R0, 8);
    program.record(1);
    program.caller();
    program.code.place(again);
    program.code.map_value(R1, maps.counts, 0);
    program.code.load(R1, (R1, 0), 8);
    program.code.jump_if(Condition::Equal, R1, 0, program.end);
    program.thread();
    read_again(&mut program);
    program.finish()
}

/// Reads texts of a remembered call again, and forgets it.
fn read_again(program: &mut CallProgram<'_>) {
    let (forget, stays) = (program.code.label(), program.code.label());
    let code = &mut program.code;
    code.look_up(program.maps.remembered, THREAD);
    code.jump_if(Condition::Equal, R0, 0, program.end);
    code.load(R1, (R0, 0), 4);
    code.jump_unequal(R1, R7, forget);
    code.load(R8, (R0, IN_FAILED), 8);
    code.copy(R1, R8);
    code.and(R1, GONE.into());
    code.jump_if(Condition::Equal, R1, 0, stays);
    code.load(R1, (STACK, ARGUMENTS), 8);
    code.jump_if(Condition::Equal, R1, 0, forget);
    code.place(stays);
    code.load(R1, (R0, IN_TIME), 8);
    code.store((STACK, TIME), R1, 8);
    code.load(R1, (R0, IN_FLAGS), 4);
    code.or(R1, TEXT_AT_EXIT.into());
    code.store((STACK, FLAGS), R1, 4);
    for at in (0..8 * ARGUMENTS_MAX as i16).step_by(8) {
        code.load(R1, (R0, IN_ARGUMENTS + at), 8);
        code.store((STACK, ARGUMENTS + at), R1, 8);
    }
    program.record(1);
    for argument in 0..ARGUMENTS_MAX {
        // Without a record, it stays unreadable.
        program.text(argument, (STACK, ARGUMENTS), |_| {});
    }
    let code = &mut program.code;
    code.place(forget);
    code.map(R1, program.maps.remembered);
    code.copy(R2, STACK);
    code.add(R2, THREAD.into());
    code.call(KernelFunction::Delete);
    code.map_value(R1, program.maps.counts, 0);
    code.set(R2, -1);
    code.add_to((R1, 0), R2);
}
