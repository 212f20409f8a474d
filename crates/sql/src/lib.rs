//! The trace as tables of DataFusion, and predicates as its expressions.
//!
//! It must never know how traces are read, threads, or faces.
//!
//! ```text
//! SQL ──> Engine ──> plan ──> provider ── what is wanted, as text of the filter language ──> TraceTable, TraceScan
//!                                                                          (session knows how they are read)
//!
//! Predicate ── expression(predicate, columns) ──> Expr that is true where the predicate is true, NULL where it is unknown
//! ```
//!
//! DataFusion takes minutes to build: all of this is behind the feature `datafusion`, which nothing asks for by default.

#[cfg(feature = "datafusion")]
mod catalog;
#[cfg(feature = "datafusion")]
mod engine;
#[cfg(feature = "datafusion")]
mod expression;
#[cfg(feature = "datafusion")]
mod filter;
#[cfg(feature = "datafusion")]
mod ordered;
#[cfg(feature = "datafusion")]
mod problem;
#[cfg(feature = "datafusion")]
mod provider;
#[cfg(feature = "datafusion")]
mod scan;
mod statements;
#[cfg(feature = "datafusion")]
mod table;
#[cfg(feature = "datafusion")]
mod yielding;

#[cfg(feature = "datafusion")]
pub use catalog::{Argument, Catalog, Function, NamedRelation};
#[cfg(feature = "datafusion")]
pub use datafusion::arrow;
#[cfg(feature = "datafusion")]
pub use datafusion::execution::SendableRecordBatchStream;
#[cfg(feature = "datafusion")]
pub use engine::{EngineOptions, Query, QueryEngine, QueryPlan};
#[cfg(feature = "datafusion")]
pub use expression::expression;
#[cfg(feature = "datafusion")]
pub use filter::{Pushed, pushed};
#[cfg(feature = "datafusion")]
pub use problem::{FaultyPart, QueryProblem, WrongArgument};
pub use statements::statements;
#[cfg(feature = "datafusion")]
pub use table::{Batches, Skipped, TableError, TableQuestion, Term, TermKind, TraceScan, TraceTable, ValueName};
