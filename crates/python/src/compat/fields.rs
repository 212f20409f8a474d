//! Fields that are numbers or texts. They behave as Python's own, and as `bt2`'s where those differ.
//!
//! ```text
//! Field ─┬─ Numeric ─┬─ Integral ─┬─ Bool
//!        │           │            └─ Integer ─┬─ Unsigned ── UnsignedEnumeration
//!        │           │                        └─ Signed ──── SignedEnumeration
//!        │           └─ Real ─┬─ Single
//!        │                    └─ Double
//!        └─ Text
//! ```

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// A field of an event, or a part of one.
#[pyclass(frozen, subclass, name = "_FieldConst", module = "kymograph.compat.bt2")]
pub(crate) struct Field {
    pub(super) cls: Py<PyAny>,
}

#[pymethods]
impl Field {
    #[getter]
    fn addr(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize
    }

    #[getter]
    fn cls(&self, py: Python<'_>) -> Py<PyAny> {
        self.cls.clone_ref(py)
    }
}

/// A field that is a number.
#[pyclass(frozen, subclass, extends = Field, name = "_NumericFieldConst", module = "kymograph.compat.bt2")]
pub(crate) struct Numeric {
    value: Number,
}

#[derive(Clone, Copy)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Boolean(bool),
    Real(f64),
}

impl Number {
    #[inline]
    fn object(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::Unsigned(number) => PyInt::new(py, number).into_any(),
            Self::Signed(number) => PyInt::new(py, number).into_any(),
            Self::Boolean(is_true) => PyBool::new(py, is_true).to_owned().into_any(),
            Self::Real(number) => PyFloat::new(py, number).into_any(),
        }
    }
}

macro_rules! classes {
    ($($(#[$attribute:meta])* $name:ident($parent:ident) = $python:literal;)*) => {$(
        /// See the picture above.
        #[pyclass(frozen, subclass, extends = $parent, name = $python, module = "kymograph.compat.bt2")]
        $(#[$attribute])*
        pub(crate) struct $name;
    )*};
}

classes! {
    Integral(Numeric) = "_IntegralFieldConst";
    Integer(Integral) = "_IntegerFieldConst";
    Real(Numeric) = "_RealFieldConst";
}

macro_rules! leaves {
    ($($name:ident($parent:ident) = $python:literal;)*) => {$(
        /// See the picture above.
        #[pyclass(
            frozen, subclass, freelist = 64, extends = $parent, name = $python, module = "kymograph.compat.bt2"
        )]
        pub(crate) struct $name;
    )*};
}

leaves! {
    Bool(Integral) = "_BoolFieldConst";
    Unsigned(Integer) = "_UnsignedIntegerFieldConst";
    Signed(Integer) = "_SignedIntegerFieldConst";
    UnsignedEnumeration(Unsigned) = "_UnsignedEnumerationFieldConst";
    SignedEnumeration(Signed) = "_SignedEnumerationFieldConst";
    Single(Real) = "_SinglePrecisionRealFieldConst";
    Double(Real) = "_DoublePrecisionRealFieldConst";
}

#[inline]
fn numeric(py: Python<'_>, cls: &Py<PyAny>, value: Number) -> PyClassInitializer<Numeric> {
    PyClassInitializer::from(Field { cls: cls.clone_ref(py) }).add_subclass(Numeric { value })
}

#[inline]
pub(super) fn boolean(py: Python<'_>, cls: &Py<PyAny>, value: bool) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Boolean(value)).add_subclass(Integral).add_subclass(Bool);
    Py::new(py, made).map(Py::into_any)
}

#[inline]
pub(super) fn unsigned(py: Python<'_>, cls: &Py<PyAny>, value: u64) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Unsigned(value)).add_subclass(Integral).add_subclass(Integer);
    Py::new(py, made.add_subclass(Unsigned)).map(Py::into_any)
}

#[inline]
pub(super) fn signed(py: Python<'_>, cls: &Py<PyAny>, value: i64) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Signed(value)).add_subclass(Integral).add_subclass(Integer);
    Py::new(py, made.add_subclass(Signed)).map(Py::into_any)
}

pub(super) fn unsigned_enumeration(py: Python<'_>, cls: &Py<PyAny>, value: u64) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Unsigned(value)).add_subclass(Integral).add_subclass(Integer);
    Py::new(py, made.add_subclass(Unsigned).add_subclass(UnsignedEnumeration)).map(Py::into_any)
}

pub(super) fn signed_enumeration(py: Python<'_>, cls: &Py<PyAny>, value: i64) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Signed(value)).add_subclass(Integral).add_subclass(Integer);
    Py::new(py, made.add_subclass(Signed).add_subclass(SignedEnumeration)).map(Py::into_any)
}

