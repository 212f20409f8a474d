//! Predicates as eBPF programs, for the kernel: plain values that a caller loads.
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
//! The kernel's verifier wants to see that a program ends and stays inside: jumps go forward only,
//! loads are at fixed offsets and aligned, no helper is called, nothing is stored. [`Assembler`]
//! makes labeled jumps of a predicate.
//!
//! Predicates that eBPF cannot express are refused: real numbers, regular expressions, texts behind
//! pointers. Binding values to kernel events, and loading, are the duty of callers.

mod arithmetic;
mod assembly;
mod glob;
mod instruction;
mod number;
mod text;

use kymo_ir::predicate::{
    ArgumentLayout, Assembler, Fact, Input, InputPlace, Number, Outcomes, Pattern, Predicate, Refusal, Relation, Test,
    TextExpression,
};

pub use assembly::INSTRUCTIONS_MAX;
pub use instruction::BpfInstruction;

use assembly::{Assembly, BpfLabel};
use instruction::{BpfOperand, BpfRegister, JumpCondition, Operation};

/// Where a test jumps to.
type Targets = kymo_ir::predicate::Targets<BpfLabel>;

/// Offsets of loads are signed 16 bits.
const LAYOUT_BYTES_MAX: u64 = 1 << 15;

/// The answer, and a scratch register before.
const ANSWER: BpfRegister = BpfRegister(0);
/// The address of the arguments.
const ARGUMENTS: BpfRegister = BpfRegister(1);
/// Values are kept in this register and those above it.
const FIRST_VALUE: u8 = 2;
/// Values at a time.
const VALUES_MAX: u8 = 7;
/// Another scratch register.
const SCRATCH: BpfRegister = BpfRegister(FIRST_VALUE + VALUES_MAX);

/// Compiles a predicate for structures of a layout, which begin at a multiple of 8 bytes.
///
/// # Errors
///
/// The first part that these programs cannot express.
///
/// ```
/// use kymo_filter::bpf;
/// use kymo_ir::predicate::{ArgumentLayout, Input, InputClass, InputKind, InputPlace, Number, Predicate, Relation, Test};
/// use kymo_units::ByteOrder;
///
/// let kind = InputKind::Integer { signed: false, bits: 32 };
/// let (left, right) = (Number::Input(Input(0)), Number::Integer(7));
/// let predicate = Predicate {
///     inputs: vec![InputClass { name: "cpu".into(), kind, optional: false }],
///     root: Test::Compare { relation: Relation::Less, left, right },
/// };
/// let place = InputPlace::Integer { offset: 4, bytes: 4, order: ByteOrder::Little };
/// let program = bpf::compile(&predicate, &ArgumentLayout { size: 8, places: vec![place] })?;
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
pub fn compile(predicate: &Predicate, layout: &ArgumentLayout) -> Result<Vec<BpfInstruction>, Refusal> {
    if predicate.verify().is_err() {
        return Err(predicate.refusal(&predicate.root, "this is not a sound predicate"));
    }
    layout.check(predicate)?;
    if let Some(at) = layout.places.iter().position(|place| place.end() > LAYOUT_BYTES_MAX) {
        let part = predicate.inputs[at].name.to_string();
        return Err(Refusal { part, why: "the place is beyond 32768 bytes" });
    }
    let mut compiler =
        BpfCompiler { predicate, places: &layout.places, facts: layout.facts(), code: Assembly::default(), depth: 0 };
    let [kept, dropped] = [compiler.code.label(), compiler.code.label()];
    let targets = Targets { on_true: kept, on_false: dropped, on_unknown: dropped, next: kept };
    compiler.test(&predicate.root, targets)?;
    for (label, value) in [(kept, 1), (dropped, 0)] {
        compiler.code.place(label);
        compiler.code.operation(Operation::Move, ANSWER, BpfOperand::Constant(value));
        compiler.code.push(BpfInstruction::exit());
    }
    compiler.code.finish().ok_or_else(|| predicate.refusal(&predicate.root, TOO_LONG))
}

const TOO_LONG: &str = "the program would have more than 32768 instructions";

struct BpfCompiler<'p> {
    predicate: &'p Predicate,
    places: &'p [InputPlace],
    /// The known facts about the inputs.
    facts: Vec<Fact>,
    code: Assembly,
    /// Registers of values that are still needed.
    depth: u8,
}

impl JumpCondition {
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

impl Assembler for BpfCompiler<'_> {
    type Label = BpfLabel;
    type Flag = BpfRegister;
    type Integer = BpfRegister;
    type Error = Refusal;

    fn outcomes(&self, test: &Test) -> Outcomes {
        self.predicate.may_be(test, &self.facts)
    }

    fn label(&mut self) -> BpfLabel {
        self.code.label()
    }

    fn place(&mut self, label: BpfLabel) {
        self.code.place(label);
    }

    fn jump(&mut self, label: BpfLabel) {
        self.code.jump(label);
    }

    fn accepts(&mut self, test: &Test) -> Result<bool, Refusal> {
        if self.code.is_full() { Err(self.predicate.refusal(test, TOO_LONG)) } else { Ok(true) }
    }

