//! Predicates as eBPF programs, for the kernel: plain values that somebody else loads.
//!
//! ```text
//! prio < 100 && comm == "kworker*"     at entry r1 is the address of the arguments; at exit r0 is 1: keep, or 0: drop
//!
//!  0  r2 = *(u32 *)(r1 + 8)
//!  1  if r2 >= 100 goto +5
//!  2  r0 = *(u32 *)(r1 + 16)           texts lie inside of the arguments and are compared in pieces, unrolled
//!  3  if r0 != 1919906667 goto +3
//!     ...
//! ```
//!
//! The kernel's verifier wants to see that a program ends and stays inside: jumps go forward only, loads are at fixed
//! offsets and aligned, no helper is called, nothing is stored. A test is code that jumps to one of three places:
//!
//! ```text
//! yes, no, unknown     at the root unknown is the same place as no, and stays the same as one of them through
//!                      not, all and any; so a test that is unknown jumps as well. Only where a test becomes a number
//!                      the three differ, and a register keeps in mind that something was unknown.
//! ```
//!
//! What cannot be said is refused: real numbers, regular expressions, texts behind pointers. How values are bound to
//! kernel events, and loading, is the duty of others.

mod arithmetic;
mod assembly;
mod glob;
mod instruction;
mod number;
mod text;

use kymo_ir::predicate::{Input, Layout, Number, Place, Predicate, Refusal, Relation, Test};

pub use assembly::INSTRUCTIONS_MAX;
pub use instruction::Instruction;

use assembly::{Assembly, Label};
use instruction::{Condition, Operand, Operation, Register};

/// Offsets of loads are signed 16 bits.
const LAYOUT_BYTES_MAX: u64 = 1 << 15;

/// The answer, and a scratch register before.
const ANSWER: Register = Register(0);
/// The address of the arguments.
const ARGUMENTS: Register = Register(1);
/// Values are kept in this register and those above it.
const FIRST_VALUE: u8 = 2;
/// Values at a time.
const VALUES_MAX: u8 = 7;
/// Another scratch register.
const SCRATCH: Register = Register(FIRST_VALUE + VALUES_MAX);

/// Compiles a predicate for structures of a layout, which begin at a multiple of 8 bytes.
///
/// # Errors
///
/// The first part that these programs cannot say.
///
/// ```
/// use kymo_filter::bpf;
/// use kymo_ir::predicate::{Input, InputClass, InputKind, Layout, Number, Place, Predicate, Relation, Test};
/// use kymo_units::ByteOrder;
///
/// let kind = InputKind::Integer { signed: false, bits: 32 };
/// let (left, right) = (Number::Input(Input(0)), Number::Integer(7));
/// let predicate = Predicate {
///     inputs: vec![InputClass { name: "cpu".into(), kind, optional: false }],
///     root: Test::Compare { relation: Relation::Less, left, right },
/// };
/// let place = Place::Integer { offset: 4, bytes: 4, order: ByteOrder::Little };
/// let program = bpf::compile(&predicate, &Layout { size: 8, places: vec![place] })?;
/// let text: Vec<_> = program.iter().map(ToString::to_string).collect();
/// # #[cfg(target_endian = "little")]
/// assert_eq!(text, [
///     "r2 = *(u32 *)(r1 + 4)",
///     "if r2 >= 7 goto +2",
///     "r0 = 1",
///     "exit",
///     "r0 = 0",
///     "exit",
/// ]);
/// # Ok::<(), kymo_ir::predicate::Refusal>(())
/// ```
pub fn compile(predicate: &Predicate, layout: &Layout) -> Result<Vec<Instruction>, Refusal> {
    if predicate.verify().is_err() {
        return Err(predicate.refusal(&predicate.root, "this is not a sound predicate"));
    }
    check_layout(predicate, layout)?;
    let mut compiler = Compiler { predicate, places: &layout.places, code: Assembly::default() };
    let [yes, no] = [compiler.code.label(), compiler.code.label()];
    compiler.test(&predicate.root, Targets { yes, no, unknown: no, next: yes }, 0)?;
    for (label, value) in [(yes, 1), (no, 0)] {
        compiler.code.place(label);
        compiler.code.operation(Operation::Move, ANSWER, Operand::Constant(value));
        compiler.code.push(Instruction::exit());
    }
    compiler.code.finish().ok_or_else(|| predicate.refusal(&predicate.root, TOO_LONG))
}

const TOO_LONG: &str = "the program would have more than 32768 instructions";

fn check_layout(predicate: &Predicate, layout: &Layout) -> Result<(), Refusal> {
    let refuse = |name: &str, why| Err(Refusal { part: name.to_owned(), why });
    if layout.places.len() != predicate.inputs.len() {
        return refuse("all inputs", "the layout has a place for each input");
    }
    for (input, place) in predicate.inputs.iter().zip(&layout.places) {
        if place.end() > u64::from(layout.size).min(LAYOUT_BYTES_MAX) {
            return refuse(&input.name, "the place is not inside of the structure, or beyond 32768 bytes");
        }
        if !place.suits(input.kind) {
            return refuse(&input.name, "the place is not one for the input's type");
        }
    }
    Ok(())
}

