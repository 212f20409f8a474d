//! Evaluator and machine code run any program alike: the scan, the columns and the text of its records.
//!
//! ```text
//! header, bodies ──┬── scan:  bodies that neither print nor store    records, where they end, why there are no more
//!                  ├── rows:  bodies that do not print               columns, or a fault
//!                  └── text:  bodies that do not store               text, or a fault
//! ```
//!
//! So one body with both is three programs, as `decode` writes them for its three faces; columns
//! are the same again by the program without the operations that they do not need. Programs that
//! the verifier refuses are not for this room.

use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_ir::{
    Cells, ClassTest, Op, PacketWindow, ProgramFault, ReadProgram, ReadState, Records, RowFault, SLACK, ScanPlan,
    ScanStop, eval, verify,
};
use kymo_jit::{CompiledRows, CompiledText, JitEngine, Scan};

use crate::random::RandomNumbers;
use crate::random_program::random_program;
use crate::random_test::random_test;
use crate::stripped::{bare, prints, stores, without};

/// Records that are checked.
pub const RECORDS_MAX: usize = 100;
const SLOTS: usize = 8;

/// The promise for a random program and bytes: how many records it found; `None` if the verifier refused it.
///
/// # Panics
///
/// If it is broken.
pub fn hold(random: &mut RandomNumbers) -> Option<usize> {
    let header = (random.below(3) == 0).then(|| random_program(random, true));
    let body = random_program(random, false);
    let refused = |program: &ReadProgram| verify::verify(program).is_err();
    if refused(&body) || header.as_ref().is_some_and(refused) {
        return None;
    }
    let test = random_test(random);
    let class_test = [ClassTest::Always, ClassTest::Never, ClassTest::Test(0)][random.below(8).min(2)];
    let count = random.below(60);
    let bytes = random.bytes(count);
    let bits = (count as u64 * 8).saturating_sub(random.below(9) as u64);
    let mut programs = Programs::new(header, std::iter::once((0, &body)));
    if random.below(2) == 0 && !refused(&test) {
        programs = programs.tested(vec![test], vec![class_test]);
    }
    let (found, _) = programs.same_by_both(&bytes, bits);
    Some(found.records.len())
}

/// A header and bodies in all the forms they are run in.
#[derive(Debug)]
pub struct Programs {
    plan: Arc<ScanPlan>,
    bodies: Vec<BodyPrograms>,
}

/// The programs of one body for columns and for text.
#[derive(Debug)]
struct BodyPrograms {
    rows: Arc<ReadProgram>,
    text: ReadProgram,
}

/// The findings of one engine.
#[derive(Debug, PartialEq)]
pub struct EngineFindings {
    /// Records.
    pub records: Records,
    /// Why there are no more.
    pub stop: ScanStop,
    /// Where the scan stopped, and the clock there.
    pub behind: (u64, u64),
    /// The text of each record.
    pub texts: Vec<Result<Vec<u8>, ProgramFault>>,
    /// By class, the columns as far as they could be filled.
    pub columns: BTreeMap<u32, (Cells, Option<RowFault>)>,
}

