//! The same condition with fewer comparisons: the kernel asks parts one after the other, and each takes it three nanoseconds.
//!
//! ```text
//! x == 2 || x == 4 || … || x == 98     the numbers of which it is true are ranges
//!   x >= 2 && x <= 98                  most numbers are outside of all of them
//!     && (x >= 50 || (x >= 26 || …) && (x < 26 || …)) && (x < 50 || …)
//! ```
//!
//! Parts of one `&&` or `||` about the same number become one set of ranges, which is halved until few are left: a number meets at
//! most two comparisons at each halving. Behind a comparison that has left a half, parts are over as soon as that half has decided. So
//! sets of few ranges have the form above, which is quick where it is false, and sets with few gaps the opposite one.

use kymo_ftrace::format::EventFormat;

use super::{RecordRelation, RecordTest, RecordValue, UnsoundTest, number_field};

/// Ranges that are asked one after the other at most: halving three would take as many comparisons, and a long filter has to halve less.
const ROWS: [usize; 3] = [3, 8, 16];

/// Ranges with both ends, in order, and none next to another.
type Ranges = Vec<(i128, i128)>;

/// A condition, as far as it is about a single number.
enum SortedTest {
    Number(NumberSet),
    Other(RecordTest),
}

/// The numbers of a field of which a condition is true.
struct NumberSet {
    field: String,
    /// All numbers that the field may have.
    all: (i128, i128),
    ranges: Ranges,
}

impl RecordTest {
    /// The same condition, with as few comparisons of numbers as the kernel needs.
    ///
    /// # Errors
    ///
    /// The event cannot have it.
    ///
    /// ```
    /// # use kymo_ftrace::format::EventFormat;
    /// # use kymo_probe::record_test::{RecordRelation, RecordTest, RecordValue};
    /// # let text = "name: softirq_entry\nID: 223\nformat:\n\
    /// #     \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"vec=%u\", REC->vec\n";
    /// let format = EventFormat::parse("irq", text).unwrap();
    /// let is = |value| RecordTest::Number {
    ///     field: "vec".to_owned(),
    ///     relation: RecordRelation::Equal,
    ///     value: RecordValue::Unsigned(value),
    /// };
    /// let test = RecordTest::any([3, 5, 4, 9].map(is));
    /// assert_eq!(test.searched(&format)?.text(&format)?, "(vec >= 3 && vec <= 5) || vec == 9");
    /// # Ok::<(), kymo_probe::record_test::UnsoundTest>(())
    /// ```
    pub fn searched(&self, format: &EventFormat) -> Result<Self, UnsoundTest> {
        let mut problem = UnsoundTest::Constant;
        for row in ROWS {
            let test = self.sorted(format, row)?.test(row);
            match test.text(format) {
                Err(UnsoundTest::Long(bytes)) => problem = UnsoundTest::Long(bytes),
                Ok(_) | Err(UnsoundTest::Constant) => return Ok(test),
                Err(other) => return Err(other),
            }
        }
        Err(problem)
    }

    fn sorted(&self, format: &EventFormat, row: usize) -> Result<SortedTest, UnsoundTest> {
        match self {
            Self::All(parts) => SortedTest::joined(parts, format, (row, true)),
            Self::Any(parts) => SortedTest::joined(parts, format, (row, false)),
            Self::Number { field, relation, value } => {
                let all = number_field(format, field)?;
                let number = value.number();
                if !(all.0..=all.1).contains(&number) {
                    return Err(UnsoundTest::Range(field.clone(), number));
                }
                let ranges = related(*relation, number, all);
                Ok(SortedTest::Number(NumberSet { field: field.clone(), all, ranges }))
            }
            Self::Bits { .. } | Self::Text { .. } => Ok(SortedTest::Other(self.clone())),
        }
    }