pub(super) fn real(py: Python<'_>, cls: &Py<PyAny>, value: f64, is_single: bool) -> PyResult<Py<PyAny>> {
    let made = numeric(py, cls, Number::Real(value)).add_subclass(Real);
    match is_single {
        true => Py::new(py, made.add_subclass(Single)).map(Py::into_any),
        false => Py::new(py, made.add_subclass(Double)).map(Py::into_any),
    }
}

/// The content of an optional or a variant; any other object itself.
pub(super) fn leaf<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    if other.is_exact_instance_of::<PyInt>()
        || other.is_exact_instance_of::<PyString>()
        || other.is_instance_of::<Field>()
    {
        return Ok(other.clone());
    }
    py.import(intern!(py, "kymograph.compat.bt2._field"))?.call_method1(intern!(py, "_get_leaf_field"), (other,))
}

/// A number that others calculate with.
fn number<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = other.py();
    if let Ok(field) = other.cast::<Numeric>() {
        return Ok(field.get().value.object(py));
    }
    if other.is_exact_instance_of::<PyInt>() || other.is_exact_instance_of::<PyFloat>() {
        return Ok(other.clone());
    }
    py.import(intern!(py, "kymograph.compat.bt2._field"))?.call_method1(intern!(py, "_extract_value"), (other,))
}

fn is_number(other: &Bound<'_, PyAny>) -> PyResult<bool> {
    if other.is_instance_of::<Numeric>() || other.is_instance_of::<PyInt>() || other.is_instance_of::<PyFloat>() {
        return Ok(true);
    }
    let py = other.py();
    other.is_instance(&py.import(intern!(py, "numbers"))?.getattr(intern!(py, "Number"))?)
}

/// Equal, but where the other one is no number.
fn equals(ours: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let other = leaf(other)?;
    let equal = number(&other).and_then(|other| ours.eq(other));
    Ok(equal.unwrap_or(false))
}

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// The value of a field that is a number.
#[inline]
fn ours<'py>(slf: &Bound<'py, PyAny>) -> Object<'py> {
    Ok(slf.cast::<Numeric>()?.get().value.object(slf.py()))
}

#[pymethods]
impl Numeric {
    #[getter]
    fn _value<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.value.object(py)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> Object<'py> {
        match self.value {
            Number::Unsigned(_) | Number::Signed(_) => Ok(self.value.object(py)),
            _ => py.get_type::<PyInt>().call1((self.value.object(py),)),
        }
    }

    fn __float__<'py>(&self, py: Python<'py>) -> Object<'py> {
        py.get_type::<PyFloat>().call1((self.value.object(py),))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Object<'py> {
        py.get_type::<pyo3::types::PyComplex>().call1((self.value.object(py),))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.value.object(py).is_truthy()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.value.object(py).hash()
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.value.object(py).repr()
    }

    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
        let ours = slf.get().value.object(slf.py());
        match op {
            CompareOp::Eq => return equals(&ours, other),
            CompareOp::Ne => return equals(&ours, other).map(|equal| !equal),
            _ => {}
        }
        if !is_number(other)? {
            let name = |object: &Bound<'_, PyAny>| object.get_type().name().map(|name| name.to_string());
            let (ours, theirs) = (name(slf.as_any())?, name(other)?);
            return Err(PyTypeError::new_err(format!("unorderable types: {ours}() < {theirs}()")));
        }
        // As operators that are derived from `<` and `==`, also for objects that are not numbers.
        let is_less = ours.lt(number(other)?)?;
        Ok(match op {
            CompareOp::Lt => is_less,
            CompareOp::Le => is_less || equals(&ours, other)?,
            CompareOp::Gt => !is_less && !equals(&ours, other)?,
            _ => !is_less,
        })
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.add(number(other)?)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.add(ours(slf)?)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.mul(number(other)?)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.mul(ours(slf)?)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.div(number(other)?)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.div(ours(slf)?)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.floor_div(number(other)?)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.floor_div(ours(slf)?)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.rem(number(other)?)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.rem(ours(slf)?)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.add(number(&other.neg()?)?)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.neg()?.add(other)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.divmod(number(other)?)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.divmod(ours(slf)?)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        exponent: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        if modulo.is_some() {
            return Err(PyTypeError::new_err("__pow__() takes 2 positional arguments but 3 were given"));
        }
        ours(slf)?.pow(number(exponent)?, slf.py().None())
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        base: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Object<'py> {
        number(base)?.pow(ours(slf)?, slf.py().None())
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        ours(slf)?.neg()
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        ours(slf)?.pos()
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        ours(slf)?.abs()
    }

    #[pyo3(signature = (ndigits=None))]
    fn __round__<'py>(&self, py: Python<'py>, ndigits: Option<Bound<'py, PyAny>>) -> Object<'py> {
        let value = self.value.object(py);
        match ndigits {
            None => value.call_method0("__round__"),
            Some(digits) => value.call_method1("__round__", (digits,)),
        }
    }

    fn __ceil__<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.value.object(py).call_method0("__ceil__")
    }

    fn __floor__<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.value.object(py).call_method0("__floor__")
    }

    fn __trunc__<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.__int__(py)
    }

    #[getter]
    fn real<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.value.object(py).pos()
    }

    #[getter]
    fn imag(&self) -> u8 {
        0
    }

    fn conjugate<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.value.object(py).pos()
    }
}

