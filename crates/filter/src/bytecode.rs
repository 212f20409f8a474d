//! Predicates as bytecode for traced programs: what `kymo_bytecode` validates and runs.
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
//! The machine has no third value: a test is code that jumps to one of three places.
//!
//! ```text
//! yes, no, unknown     at the root unknown is the same place as no, and stays the same as one of the two through not,
//!                      all and any: then a test that is unknown goes on as one that decides nothing, or decides. Only
//!                      where a test becomes a number the three differ, and a register keeps in mind that something
//!                      was unknown. So the code is as long as the predicate.
//! ```
//!
//! What is missing from the layout is decided here. Regular expressions and text of other encodings are refused.

mod code;
mod number;
mod text;

use kymo_bytecode::{ARGUMENTS_MAX, Condition, Field, Instruction, Kind, Operand, Orders, Signs};
use kymo_ir::predicate::{
    Bitwise, Fact, Input, InputKind, Layout, Number, Place, Predicate, Range, Refusal, Relation, Test,
};
use kymo_units::ByteOrder;

use code::{Code, Label};

/// Compiles a predicate for arguments of a layout.
///
/// # Errors
///
/// The first part that bytecode cannot say.
///
/// ```
/// use kymo_filter::bytecode;
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
/// let bytes = bytecode::compile(&predicate, &Layout { size: 8, places: vec![place] })?;
/// let program = kymo_bytecode::validate(&bytes).expect("what is compiled is sound");
/// assert_eq!(program.run(&[0, 0, 0, 0, 6, 0, 0, 0], &()), Ok(true));
/// # Ok::<(), kymo_ir::predicate::Refusal>(())
/// ```
pub fn compile(predicate: &Predicate, layout: &Layout) -> Result<Vec<u8>, Refusal> {
    if predicate.verify().is_err() {
        return Err(predicate.refusal(&predicate.root, "this is not a sound predicate"));
    }
    check_layout(predicate, layout)?;
    let fact = |place: &Place| if *place == Place::Missing { Fact::Missing } else { Fact::Present };
    let facts = layout.places.iter().map(fact).collect();
    let mut compiler = Compiler { predicate, places: &layout.places, facts, code: Code::new(), integers: 0, reals: 0 };
    let [yes, no] = [compiler.code.label(), compiler.code.label()];
    compiler.test(&predicate.root, Targets { yes, no, unknown: no, next: yes })?;
    for (label, end) in [(yes, Instruction::Keep), (no, Instruction::Drop)] {
        compiler.code.place(label);
        compiler.code.push(end);
    }
    compiler.code.finish(layout.size).ok_or_else(|| predicate.refusal(&predicate.root, TOO_LONG))
}

const TOO_LONG: &str = "the program would have more than 16384 instructions or 65536 bytes of constants";

