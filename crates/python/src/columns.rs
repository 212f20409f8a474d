//! Columns for Python: batches that hand themselves out by the Arrow C interface, and as lists of plain values.
//!
//! ```text
//! RecordBatch ──> Batch ─┬─ __arrow_c_array__, __arrow_c_stream__   pyarrow, polars, pandas, DuckDB: nothing is copied
//!                        ├─ values                                  lists of Python's own numbers and texts
//!                        └─ buffer                                  numbers for NumPy, copied once
//! ```

use std::ffi::CStr;
use std::sync::Arc;

use kymo_session::arrow::array::cast::AsArray;
use kymo_session::arrow::array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use kymo_session::arrow::array::ffi_stream::FFI_ArrowArrayStream;
use kymo_session::arrow::array::{
    Array, ArrayRef, MapArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray,
};
use kymo_session::arrow::compute::cast;
use kymo_session::arrow::datatypes::{
    DataType, DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef,
    TimeUnit, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use kymo_session::arrow::error::ArrowError;
use kymo_session::arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple};

/// Names and types of columns.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Schema {
    pub(crate) inner: SchemaRef,
}

#[pymethods]
impl Schema {
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Types in Arrow's words.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.inner.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// Metadata of each column.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let fields = self.inner.fields().iter();
        fields.map(|field| field.metadata().into_pyobject(py)).collect::<Result<_, _>>()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.capsule(py)
    }
}

impl Schema {
    pub(crate) fn capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.inner)
    }
}

/// Rows as columns.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Batch {
    pub(crate) inner: RecordBatch,
}

#[pymethods]
impl Batch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.inner.num_rows()
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: self.inner.schema() }
    }

    /// One column as a list of plain values: times are nanoseconds, structures are dictionaries.
    fn values<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, values(py, self.column(column)?)?)
    }

    /// Rows from one to another as lists of plain values.
    fn rows<'py>(&self, py: Python<'py>, begin: usize, end: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let rows = self.slice(begin, end.saturating_sub(begin)).inner;
        let columns = rows.columns().iter().map(|array| values(py, array)).collect::<PyResult<Vec<_>>>()?;
        (0..rows.num_rows()).map(|row| PyTuple::new(py, columns.iter().map(|column| &column[row]))).collect()
    }

    /// A slice of `count` rows; it shares the memory.
    fn slice(&self, begin: usize, count: usize) -> Self {
        let begin = begin.min(self.inner.num_rows());
        Self { inner: self.inner.slice(begin, count.min(self.inner.num_rows() - begin)) }
    }

    /// The numbers of a column without nulls for NumPy: the name of their type, and their bytes.
    fn buffer<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Option<(&'static str, Bound<'py, PyBytes>)>> {
        let array = self.column(column)?;
        let Some((name, width)) = numpy_type(array.data_type()).filter(|_| array.null_count() == 0) else {
            return Ok(None);
        };
        let data = array.to_data();
        let bytes = &data.buffers()[0].as_slice()[data.offset() * width..(data.offset() + data.len()) * width];
        Ok(Some((name, PyBytes::new(py, bytes))))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Consumers cast the columns to other types: the protocol allows to give the existing ones.
        drop(requested_schema);
        let rows = StructArray::from(self.inner.clone());
        let (array, _) = to_ffi(&rows.to_data()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let array = capsule::<FFI_ArrowArray>(py, array, c"arrow_array")?;
        Ok((schema_capsule(py, &self.inner.schema())?, array))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = [Ok(self.inner.clone())];
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.inner.schema())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.inner.schema())
    }
}

impl Batch {
    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.inner.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// A stream that a consumer reads.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    capsule(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    capsule(py, schema, c"arrow_schema")
}

/// A consumer that takes the content leaves a released structure: dropping that does nothing.
fn capsule<'py, T: 'static + Send>(
    py: Python<'py>,
    content: T,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, content, name)
}

/// NumPy's name of numbers of a type, and their bytes.
fn numpy_type(data_type: &DataType) -> Option<(&'static str, usize)> {
    Some(match data_type {
        DataType::Int8 => ("int8", 1),
        DataType::Int16 => ("int16", 2),
        DataType::Int32 => ("int32", 4),
        DataType::Int64 => ("int64", 8),
        DataType::UInt8 => ("uint8", 1),
        DataType::UInt16 => ("uint16", 2),
        DataType::UInt32 => ("uint32", 4),
        DataType::UInt64 => ("uint64", 8),
        DataType::Float32 => ("float32", 4),
        DataType::Float64 => ("float64", 8),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => ("datetime64[ns]", 8),
        _ => return None,
    })
}