    /// Its opposite, of comparisons of numbers.
    fn opposite(self) -> Self {
        match self {
            Self::All(parts) => Self::any(parts.into_iter().map(Self::opposite)),
            Self::Any(parts) => Self::all(parts.into_iter().map(Self::opposite)),
            Self::Number { field, relation, value } => {
                let relation = match relation {
                    RecordRelation::Equal => RecordRelation::NotEqual,
                    RecordRelation::NotEqual => RecordRelation::Equal,
                    RecordRelation::Less => RecordRelation::GreaterOrEqual,
                    RecordRelation::LessOrEqual => RecordRelation::Greater,
                    RecordRelation::Greater => RecordRelation::LessOrEqual,
                    RecordRelation::GreaterOrEqual => RecordRelation::Less,
                };
                Self::Number { field, relation, value }
            }
            Self::Bits { field, mask, is_any } => Self::Bits { field, mask, is_any: !is_any },
            Self::Text { field, parts, is_negated } => Self::Text { field, parts, is_negated: !is_negated },
        }
    }
}

impl SortedTest {
    /// Parts of which all, or any, have to be true: those about one number become one, and come first, as they are quickest.
    fn joined(parts: &[RecordTest], format: &EventFormat, (row, is_all): (usize, bool)) -> Result<Self, UnsoundTest> {
        let (mut sets, mut others): (Vec<NumberSet>, Vec<RecordTest>) = (Vec::new(), Vec::new());
        for part in parts {
            match part.sorted(format, row)? {
                Self::Number(set) => {
                    // What is in all of them is what is not outside of one of them.
                    let ranges = if is_all { gaps(&set.ranges, set.all) } else { set.ranges };
                    match sets.iter_mut().find(|known| known.field == set.field) {
                        Some(known) => known.ranges.extend(ranges),
                        None => sets.push(NumberSet { ranges, ..set }),
                    }
                }
                Self::Other(test) => others.push(test),
            }
        }
        for set in &mut sets {
            let ranges = united(std::mem::take(&mut set.ranges));
            set.ranges = if is_all { gaps(&ranges, set.all) } else { ranges };
        }
        if others.is_empty() && sets.len() == 1 {
            return Ok(Self::Number(sets.remove(0)));
        }
        let parts = sets.iter().map(|set| set.test(row)).chain(others);
        Ok(Self::Other(if is_all { RecordTest::all(parts) } else { RecordTest::any(parts) }))
    }

    fn test(self, row: usize) -> RecordTest {
        match self {
            Self::Number(set) => set.test(row),
            Self::Other(test) => test,
        }
    }
}

impl NumberSet {
    fn test(&self, row: usize) -> RecordTest {
        let gaps = gaps(&self.ranges, self.all);
        if gaps.len() < self.ranges.len() { self.hull(&gaps, row).opposite() } else { self.hull(&self.ranges, row) }
    }

    /// It is in one of these ranges.
    fn hull(&self, ranges: &[(i128, i128)], row: usize) -> RecordTest {
        match (ranges, ranges.len() > row) {
            ([(first, _), .., (_, last)], true) => {
                let ends = [self.at_least(*first, self.all), self.at_most(*last, self.all)];
                RecordTest::all(ends.into_iter().chain([self.inside(ranges, (*first, *last), row)]))
            }
            _ => self.inside(ranges, self.all, row),
        }
    }

    /// The same, if it is known to be within `all`.
    fn inside(&self, ranges: &[(i128, i128)], all: (i128, i128), row: usize) -> RecordTest {
        if ranges.len() <= row {
            return RecordTest::any(ranges.iter().map(|range| self.within(*range, all)));
        }
        let (below, above) = ranges.split_at(ranges.len() / 2);
        let middle = above[0].0;
        let lower = [self.at_least(middle, all), self.inside(below, (all.0, middle - 1), row)];
        let upper = [self.at_most(middle - 1, all), self.inside(above, (middle, all.1), row)];
        RecordTest::all([RecordTest::any(lower), RecordTest::any(upper)])
    }

