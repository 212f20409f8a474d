//! Filters as code for programs: each is compiled once, for any number of programs.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use kymo_filter::bytecode;
use kymo_ir::predicate::{ArgumentLayout, Predicate, Refusal};
use kymo_jit::{NativeFilter, NativeJudgement, NativeQuestion, NativeTarget};

/// Filters that the compiler remembers. Beyond them, it compiles some again.
const FILTERS_MAX: usize = 4096;

/// A filter, as the compiler gets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FilterSource {
    pub(super) predicate: Predicate,
    pub(super) layout: ArgumentLayout,
}

impl Compiled {
    /// Machine code, if there is any by now.
    pub(super) fn code(&self) -> Option<&[u8]> {
        self.native.get()?.as_deref().ok()
    }
}

impl FilterSource {
    pub(super) fn as_native(&self) -> NativeQuestion<'_> {
        NativeQuestion { predicate: &self.predicate, layout: &self.layout }
    }
}

/// Compiles filters for programs on this machine.
#[derive(Debug)]
pub struct FilterCompiler {
    target: Option<NativeTarget>,
    known: HashMap<FilterSource, Arc<Compiled>>,
}

/// A filter in both forms, each made at its first use.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    native: OnceLock<Result<Box<[u8]>, Refusal>>,
    bytecode: OnceLock<Result<Vec<u8>, Refusal>>,
}

impl Default for FilterCompiler {
    fn default() -> Self {
        Self { target: NativeTarget::host(), known: HashMap::new() }
    }
}

impl FilterCompiler {
    /// The entry of a filter, which is made if there is none.
    pub(super) fn filter(&mut self, question: &FilterSource) -> Arc<Compiled> {
        if let Some(known) = self.known.get(question) {
            return Arc::clone(known);
        }
        if self.known.len() >= FILTERS_MAX {
            self.known.clear();
        }
        let filter = Arc::<Compiled>::default();
        self.known.insert(question.clone(), Arc::clone(&filter));
        filter
    }

    pub(super) fn native<'c>(&self, question: &FilterSource, filter: &'c Compiled) -> Result<&'c [u8], Refusal> {
        let compile = || {
            NativeFilter::new(self.target()?, &question.predicate, &question.layout).map(|filter| filter.code().into())
        };
        filter.native.get_or_init(compile).as_deref().map_err(Clone::clone)
    }

    /// Code for one program: it has addresses of that program.
    pub(super) fn judgement(&self, judgement: &NativeJudgement<'_>) -> Result<Box<[u8]>, Refusal> {
        judgement.compile(self.target()?)
    }

    /// The machine that code is for; `None`: there is none.
    pub(crate) fn machine(&self) -> Option<&NativeTarget> {
        self.target.as_ref()
    }

    fn target(&self) -> Result<&NativeTarget, Refusal> {
        self.target.as_ref().ok_or_else(|| Refusal {
            part: std::env::consts::ARCH.to_owned(),
            why: "there is no machine code for this machine",
        })
    }

    pub(super) fn bytecode<'c>(question: &FilterSource, filter: &'c Compiled) -> Result<&'c [u8], Refusal> {
        let compile = || bytecode::compile(&question.predicate, &question.layout);
        filter.bytecode.get_or_init(compile).as_deref().map_err(Clone::clone)
    }
}
