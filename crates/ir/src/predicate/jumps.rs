//! Predicates as labeled jumps, once for every form of code: Cranelift's blocks, eBPF, bytecode.
//!
//! No machine has a third truth value, so a test has no value either: it jumps to one of three labels. `not` swaps two of
//! them, `all` and `any` lead from one test to the next, and only tests of numbers and texts are left for an assembler
//! to write:
//!
//! ```text
//! all [a, b, c]                         where unknown and false lead to the same place:
//!
//!   a ── true ──> b ── true ──> c ── true ──> kept
//!   └─ false,     └─ false,     └─ false,
//!      unknown       unknown       unknown ──> dropped
//!
//! all [a, b, c]                         where unknown leads elsewhere, and a may be unknown:
//!
//!   flag = 0; a ── unknown ──> flag = 1 ──> b ... c ── true ──> flag ? unknown : true
//! ```
//!
//! At the root unknown is false, and stays the same as true or false through `not`, `all` and `any`, so that most filters
//! have no flag. Each test is written once: code is as long as the predicate.

use super::{Input, Number, Outcomes, Pattern, Relation, Test, TextExpression};

/// Where a test leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets<L> {
    /// Where it leads if it is true.
    pub on_true: L,
    /// Where it leads if it is false.
    pub on_false: L,
    /// Where it leads if it is unknown.
    pub on_unknown: L,
    /// The label right behind the test: code may run into it instead of jumping there.
    pub next: L,
}

impl<L: Copy> Targets<L> {
    /// Where a test of this value leads.
    pub fn of(self, value: bool) -> L {
        if value { self.on_true } else { self.on_false }
    }

    /// Where a test of any value leads; `None` is unknown.
    pub fn of_outcome(self, value: Option<bool>) -> L {
        value.map_or(self.on_unknown, |value| self.of(value))
    }

    /// The targets of a test that is true where this one is false.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { on_true: self.on_false, on_false: self.on_true, ..self }
    }

    /// The same, but a test of the value leads elsewhere.
    #[must_use]
    fn with(self, value: bool, label: L) -> Self {
        if value { Self { on_true: label, ..self } } else { Self { on_false: label, ..self } }
    }
}

/// Ranges that are tested one after the other; more are halved first.
const RANGES_FEW: usize = 4;

/// Writes code with labels. An implementation provides the instructions of one machine;
/// [`Assembler::test`] and [`Assembler::search`] put them together.
pub trait Assembler {
    /// A place in the code that jumps lead to. It is placed once, behind all jumps to it.
    type Label: Copy + PartialEq;
    /// A register that remembers whether a test was unknown.
    type Flag: Copy;
    /// An integer that is compared with constants.
    type Integer: Copy;
    /// Why a test cannot be written.
    type Error;

    /// The values that a test may have in this code: a test with one value alone is not written.
    fn outcomes(&self, test: &Test) -> Outcomes;

    /// A new label.
    fn label(&mut self) -> Self::Label;

    /// The next instruction stands at the label.
    fn place(&mut self, label: Self::Label);

    /// Goes to the label.
    fn jump(&mut self, label: Self::Label);

    /// Called before the code of a test that has no parts. `false`: this machine does not decide the test, and has
    /// written a jump to the place that does.
    ///
    /// # Errors
    ///
    /// There is no more room for code.
    fn accepts(&mut self, test: &Test) -> Result<bool, Self::Error>;

    /// Tests whether an input is there.
    ///
    /// # Errors
    ///
    /// This machine cannot express it; so for the tests that follow.
    fn has(&mut self, input: Input, targets: Targets<Self::Label>) -> Result<(), Self::Error>;

    /// Compares two numbers. `test` is the whole test, for errors.
    ///
    /// # Errors
    ///
    /// As of [`Assembler::has`].
    fn compare_numbers(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets<Self::Label>,
    ) -> Result<(), Self::Error>;

    /// Tests whether an integer lies in one of the ranges, which rise and do not touch.
    ///
    /// # Errors
    ///
    /// As of [`Assembler::has`].
    fn among(
        &mut self,
        value: &Number,
        ranges: &[(i128, i128)],
        targets: Targets<Self::Label>,
    ) -> Result<(), Self::Error>;

    /// Compares two texts. `test` is the whole test, for errors.
    ///
    /// # Errors
    ///
    /// As of [`Assembler::has`].
    fn compare_texts(
        &mut self,
        test: &Test,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets<Self::Label>,
    ) -> Result<(), Self::Error>;

    /// Tests whether a text matches a pattern. `test` is the whole test, for errors.
    ///
    /// # Errors
    ///
    /// As of [`Assembler::has`].
    fn match_text(
        &mut self,
        test: &Test,
        text: &TextExpression,
        pattern: &Pattern,
        targets: Targets<Self::Label>,
    ) -> Result<(), Self::Error>;

    /// A new flag that is not set; `test` needs it.
    ///
    /// # Errors
    ///
    /// There are no more registers.
    fn new_flag(&mut self, test: &Test) -> Result<Self::Flag, Self::Error>;