    fn within(&self, (lowest, highest): (i128, i128), all: (i128, i128)) -> RecordTest {
        match (lowest > all.0, highest < all.1) {
            (false, false) => RecordTest::always(),
            _ if lowest == highest => self.compares(RecordRelation::Equal, lowest),
            (false, true) => self.compares(RecordRelation::Less, highest + 1),
            (true, false) => self.compares(RecordRelation::Greater, lowest - 1),
            (true, true) => RecordTest::all([self.at_least(lowest, all), self.at_most(highest, all)]),
        }
    }

    fn at_least(&self, number: i128, all: (i128, i128)) -> RecordTest {
        if number <= all.0 { RecordTest::always() } else { self.compares(RecordRelation::GreaterOrEqual, number) }
    }

    fn at_most(&self, number: i128, all: (i128, i128)) -> RecordTest {
        if number >= all.1 { RecordTest::always() } else { self.compares(RecordRelation::LessOrEqual, number) }
    }

    /// A comparison with a number that the field may have.
    fn compares(&self, relation: RecordRelation, number: i128) -> RecordTest {
        let value =
            if self.all.0 < 0 { RecordValue::Signed(number as i64) } else { RecordValue::Unsigned(number as u64) };
        RecordTest::Number { field: self.field.clone(), relation, value }
    }
}

/// Numbers among all that compare so with one.
fn related(relation: RecordRelation, number: i128, (lowest, highest): (i128, i128)) -> Ranges {
    let ranges = match relation {
        RecordRelation::Equal => vec![(number, number)],
        RecordRelation::NotEqual => vec![(lowest, number - 1), (number + 1, highest)],
        RecordRelation::Less => vec![(lowest, number - 1)],
        RecordRelation::LessOrEqual => vec![(lowest, number)],
        RecordRelation::Greater => vec![(number + 1, highest)],
        RecordRelation::GreaterOrEqual => vec![(number, highest)],
    };
    let among = ranges.into_iter().map(|(from, to)| (from.max(lowest), to.min(highest)));
    among.filter(|(from, to)| from <= to).collect()
}

fn united(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut united: Ranges = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match united.last_mut() {
            Some((_, end)) if from <= *end + 1 => *end = to.max(*end),
            _ => united.push((from, to)),
        }
    }
    united
}