fn check_layout(predicate: &Predicate, layout: &Layout) -> Result<(), Refusal> {
    let refuse = |name: &str, why| Err(Refusal { part: name.to_owned(), why });
    if layout.places.len() != predicate.inputs.len() {
        return refuse("all inputs", "the layout has a place for each input");
    }
    if layout.size > ARGUMENTS_MAX {
        return refuse("all inputs", "the structure has more than 65536 bytes");
    }
    for (input, place) in predicate.inputs.iter().zip(&layout.places) {
        if place.end() > u64::from(layout.size) {
            return refuse(&input.name, "the place is not inside of the structure");
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
    /// Which inputs are missing: by this the predicate itself tells what is decided already.
    facts: Vec<Fact>,
    code: Code,
    /// Registers in use, a bit for each.
    integers: u8,
    reals: u8,
}

/// Where a test jumps to.
#[derive(Clone, Copy)]
struct Targets {
    yes: Label,
    no: Label,
    unknown: Label,
    /// What stands right behind the test: no jump leads there.
    next: Label,
}

impl Targets {
    fn of(self, value: bool) -> Label {
        if value { self.yes } else { self.no }
    }

    fn swapped(self) -> Self {
        Self { yes: self.no, no: self.yes, ..self }
    }
}

/// An integer that is tested: in the arguments, or in a register.
#[derive(Clone, Copy)]
enum Subject {
    Field(Field),
    Register { number: u8, is_signed: bool },
}

impl Compiler<'_> {
    fn test(&mut self, test: &Test, targets: Targets) -> Result<(), Refusal> {
        if self.code.is_full() {
            return Err(self.predicate.refusal(test, TOO_LONG));
        }
        let outcomes = self.predicate.may_be(test, &self.facts);
        if let Some(value) = outcomes.constant() {
            self.code.jump(value.map_or(targets.unknown, |value| targets.of(value)));
            return Ok(());
        }
        match test {
            Test::Constant(_) | Test::Has(_) => unreachable!("what is there is known from the layout"),
            Test::Not(test) => self.test(test, targets.swapped()),
            Test::All(tests) => self.list(tests, false, outcomes.is_unknown, targets),
            Test::Any(tests) => self.list(tests, true, outcomes.is_unknown, targets),
            Test::Compare { relation, left, right } => self.compare(*relation, left, right, targets),
            Test::Among { value, ranges } => self.among(value, ranges, targets),
            Test::CompareText { relation, left, right } => self.compare_text(test, *relation, left, right, targets),
            Test::Matches { text, pattern } => self.matches(test, text, pattern, targets),
        }
    }

    /// All (`decisive` is false) or any (it is true) of the tests.
    fn list(&mut self, tests: &[Test], decisive: bool, may_be_unknown: bool, targets: Targets) -> Result<(), Refusal> {
        let (decided, passed) = (targets.of(decisive), targets.of(!decisive));
        if may_be_unknown && targets.unknown != decided && targets.unknown != passed {
            return self.list_with_flag(tests, decisive, targets);
        }
        let Some((last, others)) = tests.split_last() else {
            self.code.jump(passed);
            return Ok(());
        };
        for test in others {
            let next = self.code.label();
            // Later tests may still decide what is unknown now, unless both lead to the same place.
            let unknown = if targets.unknown == decided { decided } else { next };
            let [yes, no] = if decisive { [decided, next] } else { [next, decided] };
            self.test(test, Targets { yes, no, unknown, next })?;
            self.code.place(next);
        }
        self.test(last, targets)
    }

    /// The same where unknown leads to a place of its own: a register remembers that a test was unknown.
    fn list_with_flag(&mut self, tests: &[Test], decisive: bool, targets: Targets) -> Result<(), Refusal> {
        let (decided, passed) = (targets.of(decisive), targets.of(!decisive));
        let Some(flag) = self.take_integer() else { return Err(self.predicate.refusal(&tests[0], TOO_WIDE)) };
        self.code.push(Instruction::Constant { to: flag, value: 0 });
        for test in tests {
            let [unknown, next] = [self.code.label(), self.code.label()];
            let [yes, no] = if decisive { [decided, next] } else { [next, decided] };
            self.test(test, Targets { yes, no, unknown, next: unknown })?;
            self.code.jump(next);
            self.code.place(unknown);
            self.code.push(Instruction::Constant { to: flag, value: 1 });
            self.code.place(next);
        }
        self.free_integer(flag);
        let flag = Subject::Register { number: flag, is_signed: false };
        self.branch(flag, Condition::Equal(0), Targets { yes: passed, no: targets.unknown, ..targets });
        Ok(())
    }

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
                self.test(test, Targets { yes: of(1), no: of(0), ..targets })
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
                let (left, right) = self.pair(left, right, targets.unknown)?;
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
        let left = self.real(left, targets.unknown)?;
        let right = self.real(right, targets.unknown)?;
        self.free_real(left);
        self.free_real(right);
        // What is not a number differs from everything and is neither less nor greater.
        let unordered = if relation == Relation::NotEqual { Orders::NONE } else { Orders(0) };
        let orders = orders(relation).or(unordered);
        self.branch_orders(orders, targets, |orders| Instruction::CompareReals { left, right, orders, skip: 0 });
        Ok(())
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], targets: Targets) -> Result<(), Refusal> {
        if let Number::Input(input) = value
            && let Some(field) = self.field(*input)
        {
            self.search(Subject::Field(field), ranges, targets);
            return Ok(());
        }
        let number = self.integer(value, targets.unknown)?;
        self.free_integer(number);
        let is_signed = !self.predicate.range(value).is_unsigned();
        self.search(Subject::Register { number, is_signed }, ranges, targets);
        Ok(())
    }

    /// The integer of the arguments that an input is, if it is there.
    fn field(&self, input: Input) -> Option<Field> {
        let Place::Integer { offset, bytes, order } = self.places[usize::from(input.0)] else { return None };
        let is_signed = matches!(self.predicate.kind(input), InputKind::Integer { signed: true, .. });
        let kind = Kind::new(bytes, is_signed, order == ByteOrder::Big)?;
        Some(Field { kind, offset: u16::try_from(offset).ok()? })
    }

    /// The bits of a field that a number is, if one instruction can look at them.
    fn masked(&self, number: &Number) -> Option<(Field, u32)> {
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
    fn bits(&mut self, field: Field, mask: u32, value: i128, targets: Targets) {
        match u32::try_from(value) {
            Ok(value) if value & !mask == 0 => {
                self.branch(Subject::Field(field), Condition::BitsEqual(mask, value), targets);
            }
            _ => self.code.jump(targets.no),
        }
    }

    /// Halves the ranges until few are left, and tests for those.
    fn search(&mut self, subject: Subject, ranges: &[(i128, i128)], targets: Targets) {
        let (lowest, highest) = subject.limits();
        let is_possible = |range: &&(i128, i128)| range.0 <= highest && range.1 >= lowest;
        let ranges: Vec<(i128, i128)> = ranges.iter().filter(is_possible).copied().collect();
        match &ranges[..] {
            [] => self.code.jump(targets.no),
            [others @ .., last] if others.len() < FEW => {
                for range in others {
                    let next = self.code.label();
                    self.within(subject, *range, Targets { no: next, next, ..targets });
                    self.code.place(next);
                }
                self.within(subject, *last, targets);
            }
            many => {
                let (lower, upper) = many.split_at(many.len() / 2);
                let below = self.code.label();
                self.code.push_to(subject.instruction(Condition::Less(upper[0].0)), below);
                self.search(subject, upper, Targets { next: below, ..targets });
                self.code.place(below);
                self.search(subject, lower, targets);
            }
        }
    }

    /// Tests for one range.
    fn within(&mut self, subject: Subject, (from, to): (i128, i128), targets: Targets) {
        let (lowest, highest) = subject.limits();
        let condition = match (from <= lowest, to >= highest) {
            (true, true) => return self.code.jump(targets.yes),
            _ if from == to => Condition::Equal(from),
            (true, false) => Condition::Less(to + 1),
            (false, true) => Condition::AtLeast(from),
            (false, false) if subject.has_ranges() => Condition::Within(from, to),
            (false, false) => {
                self.code.push_to(subject.instruction(Condition::Less(from)), targets.no);
                Condition::Less(to + 1)
            }
        };
        self.branch(subject, condition, targets);
    }

    /// Goes to yes if the condition holds, else to no.
    fn branch(&mut self, subject: Subject, condition: Condition, targets: Targets) {
        if targets.next == targets.yes {
            self.code.push_to(subject.instruction(condition.inverted()), targets.no);
            self.code.jump(targets.yes);
        } else {
            self.code.push_to(subject.instruction(condition), targets.yes);
            self.code.jump(targets.no);
        }
    }

    /// Goes to yes if the order is one of these, else to no.
    fn branch_orders(&mut self, orders: Orders, targets: Targets, jump: impl Fn(Orders) -> Instruction) {
        if targets.next == targets.yes {
            self.code.push_to(jump(orders.inverted()), targets.no);
            self.code.jump(targets.yes);
        } else {
            self.code.push_to(jump(orders), targets.yes);
            self.code.jump(targets.no);
        }
    }
}

