//! Why a program cannot run, and why one stopped.

use thiserror::Error;

/// A program that is refused before it runs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("instruction {at}: {kind}")]
pub struct MachineProblem {
    /// The instruction, by its index.
    pub at: usize,
    /// The reason.
    pub kind: MachineProblemKind,
}

/// Why a program is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MachineProblemKind {
    /// It has no instruction.
    #[error("the program is empty")]
    Empty,
    /// It has too many instructions.
    #[error("the program has {found} instructions; at most {limit} are allowed")]
    TooLong {
        /// How many.
        found: usize,
        /// At most so many.
        limit: usize,
    },
    /// No instruction of eBPF begins so.
    #[error("no instruction has the opcode {opcode:#04x}")]
    UnknownOpcode {
        /// The first byte.
        opcode: u8,
    },
    /// No atomic operation has this number.
    #[error("no atomic operation has the number {operation:#x}")]
    UnknownAtomic {
        /// The constant of the instruction.
        operation: i32,
    },
    /// A field without a meaning has one.
    #[error("an instruction with the opcode {opcode:#04x} has fields that must be 0")]
    UnusedField {
        /// The first byte.
        opcode: u8,
    },
    /// There are registers 0 to 10.
    #[error("register {register} does not exist: there are r0 to r10")]
    UnknownRegister {
        /// Its number.
        register: u8,
    },
    /// Programs cannot move their stack.
    #[error("r10 is written, which is the end of the stack and cannot change")]
    WritesStackPointer,
    /// A constant of 64 bits takes two instructions.
    #[error("the second half of a constant of 64 bits is missing")]
    HalfConstant,
    /// A jump leads out of the program.
    #[error("a jump leads to instruction {target}, outside of the program")]
    JumpOutside {
        /// Where to.
        target: i64,
    },
    /// A jump leads into a constant.
    #[error("a jump leads to instruction {target}, into a constant of 64 bits")]
    JumpIntoConstant {
        /// Where to.
        target: u32,
    },
    /// The last instruction is followed by nothing.
    #[error("the program goes on behind its last instruction: it must end with an exit or a jump")]
    NoEnd,
    /// A shift by more than the width.
    #[error("a shift by {bits} bits: they must be fewer than the number has")]
    WideShift {
        /// By how many.
        bits: i32,
    },
    /// A division by a constant 0.
    #[error("a division by the constant 0")]
    DividesByZero,
    /// There is no such map.
    #[error("map {map} is used; there are {count}")]
    UnknownMap {
        /// Its index.
        map: u32,
        /// How many there are.
        count: usize,
    },
    /// A place in a map that is beyond its first value.
    #[error("offset {offset} of the value of map {map} is used, which has {bytes} bytes")]
    OutsideValue {
        /// Its index.
        map: u32,
        /// The place.
        offset: u32,
        /// The size of its values.
        bytes: u32,
    },
    /// A map is named by a file descriptor.
    #[error("a map is named by a file descriptor, which means nothing here")]
    MapFile,
    /// A variable of the kernel.
    #[error("it reads a variable of the kernel, which user space does not have")]
    KernelVariable,
    /// An old form of loads from packets.
    #[error("it loads from a packet in the form of classic BPF, which only programs for sockets can do")]
    PacketLoad,
    /// A call of a function whose address is in a register.
    #[error("it calls a function by a register")]
    IndirectCall,
    /// A call of a function of the kernel that is no helper.
    #[error("it calls a function of the kernel by its BTF number (a kfunc), which user space does not have")]
    KernelCall,
    /// No helper function has this number.
    #[error("it calls helper function {number}, which does not exist")]
    UnknownHelper {
        /// Its number.
        number: u32,
    },
    /// A helper function that only the kernel has.
    #[error("it calls {name} (helper function {number}), which only the kernel can do")]
    KernelHelper {
        /// Its number.
        number: u32,
        /// Its name.
        name: &'static str,
    },
}

/// A program that stopped before its end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("instruction {at}: {kind}")]
pub struct MachineFault {
    /// The instruction, by its index.
    pub at: usize,
    /// The reason.
    pub kind: MachineFaultKind,
}

/// Why a program stopped.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MachineFaultKind {
    /// It took too many steps.
    #[error("the program has not ended after {limit} steps (an instruction, or 64 bytes that a helper copies)")]
    NoEnd {
        /// How many it may take.
        limit: u64,
    },
    /// Memory that is not there.
    #[error("it {act} {bytes} bytes at {place}", act = if *.is_write { "writes" } else { "reads" })]
    OutsideMemory {
        /// It writes.
        is_write: bool,
        /// How many.
        bytes: u64,
        /// Where, in words.
        place: Box<str>,
    },
    /// Functions that call each other are too deep.
    #[error("calls are nested more than {limit} deep")]
    DeepCalls {
        /// How deep they may be.
        limit: usize,
    },
    /// An instruction needs a field or type that is not there.
    #[error("it needs a field or type that is not there: ask with bpf_core_field_exists before")]
    Absent,
    /// A helper function got something that is no map.
    #[error("{helper} is given {address:#x} for a map")]
    NoMap {
        /// The name of the function.
        helper: &'static str,
        /// Its argument.
        address: u64,
    },
    /// A helper function got a map of another type.
    #[error("{helper} is given a map of the type {found}")]
    OtherMap {
        /// The name of the function.
        helper: &'static str,
        /// The map's type.
        found: &'static str,
    },
    /// A helper function got something that is no function.
    #[error("{helper} is given {address:#x} for a function")]
    NoFunction {
        /// The name of the function.
        helper: &'static str,
        /// Its argument.
        address: u64,
    },
    /// A helper function got something that is no reserved record.
    #[error("{helper} is given {address:#x} for a reserved record")]
    NoRecord {
        /// The name of the function.
        helper: &'static str,
        /// Its argument.
        address: u64,
    },
    /// The program asks for something that its surroundings do not tell.
    #[error("{helper} asks for {fact}, and the event does not tell it")]
    UnknownFact {
        /// The name of the function.
        helper: &'static str,
        /// The missing fact.
        fact: &'static str,
    },
}
