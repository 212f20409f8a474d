//! Predicates as bytecode for traced programs, which `kymo_bytecode` validates and runs.
//!
//! ```text
//! prio < 100 && comm == "kworker*"
//!
//! 0  u32le[8] >= 100 -> 4            a test of a field is one instruction that jumps
//! 1  t0 = text[16..32]               texts are found once and looked at as often as one likes
//! 2  t0 does not begin with "kworker" -> 4
//! 3  keep
//! 4  drop
//! ```
//!
//! [`Assembler`] makes labeled jumps of a predicate. The answer for inputs missing from the layout
//! is decided here. Regular expressions and text of other encodings are refused.

mod code;
mod number;
mod text;

use kymo_bytecode::{
    ARGUMENTS_MAX, Instruction, IntegerCondition, IntegerField, IntegerKind, OrderSet, RightOperand, Signs,
};
use kymo_ir::predicate::{
    ArgumentLayout, Assembler, Bitwise, Fact, Input, InputKind, InputPlace, Number, Outcomes, Pattern, Predicate,
    Refusal, Relation, Test, TextExpression, ValueRange,
};
use kymo_units::ByteOrder;

use code::{CodeBuffer, CodeLabel};

/// Where a test jumps to.
type Targets = kymo_ir::predicate::Targets<CodeLabel>;

/// Compiles a predicate for arguments of a layout.
///
/// # Errors
///
/// The first part that bytecode cannot express.
///
/// ```
/// use kymo_filter::bytecode;
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
/// let bytes = bytecode::compile(&predicate, &ArgumentLayout { size: 8, places: vec![place] })?;
/// let program = kymo_bytecode::validate(&bytes).expect("what is compiled is sound");
/// assert_eq!(program.run(&[0, 0, 0, 0, 6, 0, 0, 0], &()), Ok(true));
/// # Ok::<(), kymo_ir::predicate::Refusal>(())
/// ```
pub fn compile(predicate: &Predicate, layout: &ArgumentLayout) -> Result<Vec<u8>, Refusal> {
    if predicate.verify().is_err() {
        return Err(predicate.refusal(&predicate.root, "this is not a sound predicate"));
    }
    layout.check(predicate)?;
    if layout.size > ARGUMENTS_MAX {
        let why = "the structure has more than 65536 bytes";
        return Err(Refusal { part: "all inputs".to_owned(), why });
    }
    let (places, facts) = (&layout.places[..], layout.facts());
    let mut compiler = BytecodeCompiler { predicate, places, facts, code: CodeBuffer::new(), integers: 0, reals: 0 };
    let [kept, dropped] = [compiler.code.label(), compiler.code.label()];
    let targets = Targets { on_true: kept, on_false: dropped, on_unknown: dropped, next: kept };
    compiler.test(&predicate.root, targets)?;
    for (label, end) in [(kept, Instruction::Keep), (dropped, Instruction::Drop)] {
        compiler.code.place(label);
        compiler.code.push(end);
    }
    compiler.code.finish(layout.size).ok_or_else(|| predicate.refusal(&predicate.root, TOO_LONG))
}

const TOO_LONG: &str = "the program would have more than 16384 instructions or 65536 bytes of constants";

struct BytecodeCompiler<'p> {
    predicate: &'p Predicate,
    places: &'p [InputPlace],
    /// Which inputs are missing: with these facts the predicate itself tells the parts already
    /// decided.
    facts: Vec<Fact>,
    code: CodeBuffer,
    /// Registers in use, a bit for each.
    integers: u8,
    reals: u8,
}

/// An integer that is tested: in the arguments, or in a register.
#[derive(Clone, Copy)]
enum TestedInteger {
    Field(IntegerField),
    Register { number: u8, is_signed: bool },
}

