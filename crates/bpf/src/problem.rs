//! Why an object, or one of its programs, cannot be used.

use kymo_ir::machine::{MachineProblem, MapDefinitionProblem};
use thiserror::Error;

use crate::btf::BtfProblem;

/// Why an object or a program cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ObjectProblem {
    /// It is another kind of file.
    #[error("it begins with {found:02x?}, and an object file begins with [7f, 45, 4c, 46] (ELF)")]
    NotElf {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// It is for another processor.
    #[error("it is for {found}, and not for eBPF: compile it with `clang --target=bpf`")]
    NotBpf {
        /// The processor.
        found: String,
    },
    /// It is for machines whose numbers begin with the high byte.
    #[error("it is for big-endian machines: compile it with `clang --target=bpfel`")]
    BigEndian,
    /// Its tables cannot be read.
    #[error("it is damaged: {why}")]
    Damaged {
        /// Why, in words.
        why: String,
    },
    /// Its types cannot be read.
    #[error(transparent)]
    Types(#[from] BtfProblem),
    /// It has no program.
    #[error("it has no program: programs are functions with `SEC(\"kymo/EVENT\")`, or another section of libbpf")]
    NoProgram,
    /// Code that is not made of instructions.
    #[error("section {section} has {bytes} bytes of code; instructions have 8")]
    CodeSize {
        /// Its name.
        section: String,
        /// Its size.
        bytes: usize,
    },
    /// A symbol is beyond its section.
    #[error("function {name} is bytes {begin} to {end} of section {section}, which has {bytes}")]
    OutsideSection {
        /// Its name.
        name: String,
        /// The section's.
        section: String,
        /// Its first byte.
        begin: u64,
        /// The byte behind it.
        end: u64,
        /// The section's size.
        bytes: usize,
    },
    /// An instruction that cannot be linked.
    #[error("section {section}, instruction {at}: {kind}")]
    Link {
        /// Its section.
        section: String,
        /// Its index in the section.
        at: usize,
        /// Why.
        kind: LinkProblem,
    },
    /// A linked program that cannot run.
    #[error("{problem}{line}", line = if .line.is_empty() { String::new() } else { format!(" ({})", .line) })]
    Program {
        /// Why.
        problem: MachineProblem,
        /// Its place in the source; empty: unknown.
        line: String,
    },
    /// A map that cannot be made.
    #[error(transparent)]
    Map(#[from] MapDefinitionProblem),
    /// A program uses a map that the machine does not have.
    #[error("it uses map {name}, {why}")]
    MapRefused {
        /// Its name.
        name: String,
        /// Why there is none.
        why: String,
    },
}

/// Why an instruction cannot be linked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LinkProblem {
    /// The symbol is not there.
    #[error("it names symbol {symbol} of the object, which does not exist")]
    NoSymbol {
        /// Its number.
        symbol: usize,
    },
    /// The symbol is outside of the object.
    #[error(
        "{name} is outside of the object: a variable or function of the kernel, or another object that should be linked"
    )]
    Extern {
        /// Its name.
        name: String,
    },
    /// The symbol is neither code, nor a map, nor a variable.
    #[error("{name} is in section {section}, which is neither code, nor maps, nor variables")]
    OtherSection {
        /// The symbol's name.
        name: String,
        /// The section's.
        section: String,
    },
    /// The instruction cannot name a symbol.
    #[error("an instruction with the opcode {opcode:#04x} names {name}: only calls and constants of 64 bits can")]
    OtherInstruction {
        /// The first byte.
        opcode: u8,
        /// The symbol's name.
        name: String,
    },
    /// No function begins at the place that is called.
    #[error("no function begins at instruction {target} of section {section}, which is called")]
    NoFunction {
        /// The section.
        section: String,
        /// The index of the instruction.
        target: i64,
    },
    /// No map is at the place that is named.
    #[error("no map is at byte {at} of the section with maps")]
    NoMap {
        /// The place.
        at: u64,
    },
    /// A constant of 64 bits is cut.
    #[error("the second half of a constant of 64 bits is missing")]
    HalfConstant,
    /// The program became too long.
    #[error("the program has more than {limit} instructions with the functions that it calls")]
    TooLong {
        /// At most so many.
        limit: usize,
    },
    /// A relocation for types that means nothing.
    #[error("its CO-RE relocation is not one: type {type_number}, access \"{access}\", kind {kind}")]
    Core {
        /// The type.
        type_number: u32,
        /// The members.
        access: String,
        /// The kind.
        kind: u32,
    },
    /// The field has another size, which the instruction cannot take.
    #[error("field {field} has {found} bytes, and the instruction takes {bytes}")]
    FieldSize {
        /// The field.
        field: String,
        /// Its size.
        found: u64,
        /// The instruction's.
        bytes: u64,
    },
    /// The value of a relocation does not fit.
    #[error("the value {value} of its CO-RE relocation does not fit into the instruction")]
    CoreValue {
        /// The value.
        value: u64,
    },
}