/// Values of a column; of nothing, `None`.
type Values<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// Each value of a column as Python has it.
fn values<'py>(py: Python<'py>, array: &ArrayRef) -> Values<'py> {
    match array.data_type() {
        DataType::Boolean => each(py, array.as_boolean().iter()),
        DataType::Int8 => each(py, array.as_primitive::<Int8Type>().iter()),
        DataType::Int16 => each(py, array.as_primitive::<Int16Type>().iter()),
        DataType::Int32 => each(py, array.as_primitive::<Int32Type>().iter()),
        DataType::Int64 => each(py, array.as_primitive::<Int64Type>().iter()),
        DataType::UInt8 => each(py, array.as_primitive::<UInt8Type>().iter()),
        DataType::UInt16 => each(py, array.as_primitive::<UInt16Type>().iter()),
        DataType::UInt32 => each(py, array.as_primitive::<UInt32Type>().iter()),
        DataType::UInt64 => each(py, array.as_primitive::<UInt64Type>().iter()),
        DataType::Float32 => each(py, array.as_primitive::<Float32Type>().iter()),
        DataType::Float64 => each(py, array.as_primitive::<Float64Type>().iter()),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            each(py, array.as_primitive::<TimestampNanosecondType>().iter())
        }
        DataType::Timestamp(_, zone) => {
            let nanos = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
            values(py, &cast(array, &nanos).map_err(refused)?)
        }
        DataType::Duration(TimeUnit::Nanosecond) => each(py, array.as_primitive::<DurationNanosecondType>().iter()),
        DataType::Null => Ok(vec![py.None().into_bound(py); array.len()]),
        DataType::Utf8 => each(py, array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => each(py, array.as_string::<i64>().iter()),
        DataType::Utf8View => each(py, array.as_string_view().iter()),
        DataType::Binary => each(py, array.as_binary::<i32>().iter().map(|it| it.map(|bytes| PyBytes::new(py, bytes)))),
        DataType::LargeBinary => {
            each(py, array.as_binary::<i64>().iter().map(|it| it.map(|bytes| PyBytes::new(py, bytes))))
        }
        DataType::FixedSizeBinary(_) => {
            each(py, array.as_fixed_size_binary().iter().map(|it| it.map(|bytes| PyBytes::new(py, bytes))))
        }
        DataType::List(_) => lists(py, array.as_list::<i32>().iter()),
        DataType::LargeList(_) => lists(py, array.as_list::<i64>().iter()),
        DataType::FixedSizeList(..) => lists(py, array.as_fixed_size_list().iter()),
        DataType::Struct(_) => structures(py, array.as_struct()),
        DataType::Map(..) => maps(py, array.as_map()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // Without any value, no row has one.
            if dictionary.values().is_empty() {
                return Ok(vec![py.None().into_bound(py); array.len()]);
            }
            let words = values(py, dictionary.values())?;
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            let word = |(row, key): (usize, usize)| {
                if array.is_null(row) { py.None().into_bound(py) } else { words[key].clone() }
            };
            Ok(keys.map(word).collect())
        }
        // Dates and the like, which only SQL makes.
        _ => texts(py, array),
    }
}

/// Values as CSV has them.
fn texts<'py>(py: Python<'py>, array: &ArrayRef) -> Values<'py> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(refused)?;
    each(py, (0..array.len()).map(|row| array.is_valid(row).then(|| formatter.value(row).to_string())))
}

fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn maps<'py>(py: Python<'py>, all: &MapArray) -> Values<'py> {
    let map = |row: usize| {
        if all.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        let entries = all.value(row);
        let (keys, items) = (values(py, entries.column(0))?, values(py, entries.column(1))?);
        let map = PyDict::new(py);
        keys.iter().zip(items).try_for_each(|(key, item)| map.set_item(key, item))?;
        Ok(map.into_any())
    };
    (0..all.len()).map(map).collect()
}

fn each<'py, T: IntoPyObject<'py>>(py: Python<'py>, items: impl Iterator<Item = Option<T>>) -> Values<'py> {
    items.map(|item| item.into_bound_py_any(py)).collect()
}

fn lists<'py>(py: Python<'py>, items: impl Iterator<Item = Option<ArrayRef>>) -> Values<'py> {
    items
        .map(|item| match item {
            Some(item) => Ok(PyList::new(py, values(py, &item)?)?.into_any()),
            None => Ok(py.None().into_bound(py)),
        })
        .collect()
}

fn structures<'py>(py: Python<'py>, all: &StructArray) -> Values<'py> {
    let members = all.columns().iter().map(|member| values(py, member)).collect::<PyResult<Vec<_>>>()?;
    (0..all.len())
        .map(|row| {
            if all.is_null(row) {
                return Ok(py.None().into_bound(py));
            }
            let object = PyDict::new(py);
            for (field, member) in all.fields().iter().zip(&members) {
                object.set_item(field.name(), &member[row])?;
            }
            Ok(object.into_any())
        })
        .collect()
}

/// Columns that Python sees.
pub(crate) fn batch(inner: RecordBatch) -> Batch {
    Batch { inner }
}

/// Names and types that Python sees.
pub(crate) fn schema(inner: &SchemaRef) -> Schema {
    Schema { inner: Arc::clone(inner) }
}
