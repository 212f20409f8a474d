//! How fields become objects; and those that are structures: the scopes of events, with members
//! that are read on access, and others.

use std::sync::Arc;

use kymo_session::messages::{ColumnShape, EventAt, FieldRef, MessageValue};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBytes, PyList, PyMapping, PyString};

use super::fields::{self, Field};
use super::plan::{FieldPlan, PlanShelf, StreamPlans, StructurePlan};
use super::unreadable;
use crate::event::text;

/// Named members, as a mapping.
#[pyclass(frozen, subclass, freelist = 64, mapping, extends = Field, name = "_StructureFieldConst", module = "kymograph.compat.bt2")]
pub(crate) struct Structure {
    plan: Arc<StructurePlan>,
    content: MemberSource,
}

/// Where the members are.
pub(super) enum MemberSource {
    Scope { shelf: Arc<PlanShelf>, at: EventAt },
    Members(Vec<Py<PyAny>>),
}

impl Structure {
    #[inline]
    pub(super) fn new(py: Python<'_>, plan: Arc<StructurePlan>, content: MemberSource) -> PyClassInitializer<Self> {
        let cls = plan.cls.clone_ref(py);
        PyClassInitializer::from(Field { cls }).add_subclass(Self { plan, content })
    }

    #[inline]
    fn member(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
        match &self.content {
            MemberSource::Members(members) => Ok(members[index].clone_ref(py)),
            MemberSource::Scope { shelf, at } => {
                let field = shelf.batch.field(*at, self.plan.first + index).ok_or_else(unreadable)?;
                self.plan.members[index].object(py, &shelf.known, field)
            }
        }
    }

    fn equals(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let other = fields::leaf(other)?;
        let Ok(mapping) = other.cast::<PyMapping>() else { return Ok(false) };
        if mapping.len()? != self.plan.keys.len() {
            return Ok(false);
        }
        for (index, key) in self.plan.keys.iter().enumerate() {
            if !mapping.contains(key)? || self.member(py, index)?.bind(py).ne(mapping.get_item(key)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[pymethods]
impl Structure {
    fn __len__(&self) -> usize {
        self.plan.keys.len()
    }

    #[inline]
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let name = string(key)?;
        match self.plan.position(name)? {
            Some(index) => self.member(py, index),
            None => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.plan.position(string(key)?)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keys = self.plan.keys.iter().map(|key| PyString::intern(py, key));
        PyList::new(py, keys)?.into_any().call_method0("__iter__")
    }

    #[pyo3(signature = (key, default=None))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        match self.plan.position(string(key)?)? {
            Some(index) => self.member(py, index),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    fn member_at_index(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        py.import("kymograph.compat.bt2._utils")?.call_method1("_check_uint64", (index,))?;
        let index: usize = index.extract().unwrap_or(usize::MAX);
        if index < self.plan.keys.len() { self.member(py, index) } else { Err(PyIndexError::new_err(())) }
    }

    fn __setitem__(slf: &Bound<'_, Self>, _key: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        let class = slf.get_type().repr()?;
        Err(PyTypeError::new_err(format!("'{class}' object does not support item assignment")))
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(pyo3::exceptions::PyNotImplementedError::new_err(()))
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let answer = match op {
            CompareOp::Eq => self.equals(py, other)?,
            CompareOp::Ne => !self.equals(py, other)?,
            _ => return Ok(py.NotImplemented()),
        };
        Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut items = Vec::new();
        for (index, key) in self.plan.keys.iter().enumerate() {
            let member = self.member(py, index)?;
            items.push(format!("{}: {}", PyString::new(py, key).repr()?, member.bind(py).repr()?));
        }
        Ok(format!("{{{}}}", items.join(", ")))
    }
}

fn view<'py>(slf: &Bound<'py, Structure>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    slf.py().import("collections.abc")?.getattr(class)?.call1((slf,))
}

/// A key, which must be text.
pub(super) fn string<'a, 'py>(key: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    key.cast::<PyString>().map_err(|_| {
        let class = key.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
        PyTypeError::new_err(format!("'{class}' is not a 'str' object"))
    })
}

impl FieldPlan {
    /// The field as an object.
    #[inline]
    pub(super) fn object(&self, py: Python<'_>, known: &StreamPlans, field: FieldRef<'_>) -> PyResult<Py<PyAny>> {
        match field.value() {
            MessageValue::Unsigned(number) if is_enumeration(field) => {
                fields::unsigned_enumeration(py, &self.cls, number)
            }
            MessageValue::Unsigned(number) => fields::unsigned(py, &self.cls, number),
            MessageValue::Signed(number) if is_enumeration(field) => fields::signed_enumeration(py, &self.cls, number),
            MessageValue::Signed(number) => fields::signed(py, &self.cls, number),
            MessageValue::Boolean(is_true) => fields::boolean(py, &self.cls, is_true),
            MessageValue::Real(number) => fields::real(py, &self.cls, number, is_single(field)),
            MessageValue::Text(bytes, encoding) => {
                fields::string(py, &self.cls, text(py, bytes, encoding)?, bytes.len())
            }
            _ => self.compound(py, known, field),
        }
    }

    fn compound(&self, py: Python<'_>, known: &StreamPlans, field: FieldRef<'_>) -> PyResult<Py<PyAny>> {
        let maker = known.maker.bind(py);
        let made = match field.value() {
            MessageValue::Structure => {
                let plan = self.structure.as_ref().ok_or_else(unreadable)?;
                let members = plan.members.iter().zip(field.members());
                let members: PyResult<Vec<Py<PyAny>>> =
                    members.map(|(plan, (_, member))| plan.object(py, known, member)).collect();
                return Ok(
                    Py::new(py, Structure::new(py, Arc::clone(plan), MemberSource::Members(members?)))?.into_any()
                );
            }
            MessageValue::List(_) => {
                let element = |element| self.children[0].object(py, known, element);
                let elements: PyResult<Vec<Py<PyAny>>> = field.elements().map(element).collect();
                maker.call_method1(intern!(py, "array"), (&self.cls, PyList::new(py, elements?)?))?
            }
            MessageValue::Optional(content) => {
                let content = content.map(|content| self.children[0].object(py, known, content)).transpose()?;
                maker.call_method1(intern!(py, "option"), (&self.cls, content))?
            }
            MessageValue::Variant(index, option) => {
                let option = self.children[index].object(py, known, option)?;
                maker.call_method1(intern!(py, "variant"), (&self.cls, index, option))?
            }
            MessageValue::Blob(bytes) => {
                maker.call_method1(intern!(py, "blob"), (&self.cls, PyBytes::new(py, bytes)))?
            }
            MessageValue::Bits(bits) => maker.call_method1(intern!(py, "bits"), (&self.cls, bits))?,
            _ => return Err(unreadable()),
        };
        Ok(made.unbind())
    }
}

#[inline]
fn is_enumeration(field: FieldRef<'_>) -> bool {
    matches!(field.shape(), ColumnShape::Integer { labels: Some(_), .. })
}

/// Of a real, whether it has 32 bits.
fn is_single(field: FieldRef<'_>) -> bool {
    matches!(field.shape(), ColumnShape::Real { cell, .. } if cell.width() == 4)
}
