//! Predicates to Cranelift's intermediate form, by jumps: a test goes to one of three blocks, and nobody holds truth
//! values in registers.
//!
//! ```text
//! all [a, b, c]                         where unknown and false lead to different blocks, and a may be unknown:
//!
//!   a ── true ──> b ── true ──> c ── true ──> kept      a ── unknown ──> flag = 1 ──> b ... c ── true ──> flag ? unknown : true
//!   └─ false,     └─ false,     └─ false,
//!      unknown       unknown       unknown ──> dropped
//! ```
//!
//! At the outermost level unknown is false, so that most filters have no flag. Every test is written once, so that code
//! grows as the predicate does. What cannot be said is refused before anything is written: see `refuse`.

mod integer;
mod number;
mod refuse;
mod text;

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::Predicate;
use kymo_ir::predicate::{Input, Relation, Test};

use refuse::refuse_test;
pub(crate) use refuse::{SIZE_MAX, refuse, refuse_whole};

/// Where the inputs of a predicate come from: these write the code that gets them.
pub(crate) trait Operands {
    /// Whether the input is there.
    fn presence(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Presence;
    /// Its value in 64 bits: an integer, or a double's bits. Asked for where it is there.
    fn number(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Value;
    /// Its bytes. Asked for where it is there.
    fn text(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Span;
}

/// Whether an input is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Always,
    Never,
    /// If this is not 0.
    If(Value),
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    /// So many; the address means nothing if there are none.
    Sized { address: Value, length: Value },
    /// Up to the first zero byte, or all of them.
    Ended { address: Value, capacity: u32 },
}

/// Where a predicate leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// If it is true.
    pub(crate) kept: Block,
    /// If it is not.
    pub(crate) dropped: Block,
    /// If a test decides that machine code does not say; without such a place, [`refuse`] must have been asked.
    pub(crate) undecided: Option<Block>,
}

/// Writes code that goes one of the ways. The block in which it begins is the current one; afterwards there is none. The
/// predicate must not be one that [`refuse_whole`] refuses.
pub(crate) fn branch(
    builder: &mut FunctionBuilder<'_>,
    predicate: &Predicate,
    operands: &mut impl Operands,
    ways: Ways,
) {
    let mut writer = Writer { builder, predicate, operands, undecided: ways.undecided, reached: EntitySet::new() };
    writer.test(&predicate.root, Exits { is_true: ways.kept, is_false: ways.dropped, unknown: ways.dropped });
}

/// Where a test leads.
#[derive(Clone, Copy)]
struct Exits {
    is_true: Block,
    is_false: Block,
    unknown: Block,
}

impl Exits {
    fn of(self, value: bool) -> Block {
        if value { self.is_true } else { self.is_false }
    }
}

struct Writer<'w, 'f, O> {
    builder: &'w mut FunctionBuilder<'f>,
    predicate: &'w Predicate,
    operands: &'w mut O,
    undecided: Option<Block>,
    /// Blocks that a jump of this writer leads to.
    reached: EntitySet<Block>,
}

impl<O: Operands> Writer<'_, '_, O> {
    fn jump(&mut self, to: Block) {
        self.reached.insert(to);
        self.builder.ins().jump(to, &[]);
    }

    fn branch(&mut self, condition: Value, to: Block, otherwise: Block) {
        self.reached.insert(to);
        self.reached.insert(otherwise);
        self.builder.ins().brif(condition, to, &[], otherwise, &[]);
    }

    /// Goes on only where the condition does not hold.
    fn leave_if(&mut self, condition: Value, to: Block) {
        let next = self.builder.create_block();
        self.branch(condition, to, next);
        self.builder.switch_to_block(next);
    }

    fn constant(&mut self, bits: u64) -> Value {
        self.builder.ins().iconst(types::I64, bits as i64)
    }