#[pymethods]
impl Integral {
    fn __index__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        slf.py().get_type::<PyInt>().call1((ours(slf)?,))
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.lshift(number(other)?)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.lshift(ours(slf)?)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.rshift(number(other)?)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.rshift(ours(slf)?)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.bitand(number(other)?)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.bitand(ours(slf)?)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.bitxor(number(other)?)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.bitxor(ours(slf)?)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        ours(slf)?.bitor(number(other)?)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        number(other)?.bitor(ours(slf)?)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        ours(slf)?.bitnot()
    }

    #[getter]
    fn numerator<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        Self::__index__(slf)
    }

    #[getter]
    fn denominator(_slf: &Bound<'_, Self>) -> u8 {
        1
    }
}

/// The labels that a value has: of each mapping of the class, once.
fn labels<'py>(slf: &Bound<'py, PyAny>) -> Object<'py> {
    let py = slf.py();
    slf.cast::<Field>()?.get().cls.bind(py).call_method1(intern!(py, "_labels_of"), (ours(slf)?,))
}

/// `3 (LABEL, LABEL)`
fn labelled(slf: &Bound<'_, PyAny>) -> PyResult<String> {
    let labels: Vec<String> = labels(slf)?.extract()?;
    Ok(format!("{} ({})", ours(slf)?.repr()?, labels.join(", ")))
}

#[pymethods]
impl UnsignedEnumeration {
    #[getter]
    fn labels<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        labels(slf.as_any())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        labelled(slf.as_any())
    }
}

#[pymethods]
impl SignedEnumeration {
    #[getter]
    fn labels<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
        labels(slf.as_any())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        labelled(slf.as_any())
    }
}

/// A field that is text.
#[pyclass(frozen, subclass, freelist = 64, extends = Field, name = "_StringFieldConst", module = "kymograph.compat.bt2")]
pub(crate) struct Text {
    value: Py<PyString>,
    size_bytes: usize,
}

#[inline]
pub(super) fn string(
    py: Python<'_>,
    cls: &Py<PyAny>,
    value: Bound<'_, PyAny>,
    size_bytes: usize,
) -> PyResult<Py<PyAny>> {
    let text = Text { value: value.cast_into::<PyString>()?.unbind(), size_bytes };
    let made = PyClassInitializer::from(Field { cls: cls.clone_ref(py) }).add_subclass(text);
    Py::new(py, made).map(Py::into_any)
}

/// Text, of a field or Python's own.
fn text_of<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    if let Ok(field) = other.cast::<Text>() {
        return Ok(field.get().value.bind(other.py()).clone());
    }
    let text = other.cast::<PyString>().map_err(|_| PyTypeError::new_err("expecting a 'str' object"))?;
    Ok(text.clone())
}

#[pymethods]
impl Text {
    #[getter]
    fn _value(&self, py: Python<'_>) -> Py<PyString> {
        self.value.clone_ref(py)
    }

    #[inline]
    fn __str__(&self, py: Python<'_>) -> Py<PyString> {
        self.value.clone_ref(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.value.bind(py).repr()
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.value.bind(py).is_truthy()
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.value.bind(py).hash()
    }

    /// In bytes, as Babeltrace counts.
    fn __len__(&self) -> usize {
        self.size_bytes
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> Object<'py> {
        self.value.bind(py).get_item(index)
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
        let ours = self.value.bind(py);
        let equals = || -> PyResult<bool> {
            let other = leaf(other)?;
            text_of(&other).map_or(Ok(false), |other| ours.as_any().eq(other))
        };
        match op {
            CompareOp::Eq => return equals(),
            CompareOp::Ne => return equals().map(|equal| !equal),
            _ => {}
        }
        let is_less = ours.lt(text_of(other)?)?;
        Ok(match op {
            CompareOp::Lt => is_less,
            CompareOp::Le => is_less || equals()?,
            CompareOp::Gt => !is_less && !equals()?,
            _ => !is_less,
        })
    }
}