impl Assembler for BytecodeCompiler<'_> {
    type Label = CodeLabel;
    type Flag = u8;
    type Integer = TestedInteger;
    type Error = Refusal;

    fn outcomes(&self, test: &Test) -> Outcomes {
        self.predicate.may_be(test, &self.facts)
    }

    fn label(&mut self) -> CodeLabel {
        self.code.label()
    }

    fn place(&mut self, label: CodeLabel) {
        self.code.place(label);
    }

    fn jump(&mut self, label: CodeLabel) {
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
        _: &Test,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets,
    ) -> Result<(), Refusal> {
        self.compare(relation, left, right, targets)
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], targets: Targets) -> Result<(), Refusal> {
        if let Number::Input(input) = value
            && let Some(field) = self.field(*input)
        {
            let subject = TestedInteger::Field(field);
            self.search(subject, subject.limits(), ranges, targets);
            return Ok(());
        }
        let number = self.integer(value, targets.on_unknown)?;
        self.free_integer(number);
        let is_signed = !self.predicate.range(value).is_unsigned();
        let subject = TestedInteger::Register { number, is_signed };
        self.search(subject, subject.limits(), ranges, targets);
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

    fn new_flag(&mut self, test: &Test) -> Result<u8, Refusal> {
        let flag = self.take_integer().ok_or_else(|| self.predicate.refusal(test, TOO_WIDE))?;
        self.code.push(Instruction::Constant { to: flag, value: 0 });
        Ok(flag)
    }

    fn set_flag(&mut self, flag: u8) {
        self.code.push(Instruction::Constant { to: flag, value: 1 });
    }

    fn test_flag(&mut self, flag: u8, targets: Targets) {
        self.free_integer(flag);
        let flag = TestedInteger::Register { number: flag, is_signed: false };
        self.branch(flag, IntegerCondition::Equal(0), targets.swapped());
    }

    fn jump_if_less(&mut self, subject: TestedInteger, _: (i128, i128), limit: i128, label: CodeLabel) {
        self.code.push_to(subject.instruction(IntegerCondition::Less(limit)), label);
    }

    fn within(
        &mut self,
        subject: TestedInteger,
        (lowest, highest): (i128, i128),
        (from, to): (i128, i128),
        targets: Targets,
    ) {
        let condition = match (from == lowest, to == highest) {
            _ if from == to => IntegerCondition::Equal(from),
            (true, _) => IntegerCondition::Less(to + 1),
            (false, true) => IntegerCondition::AtLeast(from),
            (false, false) if subject.has_ranges() => IntegerCondition::Within(from, to),
            (false, false) => {
                self.code.push_to(subject.instruction(IntegerCondition::Less(from)), targets.on_false);
                IntegerCondition::Less(to + 1)
            }
        };
        self.branch(subject, condition, targets);
    }
}

impl BytecodeCompiler<'_> {
    fn compare(&mut self, relation: Relation, left: &Number, right: &Number, targets: Targets) -> Result<(), Refusal> {
        if self.predicate.is_real(left) || self.predicate.is_real(right) {
            return self.compare_reals(relation, left, right, targets);
        }
        match (left, right) {
            (Number::Integer(_), right) if !matches!(right, Number::Integer(_)) => {
                self.compare(relation.mirrored(), right, left, targets)
            }
            (Number::Truth(test), Number::Integer(value)) => {
                // The two values of a truth decide, so that it need not become a number.
                let of = |truth: i128| targets.of(relation.holds(truth.cmp(value)));
                self.test(test, Targets { on_true: of(1), on_false: of(0), ..targets })
            }
            (left, Number::Integer(value)) => {
                if let (Some((field, mask)), Some(targets)) = (self.masked(left), equality(relation, targets)) {
                    self.bits(field, mask, *value, targets);
                    return Ok(());
                }
                let (ranges, targets) = ranges_of(relation, *value, targets);
                self.among(left, &ranges, targets)
            }
            _ => {
                let (of_left, of_right) = (self.predicate.range(left), self.predicate.range(right));
                let (left, right) = self.pair(left, right, targets.on_unknown)?;
                self.free_integer(left);
                self.free_operand(right);
                let signs = signs(of_left, of_right);
                self.branch_orders(orders(relation), targets, |orders| Instruction::Compare {
                    left,
                    right,
                    signs,
                    orders,
                    skip: 0,
                });
                Ok(())
            }
        }
    }

    fn compare_reals(
        &mut self,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets,
    ) -> Result<(), Refusal> {
        let left = self.real(left, targets.on_unknown)?;
        let right = self.real(right, targets.on_unknown)?;
        self.free_real(left);
        self.free_real(right);
        // A NaN differs from everything and is neither less nor greater.
        let unordered = if relation == Relation::NotEqual { OrderSet::NONE } else { OrderSet(0) };
        let orders = orders(relation).or(unordered);
        self.branch_orders(orders, targets, |orders| Instruction::CompareReals { left, right, orders, skip: 0 });
        Ok(())
    }

    /// The integer of the arguments that an input is, if it is there.
    fn field(&self, input: Input) -> Option<IntegerField> {
        let InputPlace::Integer { offset, bytes, order } = self.places[usize::from(input.0)] else { return None };
        let is_signed = matches!(self.predicate.kind(input), InputKind::Integer { signed: true, .. });
        let kind = IntegerKind::new(bytes, is_signed, order == ByteOrder::Big)?;
        Some(IntegerField { kind, offset: u16::try_from(offset).ok()? })
    }

    /// The bits of a field that a number is, if one instruction can look at them.
    fn masked(&self, number: &Number) -> Option<(IntegerField, u32)> {
        let Number::Bits { operation: Bitwise::And, left, right } = number else { return None };
        let ((Number::Input(input), Number::Integer(mask)) | (Number::Integer(mask), Number::Input(input))) =
            (&**left, &**right)
        else {
            return None;
        };
        let field = self.field(*input).filter(|field| field.kind.has_ranges())?;
        let all = (field.kind.highest() - field.kind.lowest()) as u32;
        // A mask beyond the field sees copies of its sign, where it has one.
        let is_inside = !field.kind.is_signed() || (0..=i128::from(all)).contains(mask);
        is_inside.then_some((field, *mask as u32 & all))
    }

    /// Tests bits of a field.
    fn bits(&mut self, field: IntegerField, mask: u32, value: i128, targets: Targets) {
        match u32::try_from(value) {
            Ok(value) if value & !mask == 0 => {
                self.branch(TestedInteger::Field(field), IntegerCondition::BitsEqual(mask, value), targets);
            }
            _ => self.code.jump(targets.on_false),
        }
    }

    /// Goes to `on_true` if the condition holds, else to `on_false`.
    fn branch(&mut self, subject: TestedInteger, condition: IntegerCondition, targets: Targets) {
        if targets.next == targets.on_true {
            self.code.push_to(subject.instruction(condition.inverted()), targets.on_false);
            self.code.jump(targets.on_true);
        } else {
            self.code.push_to(subject.instruction(condition), targets.on_true);
            self.code.jump(targets.on_false);
        }
    }

    /// Goes to `on_true` if the order is one of these, else to `on_false`.
    fn branch_orders(&mut self, orders: OrderSet, targets: Targets, jump: impl Fn(OrderSet) -> Instruction) {
        if targets.next == targets.on_true {
            self.code.push_to(jump(orders.inverted()), targets.on_false);
            self.code.jump(targets.on_true);
        } else {
            self.code.push_to(jump(orders), targets.on_true);
            self.code.jump(targets.on_false);
        }
    }
}

