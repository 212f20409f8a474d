//! Periods of scripts: whether the rows of periods add up to those of the whole.

use std::collections::BTreeMap;

use super::{Script, cell_text, finish};
use kymo_analysis::windows::Windows;
use kymo_analysis::{Analysis, Answer, Bounded, Cell, LaneFacts, Setup, Wishes};

/// A column that adds up: of a table of this class, for each value of the columns that are named first.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The table.
    pub class: &'static str,
    /// The columns that identify its rows.
    pub keys: &'static [&'static str],
    /// The column that adds up.
    pub column: &'static str,
}

impl Script {
    /// The answers of periods that begin behind these times, and before the first of them. Their states go through bytes.
    ///
    /// # Panics
    ///
    /// The analysis cannot carry over open intervals.
    pub fn periods<A: Analysis>(&self, cuts: &[i64], wishes: &Wishes, make: impl Fn(&Setup<'_>) -> A) -> Vec<Answer> {
        let ends = cuts.iter().copied().chain([i64::MAX]);
        let mut known: Option<A::State> = None;
        let mut begin = i64::MIN;
        let mut answers = Vec::new();
        for end in ends {
            let lanes: Vec<LaneFacts> = self.lanes.iter().map(|lane| within(lane, begin, end)).collect();
            let setup = Setup { lanes: &lanes, ..self.setup(wishes) };
            let analysis = make(&setup);
            let read = self.part(&analysis, known.is_none(), |event| begin <= event.0 && event.0 < end);
            let mut state = match known.take() {
                Some(mut before) => {
                    analysis.merge(&mut before, read);
                    before
                }
                None => read,
            };
            answers.push(finish(&analysis, &state));
            assert!(analysis.forget(&mut state, end), "it carries over what is open");
            let bytes = kymo_analysis::encode(&analysis, &setup, &state).expect("a state can be encoded");
            known = Some(kymo_analysis::decode(&analysis, &setup, &bytes).expect("what was encoded can be decoded"));
            begin = end;
        }
        answers
    }

    /// Whether periods add up to the whole, wherever they begin.
    ///
    /// # Panics
    ///
    /// They do not.
    pub fn check_periods<A: Analysis>(
        &self,
        tries: u64,
        wishes: &Wishes,
        make: impl Fn(&Setup<'_>) -> A,
        columns: &[Sum],
    ) {
        let analysis = make(&self.setup(wishes));
        let whole = [finish(&analysis, &self.part(&analysis, true, |_| true))];
        for seed in 1..=tries {
            let mut random = super::Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let count = 1 + random.below(6);
            let mut cuts: Vec<i64> = (0..count).map(|_| self.events[random.below(self.events.len())].0).collect();
            cuts.iter_mut().for_each(|cut| *cut += random.below(3) as i64 - 1);
            cuts.sort_unstable();
            cuts.dedup();
            let periods = self.periods(&cuts, wishes, &make);
            for sum in columns {
                let (found, wanted) = (sum.of(&periods), sum.of(&whole));
                assert!(found == wanted, "{sum:?} cut at {cuts:?}: {wanted:#?} became {found:#?}");
            }
        }
    }
}

impl Sum {
    fn of(&self, answers: &[Answer]) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for table in answers.iter().flat_map(|answer| &answer.tables).filter(|table| table.class == self.class) {
            let place = |name: &str| {
                let place = table.columns.iter().position(|column| column.name == name);
                place.unwrap_or_else(|| panic!("`{}` has no `{name}`", self.class))
            };
            for row in &table.rows {
                if let Cell::Count(Bounded { value, .. }) | Cell::Duration(Bounded { value, .. }) =
                    row[place(self.column)]
                {
                    let key: Vec<String> = self.keys.iter().map(|key| key_text(&row[place(key)])).collect();
                    *sums.entry(key.join(" ")).or_default() += value;
                }
            }
        }
        sums.retain(|_, sum| *sum > 0);
        sums
    }
}

/// The key of a row: threads by their number, as their names may become known later.
fn key_text(cell: &Cell) -> String {
    match cell {
        Cell::Process { tid: Some(tid), .. } => tid.to_string(),
        cell => cell_text(cell),
    }
}

/// A lane in a period.
fn within(lane: &LaneFacts, begin: i64, end: i64) -> LaneFacts {
    let span_ns = lane.span_ns.filter(|span| span.0 <= end && begin <= span.1);
    let mut holes = Windows::default();
    lane.holes.inside(i64::MIN, end).for_each(|(begin, end)| holes.add(begin, end));
    LaneFacts {
        span_ns: span_ns.map(|span| (span.0.clamp(begin, end), span.1.clamp(begin, end))),
        holes,
        ..lane.clone()
    }
}
