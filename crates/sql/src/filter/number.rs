//! Numbers: integers are exact in the filter language and wrap in SQL, so a result must fit for all
//! values.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::{FilterColumns, FilterText, bare, sign};
use crate::table::TermKind;

/// Sums inside each other, at most.
const DEPTH_MAX: usize = 16;

/// An integer in the filter language, and which values it can have.
pub(super) struct FilterInteger {
    pub(super) text: String,
    lowest: i128,
    highest: i128,
    /// Its type in SQL, if it has one of integers.
    bits: Option<(i128, i128)>,
}

impl FilterColumns<'_> {
    pub(super) fn compared_integers(&self, left: &Expr, operator: Operator, right: &Expr) -> Option<FilterText> {
        let sign = sign(operator)?;
        if let (Some(value), Expr::Literal(constant, _)) = (self.as_real(left), right) {
            return compared_as_real(&value.text, operator, constant);
        }
        let (left, right) = (self.integer(left)?, self.integer(right)?);
        FilterText::exactly(format!("{} {sign} {}", left.text, right.text))
    }

    pub(super) fn integer(&self, expression: &Expr) -> Option<FilterInteger> {
        self.integer_within(expression, 0)
    }

    fn integer_within(&self, expression: &Expr, depth: usize) -> Option<FilterInteger> {
        if depth > DEPTH_MAX {
            return None;
        }
        match bare(expression) {
            Expr::Literal(value, _) => {
                let number = literal(value)?;
                let bits = range(&value.data_type());
                Some(FilterInteger { text: written(number), lowest: number, highest: number, bits })
            }
            column @ Expr::Column(_) => {
                let (index, term) = self.column(column)?;
                let bits = range(self.schema.field(index).data_type()).filter(|_| term.kind == TermKind::Integer)?;
                Some(FilterInteger { text: term.text, lowest: bits.0, highest: bits.1, bits: Some(bits) })
            }
            Expr::Cast(cast) => {
                let inner = self.integer_within(&cast.expr, depth + 1)?;
                inner.cast(cast.field.data_type())
            }
            Expr::TryCast(cast) => {
                let inner = self.integer_within(&cast.expr, depth + 1)?;
                inner.cast(cast.field.data_type())
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = (self.integer_within(left, depth + 1)?, self.integer_within(right, depth + 1)?);
                left.and(*op, &right)
            }
            _ => None,
        }
    }

    /// An integer as a real.
    fn as_real(&self, expression: &Expr) -> Option<FilterInteger> {
        let Expr::Cast(cast) = expression else { return None };
        (cast.field.data_type() == &DataType::Float64).then(|| self.integer(&cast.expr)).flatten()
    }
}

impl FilterInteger {
    /// As another type that holds all its values.
    fn cast(self, data_type: &DataType) -> Option<Self> {
        let bits = range(data_type);
        let holds = match (bits, data_type) {
            (Some((lowest, highest)), _) => lowest <= self.lowest && self.highest <= highest,
            // Digits before the point.
            (None, DataType::Decimal128(digits, scale)) => i32::from(*digits) - i32::from(*scale) >= 20 && *scale >= 0,
            (None, DataType::Decimal256(digits, scale)) => i32::from(*digits) - i32::from(*scale) >= 20 && *scale >= 0,
            _ => false,
        };
        holds.then_some(Self { bits, ..self })
    }