struct Compiler<'p> {
    predicate: &'p Predicate,
    places: &'p [Place],
    code: Assembly,
}

/// Where a test jumps to.
#[derive(Clone, Copy)]
struct Targets {
    yes: Label,
    no: Label,
    unknown: Label,
    /// Which of the three, if any, stands right behind the test: no jump leads there.
    next: Label,
}

impl Targets {
    fn of(self, value: bool) -> Label {
        if value { self.yes } else { self.no }
    }
}

impl Condition {
    fn of(relation: Relation, is_signed: bool) -> Self {
        match (relation, is_signed) {
            (Relation::Equal, _) => Self::Equal,
            (Relation::NotEqual, _) => Self::NotEqual,
            (Relation::Less, false) => Self::Less,
            (Relation::Less, true) => Self::LessSigned,
            (Relation::LessOrEqual, false) => Self::LessOrEqual,
            (Relation::LessOrEqual, true) => Self::LessOrEqualSigned,
            (Relation::Greater, false) => Self::Greater,
            (Relation::Greater, true) => Self::GreaterSigned,
            (Relation::GreaterOrEqual, false) => Self::GreaterOrEqual,
            (Relation::GreaterOrEqual, true) => Self::GreaterOrEqualSigned,
        }
    }
}

impl Compiler<'_> {
    /// Jumps to one of the targets. `depth` registers hold values that are still needed.
    fn test(&mut self, test: &Test, targets: Targets, depth: u8) -> Result<(), Refusal> {
        if self.code.is_full() {
            return Err(self.predicate.refusal(test, TOO_LONG));
        }
        match test {
            Test::Constant(value) => self.jump(value.map_or(targets.unknown, |value| targets.of(value)), targets),
            Test::Has(input) => self.jump(targets.of(!self.is_missing(*input)), targets),
            Test::Not(test) => {
                let swapped = Targets { yes: targets.no, no: targets.yes, ..targets };
                return self.test(test, swapped, depth);
            }
            Test::All(tests) => return self.list(tests, false, targets, depth),
            Test::Any(tests) => return self.list(tests, true, targets, depth),
            Test::Compare { left, right, .. } if self.lacks(left) || self.lacks(right) => {
                self.jump(targets.unknown, targets);
            }
            Test::Among { value, .. } if self.lacks(value) => self.jump(targets.unknown, targets),
            Test::Compare { left, right, .. } if self.predicate.is_real(left) || self.predicate.is_real(right) => {
                return Err(self.predicate.refusal(test, "eBPF has no real numbers"));
            }
            Test::Compare { relation, left, right } => return self.compare(*relation, left, right, targets, depth),
            Test::Among { value, ranges } => return self.among(value, ranges, targets, depth),
            Test::CompareText { relation, left, right } => {
                return self.compare_text(test, *relation, left, right, targets);
            }
            Test::Matches { text, pattern } => return self.matches(test, text, pattern, targets),
        }
        Ok(())
    }

    fn is_missing(&self, input: Input) -> bool {
        self.places[usize::from(input.0)] == Place::Missing
    }

    /// A number is always unknown, because an input is missing in this layout.
    fn lacks(&self, number: &Number) -> bool {
        match number {
            Number::Integer(_) | Number::Real(_) | Number::Truth(_) => false,
            Number::Input(input) => self.is_missing(*input),
            Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
                self.lacks(left) || self.lacks(right)
            }
            Number::Complement(value) | Number::Scaled { value, .. } => self.lacks(value),
        }
    }

    /// All (`decisive` is false) or any (it is true) of the tests.
    fn list(&mut self, tests: &[Test], decisive: bool, targets: Targets, depth: u8) -> Result<(), Refusal> {
        let (decided, passed) = (targets.of(decisive), targets.of(!decisive));
        if targets.unknown != decided && targets.unknown != passed {
            return self.list_with_flag(tests, decisive, targets, depth);
        }
        let Some((last, tests)) = tests.split_last() else {
            self.jump(passed, targets);
            return Ok(());
        };
        for test in tests {
            let next = self.code.label();
            // What is unknown leaves it open whether a later test decides, unless both lead to the same place.
            let unknown = if targets.unknown == decided { decided } else { next };
            let [yes, no] = if decisive { [decided, next] } else { [next, decided] };
            self.test(test, Targets { yes, no, unknown, next }, depth)?;
            self.code.place(next);
        }
        self.test(last, targets, depth)
    }

    /// The same where unknown leads to a place of its own: a register remembers that a test was unknown.
    fn list_with_flag(&mut self, tests: &[Test], decisive: bool, targets: Targets, depth: u8) -> Result<(), Refusal> {
        let (decided, passed) = (targets.of(decisive), targets.of(!decisive));
        let Some(first) = tests.first() else {
            self.jump(passed, targets);
            return Ok(());
        };
        let flag = value_register(depth).ok_or_else(|| self.predicate.refusal(first, TOO_WIDE))?;
        self.code.operation(Operation::Move, flag, Operand::Constant(0));
        for test in tests {
            let [unknown, next] = [self.code.label(), self.code.label()];
            let [yes, no] = if decisive { [decided, next] } else { [next, decided] };
            self.test(test, Targets { yes, no, unknown, next: unknown }, depth + 1)?;
            self.code.place(unknown);
            self.code.operation(Operation::Move, flag, Operand::Constant(1));
            self.code.place(next);
        }
        self.code.jump_if(Condition::NotEqual, flag, Operand::Constant(0), targets.unknown);
        self.jump(passed, targets);
        Ok(())
    }

    fn compare(
        &mut self,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets,
        depth: u8,
    ) -> Result<(), Refusal> {
        match (left, right) {
            (Number::Integer(left), Number::Integer(right)) => {
                self.jump(targets.of(relation.holds(left.cmp(right))), targets);
                return Ok(());
            }
            (Number::Integer(_), _) => return self.compare(relation.mirrored(), right, left, targets, depth),
            _ => {}
        }
        let (of_left, of_right) = (self.predicate.range(left), self.predicate.range(right));
        let (left, right) = self.pair(left, right, targets.unknown, depth)?;
        if of_left.highest < of_right.lowest || of_left.lowest > of_right.highest {
            let order = of_left.lowest.cmp(&of_right.lowest);
            self.jump(targets.of(relation.holds(order)), targets);
            return Ok(());
        }
        // One may be negative, the other too high for signed numbers: once the sign is known, unsigned ones will do.
        if of_left.lowest < 0 && of_right.needs_unsigned() {
            let below = targets.of(relation.holds(std::cmp::Ordering::Less));
            self.code.jump_if(Condition::LessSigned, left, Operand::Constant(0), below);
        }
        if let (true, Operand::Register(right)) = (of_right.lowest < 0 && of_left.needs_unsigned(), right) {
            let above = targets.of(relation.holds(std::cmp::Ordering::Greater));
            self.code.jump_if(Condition::LessSigned, right, Operand::Constant(0), above);
        }
        let is_unsigned = of_left.is_unsigned() && of_right.is_unsigned();
        let is_unsigned = is_unsigned || of_left.needs_unsigned() || of_right.needs_unsigned();
        self.branch(Condition::of(relation, !is_unsigned), left, right, targets);
        Ok(())
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], targets: Targets, depth: u8) -> Result<(), Refusal> {
        self.number(value, depth, targets.unknown)?;
        let register = value_register(depth).expect("the value is in it");
        let of_value = self.predicate.range(value);
        let possible: Vec<(i128, i128)> = ranges
            .iter()
            .filter(|(lowest, highest)| *lowest <= of_value.highest && *highest >= of_value.lowest)
            .map(|&(lowest, highest)| (lowest.max(of_value.lowest), highest.min(of_value.highest)))
            .collect();
        self.search(register, (of_value.lowest, of_value.highest), &possible, targets);
        Ok(())
    }

    /// Halves the ranges until one is left. The value is known to lie in `bounds`, and so do the ranges.
    fn search(&mut self, value: Register, bounds: (i128, i128), ranges: &[(i128, i128)], targets: Targets) {
        let is_signed = self.is_signed_range(bounds);
        let (lower, upper) = match *ranges {
            [] => return self.jump(targets.no, targets),
            [(lowest, highest)] if lowest == highest && bounds != (lowest, highest) => {
                let operand = self.constant_operand(lowest, SCRATCH);
                return self.branch(Condition::Equal, value, operand, targets);
            }
            [(lowest, highest)] => {
                if lowest > bounds.0 {
                    let operand = self.constant_operand(lowest, SCRATCH);
                    let below = Condition::of(Relation::Less, is_signed);
                    self.code.jump_if(below, value, operand, targets.no);
                }
                if highest == bounds.1 {
                    return self.jump(targets.yes, targets);
                }
                let operand = self.constant_operand(highest, SCRATCH);
                return self.branch(Condition::of(Relation::LessOrEqual, is_signed), value, operand, targets);
            }
            _ => ranges.split_at(ranges.len() / 2),
        };
        let middle = upper[0].0;
        let left = self.code.label();
        let operand = self.constant_operand(middle, SCRATCH);
        self.code.jump_if(Condition::of(Relation::Less, is_signed), value, operand, left);
        self.search(value, (middle, bounds.1), upper, Targets { next: left, ..targets });
        self.code.place(left);
        self.search(value, (bounds.0, middle - 1), lower, targets);
    }

    fn jump(&mut self, to: Label, targets: Targets) {
        if to != targets.next {
            self.code.jump(to);
        }
    }

    /// Goes to yes or no.
    fn branch(&mut self, condition: Condition, left: Register, right: Operand, targets: Targets) {
        if targets.next == targets.yes {
            return self.code.jump_if(condition.inverted(), left, right, targets.no);
        }
        self.code.jump_if(condition, left, right, targets.yes);
        self.jump(targets.no, targets);
    }
}

const TOO_WIDE: &str = "the program would need more registers than eBPF has";

/// The register of a value; `None` where there are no more.
fn value_register(depth: u8) -> Option<Register> {
    (depth < VALUES_MAX).then_some(Register(FIRST_VALUE + depth))
}