/// Numbers among all that are in none of these ranges.
fn gaps(ranges: &[(i128, i128)], (lowest, highest): (i128, i128)) -> Ranges {
    let (mut gaps, mut next) = (Vec::with_capacity(ranges.len() + 1), lowest);
    for (from, to) in ranges {
        if next < *from {
            gaps.push((next, from - 1));
        }
        next = to + 1;
    }
    if next <= highest {
        gaps.push((next, highest));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kymo_random::RandomNumbers;

    use super::*;

    /// Fields of all sizes and both signs, and the CPU.
    fn format() -> EventFormat {
        let fields = [("i8", 1, 1), ("u8", 1, 0), ("i32", 4, 1), ("u32", 4, 0), ("i64", 8, 1), ("u64", 8, 0)];
        let lines = fields.iter().zip((8..).step_by(8)).map(|((name, size, signed), at)| {
            format!("\tfield:number {name};\toffset:{at};\tsize:{size};\tsigned:{signed};\n")
        });
        let text = format!("name: test\nID: 7\nformat:\n{}\nprint fmt: \"\"\n", lines.collect::<String>());
        EventFormat::parse("any", &text).expect("it is one")
    }

    const FIELDS: [&str; 7] = ["i8", "u8", "i32", "u32", "i64", "u64", "CPU"];

    type Values = BTreeMap<&'static str, i128>;

    fn is_true(test: &RecordTest, values: &Values, asked: &mut usize) -> bool {
        match test {
            RecordTest::All(parts) => parts.iter().all(|part| is_true(part, values, asked)),
            RecordTest::Any(parts) => parts.iter().any(|part| is_true(part, values, asked)),
            RecordTest::Number { field, relation, value } => {
                *asked += 1;
                let (left, right) = (values[&field[..]], value.number());
                match relation {
                    RecordRelation::Equal => left == right,
                    RecordRelation::NotEqual => left != right,
                    RecordRelation::Less => left < right,
                    RecordRelation::LessOrEqual => left <= right,
                    RecordRelation::Greater => left > right,
                    RecordRelation::GreaterOrEqual => left >= right,
                }
            }
            RecordTest::Bits { field, mask, is_any } => (values[&field[..]] as u64 & mask != 0) == *is_any,
            RecordTest::Text { .. } => unreachable!("there is none"),
        }
    }

    const RELATIONS: [RecordRelation; 6] = [
        RecordRelation::Equal,
        RecordRelation::NotEqual,
        RecordRelation::Less,
        RecordRelation::LessOrEqual,
        RecordRelation::Greater,
        RecordRelation::GreaterOrEqual,
    ];

    /// A number of a field: at its ends, around zero, or anywhere.
    fn number(random: &mut RandomNumbers, (lowest, highest): (i128, i128)) -> i128 {
        let near = random.below(40) as i128;
        match random.below(6) {
            0 => lowest + near,
            1 => highest - near,
            2 => (lowest + (random.any() as i128)).min(highest),
            _ => (near - 10).clamp(lowest, highest),
        }
    }

    fn compares(field: &str, relation: RecordRelation, number: i128) -> RecordTest {
        let value = i64::try_from(number).map_or(RecordValue::Unsigned(number as u64), RecordValue::Signed);
        RecordTest::Number { field: field.to_owned(), relation, value }
    }

    fn random_test(random: &mut RandomNumbers, format: &EventFormat, fields: &[&str], depth: usize) -> RecordTest {
        let field = fields[random.below(fields.len())];
        let all = number_field(format, field).expect("it is one");
        match random.below(if depth == 0 { 1 } else { 8 }) {
            0 | 1 => compares(field, RELATIONS[random.below(6)], number(random, all)),
            2 if field != "CPU" => {
                RecordTest::Bits { field: field.to_owned(), mask: 1 << random.below(7), is_any: random.below(2) == 0 }
            }
            // Many of one number.
            3 => {
                let is_any = random.below(2) == 0;
                let relation = if is_any { RecordRelation::Equal } else { RecordRelation::NotEqual };
                let parts = (0..1 + random.below(30)).map(|_| compares(field, relation, number(random, all)));
                let parts: Vec<RecordTest> = parts.collect();
                if is_any { RecordTest::any(parts) } else { RecordTest::all(parts) }
            }
            kind => {
                let count = 1 + random.below(5);
                let parts: Vec<RecordTest> =
                    (0..count).map(|_| random_test(random, format, fields, depth - 1)).collect();
                if kind % 2 == 0 { RecordTest::any(parts) } else { RecordTest::all(parts) }
            }
        }
    }

    /// Numbers that a test compares with, and those beside them.
    fn edges(test: &RecordTest, into: &mut BTreeMap<String, Vec<i128>>) {
        match test {
            RecordTest::All(parts) | RecordTest::Any(parts) => parts.iter().for_each(|part| edges(part, into)),
            RecordTest::Number { field, value, .. } => {
                into.entry(field.clone()).or_default().extend((-1..=1).map(|by| value.number() + by));
            }
            RecordTest::Bits { .. } | RecordTest::Text { .. } => {}
        }
    }

    #[test]
    fn fewer_comparisons_mean_the_same() {
        let (format, mut compared, mut trues) = (format(), 0, 0);
        for seed in 0..3000 {
            let random = &mut RandomNumbers::new(seed);
            let first = random.below(FIELDS.len());
            let fields: Vec<&str> = (0..1 + random.below(3)).map(|at| FIELDS[(first + at) % FIELDS.len()]).collect();
            let test = random_test(random, &format, &fields, 4);
            let searched = match test.searched(&format) {
                Ok(searched) => searched,
                Err(UnsoundTest::Long(_)) => continue,
                Err(problem) => panic!("{seed}: {problem}"),
            };
            let mut of_edges = BTreeMap::new();
            edges(&test, &mut of_edges);
            for _ in 0..60 {
                let value = |field: &&'static str| {
                    let all = number_field(&format, field).expect("it is one");
                    let edges = of_edges.get(*field).filter(|_| random.below(4) > 0);
                    let value = match edges {
                        Some(edges) => edges[random.below(edges.len())],
                        None => number(random, all),
                    };
                    (*field, value.clamp(all.0, all.1))
                };
                let values: Values = FIELDS.iter().map(value).collect();
                let wanted = is_true(&test, &values, &mut 0);
                assert_eq!(is_true(&searched, &values, &mut 0), wanted, "{seed}: {values:?}\n{test:?}\n{searched:?}");
                compared += 1;
                trues += usize::from(wanted);
            }
        }
        assert!(compared > 150_000, "{compared}: the test has become weak");
        assert!(trues > compared / 10 && trues < compared * 9 / 10, "{trues} of {compared}: the test has become weak");
    }

    /// A number meets no more comparisons than these, wherever it is.
    #[test]
    fn many_comparisons_become_few() {
        for (count, most, most_far) in [(4, 6, 2), (10, 9, 2), (50, 15, 2), (150, 21, 2)] {
            for relation in [RecordRelation::Equal, RecordRelation::NotEqual] {
                let parts = (0..count).map(|at| compares("i32", relation, 2 * at));
                let test = match relation {
                    RecordRelation::Equal => RecordTest::any(parts),
                    _ => RecordTest::all(parts),
                };
                let searched = test.searched(&format()).expect("it is sound");
                assert!(searched.text(&format()).is_ok(), "{count}: the kernel takes it");
                let mut met = |number: i128| {
                    let mut asked = 0;
                    let is_one = is_true(&searched, &Values::from([("i32", number)]), &mut asked);
                    let is_even = number % 2 == 0 && (0..2 * count).contains(&number);
                    assert_eq!(is_one, is_even == (relation == RecordRelation::Equal), "{number}");
                    asked
                };
                let met_most = (-1..=2 * count).map(&mut met).max();
                assert!(met_most <= Some(most), "{count} {relation:?}: {met_most:?}");
                assert!([-1000, 5_000_000].map(met).iter().all(|asked| *asked <= most_far), "{count}");
            }
        }
    }

    #[test]
    fn forms_are_short() {
        use RecordRelation::{Equal, Greater, GreaterOrEqual, Less, NotEqual};
        let of = |relation, number| compares("i32", relation, number);
        let bits = RecordTest::Bits { field: "u8".to_owned(), mask: 4, is_any: true };
        for (test, expected) in [
            (RecordTest::all([of(Greater, 3), of(Less, 9), of(NotEqual, 4)]), "i32 >= 5 && i32 <= 8"),
            (RecordTest::any([of(Less, 3), of(Equal, 3), of(Greater, 8)]), "i32 < 4 || i32 > 8"),
            (RecordTest::any([bits.clone(), of(Equal, 3), of(Equal, 4)]), "(i32 >= 3 && i32 <= 4) || u8 & 4"),
            (RecordTest::all([of(Equal, 3), bits, compares("u8", GreaterOrEqual, 1)]), "i32 == 3 && u8 > 0 && u8 & 4"),
        ] {
            let searched = test.searched(&format()).expect("it is sound");
            assert_eq!(searched.text(&format()), Ok(expected.to_owned()));
        }
        for (test, constant) in [
            (RecordTest::all([of(Less, 3), of(Greater, 3)]), false),
            (RecordTest::any([of(Less, 4), of(Greater, 3)]), true),
            (of(Less, i32::MIN.into()), false),
        ] {
            assert_eq!(test.searched(&format()).map(|test| test.constant()), Ok(Some(constant)), "{test:?}");
        }
        assert!(compares("u8", Less, 256).searched(&format()).is_err(), "no number of the field");
    }
}