    /// Both joined by an operator, if the result is the same in SQL.
    fn and(self, operator: Operator, right: &Self) -> Option<Self> {
        // Both sides have one type by now.
        let bits = self.bits.filter(|bits| right.bits == Some(*bits))?;
        let constant = (right.lowest == right.highest).then_some(right.lowest);
        let corners = |of: fn(i128, i128) -> Option<i128>| -> Option<(i128, i128)> {
            let pairs = [
                (self.lowest, right.lowest),
                (self.lowest, right.highest),
                (self.highest, right.lowest),
                (self.highest, right.highest),
            ];
            let values: Vec<i128> = pairs.iter().map(|(left, right)| of(*left, *right)).collect::<Option<_>>()?;
            Some((*values.iter().min()?, *values.iter().max()?))
        };
        let (sign, (lowest, highest)) = match (operator, constant) {
            (Operator::Plus, _) => ("+", corners(i128::checked_add)?),
            (Operator::Minus, _) => ("-", corners(i128::checked_sub)?),
            (Operator::Multiply, _) => ("*", corners(i128::checked_mul)?),
            (Operator::Divide, Some(divisor)) if divisor != 0 => ("/", corners(i128::checked_div)?),
            (Operator::Modulo, Some(divisor)) if divisor > 0 => {
                ("%", ((1 - divisor).max(self.lowest.min(0)), (divisor - 1).min(self.highest.max(0))))
            }
            (Operator::BitwiseAnd, Some(mask)) if mask >= 0 => ("&", (0, mask)),
            _ => return None,
        };
        let is_held = bits.0 <= lowest && highest <= bits.1;
        // The filter language holds a result in 64 bits with a sign if it may be negative.
        let is_held = is_held && (lowest >= 0 || highest <= i64::MAX.into());
        let text = format!("({} {sign} {})", self.text, right.text);
        is_held.then_some(Self { text, lowest, highest, bits: Some(bits) })
    }
}

/// The values of a type of integers.
fn range(data_type: &DataType) -> Option<(i128, i128)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// The integer that a constant is, if the filter language has it.
pub(super) fn literal(value: &ScalarValue) -> Option<i128> {
    let whole = |value: i128, scale: i8| {
        let unit = 10_i128.checked_pow(u32::try_from(scale).ok()?)?;
        (value % unit == 0).then_some(value / unit)
    };
    let number = match value {
        ScalarValue::Int8(value) => i128::from((*value)?),
        ScalarValue::Int16(value) => i128::from((*value)?),
        ScalarValue::Int32(value) => i128::from((*value)?),
        ScalarValue::Int64(value) => i128::from((*value)?),
        ScalarValue::UInt8(value) => i128::from((*value)?),
        ScalarValue::UInt16(value) => i128::from((*value)?),
        ScalarValue::UInt32(value) => i128::from((*value)?),
        ScalarValue::UInt64(value) => i128::from((*value)?),
        ScalarValue::Decimal128(value, _, scale) => whole((*value)?, *scale)?,
        _ => return None,
    };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

/// As the filter language writes it.
pub(super) fn written(number: i128) -> String {
    if number < 0 { format!("(-{})", number.unsigned_abs()) } else { number.to_string() }
}

/// A real constant that means the same to both: SQL has an order of its own for NaN, and for -0.0.
fn real(value: &ScalarValue) -> Option<f64> {
    let value = match value {
        ScalarValue::Float32(value) => f64::from((*value)?),
        ScalarValue::Float64(value) => (*value)?,
        _ => return None,
    };
    value.is_finite().then_some(value)
}

fn written_real(value: f64) -> String {
    if value.is_sign_negative() { format!("(-{:?})", -value) } else { format!("{value:?}") }
}

/// An integer that is compared as a real. It is never -0.0.
fn compared_as_real(text: &str, operator: Operator, value: &ScalarValue) -> Option<FilterText> {
    let value = real(value).filter(|value| *value != 0.0 || value.is_sign_positive())?;
    FilterText::exactly(format!("{text} {} {}", sign(operator)?, written_real(value)))
}

/// A real and a constant. In SQL, a NaN is above or below all others and equal to itself, and -0.0
/// is below 0.0; here it is neither, and they are equal. So a little more is kept, and asked again.
pub(super) fn compared_real(text: &str, operator: Operator, value: &ScalarValue) -> Option<FilterText> {
    let value = real(value)?;
    let is_zero = value == 0.0;
    let constant = written_real(value.abs() * if is_zero { 1.0 } else { value.signum() });
    FilterText::widely(match operator {
        Operator::Eq => format!("{text} == {constant}"),
        Operator::NotEq if !is_zero => format!("{text} != {constant}"),
        Operator::Lt | Operator::LtEq if is_zero => format!("!({text} > {constant})"),
        Operator::Gt | Operator::GtEq if is_zero => format!("!({text} < {constant})"),
        Operator::Lt => format!("!({text} >= {constant})"),
        Operator::LtEq => format!("!({text} > {constant})"),
        Operator::Gt => format!("!({text} <= {constant})"),
        Operator::GtEq => format!("!({text} < {constant})"),
        _ => return None,
    })
}
