//! Predicates as DataFusion expressions: a pure mapping, where SQL means the same.
//!
//! ```text
//! prio < 100 && comm == "kworker*" && has(cpu)
//!
//! CAST(prio AS Int64) < 100 AND CAST(comm AS Utf8) LIKE 'kworker%' AND cpu IS NOT NULL
//! ```
//!
//! The three values are SQL's: an input that is missing is NULL, and an unknown value becomes NULL.
//! Rows are never an error, for any values: a sum that might not fit is made of decimals and cast
//! back by `TRY_CAST`, a divisor that might be 0 becomes NULL before. Where SQL means something
//! else the part is refused: reals against reals (NaN and -0.0 have a place in SQL's order), text
//! that is not UTF-8, shifts of negative numbers by a variable.

mod number;
mod part;
mod text;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, Operator};
use kymo_ir::predicate::{Input, Number, Predicate, Refusal, Relation, Test};

use number::IntegerExpression;
use part::ExpressionPart;

/// Operators and operands of an expression, at most.
const NODES_MAX: usize = 1 << 17;
/// Operators inside each other, at most: DataFusion walks expressions by recursion.
const DEPTH_MAX: usize = 128;

/// The expression that has the value of a predicate, given the column of each input; `None`: the table does not have it.
/// Columns of integers are of any integer type that holds the input, reals are floats, texts are strings.
///
/// # Errors
///
/// The first part that SQL cannot express, or expresses otherwise.
///
/// ```
/// use datafusion::common::Column;
/// use kymo_ir::predicate::{Input, InputClass, InputKind, Number, Predicate, Relation, Test};
///
/// let kind = InputKind::Integer { signed: true, bits: 32 };
/// let (left, right) = (Number::Input(Input(0)), Number::Integer(100));
/// let predicate = Predicate {
///     inputs: vec![InputClass { name: "prio".into(), kind, optional: true }],
///     root: Test::Compare { relation: Relation::Less, left, right },
/// };
/// let expression = kymo_sql::expression(&predicate, &[Some(Column::from_name("prio"))])?;
/// assert_eq!(expression.to_string(), "CAST(prio AS Int64) < Int64(100)");
/// # Ok::<(), kymo_ir::predicate::Refusal>(())
/// ```
pub fn expression(predicate: &Predicate, columns: &[Option<Column>]) -> Result<Expr, Refusal> {
    if predicate.verify().is_err() || columns.len() != predicate.inputs.len() {
        return Err(predicate.refusal(&predicate.root, "this is not a sound predicate with a column for each input"));
    }
    ExpressionBuilder { predicate, columns }.test(&predicate.root).map(ExpressionPart::into_expression)
}

struct ExpressionBuilder<'p> {
    predicate: &'p Predicate,
    columns: &'p [Option<Column>],
}