impl Programs {
    /// A plan of these programs; `bodies` are those of event record classes with ids. Without a header every record
    /// has the first class.
    #[must_use]
    pub fn new<'p>(header: Option<ReadProgram>, bodies: impl Iterator<Item = (u64, &'p ReadProgram)>) -> Self {
        let mut plan = ScanPlan { only_class: header.is_none().then_some(0), ..ScanPlan::default() };
        plan.header = header.unwrap_or_default();
        let mut all = Vec::new();
        for (class, (id, whole)) in (0..).zip(bodies) {
            let keep = |drop: fn(&Op) -> bool| ReadProgram { body: without(&whole.body, drop), ..whole.clone() };
            plan.ids.push((id, class));
            plan.class_body.push(class);
            plan.bodies.push(bare(whole));
            all.push(BodyPrograms {
                rows: Arc::new(keep(prints)),
                text: ReadProgram { tables: Vec::new(), columns: Vec::new(), ..keep(stores) },
            });
        }
        plan.ids.sort_unstable();
        Self { plan: Arc::new(plan), bodies: all }
    }

    /// The same, with tests of records.
    #[must_use]
    pub fn tested(mut self, tests: Vec<ReadProgram>, class_test: Vec<ClassTest>) -> Self {
        let plan = Arc::make_mut(&mut self.plan);
        (plan.tests, plan.class_test) = (tests, class_test);
        self
    }

    /// The findings of both engines in a window of `bits` bits, and which programs machine code
    /// left to the evaluator.
    ///
    /// # Panics
    ///
    /// If the engines differ, or the bytes behind the window matter.
    #[must_use]
    pub fn same_by_both(&self, bytes: &[u8], bits: u64) -> (EngineFindings, Vec<&'static str>) {
        let slack = |fill: u8| [bytes, &[fill; SLACK]].concat();
        let (zeros, ones) = (slack(0), slack(0xFF));
        let expected = self.evaluated(PacketWindow::new(&zeros, 0, bits));
        let again = self.evaluated(PacketWindow::new(&ones, 0, bits));
        assert_eq!(again, expected, "what stands behind the end matters to the evaluator: {self}");
        let Some(engine) = JitEngine::new() else { return (expected, Vec::new()) };
        let (found, left) = self.compiled(&engine, PacketWindow::new(&zeros, 0, bits));
        assert_eq!(found, expected, "by machine code, by the evaluator: {self}");
        self.same_by_trimmed(&engine, &expected, PacketWindow::new(&ones, 0, bits));
        (expected, left)
    }

    /// Trimmed programs fill the same columns.
    fn same_by_trimmed(&self, engine: &JitEngine, found: &EngineFindings, window: PacketWindow<'_>) {
        let _ = by_class(&found.records, |class, positions| {
            let (_, fault) = &found.columns[&(class as u32)];
            let positions = &positions[..fault.as_ref().map_or(positions.len(), |fault| fault.row)];
            let filled = |program: &Arc<ReadProgram>, rows: Option<CompiledRows>| {
                let mut cells = Cells::default();
                let result = match rows {
                    Some(rows) => rows.run(window, positions, &mut state(), &mut cells),
                    None => eval::rows(program, window, positions, &mut state(), &mut cells),
                };
                result.unwrap_or_else(|fault| panic!("{fault:?} after trimming {self}to\n{program}"));
                cells
            };
            let expected = filled(&self.bodies[class].rows, None);
            let trimmed = Arc::new(ReadProgram::clone(&self.bodies[class].rows).trimmed());
            verify::verify(&trimmed).unwrap_or_else(|error| panic!("{error} after trimming {self}to\n{trimmed}"));
            assert_eq!(
                trimmed.clone(),
                Arc::new(ReadProgram::clone(&trimmed).trimmed()),
                "nothing is left to be trimmed"
            );
            assert_eq!(filled(&trimmed, None), expected, "the evaluator after trimming {self}to\n{trimmed}");
            assert_eq!(
                filled(&trimmed, CompiledRows::new(engine, &trimmed)),
                expected,
                "machine code: {self}to\n{trimmed}"
            );
        });
    }

    fn evaluated(&self, window: PacketWindow<'_>) -> EngineFindings {
        let (mut records, mut scanned, mut position) = (Records::default(), state(), 0);
        let stop = eval::scan(&self.plan, window, &mut position, &mut scanned, &mut records, RECORDS_MAX);
        let texts = each(&records, |class, at| self.bodies[class].evaluated_text(window, at));
        let columns = by_class(&records, |class, positions| {
            let mut cells = Cells::default();
            let result = eval::rows(&self.bodies[class].rows, window, positions, &mut state(), &mut cells);
            (cells, result.err())
        });
        EngineFindings { records, stop, behind: (position, scanned.clock), texts, columns }
    }

    /// As [`Programs::evaluated`], and the programs left to the evaluator.
    fn compiled(&self, engine: &JitEngine, window: PacketWindow<'_>) -> (EngineFindings, Vec<&'static str>) {
        let mut left = Vec::new();
        let (mut records, mut scanned, mut position) = (Records::default(), state(), 0);
        let stop = match Scan::new(engine, &self.plan, 0) {
            Some(scan) => scan.run(window, &mut position, &mut scanned, &mut records, RECORDS_MAX),
            None => {
                left.push("scan");
                eval::scan(&self.plan, window, &mut position, &mut scanned, &mut records, RECORDS_MAX)
            }
        };
        let texts: Vec<Option<CompiledText>> =
            self.bodies.iter().map(|body| CompiledText::new(engine, body.text.clone())).collect();
        let rows: Vec<Option<CompiledRows>> =
            self.bodies.iter().map(|body| CompiledRows::new(engine, &body.rows)).collect();
        left.extend(texts.iter().any(Option::is_none).then_some("text"));
        left.extend(rows.iter().any(Option::is_none).then_some("rows"));
        let texts = each(&records, |class, at| {
            let mut out = Vec::new();
            if texts[class].as_ref().is_some_and(|text| text.run(window, at, &mut state(), &mut out)) {
                return Ok(out);
            }
            assert!(out.is_empty(), "machine code printed a part of a record");
            self.bodies[class].evaluated_text(window, at)
        });
        let columns = by_class(&records, |class, positions| {
            let mut cells = Cells::default();
            let result = match &rows[class] {
                Some(rows) => rows.run(window, positions, &mut state(), &mut cells),
                None => eval::rows(&self.bodies[class].rows, window, positions, &mut state(), &mut cells),
            };
            (cells, result.err())
        });
        (EngineFindings { records, stop, behind: (position, scanned.clock), texts, columns }, left)
    }
}

impl std::fmt::Display for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "header:\n{}", self.plan.header)?;
        for test in &self.plan.tests {
            write!(f, "test, {:?}:\n{test}", self.plan.class_test)?;
            test.predicates.iter().try_for_each(|bound| writeln!(f, "{}{:?}", bound.predicate, bound.operands))?;
        }
        self.bodies.iter().try_for_each(|body| write!(f, "columns:\n{}text:\n{}", body.rows, body.text))
    }
}

impl BodyPrograms {
    fn evaluated_text(&self, window: PacketWindow<'_>, at: u64) -> Result<Vec<u8>, ProgramFault> {
        let mut out = Vec::new();
        eval::emit(&self.text, window, at, &mut state(), &mut out).map(|_| out)
    }
}

fn state() -> ReadState {
    ReadState { clock: 0, slots: vec![0; SLOTS] }
}

fn each<T>(records: &Records, run: impl Fn(usize, u64) -> T) -> Vec<T> {
    records.classes.iter().zip(&records.positions).map(|(&class, &at)| run(class as usize, at)).collect()
}

fn by_class<T>(records: &Records, mut run: impl FnMut(usize, &[u64]) -> T) -> BTreeMap<u32, T> {
    let mut positions: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (&class, &position) in records.classes.iter().zip(&records.positions) {
        positions.entry(class).or_default().push(position);
    }
    positions.into_iter().map(|(class, positions)| (class, run(class as usize, &positions))).collect()
}