/// So many ranges are tested one after the other.
const FEW: usize = 4;

const TOO_WIDE: &str = "this takes more than 8 registers of integers or 4 of reals";

impl Subject {
    fn limits(self) -> (i128, i128) {
        match self {
            Self::Field(Field { kind, .. }) => (kind.lowest(), kind.highest()),
            Self::Register { is_signed: true, .. } => (i64::MIN.into(), i64::MAX.into()),
            Self::Register { is_signed: false, .. } => (0, u64::MAX.into()),
        }
    }

    fn has_ranges(self) -> bool {
        matches!(self, Self::Field(Field { kind, .. }) if kind.has_ranges())
    }

    /// The instruction that jumps if the condition holds.
    fn instruction(self, condition: Condition) -> Instruction {
        let (left, is_signed) = match self {
            Self::Field(field) => return Instruction::Test { field, condition, skip: 0 },
            Self::Register { number, is_signed } => (number, is_signed),
        };
        let (orders, value) = match condition {
            Condition::Equal(value) => (Orders::EQUAL, value),
            Condition::NotEqual(value) => (Orders::EQUAL.inverted(), value),
            Condition::Less(value) => (Orders::LESS, value),
            Condition::AtLeast(value) => (Orders::LESS.inverted(), value),
            Condition::Within(..) | Condition::Without(..) | Condition::BitsEqual(..) | Condition::BitsDiffer(..) => {
                unreachable!("registers are not tested for ranges and bits")
            }
        };
        let signs = Signs { left: is_signed, right: is_signed, result: false };
        Instruction::Compare { left, right: Operand::Constant(value as u64), signs, orders, skip: 0 }
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
fn orders(relation: Relation) -> Orders {
    match relation {
        Relation::Equal => Orders::EQUAL,
        Relation::NotEqual => Orders::LESS.or(Orders::GREATER),
        Relation::Less => Orders::LESS,
        Relation::LessOrEqual => Orders::LESS.or(Orders::EQUAL),
        Relation::Greater => Orders::GREATER,
        Relation::GreaterOrEqual => Orders::GREATER.or(Orders::EQUAL),
    }
}

fn signs(left: Range, right: Range) -> Signs {
    Signs { left: !left.is_unsigned(), right: !right.is_unsigned(), result: false }
}