impl ExpressionBuilder<'_> {
    fn test(&self, test: &Test) -> Result<ExpressionPart, Refusal> {
        let part = match test {
            Test::Constant(value) => ExpressionPart::literal(ScalarValue::Boolean(*value)),
            Test::Not(test) => self.test(test)?.not(),
            Test::All(tests) => self.list(tests, Operator::And, true)?,
            Test::Any(tests) => self.list(tests, Operator::Or, false)?,
            Test::Has(input) => match self.column(*input) {
                Some(column) => column.known(),
                None => ExpressionPart::literal(ScalarValue::Boolean(Some(false))),
            },
            Test::Compare { relation, left, right } => {
                if self.predicate.is_real(left) || self.predicate.is_real(right) {
                    self.compare_reals(test, *relation, left, right)?
                } else {
                    let [left, right] = self.comparable(left, right)?;
                    left.binary(operator(*relation), right)
                }
            }
            Test::Among { value, ranges } => self.among(test, value, ranges)?,
            Test::CompareText { relation, left, right } => {
                self.text(test, left)?.binary(operator(*relation), self.text(test, right)?)
            }
            Test::Matches { text, pattern } => self.matches(test, text, pattern)?,
        };
        if part.is_within(NODES_MAX, DEPTH_MAX) {
            return Ok(part);
        }
        Err(self.predicate.refusal(test, "the SQL expression would be too large or too deep"))
    }

    /// In halves, so that long lists do not become deep.
    fn list(&self, tests: &[Test], operator: Operator, of_none: bool) -> Result<ExpressionPart, Refusal> {
        match tests {
            [] => Ok(ExpressionPart::literal(ScalarValue::Boolean(Some(of_none)))),
            [test] => self.test(test),
            _ => {
                let (left, right) = tests.split_at(tests.len() / 2);
                let (left, right) = (self.list(left, operator, of_none)?, self.list(right, operator, of_none)?);
                Ok(left.binary(operator, right))
            }
        }
    }

    fn column(&self, input: Input) -> Option<ExpressionPart> {
        self.columns[usize::from(input.0)].clone().map(|column| ExpressionPart::leaf(Expr::Column(column)))
    }

    /// A real with a constant. SQL has NaNs at both ends of its order and -0.0 below 0.0, the
    /// predicate's comparisons are those of IEEE 754; with a constant the difference can be
    /// expressed.
    fn compare_reals(
        &self,
        test: &Test,
        relation: Relation,
        left: &Number,
        right: &Number,
    ) -> Result<ExpressionPart, Refusal> {
        let constant = match right {
            Number::Integer(value) => *value as f64,
            Number::Real(value) => value.value(),
            _ if matches!(left, Number::Integer(_) | Number::Real(_)) => {
                return self.compare_reals(test, relation.mirrored(), right, left);
            }
            _ => return Err(self.predicate.refusal(test, "SQL compares reals with constants only as we do")),
        };
        if constant.is_nan() {
            return Err(self.predicate.refusal(test, "SQL takes what is not a number as equal to itself"));
        }
        let value = self.real(left)?;
        if value.nodes() > NODES_MAX / 4 {
            return Err(self.predicate.refusal(test, "the SQL expression would be too large"));
        }
        let is = |operator, constant: f64| value.clone().binary(operator, ExpressionPart::literal(constant.into()));
        let is_zero = constant == 0.0;
        Ok(match relation {
            Relation::Equal if is_zero => is(Operator::Eq, 0.0).binary(Operator::Or, is(Operator::Eq, -0.0)),
            Relation::NotEqual if is_zero => is(Operator::NotEq, 0.0).binary(Operator::And, is(Operator::NotEq, -0.0)),
            Relation::Equal | Relation::NotEqual => is(operator(relation), constant),
            Relation::Less | Relation::LessOrEqual => {
                // Below the lowest number there are NaNs only. In IEEE terms, less than zero is below
                // -0.0, and at most zero is up to 0.0.
                let constant = match (is_zero, relation) {
                    (false, _) => constant,
                    (true, Relation::Less) => -0.0,
                    (true, _) => 0.0,
                };
                is(operator(relation), constant).binary(Operator::And, is(Operator::GtEq, f64::NEG_INFINITY))
            }
            Relation::Greater | Relation::GreaterOrEqual => {
                let constant = match (is_zero, relation) {
                    (false, _) => constant,
                    (true, Relation::Greater) => 0.0,
                    (true, _) => -0.0,
                };
                is(operator(relation), constant).binary(Operator::And, is(Operator::LtEq, f64::INFINITY))
            }
        })
    }

    /// Single values become a list, others pairs of comparisons.
    fn among(&self, test: &Test, value: &Number, ranges: &[(i128, i128)]) -> Result<ExpressionPart, Refusal> {
        let of_value = self.predicate.range(value);
        let IntegerExpression { part, held } = self.integer(value)?;
        if part.nodes() > NODES_MAX / (2 * ranges.len() + 2) {
            return Err(self.predicate.refusal(test, "the SQL expression would be too large"));
        }
        let possible = ranges
            .iter()
            .filter(|(lowest, highest)| *lowest <= of_value.highest && *highest >= of_value.lowest)
            .map(|&(lowest, highest)| (lowest.max(of_value.lowest), highest.min(of_value.highest)));
        let (single, wide): (Vec<_>, Vec<_>) = possible.partition(|(lowest, highest)| lowest == highest);
        let mut parts = Vec::new();
        if !single.is_empty() {
            parts.push(part.clone().in_list(single.iter().map(|&(value, _)| held.literal(value)).collect()));
        }
        for (lowest, highest) in wide {
            let above = part.clone().binary(Operator::GtEq, ExpressionPart::literal(held.literal(lowest)));
            let below = part.clone().binary(Operator::LtEq, ExpressionPart::literal(held.literal(highest)));
            parts.push(above.binary(Operator::And, below));
        }
        // False where the value is known: it is never below all others.
        let never = |part: ExpressionPart| part.binary(Operator::Lt, ExpressionPart::literal(held.lowest()));
        Ok(ExpressionPart::joined(parts, Operator::Or).unwrap_or_else(|| never(part)))
    }
}

fn operator(relation: Relation) -> Operator {
    match relation {
        Relation::Equal => Operator::Eq,
        Relation::NotEqual => Operator::NotEq,
        Relation::Less => Operator::Lt,
        Relation::LessOrEqual => Operator::LtEq,
        Relation::Greater => Operator::Gt,
        Relation::GreaterOrEqual => Operator::GtEq,
    }
}