    fn has(&mut self, input: Input, targets: Targets) -> Result<(), Refusal> {
        let is_there = self.places[usize::from(input.0)] != InputPlace::Missing;
        self.jump(targets.of(is_there));
        Ok(())
    }

    fn compare_numbers(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets,
    ) -> Result<(), Refusal> {
        if self.predicate.is_real(left) || self.predicate.is_real(right) {
            return Err(self.predicate.refusal(test, "eBPF has no real numbers"));
        }
        self.compare(relation, left, right, targets)
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], targets: Targets) -> Result<(), Refusal> {
        self.number(value, self.depth, targets.on_unknown)?;
        let register = value_register(self.depth).expect("the value is in it");
        let range = self.predicate.range(value);
        self.search(register, (range.lowest, range.highest), ranges, targets);
        Ok(())
    }

    fn compare_texts(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets,
    ) -> Result<(), Refusal> {
        self.compare_text(test, relation, left, right, targets)
    }

    fn match_text(
        &mut self,
        test: &Test,
        text: &TextExpression,
        pattern: &Pattern,
        targets: Targets,
    ) -> Result<(), Refusal> {
        self.matches(test, text, pattern, targets)
    }

    fn new_flag(&mut self, test: &Test) -> Result<BpfRegister, Refusal> {
        let flag = value_register(self.depth).ok_or_else(|| self.predicate.refusal(test, TOO_WIDE))?;
        self.code.operation(Operation::Move, flag, BpfOperand::Constant(0));
        self.depth += 1;
        Ok(flag)
    }

    fn set_flag(&mut self, flag: BpfRegister) {
        self.code.operation(Operation::Move, flag, BpfOperand::Constant(1));
    }

    fn test_flag(&mut self, flag: BpfRegister, targets: Targets) {
        self.depth -= 1;
        self.branch(JumpCondition::NotEqual, flag, BpfOperand::Constant(0), targets);
    }

    fn jump_if_less(&mut self, value: BpfRegister, bounds: (i128, i128), limit: i128, label: BpfLabel) {
        let operand = self.constant_operand(limit, SCRATCH);
        let less = JumpCondition::of(Relation::Less, self.is_signed_range(bounds));
        self.code.jump_if(less, value, operand, label);
    }

    fn within(&mut self, value: BpfRegister, bounds: (i128, i128), (from, to): (i128, i128), targets: Targets) {
        if from == to {
            let operand = self.constant_operand(from, SCRATCH);
            return self.branch(JumpCondition::Equal, value, operand, targets);
        }
        if from > bounds.0 {
            self.jump_if_less(value, bounds, from, targets.on_false);
        }
        if to == bounds.1 {
            return self.jump(targets.on_true);
        }
        let operand = self.constant_operand(to, SCRATCH);
        let condition = JumpCondition::of(Relation::LessOrEqual, self.is_signed_range(bounds));
        self.branch(condition, value, operand, targets);
    }
}

impl BpfCompiler<'_> {
    fn compare(&mut self, relation: Relation, left: &Number, right: &Number, targets: Targets) -> Result<(), Refusal> {
        if matches!(left, Number::Integer(_)) && !matches!(right, Number::Integer(_)) {
            return self.compare(relation.mirrored(), right, left, targets);
        }
        let (of_left, of_right) = (self.predicate.range(left), self.predicate.range(right));
        let (left, right) = self.pair(left, right, targets.on_unknown, self.depth)?;
        if of_left.highest < of_right.lowest || of_left.lowest > of_right.highest {
            let order = of_left.lowest.cmp(&of_right.lowest);
            self.jump(targets.of(relation.holds(order)));
            return Ok(());
        }
        // One may be negative, the other too high for signed numbers: once the sign is known, unsigned ones will do.
        if of_left.lowest < 0 && of_right.needs_unsigned() {
            let below = targets.of(relation.holds(std::cmp::Ordering::Less));
            self.code.jump_if(JumpCondition::LessSigned, left, BpfOperand::Constant(0), below);
        }
        if let (true, BpfOperand::Register(right)) = (of_right.lowest < 0 && of_left.needs_unsigned(), right) {
            let above = targets.of(relation.holds(std::cmp::Ordering::Greater));
            self.code.jump_if(JumpCondition::LessSigned, right, BpfOperand::Constant(0), above);
        }
        let is_unsigned = of_left.is_unsigned() && of_right.is_unsigned();
        let is_unsigned = is_unsigned || of_left.needs_unsigned() || of_right.needs_unsigned();
        self.branch(JumpCondition::of(relation, !is_unsigned), left, right, targets);
        Ok(())
    }

    /// Goes to `on_true` if the condition holds, else to `on_false`.
    fn branch(&mut self, condition: JumpCondition, left: BpfRegister, right: BpfOperand, targets: Targets) {
        if targets.next == targets.on_true {
            return self.code.jump_if(condition.inverted(), left, right, targets.on_false);
        }
        self.code.jump_if(condition, left, right, targets.on_true);
        self.jump(targets.on_false);
    }
}

const TOO_WIDE: &str = "the program would need more registers than eBPF has";

/// The register of a value; `None` where there are no more.
fn value_register(depth: u8) -> Option<BpfRegister> {
    (depth < VALUES_MAX).then_some(BpfRegister(FIRST_VALUE + depth))
}
