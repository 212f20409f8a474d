//! DataFusion's value of an expression is the evaluator's value of its predicate, row by row: true, false or unknown.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, StringArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use kymo_ir::Encoding;
use kymo_ir::predicate::{
    Bitwise, Datum, Input, InputClass, InputKind, Number, Pattern, Predicate, Regex, Relation, Test, TextExpression,
};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};

/// Rows of each batch.
const ROWS: usize = 48;
const OPTIONS: PredicateOptions = PredicateOptions { encodings: false, ..PredicateOptions::ALL };

/// The column of an input, of the type that a table has for it.
fn column(kind: InputKind, rows: &[Vec<Datum>], input: usize) -> ArrayRef {
    let bits = |row: &Vec<Datum>| match row[input] {
        Datum::Number(bits) => Some(bits),
        _ => None,
    };
    let numbers = || rows.iter().map(bits);
    match kind {
        InputKind::Integer { signed: true, bits: 0..=8 } => {
            Arc::new(numbers().map(|bits| Some(bits? as i8)).collect::<Int8Array>())
        }
        InputKind::Integer { signed: true, bits: 9..=16 } => {
            Arc::new(numbers().map(|bits| Some(bits? as i16)).collect::<Int16Array>())
        }
        InputKind::Integer { signed: true, bits: 17..=32 } => {
            Arc::new(numbers().map(|bits| Some(bits? as i32)).collect::<Int32Array>())
        }
        InputKind::Integer { signed: true, .. } => {
            Arc::new(numbers().map(|bits| Some(bits? as i64)).collect::<Int64Array>())
        }
        InputKind::Integer { signed: false, bits: 0..=8 } => {
            Arc::new(numbers().map(|bits| Some(bits? as u8)).collect::<UInt8Array>())
        }
        InputKind::Integer { signed: false, bits: 9..=16 } => {
            Arc::new(numbers().map(|bits| Some(bits? as u16)).collect::<UInt16Array>())
        }
        InputKind::Integer { signed: false, bits: 17..=32 } => {
            Arc::new(numbers().map(|bits| Some(bits? as u32)).collect::<UInt32Array>())
        }
        InputKind::Integer { signed: false, .. } => Arc::new(numbers().collect::<UInt64Array>()),
        InputKind::Real => Arc::new(numbers().map(|bits| Some(f64::from_bits(bits?))).collect::<Float64Array>()),
        InputKind::Text(_) => Arc::new(rows.iter().map(|row| text(&row[input])).collect::<StringArray>()),
    }
}

fn text(datum: &Datum) -> Option<&str> {
    match datum {
        Datum::Text(bytes) => Some(std::str::from_utf8(bytes).expect("others were left out")),
        _ => None,
    }
}

/// Tables have text that is UTF-8; what is not stands in another column there.
fn is_utf8(row: &[Datum]) -> bool {
    row.iter().all(|datum| !matches!(datum, Datum::Text(bytes) if std::str::from_utf8(bytes).is_err()))
}

fn evaluate(expression: &Expr, predicate: &Predicate, rows: &[Vec<Datum>]) -> Vec<Option<bool>> {
    let inputs = predicate.inputs.iter().enumerate();
    let arrays: Vec<ArrayRef> = inputs.map(|(number, input)| column(input.kind, rows, number)).collect();
    let field = |(input, array): (&InputClass, &ArrayRef)| Field::new(&*input.name, array.data_type().clone(), true);
    let fields: Vec<Field> = predicate.inputs.iter().zip(&arrays).map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options).expect("the columns are even");
    let of_table = DFSchema::try_from(schema).expect("names differ");
    let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let physical = create_physical_expr(expression, &of_table, &properties, &context)
        .unwrap_or_else(|error| panic!("{error}\n{predicate}{expression}"));
    let value = physical.evaluate(&batch).unwrap_or_else(|error| panic!("{error}\n{predicate}{expression}"));
    let array = value.into_array(rows.len()).expect("there is memory");
    let array = array.as_any().downcast_ref::<BooleanArray>().expect("a predicate is true or false");
    array.iter().collect()
}

/// Compares all rows of a predicate; `None`: it is refused.
fn check(random: &mut RandomNumbers, predicate: &Predicate) -> Option<[usize; 3]> {
    let is_gone = |optional: bool, random: &mut RandomNumbers| optional && random.below(4) == 0;
    let gone: Vec<bool> = predicate.inputs.iter().map(|input| is_gone(input.optional, random)).collect();
    let columns: Vec<Option<Column>> = predicate
        .inputs
        .iter()
        .zip(&gone)
        .map(|(input, gone)| (!gone).then(|| Column::from_name(&*input.name)))
        .collect();
    let expression = kymo_sql::expression(predicate, &columns).ok()?;
    let mut rows: Vec<Vec<Datum>> = (0..ROWS).map(|_| predicates::event(random, predicate)).collect();
    rows.retain(|row| is_utf8(row));
    for row in &mut rows {
        for (datum, _) in row.iter_mut().zip(&gone).filter(|(_, gone)| **gone) {
            *datum = Datum::Missing;
        }
    }
    let mut counts = [0; 3];
    for (row, value) in rows.iter().zip(evaluate(&expression, predicate, &rows)) {
        let expected = predicate.test(&predicate.root, &row[..]);
        assert_eq!(value, expected, "{predicate}{expression}\n{row:?}");
        counts[expected.map_or(2, usize::from)] += 1;
    }
    Some(counts)
}