    fn test(&mut self, test: &Test, exits: Exits) {
        let combines = matches!(test, Test::Not(_) | Test::All(_) | Test::Any(_));
        if let Some(undecided) = self.undecided.filter(|_| !combines && refuse_test(self.predicate, test).is_err()) {
            return self.jump(undecided);
        }
        match test {
            Test::Constant(value) => self.jump(value.map_or(exits.unknown, |value| exits.of(value))),
            Test::Not(test) => {
                self.test(test, Exits { is_true: exits.is_false, is_false: exits.is_true, ..exits });
            }
            Test::All(tests) => self.combined(tests, false, exits),
            Test::Any(tests) => self.combined(tests, true, exits),
            Test::Has(input) => match self.operands.presence(self.builder, *input) {
                Presence::Always => self.jump(exits.is_true),
                Presence::Never => self.jump(exits.is_false),
                Presence::If(present) => self.branch(present, exits.is_true, exits.is_false),
            },
            Test::Compare { relation, left, right } => self.compare(*relation, left, right, exits),
            Test::Among { value, ranges } => self.among(value, ranges, exits),
            Test::CompareText { relation, left, right } => self.compare_text(*relation, left, right, exits),
            Test::Matches { text, pattern } => self.matches(text, pattern, exits),
        }
    }

    /// `decisive` decides, whatever the others are; otherwise one that is unknown makes it unknown.
    fn combined(&mut self, tests: &[Test], decisive: bool, exits: Exits) {
        let (decided, passed) = (exits.of(decisive), exits.of(!decisive));
        let Some((last, before)) = tests.split_last() else { return self.jump(passed) };
        let keeps_flag = exits.unknown != decided && exits.unknown != passed && !before.is_empty();
        let flag = keeps_flag.then(|| {
            let flag = self.builder.declare_var(types::I8);
            let zero = self.builder.ins().iconst(types::I8, 0);
            self.builder.def_var(flag, zero);
            flag
        });
        let mut is_flagged = false;
        for test in before {
            let next = self.builder.create_block();
            let unknown = if exits.unknown == decided {
                decided
            } else if flag.is_none() {
                next
            } else {
                self.builder.create_block()
            };
            self.test(test, leading(decisive, decided, next, unknown));
            if let Some(flag) = flag.filter(|_| self.reached.contains(unknown)) {
                is_flagged = true;
                self.builder.switch_to_block(unknown);
                let one = self.builder.ins().iconst(types::I8, 1);
                self.builder.def_var(flag, one);
                self.jump(next);
            }
            self.builder.switch_to_block(next);
        }
        let Some(flag) = flag.filter(|_| is_flagged) else {
            return self.test(last, leading(decisive, decided, passed, exits.unknown));
        };
        let end = self.builder.create_block();
        self.test(last, leading(decisive, decided, end, exits.unknown));
        self.builder.switch_to_block(end);
        let is_unknown = self.builder.use_var(flag);
        self.branch(is_unknown, exits.unknown, passed);
    }

    /// Where the input is missing, goes to `unknown`.
    fn require(&mut self, input: Input, unknown: Block) {
        match self.operands.presence(self.builder, input) {
            Presence::Always => {}
            Presence::Never => {
                self.jump(unknown);
                // What follows is never reached, but it is written all the same.
                let nowhere = self.builder.create_block();
                self.builder.switch_to_block(nowhere);
            }
            Presence::If(present) => {
                let next = self.builder.create_block();
                self.branch(present, next, unknown);
                self.builder.switch_to_block(next);
            }
        }
    }
}

/// Exits of a test whose value `decisive` leads to `decided`.
fn leading(decisive: bool, decided: Block, passed: Block, unknown: Block) -> Exits {
    if decisive {
        Exits { is_true: decided, is_false: passed, unknown }
    } else {
        Exits { is_true: passed, is_false: decided, unknown }
    }
}

fn signed(relation: Relation) -> IntCC {
    match relation {
        Relation::Equal => IntCC::Equal,
        Relation::NotEqual => IntCC::NotEqual,
        Relation::Less => IntCC::SignedLessThan,
        Relation::LessOrEqual => IntCC::SignedLessThanOrEqual,
        Relation::Greater => IntCC::SignedGreaterThan,
        Relation::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
    }
}

fn unsigned(relation: Relation) -> IntCC {
    signed(relation).unsigned()
}

/// The type of an integer of 1, 2, 4 or 8 bytes.
pub(crate) fn integer(bytes: usize) -> Type {
    match bytes {
        8 => types::I64,
        4 => types::I32,
        2 => types::I16,
        _ => types::I8,
    }
}

/// Bytes of an input, at any address, in little-endian order.
pub(crate) fn little() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_endianness(Endianness::Little)
}