    /// Sets the flag.
    fn set_flag(&mut self, flag: Self::Flag);

    /// Goes to `on_true` if the flag is set, else to `on_false`. The flag is not needed any more.
    fn test_flag(&mut self, flag: Self::Flag, targets: Targets<Self::Label>);

    /// Goes to the label if the integer, which lies in `bounds`, is less than `limit`.
    fn jump_if_less(&mut self, integer: Self::Integer, bounds: (i128, i128), limit: i128, label: Self::Label);

    /// Tests whether the integer, which lies in `bounds`, lies in a range within them that leaves something of them out.
    fn within(
        &mut self,
        integer: Self::Integer,
        bounds: (i128, i128),
        range: (i128, i128),
        targets: Targets<Self::Label>,
    );

    /// Writes a test that leads to the targets.
    ///
    /// # Errors
    ///
    /// The first part that this machine cannot express.
    fn test(&mut self, test: &Test, targets: Targets<Self::Label>) -> Result<(), Self::Error> {
        if let Some(value) = self.outcomes(test).constant() {
            self.jump(targets.of_outcome(value));
            return Ok(());
        }
        match test {
            Test::Not(test) => self.test(test, targets.swapped()),
            Test::All(tests) => self.list(tests, false, targets),
            Test::Any(tests) => self.list(tests, true, targets),
            Test::Constant(value) => {
                self.jump(targets.of_outcome(*value));
                Ok(())
            }
            _ if !self.accepts(test)? => Ok(()),
            Test::Has(input) => self.has(*input, targets),
            Test::Compare { relation, left, right } => self.compare_numbers(test, *relation, left, right, targets),
            Test::Among { value, ranges } => self.among(value, ranges, targets),
            Test::CompareText { relation, left, right } => self.compare_texts(test, *relation, left, right, targets),
            Test::Matches { text, pattern } => self.match_text(test, text, pattern, targets),
        }
    }

    /// All (`decisive` is false) or any (it is true) of the tests.
    ///
    /// # Errors
    ///
    /// As of [`Assembler::test`].
    fn list(&mut self, tests: &[Test], decisive: bool, targets: Targets<Self::Label>) -> Result<(), Self::Error> {
        let (decided, passed) = (targets.of(decisive), targets.of(!decisive));
        let Some((last, others)) = tests.split_last() else {
            self.jump(passed);
            return Ok(());
        };
        // Where unknown leads to a third place, later tests may still decide; a flag remembers it until the end.
        let has_third_place = targets.on_unknown != decided && targets.on_unknown != passed;
        let may_be_unknown = |this: &Self, test: &Test| this.outcomes(test).is_unknown;
        let first_unknown = others.iter().find(|test| has_third_place && may_be_unknown(self, test));
        let flag = first_unknown.map(|test| self.new_flag(test)).transpose()?;
        for test in others {
            let next = self.label();
            let open = Targets { on_unknown: next, next, ..targets.with(!decisive, next) };
            match flag.filter(|_| may_be_unknown(self, test)) {
                Some(flag) => {
                    let unknown = self.label();
                    self.test(test, Targets { on_unknown: unknown, next: unknown, ..open })?;
                    self.place(unknown);
                    self.set_flag(flag);
                    self.jump(next);
                }
                None if targets.on_unknown == decided => self.test(test, Targets { on_unknown: decided, ..open })?,
                None => self.test(test, open)?,
            }
            self.place(next);
        }
        let Some(flag) = flag else { return self.test(last, targets) };
        let end = self.label();
        self.test(last, Targets { next: end, ..targets.with(!decisive, end) })?;
        self.place(end);
        self.test_flag(flag, Targets { on_true: targets.on_unknown, on_false: passed, ..targets });
        Ok(())
    }

    /// Tests whether the integer, which lies in `bounds`, lies in one of the ranges, which rise and do not touch.
    fn search(
        &mut self,
        integer: Self::Integer,
        bounds: (i128, i128),
        ranges: &[(i128, i128)],
        targets: Targets<Self::Label>,
    ) {
        let inside = |&(lowest, highest): &(i128, i128)| {
            let (lowest, highest) = (lowest.max(bounds.0), highest.min(bounds.1));
            (lowest <= highest).then_some((lowest, highest))
        };
        let ranges: Vec<(i128, i128)> = ranges.iter().filter_map(inside).collect();
        match &ranges[..] {
            [] => self.jump(targets.on_false),
            [all] if *all == bounds => self.jump(targets.on_true),
            [others @ .., last] if others.len() < RANGES_FEW => {
                for range in others {
                    let next = self.label();
                    self.within(integer, bounds, *range, Targets { on_false: next, next, ..targets });
                    self.place(next);
                }
                self.within(integer, bounds, *last, targets);
            }
            many => {
                let (lower, upper) = many.split_at(many.len() / 2);
                let (middle, below) = (upper[0].0, self.label());
                self.jump_if_less(integer, bounds, middle, below);
                self.search(integer, (middle, bounds.1), upper, Targets { next: below, ..targets });
                self.place(below);
                self.search(integer, (bounds.0, middle - 1), lower, targets);
            }
        }
    }
}