#[test]
fn random_predicates_have_the_evaluators_value() {
    let (mut taken, mut all) = (0, [0; 3]);
    for seed in 0..3000 {
        let random = &mut RandomNumbers::new(seed);
        let nodes = 1 + random.below(30);
        let (predicate, _) = predicates::predicate(random, &PredicateOptions { nodes, ..OPTIONS });
        if let Some(counts) = check(random, &predicate) {
            taken += 1;
            all = [0, 1, 2].map(|value| all[value] + counts[value]);
        }
    }
    println!("{taken} of 3000 predicates taken; false, true, unknown: {all:?}");
    assert!(taken > 1000 && all.iter().all(|count| *count > 5000), "{taken} {all:?}: the test has become weak");
}

/// Checks a test of one column against texts, and shows the expression.
fn matches(pattern: Pattern, expected: &str, texts: &[&str]) {
    let kind = InputKind::Text(Encoding::Utf8);
    let inputs = vec![InputClass { name: "comm".into(), kind, optional: true }];
    let predicate = Predicate { inputs, root: Test::Matches { text: TextExpression::Input(Input(0)), pattern } };
    let expression = kymo_sql::expression(&predicate, &[Some(Column::from_name("comm"))]).expect("SQL has it");
    assert_eq!(expression.to_string(), expected);
    let rows: Vec<Vec<Datum>> = texts.iter().map(|text| vec![Datum::Text(text.as_bytes().into())]).collect();
    let wanted: Vec<Option<bool>> = rows.iter().map(|row| predicate.test(&predicate.root, &row[..])).collect();
    assert_eq!(evaluate(&expression, &predicate, &rows), wanted);
    assert!(wanted.contains(&Some(true)) && wanted.contains(&Some(false)), "{expected} decides nothing");
}

/// `LIKE` has signs of its own, and its `%` must pass over line ends.
#[test]
fn patterns_are_likes() {
    let part = |text: &str| -> Box<[u8]> { text.as_bytes().into() };
    matches(Pattern::Prefix(part("a%b_")), r#"CAST(comm AS Utf8) LIKE Utf8("a\%b\_%")"#, &["a%b_c", "axbyc"]);
    let around_backslash = Pattern::Glob(vec![part("a"), part("\\"), part("z")]);
    matches(around_backslash, r#"CAST(comm AS Utf8) LIKE Utf8("a%\\%z")"#, &["a\n\\\nz", "az", "a\\z", "A\\z"]);
    matches(Pattern::Glob(vec![part("ab"), part("ba")]), r#"CAST(comm AS Utf8) LIKE Utf8("ab%ba")"#, &["aba", "abba"]);
    let regex = Regex::new("^[a-c]+.$").expect("it is one");
    matches(Pattern::Regex(regex), r#"CAST(comm AS Utf8) ~ Utf8("^[a-c]+.$")"#, &["abc", "abcdé", "ab\n", ""]);
}

#[test]
fn what_sql_says_otherwise_is_refused() {
    let check = |left: Number, right: Number, expected: &str| {
        let integer = |name: &str, signed| {
            let kind = InputKind::Integer { signed, bits: 64 };
            InputClass { name: name.into(), kind, optional: true }
        };
        let real = InputClass { name: "load".into(), kind: InputKind::Real, optional: true };
        let inputs = vec![integer("s", true), integer("u", false), real];
        let predicate = Predicate { inputs, root: Test::Compare { relation: Relation::Less, left, right } };
        let columns = ["s", "u", "load"].map(|name| Some(Column::from_name(name)));
        let refusal = kymo_sql::expression(&predicate, &columns).expect_err("SQL says otherwise");
        assert_eq!(refusal.to_string(), expected);
    };
    let input = |number| Number::Input(Input(number));
    check(input(2), input(0), "SQL compares reals with constants only as we do: load < s");
    let both = |operation| Number::Bits { operation, left: Box::new(input(0)), right: Box::new(input(1)) };
    let bits = "SQL has no bits of signed and of unsigned numbers together: (s & u)";
    check(both(Bitwise::And), Number::Integer(1), bits);
    let shift = "SQL shifts signs in, and the count is not a constant: (s >> u)";
    check(both(Bitwise::ShiftRight), Number::Integer(1), shift);
}

/// Ten thousand tests become a tree that recursion can walk.
#[test]
fn long_lists_do_not_become_deep() {
    let kind = InputKind::Integer { signed: true, bits: 32 };
    let inputs = vec![InputClass { name: "prio".into(), kind, optional: true }];
    let differs = |number| Test::Compare {
        relation: Relation::NotEqual,
        left: Number::Input(Input(0)),
        right: Number::Integer(number),
    };
    let predicate = Predicate { inputs, root: Test::All((0..10_000).map(differs).collect()) };
    let expression = kymo_sql::expression(&predicate, &[Some(Column::from_name("prio"))]).expect("it is long only");
    let rows = [5, 10_001].map(|prio| vec![Datum::Number(prio)]);
    assert_eq!(evaluate(&expression, &predicate, &rows), [Some(false), Some(true)]);
    let deep = (0..250).fold(differs(1), |test, _| Test::Not(Box::new(test)));
    let refusal = kymo_sql::expression(&Predicate { root: deep, ..predicate }, &[None]).expect_err("it is deep");
    assert_eq!(refusal.why, "the SQL expression would be too large or too deep");
}
