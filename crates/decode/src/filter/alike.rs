//! Binds an expression once for all event record classes that have the same under the names in it.
//!
//! A trace of the kernel has a thousand classes, and the meaning of an expression with many
//! predicates takes some hundred microseconds to compute: but most classes have the same clock and
//! the same contexts, and lack the same fields.
//!
//! ```text
//! cycles > 5 && next_tid == 7      sched_switch              cycles, next_tid      bound
//!                                  syscall_entry_open        cycles, missing       bound
//!                                  syscall_exit_open         cycles, missing       the same
//! ```

use std::ops::Range;
use std::sync::Arc;

use kymo_filter::{Binding, FieldResolver, Filter, FilterProblem, NamePath, PathMeaning};
use kymo_ir::ClassTest;

use crate::names::{EventClassFields, NameSource};

/// An expression, and its known meanings.
pub(super) struct ExpressionMeanings<'f> {
    filter: &'f Filter,
    /// Each name in it, and its first place.
    names: Vec<(NamePath, Range<usize>)>,
    known: Vec<KnownMeaning>,
}

/// The meaning of an expression for some classes.
pub(super) struct KnownMeaning {
    /// The classes' fields under each name, without names like those that are missing.
    found: Vec<PathMeaning>,
    /// Where they have it, by key.
    sources: Vec<NameSource>,
    binding: Result<Arc<Binding>, Vec<FilterProblem>>,
    /// The test, if all of them have the same.
    test: Option<ClassTest>,
}

/// Meanings that are remembered: comparing with many costs more than binding again.
const KNOWN_MAX: usize = 64;

impl<'f> ExpressionMeanings<'f> {
    pub(super) fn new(filter: &'f Filter) -> Self {
        let mut names: Vec<(NamePath, Range<usize>)> = Vec::new();
        for (path, span) in filter.paths() {
            if names.iter().all(|(known, _)| *known != path) {
                names.push((path, span));
            }
        }
        Self { filter, names, known: Vec::new() }
    }

    pub(super) fn filter(&self) -> &'f Filter {
        self.filter
    }

    /// The meaning of the expression for a class: the binding, or why there is none.
    pub(super) fn of(
        &mut self,
        fields: &EventClassFields<'_>,
    ) -> (&mut KnownMeaning, Result<Arc<Binding>, Vec<FilterProblem>>) {
        let mut found: Vec<PathMeaning> = self.names.iter().map(|(path, _)| fields.find(path)).collect();
        // Taken out before the comparison: suggestions differ for nearly every class, and say
        // nothing of the meaning.
        let near: Vec<Vec<String>> = found.iter_mut().map(take_near).collect();
        let sources = fields.all_sources();
        let is_same = |known: &KnownMeaning| known.found == found && known.sources == sources;
        let place = self.known.iter().position(is_same).unwrap_or_else(|| {
            let binding = self.filter.bind(fields).map(Arc::new);
            self.known.truncate(KNOWN_MAX - 1);
            self.known.push(KnownMeaning { found, sources, binding, test: None });
            self.known.len() - 1
        });
        let binding = self.known[place].binding.clone().map(|binding| self.with_near(binding, near));
        (&mut self.known[place], binding)
    }

    /// Names like those that are missing differ from class to class.
    fn with_near(&self, mut binding: Arc<Binding>, mut near: Vec<Vec<String>>) -> Arc<Binding> {
        if !binding.missing.is_empty() {
            for missing in &mut Arc::make_mut(&mut binding).missing {
                if let Some(place) = self.names.iter().position(|(_, span)| *span == missing.span) {
                    missing.near = std::mem::take(&mut near[place]);
                }
            }
        }
        binding
    }
}

impl KnownMeaning {
    /// The test of these classes, if all have the same.
    pub(super) fn test(&self) -> Option<ClassTest> {
        self.test
    }

    /// A test that was made for one of these classes. It is the same for all if it reads nothing of the event.
    pub(super) fn remember(&mut self, test: ClassTest) {
        let is_of_all = |source: &NameSource| *source == NameSource::Cycles || source.is_of_packet();
        if !matches!(test, ClassTest::Test(_)) || self.sources.iter().all(is_of_all) {
            self.test = Some(test);
        }
    }
}

fn take_near(found: &mut PathMeaning) -> Vec<String> {
    match found {
        PathMeaning::Missing { near } => std::mem::take(near),
        _ => Vec::new(),
    }
}
