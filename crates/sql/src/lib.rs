//! Predicates as DataFusion expressions; later the trace as tables.
//!
//! It must never know faces.
//!
//! ```text
//! Predicate ── expression(predicate, columns) ──> Expr that is true where the predicate is true, NULL where it is unknown
//! ```
//!
//! DataFusion takes minutes to build: all of this is behind the feature `datafusion`, which no other crate asks for.

#[cfg(feature = "datafusion")]
mod expression;

#[cfg(feature = "datafusion")]
pub use expression::expression;
