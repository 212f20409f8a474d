//! Units: two numbers are brought to a unit that measures both exactly.
//!
//! ```text
//! latency_us < 5ms       latency_us * 1000 < 5000000      (folding makes latency_us < 5000 of it)
//! ticks_of_3ns > 10ns    ticks_of_3ns * 3 > 10
//! latency < 5ms          latency < 5000000, and a note: nobody said what `latency` counts
//! ```

use kymo_ir::predicate::{Arithmetic, INTEGER_HIGHEST, INTEGER_LOWEST, Number, RealBits};

use crate::ast::Id;
use crate::bind::{Binder, Measured};
use crate::fields::{Dimension, Unit};
use crate::fold::is_constant;
use crate::problem::{FilterProblem, ProblemKind};

impl Dimension {
    fn words(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Size => "a size",
        }
    }
}

impl Binder<'_> {
    /// Two numbers in one unit, which is the third; `None`: they have none in common, which is a problem.
    pub(crate) fn aligned(
        &mut self,
        (left_id, left): (Id, Measured),
        (right_id, right): (Id, Measured),
    ) -> Option<(Number, Number, Option<Unit>)> {
        let (Some(left_unit), Some(right_unit)) = (left.unit, right.unit) else {
            self.note_assumption((left_id, &left), (right_id, &right));
            self.note_assumption((right_id, &right), (left_id, &left));
            return Some((left.number, right.number, left.unit.or(right.unit)));
        };
        if left_unit.dimension != right_unit.dimension {
            let kind = ProblemKind::Dimensions {
                left: self.written(left_id),
                left_dimension: left_unit.dimension.words(),
                right: self.written(right_id),
                right_dimension: right_unit.dimension.words(),
            };
            self.problem(FilterProblem::new(self.span(left_id).start..self.span(right_id).end, kind));
            return None;
        }
        let wide = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let factors = (wide(left_unit.multiply, right_unit.divide), wide(right_unit.multiply, left_unit.divide));
        let divisor = greatest_common_divisor(factors.0, factors.1);
        let unit = finer(left_unit, factors.0 / divisor);
        let left = self.scaled(left_id, left.number, factors.0 / divisor);
        let right = self.scaled(right_id, right.number, factors.1 / divisor);
        Some((left?, right?, unit))
    }

    /// A quantity in the text meets a number without a known unit.
    fn note_assumption(&mut self, (number_id, number): (Id, &Measured), (quantity_id, quantity): (Id, &Measured)) {
        let (None, Some(unit), Number::Integer(value)) = (number.unit, quantity.unit, &quantity.number) else { return };
        if is_constant(&number.number) {
            return;
        }
        // Once for each number is enough.
        let what = format!("`{}` has no unit: ", self.written(number_id));
        let how = format!("`{}` is taken as {value}, in {}", self.written(quantity_id), unit.dimension.base());
        self.note(self.span(number_id), &what, &how);
    }

    fn scaled(&mut self, id: Id, number: Number, factor: u128) -> Option<Number> {
        if factor == 1 {
            return Some(number);
        }
        let scaled = match number {
            _ if self.predicate.is_real(&number) => {
                let factor = Box::new(Number::Real(RealBits::from(factor as f64)));
                let product =
                    Number::Arithmetic { operation: Arithmetic::Multiply, left: Box::new(number), right: factor };
                return match self.computed(product, None) {
                    crate::bind::BoundValue::Number(measured) => Some(measured.number),
                    _ => None,
                };
            }
            Number::Integer(value) => {
                let product = i128::try_from(factor).ok().and_then(|factor| value.checked_mul(factor));
                product.filter(|product| (INTEGER_LOWEST..=INTEGER_HIGHEST).contains(product)).map(Number::Integer)
            }
            number => u64::try_from(factor).ok().map(|multiply| Number::Scaled {
                value: Box::new(number),
                multiply,
                divide: 1,
                add: 0,
            }),
        };
        if scaled.is_none() {
            let problem = FilterProblem::new(self.span(id), ProblemKind::UnitRange(self.written(id)));
            self.problem(problem);
        }
        scaled
    }
}

/// The unit of which `factor` are one of the other; `None`: it is too fine to be expressed.
fn finer(unit: Unit, factor: u128) -> Option<Unit> {
    let (multiply, divide) = (u128::from(unit.multiply), u128::from(unit.divide).checked_mul(factor)?);
    let divisor = greatest_common_divisor(multiply, divide);
    let fits = |number: u128| u64::try_from(number / divisor).ok();
    Some(Unit { dimension: unit.dimension, multiply: fits(multiply)?, divide: fits(divide)? })
}

fn greatest_common_divisor(one: u128, other: u128) -> u128 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}
