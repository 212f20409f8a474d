//! Integers and reals. An integer is an `Int64`, or a `UInt64` if by its range it may be too high
//! for one.
//!
//! Where the ranges prove that a result is held, operations are those of 64 bits. Else they are exact, in decimals:
//!
//! ```text
//! x + y     TRY_CAST(CAST(x AS Decimal(20)) + CAST(y AS Decimal(20)) AS Int64)        NULL where it cannot be held
//! x / y     x / CASE WHEN y = 0 THEN NULL ELSE y END                                  NULL instead of an error
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use kymo_ir::predicate::{Arithmetic, Bitwise, InputKind, Number, Refusal, ValueRange};

use super::part::ExpressionPart;
use super::{DEPTH_MAX, ExpressionBuilder, NODES_MAX};

/// How an integer is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerForm {
    Signed,
    Unsigned,
}

/// An expression that is an integer.
#[derive(Clone)]
pub(super) struct IntegerExpression {
    pub part: ExpressionPart,
    pub held: IntegerForm,
}

/// Decimals that hold any integer, and their products.
const EXACT: DataType = DataType::Decimal128(20, 0);
const EXACT_WIDE: DataType = DataType::Decimal256(40, 0);
/// Products below it fit into decimals of 128 bits.
const PRODUCT_MAX: i128 = 10_i128.pow(38) - 1;

impl IntegerForm {
    fn of(range: ValueRange) -> Self {
        if range.needs_unsigned() { Self::Unsigned } else { Self::Signed }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Signed => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
        }
    }

    pub(super) fn literal(self, value: i128) -> ScalarValue {
        match self {
            Self::Signed => ScalarValue::Int64(Some(value as i64)),
            Self::Unsigned => ScalarValue::UInt64(Some(value as u64)),
        }
    }

    pub(super) fn lowest(self) -> ScalarValue {
        match self {
            Self::Signed => ScalarValue::Int64(Some(i64::MIN)),
            Self::Unsigned => ScalarValue::UInt64(Some(0)),
        }
    }

    fn null(self) -> ScalarValue {
        match self {
            Self::Signed => ScalarValue::Int64(None),
            Self::Unsigned => ScalarValue::UInt64(None),
        }
    }

    /// Whether all values of a range are held so.
    fn takes(self, range: ValueRange) -> bool {
        match self {
            Self::Signed => !range.needs_unsigned(),
            Self::Unsigned => range.is_unsigned(),
        }
    }
}

impl IntegerExpression {
    /// Its values are all held so.
    fn into_held(self, held: IntegerForm) -> ExpressionPart {
        if self.held == held { self.part } else { self.part.cast(held.data_type()) }
    }
}

