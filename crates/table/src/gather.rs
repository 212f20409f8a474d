//! Columns of several classes as one: its type, and its rows from here and there.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray, new_null_array};
use arrow::compute::{cast, interleave};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// The least type that holds the values of both; text, if there is none.
#[must_use]
pub fn common_type(one: &DataType, other: &DataType) -> DataType {
    use DataType::{Decimal128, Float32, Float64};
    if one == other {
        return one.clone();
    }
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => wider(one, other),
        (Some((bits, _)), None) if is_real(other) && bits <= 32 => Float64,
        (None, Some((bits, _))) if is_real(one) && bits <= 32 => Float64,
        // An already widened column.
        (Some(_), None) if *other == Decimal128(20, 0) => Decimal128(20, 0),
        (None, Some(_)) if *one == Decimal128(20, 0) => Decimal128(20, 0),
        (None, None) if matches!((one, other), (Float32, Float64) | (Float64, Float32)) => Float64,
        _ => DataType::Utf8,
    }
}

fn is_real(kind: &DataType) -> bool {
    matches!(kind, DataType::Float32 | DataType::Float64)
}

/// Bits, and whether it has a sign.
fn integer(kind: &DataType) -> Option<(usize, bool)> {
    kind.is_integer().then(|| (8 * kind.primitive_width().unwrap_or(8), kind.is_signed_integer()))
}

fn wider(one: (usize, bool), other: (usize, bool)) -> DataType {
    // With a sign, a number without needs one bit more.
    let is_signed = one.1 || other.1;
    let bits = |(bits, signed): (usize, bool)| if is_signed && !signed { bits + 1 } else { bits };
    match (bits(one).max(bits(other)), is_signed) {
        (0..=8, true) => DataType::Int8,
        (0..=16, true) => DataType::Int16,
        (0..=32, true) => DataType::Int32,
        (0..=64, true) => DataType::Int64,
        (_, true) => DataType::Decimal128(20, 0),
        (0..=8, false) => DataType::UInt8,
        (0..=16, false) => DataType::UInt16,
        (0..=32, false) => DataType::UInt32,
        (_, false) => DataType::UInt64,
    }
}

/// The values with another type, which [`common_type`] gave.
///
/// # Errors
///
/// Arrow has no such cast.
pub fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    if *to != DataType::Utf8 || array.data_type().is_integer() {
        return cast(array, to);
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let text = |row: usize| array.is_valid(row).then(|| formatter.value(row).to_string());
    Ok(Arc::new((0..array.len()).map(text).collect::<StringArray>()))
}

/// A column of this type: `rows[i]` gives the array that row `i` comes from, and the row in it.
/// Where there is no array, there is no value.
///
/// # Errors
///
/// Arrow refuses, which it does for more than 2 GiB of text.
pub fn gather(arrays: &[Option<ArrayRef>], rows: &[(usize, usize)], kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let converted = arrays.iter().map(|array| array.as_ref().map(|array| convert(array, kind)).transpose());
    let converted: Vec<Option<ArrayRef>> = converted.collect::<Result<_, _>>()?;
    if converted.iter().all(Option::is_none) {
        return Ok(new_null_array(kind, rows.len()));
    }
    let null = new_null_array(kind, 1);
    let sources: Vec<&dyn Array> = converted.iter().map(|array| array.as_ref().unwrap_or(&null).as_ref()).collect();
    if converted.iter().all(Option::is_some) {
        return interleave(&sources, rows);
    }
    let is_absent: Vec<bool> = converted.iter().map(Option::is_none).collect();
    let rows: Vec<(usize, usize)> = rows.iter().map(|&(at, row)| (at, if is_absent[at] { 0 } else { row })).collect();
    interleave(&sources, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int16Array, UInt64Array};
    use arrow::datatypes::DataType::{
        Boolean, Decimal128, Float64, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Utf8,
    };

    #[test]
    fn the_common_type_holds_both() {
        let cases = [
            (UInt8, UInt32, UInt32),
            (UInt8, Int16, Int16),
            (UInt16, Int16, Int32),
            (UInt32, Int32, Int64),
            (UInt64, Int16, Decimal128(20, 0)),
            (Decimal128(20, 0), Int16, Decimal128(20, 0)),
            (Int32, Float64, Float64),
            (Int64, Float64, Utf8),
            (Boolean, UInt8, Utf8),
        ];
        for (one, other, both) in cases {
            assert_eq!(common_type(&one, &other), both, "{one} and {other}");
            assert_eq!(common_type(&other, &one), both, "{other} and {one}");
        }
    }

    #[test]
    fn rows_come_from_where_they_are() {
        let arrays: [Option<ArrayRef>; 3] = [
            Some(Arc::new(Int16Array::from(vec![-1, 2]))),
            None,
            Some(Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ];
        let rows = [(2, 0), (0, 1), (1, 7), (0, 0), (2, 1)];
        let gathered = gather(&arrays, &rows, &Decimal128(20, 0)).unwrap();
        let shown = cast(&gathered, &Utf8).unwrap();
        let expected = [Some("18446744073709551615"), Some("2"), None, Some("-1"), None];
        assert_eq!(shown.as_ref(), &StringArray::from(expected.to_vec()));
    }
}
