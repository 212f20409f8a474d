//! Filters as portable bytes for traced programs: their form, validator and interpreter; no standard library, no heap.
//!
//! It must never know the text of expressions, nor where arguments come from.
#![no_std]