impl ExpressionBuilder<'_> {
    fn refuse<T>(&self, number: &Number, why: &'static str) -> Result<T, Refusal> {
        Err(self.predicate.number_refusal(number, why))
    }

    fn check(&self, number: &Number, part: &ExpressionPart) -> Result<(), Refusal> {
        // A value may stand twice in the expression made of it.
        if part.is_within(NODES_MAX / 8, DEPTH_MAX) {
            return Ok(());
        }
        self.refuse(number, "the SQL expression would be too large or too deep")
    }

    /// A real, or an integer as one.
    pub(super) fn real(&self, number: &Number) -> Result<ExpressionPart, Refusal> {
        let part = match number {
            _ if !self.predicate.is_real(number) => self.integer(number)?.part.cast(DataType::Float64),
            Number::Real(value) => ExpressionPart::literal(value.value().into()),
            Number::Input(input) => match self.column(*input) {
                Some(column) => column.cast(DataType::Float64),
                None => ExpressionPart::literal(ScalarValue::Float64(None)),
            },
            Number::Arithmetic { operation, left, right } => {
                let operator = match operation {
                    Arithmetic::Add => Operator::Plus,
                    Arithmetic::Subtract => Operator::Minus,
                    Arithmetic::Multiply => Operator::Multiply,
                    Arithmetic::Divide => Operator::Divide,
                    Arithmetic::Remainder => return self.refuse(number, "reals have no remainder"),
                };
                self.real(left)?.binary(operator, self.real(right)?)
            }
            _ => return self.refuse(number, "this is not a real"),
        };
        self.check(number, &part)?;
        Ok(part)
    }

    pub(super) fn integer(&self, number: &Number) -> Result<IntegerExpression, Refusal> {
        let held = IntegerForm::of(self.predicate.range(number));
        let part = match number {
            Number::Integer(value) => ExpressionPart::literal(held.literal(*value)),
            Number::Real(_) => return self.refuse(number, "this is not an integer"),
            Number::Input(input) => match (self.column(*input), self.predicate.kind(*input)) {
                (None, _) => ExpressionPart::literal(held.null()),
                (Some(column), InputKind::Integer { .. }) => column.cast(held.data_type()),
                (Some(_), _) => return self.refuse(number, "this is not an integer"),
            },
            Number::Truth(test) => self.test(test)?.cast(DataType::Int64),
            Number::Arithmetic { operation, left, right } => {
                let exact = self.predicate.exact_range(number);
                match operation {
                    Arithmetic::Add => self.sum(Operator::Plus, left, right, exact, held)?,
                    Arithmetic::Subtract => self.sum(Operator::Minus, left, right, exact, held)?,
                    Arithmetic::Multiply => self.product(left, right, exact, held)?,
                    Arithmetic::Divide => self.quotient(left, right, held)?,
                    Arithmetic::Remainder => self.remainder(left, right, held)?,
                }
            }
            Number::Bits { operation, left, right } => self.bits(number, *operation, left, right, held)?,
            Number::Complement(value) => {
                // Of one that is held in signed bits, -1 has all of them.
                let value = self.integer(value)?;
                let all = if value.held == IntegerForm::Signed { -1 } else { i128::from(u64::MAX) };
                let all = ExpressionPart::literal(value.held.literal(all));
                value.part.binary(Operator::BitwiseXor, all)
            }
            Number::Scaled { value, multiply, divide, add } => {
                self.scaled(number, value, (*multiply, *divide, *add), held)?
            }
        };
        self.check(number, &part)?;
        Ok(IntegerExpression { part, held })
    }

    /// An integer that can be held so, as it is held so.
    fn integer_as(&self, number: &Number, held: IntegerForm) -> Result<ExpressionPart, Refusal> {
        match number {
            Number::Integer(value) => Ok(ExpressionPart::literal(held.literal(*value))),
            _ => Ok(self.integer(number)?.into_held(held)),
        }
    }

    /// How both can be held.
    fn held_together(&self, left: &Number, right: &Number) -> Option<IntegerForm> {
        let takes = |held: IntegerForm| [left, right].iter().all(|number| held.takes(self.predicate.range(number)));
        [IntegerForm::Signed, IntegerForm::Unsigned].into_iter().find(|held| takes(*held))
    }

    /// Both in a comparable form.
    pub(super) fn comparable(&self, left: &Number, right: &Number) -> Result<[ExpressionPart; 2], Refusal> {
        Ok(match self.held_together(left, right) {
            Some(held) => [self.integer_as(left, held)?, self.integer_as(right, held)?],
            None => [self.integer(left)?.part.cast(EXACT), self.integer(right)?.part.cast(EXACT)],
        })
    }

    /// Both operands as they are held, if results and operands alike are held so.
    fn plain(
        &self,
        left: &Number,
        right: &Number,
        exact: ValueRange,
        held: IntegerForm,
    ) -> Result<Option<[ExpressionPart; 2]>, Refusal> {
        let takes = |number| held.takes(self.predicate.range(number));
        if !exact.is_held() || !takes(left) || !takes(right) {
            return Ok(None);
        }
        Ok(Some([self.integer_as(left, held)?, self.integer_as(right, held)?]))
    }

    fn sum(
        &self,
        operator: Operator,
        left: &Number,
        right: &Number,
        exact: ValueRange,
        held: IntegerForm,
    ) -> Result<ExpressionPart, Refusal> {
        if let Some([left, right]) = self.plain(left, right, exact, held)? {
            return Ok(left.binary(operator, right));
        }
        let (left, right) = (self.integer(left)?.part.cast(EXACT), self.integer(right)?.part.cast(EXACT));
        Ok(from_exact(left.binary(operator, right), held))
    }

    fn product(
        &self,
        left: &Number,
        right: &Number,
        exact: ValueRange,
        held: IntegerForm,
    ) -> Result<ExpressionPart, Refusal> {
        if let Some([left, right]) = self.plain(left, right, exact, held)? {
            return Ok(left.binary(Operator::Multiply, right));
        }
        let exact = decimals_of(exact);
        let (left, right) = (self.integer(left)?.part.cast(exact.clone()), self.integer(right)?.part.cast(exact));
        Ok(from_exact(left.binary(Operator::Multiply, right), held))
    }

    /// A divisor, NULL instead of 0.
    fn divisor(&self, number: &Number) -> Result<IntegerExpression, Refusal> {
        let range = self.predicate.range(number);
        let IntegerExpression { part, held } = self.integer(number)?;
        if range.lowest > 0 || range.highest < 0 {
            return Ok(IntegerExpression { part, held });
        }
        let is_zero = part.clone().binary(Operator::Eq, ExpressionPart::literal(held.literal(0)));
        Ok(IntegerExpression { part: part.null_if(is_zero, held.null()), held })
    }

    fn quotient(&self, left: &Number, right: &Number, held: IntegerForm) -> Result<ExpressionPart, Refusal> {
        let (of_left, of_right) = (self.predicate.range(left), self.predicate.range(right));
        let (dividend, divisor) = (self.integer(left)?, self.divisor(right)?);
        if dividend.held != divisor.held {
            // Exact decimals: the remainder is taken away before, so that nothing is rounded.
            let (dividend, divisor) = (dividend.part.cast(EXACT), divisor.part.cast(EXACT));
            let rest = dividend.clone().binary(Operator::Modulo, divisor.clone());
            let whole = dividend.binary(Operator::Minus, rest).binary(Operator::Divide, divisor);
            return Ok(from_exact(whole, held));
        }
        let mut value = dividend.part;
        if i128::from(i64::MIN) == of_left.lowest && (of_right.lowest..=of_right.highest).contains(&-1) {
            // The one quotient of signed 64 bits that they do not hold.
            let is =
                |part: &ExpressionPart, constant| part.clone().binary(Operator::Eq, ExpressionPart::literal(constant));
            let lowest = is(&value, IntegerForm::Signed.lowest());
            let overflows = lowest.binary(Operator::And, is(&divisor.part, IntegerForm::Signed.literal(-1)));
            value = value.null_if(overflows, IntegerForm::Signed.null());
        }
        let part = value.binary(Operator::Divide, divisor.part);
        Ok(IntegerExpression { part, held: divisor.held }.into_held(held))
    }

    fn remainder(&self, left: &Number, right: &Number, held: IntegerForm) -> Result<ExpressionPart, Refusal> {
        let (dividend, divisor) = (self.integer(left)?, self.divisor(right)?);
        if dividend.held == divisor.held {
            let part = dividend.part.binary(Operator::Modulo, divisor.part);
            return Ok(IntegerExpression { part, held: divisor.held }.into_held(held));
        }
        let part = dividend.part.cast(EXACT).binary(Operator::Modulo, divisor.part.cast(EXACT));
        Ok(part.cast(held.data_type()))
    }

    fn bits(
        &self,
        number: &Number,
        operation: Bitwise,
        left: &Number,
        right: &Number,
        held: IntegerForm,
    ) -> Result<ExpressionPart, Refusal> {
        let operator = match operation {
            Bitwise::And => Operator::BitwiseAnd,
            Bitwise::Or => Operator::BitwiseOr,
            Bitwise::Xor => Operator::BitwiseXor,
            Bitwise::ShiftLeft | Bitwise::ShiftRight => return self.shift(number, operation, left, right, held),
        };
        let Some(within) = self.held_together(left, right) else {
            return self.refuse(number, "SQL has no bits of signed and of unsigned numbers together");
        };
        let (left, right) = (self.integer_as(left, within)?, self.integer_as(right, within)?);
        Ok(IntegerExpression { part: left.binary(operator, right), held: within }.into_held(held))
    }

    fn shift(
        &self,
        number: &Number,
        operation: Bitwise,
        left: &Number,
        right: &Number,
        held: IntegerForm,
    ) -> Result<ExpressionPart, Refusal> {
        let is_unsigned = self.predicate.range(left).is_unsigned();
        let within = if is_unsigned { IntegerForm::Unsigned } else { IntegerForm::Signed };
        let is_right = operation == Bitwise::ShiftRight;
        let operator = if is_right { Operator::BitwiseShiftRight } else { Operator::BitwiseShiftLeft };
        let value = self.integer(left)?.into_held(within);
        let count = match right {
            Number::Integer(count) if !(0..64).contains(count) => return Ok(ExpressionPart::literal(held.null())),
            Number::Integer(count) if is_right && !is_unsigned && *count > 0 => {
                // SQL shifts copies of the sign in; the mask takes them away.
                let shifted = value.binary(operator, ExpressionPart::literal(within.literal(*count)));
                let mask = ExpressionPart::literal(within.literal((1_i128 << (64 - count)) - 1));
                return Ok(shifted.binary(Operator::BitwiseAnd, mask));
            }
            Number::Integer(count) => ExpressionPart::literal(within.literal(*count)),
            _ if is_right && !is_unsigned => {
                return self.refuse(number, "SQL shifts signs in, and the count is not a constant");
            }
            _ => self.count(right)?.cast(within.data_type()),
        };
        Ok(IntegerExpression { part: value.binary(operator, count), held: within }.into_held(held))
    }

    /// A count of bits, NULL where it is none: SQL would take it modulo 64.
    fn count(&self, number: &Number) -> Result<ExpressionPart, Refusal> {
        let range = self.predicate.range(number);
        let IntegerExpression { part, held } = self.integer(number)?;
        if range.lowest >= 0 && range.highest < 64 {
            return Ok(part);
        }
        let is = |operator, value| part.clone().binary(operator, ExpressionPart::literal(held.literal(value)));
        let is_none = is(Operator::Lt, 0).binary(Operator::Or, is(Operator::Gt, 63));
        Ok(part.clone().null_if(is_none, held.null()))
    }

    /// Quotient and rest are scaled by themselves, so that the rest fits into 64 bits.
    fn scaled(
        &self,
        number: &Number,
        value: &Number,
        (multiply, divide, add): (u64, u64, i64),
        held: IntegerForm,
    ) -> Result<ExpressionPart, Refusal> {
        let range = self.predicate.range(value);
        if !range.is_unsigned() {
            return self.refuse(number, "SQL rounds towards zero, and what is scaled may be negative");
        }
        let common = common_divisor(multiply, divide);
        let (multiply, divide) = (multiply / common, divide / common);
        if (divide - 1).checked_mul(multiply).is_none() {
            return self.refuse(number, "SQL has no products of 128 bits, as this scale needs");
        }
        let value = self.integer(value)?.into_held(IntegerForm::Unsigned);
        let constant = |value: u64| ExpressionPart::literal(value.into());
        let whole = value.clone().binary(Operator::Divide, constant(divide));
        let rest = value.binary(Operator::Modulo, constant(divide));
        let rest = rest.binary(Operator::Multiply, constant(multiply)).binary(Operator::Divide, constant(divide));
        let highest = range.highest / i128::from(divide);
        let exact = decimals_of(ValueRange { lowest: 0, highest: highest.saturating_mul(i128::from(multiply)) });
        let factor = constant(multiply).cast(exact.clone());
        let whole = whole.cast(exact.clone()).binary(Operator::Multiply, factor);
        let sum = whole.binary(Operator::Plus, rest.cast(exact.clone()));
        let add = ExpressionPart::literal(ScalarValue::Int64(Some(add))).cast(exact);
        Ok(from_exact(sum.binary(Operator::Plus, add), held))
    }
}

/// An integer of an exact result; NULL where it cannot be held. By way of the narrow decimals, because Arrow takes only
/// the lower bits of wide ones.
fn from_exact(result: ExpressionPart, held: IntegerForm) -> ExpressionPart {
    result.try_cast(EXACT).try_cast(held.data_type())
}

/// Decimals whose products lie in this range.
fn decimals_of(products: ValueRange) -> DataType {
    let is_narrow = products.lowest >= -PRODUCT_MAX && products.highest <= PRODUCT_MAX;
    if is_narrow { EXACT } else { EXACT_WIDE }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
