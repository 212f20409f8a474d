//! Expressions of the filter language, by all forms of code that tracers take; one binary, which is linked once.

mod bpf;
mod bpf_kernel;
mod bytecode;
mod cases;
mod forms;
mod lttng;