const TOO_WIDE: &str = "this takes more than 8 registers of integers or 4 of reals";

impl TestedInteger {
    fn limits(self) -> (i128, i128) {
        match self {
            Self::Field(IntegerField { kind, .. }) => (kind.lowest(), kind.highest()),
            Self::Register { is_signed: true, .. } => (i64::MIN.into(), i64::MAX.into()),
            Self::Register { is_signed: false, .. } => (0, u64::MAX.into()),
        }
    }

    fn has_ranges(self) -> bool {
        matches!(self, Self::Field(IntegerField { kind, .. }) if kind.has_ranges())
    }

    /// The instruction that jumps if the condition holds.
    fn instruction(self, condition: IntegerCondition) -> Instruction {
        let (left, is_signed) = match self {
            Self::Field(field) => return Instruction::Test { field, condition, skip: 0 },
            Self::Register { number, is_signed } => (number, is_signed),
        };
        let (orders, value) = match condition {
            IntegerCondition::Equal(value) => (OrderSet::EQUAL, value),
            IntegerCondition::NotEqual(value) => (OrderSet::EQUAL.inverted(), value),
            IntegerCondition::Less(value) => (OrderSet::LESS, value),
            IntegerCondition::AtLeast(value) => (OrderSet::LESS.inverted(), value),
            IntegerCondition::Within(..)
            | IntegerCondition::Without(..)
            | IntegerCondition::BitsEqual(..)
            | IntegerCondition::BitsDiffer(..) => {
                unreachable!("registers are not tested for ranges and bits")
            }
        };
        let signs = Signs { left: is_signed, right: is_signed, result: false };
        Instruction::Compare { left, right: RightOperand::Constant(value as u64), signs, orders, skip: 0 }
    }
}

/// The integers of which a relation to a constant holds, as ranges, or those of which it does not with swapped targets.
fn ranges_of(relation: Relation, value: i128, targets: Targets) -> ([(i128, i128); 1], Targets) {
    let swapped = targets.swapped();
    match relation {
        Relation::Equal => ([(value, value)], targets),
        Relation::NotEqual => ([(value, value)], swapped),
        Relation::Less => ([(i128::MIN, value - 1)], targets),
        Relation::GreaterOrEqual => ([(i128::MIN, value - 1)], swapped),
        Relation::LessOrEqual => ([(i128::MIN, value)], targets),
        Relation::Greater => ([(i128::MIN, value)], swapped),
    }
}

/// Where a test for equality leads, if the relation is one or its opposite.
fn equality(relation: Relation, targets: Targets) -> Option<Targets> {
    match relation {
        Relation::Equal => Some(targets),
        Relation::NotEqual => Some(targets.swapped()),
        _ => None,
    }
}

/// The orders of which a relation holds.
fn orders(relation: Relation) -> OrderSet {
    match relation {
        Relation::Equal => OrderSet::EQUAL,
        Relation::NotEqual => OrderSet::LESS.or(OrderSet::GREATER),
        Relation::Less => OrderSet::LESS,
        Relation::LessOrEqual => OrderSet::LESS.or(OrderSet::EQUAL),
        Relation::Greater => OrderSet::GREATER,
        Relation::GreaterOrEqual => OrderSet::GREATER.or(OrderSet::EQUAL),
    }
}

fn signs(left: ValueRange, right: ValueRange) -> Signs {
    Signs { left: !left.is_unsigned(), right: !right.is_unsigned(), result: false }
}
