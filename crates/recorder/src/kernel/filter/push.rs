//! The part of a filter that the kernel can ask: a condition of its record that is true wherever the filter may be true.
//!
//! Each part is asked in one of two forms, itself or its opposite, so that a part that cannot be asked is always *true*, also inside of a
//! `!`. Nothing else may be said in its place.

use kymo_ftrace::format::{EventFormat, FormatField, FormatShape};
use kymo_ftrace::{AskedPlace, EventPlan};
use kymo_ir::predicate::{Bitwise, Input, InputKind, Number, Pattern, Predicate, Relation, Test, TextExpression};
use kymo_probe::record_test::{CPU_FIELD, RecordRelation, RecordTest, RecordValue, can_have, values};

use super::names::RecordSource;

/// A condition of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PushedTest {
    pub(super) test: RecordTest,
    /// Why it is not the whole filter; `None`: it is.
    pub(super) why: Option<String>,
}

/// The condition of a filter for an event with these sources of its inputs.
pub(super) fn push(
    predicate: &Predicate,
    sources: &[RecordSource],
    (format, plan): (&EventFormat, &EventPlan),
) -> PushedTest {
    let mut pusher = Pusher { predicate, sources, format, plan, why: None };
    let test = pusher.test(&predicate.root, false);
    PushedTest { test, why: pusher.why }
}

struct Pusher<'a> {
    predicate: &'a Predicate,
    sources: &'a [RecordSource],
    format: &'a EventFormat,
    plan: &'a EventPlan,
    why: Option<String>,
}

/// A number of a record.
struct RecordNumber {
    field: String,
    /// Its values.
    lowest: i128,
    highest: i128,
    is_signed: bool,
    /// It is by so much greater than that of the trace.
    greater: i128,
}

impl Pusher<'_> {
    /// A condition that is true wherever a test may be true, or where it may be false.
    fn test(&mut self, test: &Test, is_negated: bool) -> RecordTest {
        match (test, is_negated) {
            (Test::Constant(value), _) => constant(*value == Some(!is_negated)),
            (Test::Not(test), _) => self.test(test, !is_negated),
            (Test::All(parts), false) | (Test::Any(parts), true) => {
                let parts: Vec<RecordTest> = parts.iter().map(|part| self.test(part, is_negated)).collect();
                RecordTest::all(parts)
            }
            (Test::Any(parts), false) | (Test::All(parts), true) => {
                let parts: Vec<RecordTest> = parts.iter().map(|part| self.test(part, is_negated)).collect();
                RecordTest::any(parts)
            }
            (Test::Has(_), _) => self.unsaid("whether an element is there is not asked"),
            (Test::Compare { relation, left, right }, _) => {
                let relation = if is_negated { opposite(*relation) } else { *relation };
                self.compare(relation, left, right)
            }
            (Test::Among { value, ranges }, _) => self.among(value, ranges, is_negated),
            (Test::CompareText { relation, left, right }, _) => {
                let (text, literal) = match (left, right) {
                    (TextExpression::Input(input), TextExpression::Literal(literal))
                    | (TextExpression::Literal(literal), TextExpression::Input(input)) => (*input, literal),
                    _ => return self.unsaid("texts of one record are not compared with each other"),
                };
                match relation {
                    Relation::Equal => self.text(text, &[literal], is_negated),
                    Relation::NotEqual => self.text(text, &[literal], !is_negated),
                    _ => self.unsaid("the order of texts is not asked"),
                }
            }
            (Test::Matches { text: TextExpression::Input(input), pattern }, _) => match pattern {
                Pattern::Exactly(text) => self.text(*input, &[text], is_negated),
                Pattern::Prefix(text) => self.text(*input, &[text, b""], is_negated),
                Pattern::Glob(parts) => {
                    let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
                    self.text(*input, &parts, is_negated)
                }
                Pattern::Regex(_) => self.unsaid("regular expressions are not asked"),
            },
            (Test::Matches { .. }, _) => self.unsaid("a text that is no field is not asked"),
        }
    }

    /// A part that the kernel cannot say is true.
    fn unsaid(&mut self, why: impl Into<String>) -> RecordTest {
        self.why.get_or_insert_with(|| why.into());
        RecordTest::always()
    }

    fn name(&self, input: Input) -> &str {
        &self.predicate.inputs[usize::from(input.0)].name
    }

    fn compare(&mut self, relation: Relation, left: &Number, right: &Number) -> RecordTest {
        match (left, right) {
            (Number::Input(input), Number::Integer(value)) => self.number(*input, relation, *value),
            (Number::Integer(value), Number::Input(input)) => self.number(*input, relation.mirrored(), *value),
            (Number::Bits { operation: Bitwise::And, left, right }, Number::Integer(value)) => {
                match (&**left, &**right) {
                    (Number::Input(input), Number::Integer(mask)) | (Number::Integer(mask), Number::Input(input)) => {
                        match (relation, *value) {
                            (_, 0) => self.bits(*input, relation, *mask),
                            // Of one bit, that is the opposite.
                            (Relation::Equal, one) if one == *mask && one.count_ones() == 1 => {
                                self.bits(*input, Relation::NotEqual, *mask)
                            }
                            (Relation::NotEqual, one) if one == *mask && one.count_ones() == 1 => {
                                self.bits(*input, Relation::Equal, *mask)
                            }
                            _ => self.unsaid("such bits are not asked"),
                        }
                    }
                    _ => self.unsaid("arithmetic is not asked"),
                }
            }
            (Number::Input(_), Number::Input(_)) => self.unsaid("fields are not compared with each other"),
            _ => self.unsaid("arithmetic is not asked"),
        }
    }

    fn number(&mut self, input: Input, relation: Relation, value: i128) -> RecordTest {
        match self.record_number(input) {
            Ok(number) => number.compares(relation, value),
            Err(why) => self.unsaid(why),
        }
    }

    fn bits(&mut self, input: Input, relation: Relation, mask: i128) -> RecordTest {
        let number = match self.record_number(input) {
            Ok(number) => number,
            Err(why) => return self.unsaid(why),
        };
        let mask = u64::try_from(mask).ok().filter(|mask| *mask != 0 && i128::from(*mask) <= number.highest);
        match (mask, relation, number.greater) {
            // The kernel compares the number of the CPU, and never looks at its bits.
            (Some(mask), Relation::Equal | Relation::NotEqual, 0) if number.field != CPU_FIELD => {
                RecordTest::Bits { field: number.field, mask, is_any: relation == Relation::NotEqual }
            }
            _ => self.unsaid("such bits are not asked"),
        }
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], is_negated: bool) -> RecordTest {
        let Number::Input(input) = value else { return self.unsaid("arithmetic is not asked") };
        let number = match self.record_number(*input) {
            Ok(number) => number,
            Err(why) => return self.unsaid(why),
        };
        let inside = |&(lowest, highest): &(i128, i128)| match lowest == highest {
            true => number.compares(Relation::Equal, lowest),
            false => RecordTest::all([
                number.compares(Relation::GreaterOrEqual, lowest),
                number.compares(Relation::LessOrEqual, highest),
            ]),
        };
        let outside = |&(lowest, highest): &(i128, i128)| match lowest == highest {
            true => number.compares(Relation::NotEqual, lowest),
            false => {
                RecordTest::any([number.compares(Relation::Less, lowest), number.compares(Relation::Greater, highest)])
            }
        };
        if is_negated {
            RecordTest::all(ranges.iter().map(outside))
        } else {
            RecordTest::any(ranges.iter().map(inside))
        }
    }

    /// A text is, or is not, of these parts with any text between them.
    fn text(&mut self, input: Input, parts: &[&[u8]], is_negated: bool) -> RecordTest {
        let place = match self.sources[usize::from(input.0)] {
            RecordSource::Field(field) => self.plan.place(field),
            _ => None,
        };
        let Some(AskedPlace::Text { offset }) = place else {
            let why = format!("`{}` is in no record of the kernel", self.name(input));
            return self.unsaid(why);
        };
        let Some(field) = field_at(self.format, offset).filter(|field| field.is_text()) else {
            let why = format!("`{}` is no text that the kernel compares", self.name(input));
            return self.unsaid(why);
        };
        let is_pattern = parts.len() > 1;
        if is_pattern && !is_sound_pattern(parts, is_negated) {
            return self.unsaid("the kernel's filters would compare another text with such a pattern");
        }
        // The kernel compares no more bytes than the field has.
        if !is_pattern && field.size as usize <= parts[0].len() && matches!(field.shape, FormatShape::Array(_)) {
            return self.unsaid("a text is longer than the field");
        }
        let said: Option<Vec<String>> = parts
            .iter()
            .map(|part| std::str::from_utf8(part).ok().filter(|part| can_have(part, is_pattern)).map(str::to_owned))
            .collect();
        match said {
            Some(parts) => RecordTest::Text { field: field.name.clone(), parts, is_negated },
            None => self.unsaid("a text has letters that the kernel's filters cannot have"),
        }
    }

    /// The number of the record behind an input, or why there is none.
    fn record_number(&self, input: Input) -> Result<RecordNumber, String> {
        let at = usize::from(input.0);
        let (name, kind) = (self.name(input), self.predicate.inputs[at].kind);
        let (offset, greater) = match self.sources[at] {
            RecordSource::Cpu => {
                let (lowest, highest, is_signed) = (0, i128::from(i32::MAX), true);
                return Ok(RecordNumber { field: CPU_FIELD.to_owned(), lowest, highest, is_signed, greater: 0 });
            }
            RecordSource::Tid => {
                let field = self.format.common.iter().find(|field| field.name == "common_pid");
                return field
                    .and_then(|field| RecordNumber::of(field, 0))
                    .ok_or_else(|| "there is no thread".to_owned());
            }
            RecordSource::Element(..) => return Err("elements of arrays are not asked".to_owned()),
            RecordSource::Field(field) => match self.plan.place(field) {
                Some(AskedPlace::Number { offset }) => (offset, 0),
                Some(AskedPlace::Greater { offset, by }) => (offset, i128::from(by)),
                _ => return Err(format!("`{name}` is another number in the kernel's record")),
            },
        };
        let number = field_at(self.format, offset).and_then(|field| {
            let InputKind::Integer { signed, bits } = kind else { return None };
            let is_same = field.is_signed == signed && field.size * 8 == u32::from(bits);
            RecordNumber::of(field, greater).filter(|_| is_same)
        });
        number.ok_or_else(|| format!("`{name}` is no number that the kernel compares"))
    }
}

/// Whether the kernel finds a pattern wherever it is, or does so where it is not to be: an end is looked for at the end of the field, a
/// part between others also behind the end of the text, and one with a digit at its begin is taken for a number.
fn is_sound_pattern(parts: &[&[u8]], is_negated: bool) -> bool {
    match parts {
        [b"", _] => false,
        [b"", _, b""] => !is_negated,
        [first, ..] => !first.first().is_some_and(u8::is_ascii_digit),
        [] => false,
    }
}

/// The field that begins there.
fn field_at(format: &EventFormat, offset: u32) -> Option<&FormatField> {
    format.fields.iter().chain(&format.common).find(|field| field.offset == offset)
}

impl RecordNumber {
    fn of(field: &FormatField, greater: i128) -> Option<Self> {
        let (lowest, highest) = values(field)?;
        Some(Self { field: field.name.clone(), lowest, highest, is_signed: field.is_signed, greater })
    }

    /// The condition that the number of the trace compares so.
    fn compares(&self, relation: Relation, value: i128) -> RecordTest {
        let value = value + self.greater;
        let relation = match (relation, value < self.lowest, value > self.highest) {
            (Relation::Equal, false, false) => RecordRelation::Equal,
            (Relation::NotEqual, false, false) => RecordRelation::NotEqual,
            (Relation::Less, false, false) => RecordRelation::Less,
            (Relation::LessOrEqual, false, false) => RecordRelation::LessOrEqual,
            (Relation::Greater, false, false) => RecordRelation::Greater,
            (Relation::GreaterOrEqual, false, false) => RecordRelation::GreaterOrEqual,
            // No number of the record is there.
            (Relation::Equal, ..) => return RecordTest::never(),
            (Relation::NotEqual, ..) => return RecordTest::always(),
            (Relation::Less | Relation::LessOrEqual, is_below, _) => return constant(!is_below),
            (Relation::Greater | Relation::GreaterOrEqual, is_below, _) => return constant(is_below),
        };
        let value = match self.is_signed {
            true => RecordValue::Signed(value as i64),
            false => RecordValue::Unsigned(value as u64),
        };
        RecordTest::Number { field: self.field.clone(), relation, value }
    }
}

fn constant(value: bool) -> RecordTest {
    if value { RecordTest::always() } else { RecordTest::never() }
}

fn opposite(relation: Relation) -> Relation {
    match relation {
        Relation::Equal => Relation::NotEqual,
        Relation::NotEqual => Relation::Equal,
        Relation::Less => Relation::GreaterOrEqual,
        Relation::LessOrEqual => Relation::Greater,
        Relation::Greater => Relation::LessOrEqual,
        Relation::GreaterOrEqual => Relation::Less,
    }
}

#[cfg(test)]
mod tests {
    use kymo_ir::predicate::Datum;
    use kymo_random::RandomNumbers;

    use super::*;
    use crate::kernel::filter::BoundFilter;
    use crate::kernel_filter::KernelFilter;

    const FORMAT: &str = "name: sched_switch\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned char flags;\toffset:40;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned long args[2];\toffset:48;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->prev_pid\n";

    /// The condition of a filter, and why it is not all.
    fn pushed(text: &str) -> (String, Option<String>) {
        let format = EventFormat::parse("sched", FORMAT).expect("it is one");
        let plan = EventPlan::of(&format);
        let filter = KernelFilter::parse(text).expect("it is one");
        let bound = BoundFilter::new(&filter, &plan.name, &plan.payload).expect("it is typed");
        let PushedTest { test, why } = push(&bound.predicate, &bound.sources, (&format, &plan));
        let text = match test.constant() {
            Some(constant) => constant.to_string(),
            None => test.text(&format).expect("it is sound"),
        };
        (text, why)
    }

    #[test]
    fn all_of_a_filter_is_asked() {
        for (filter, expected) in [
            ("prev_tid == 5 && tid != 4 || cpu_id >= 2", "CPU >= 2 || (prev_pid == 5 && common_pid != 4)"),
            ("prev_prio < -90", "prev_prio < 10"),
            ("!(prev_prio < 20 || prev_comm == \"a*b\")", "prev_prio >= 120 && !(prev_comm ~ \"a*b\")"),
            ("prev_comm != \"ab\"", "prev_comm != \"ab\""),
            ("prev_comm == \"*ab*\" || prev_comm == \"7z\"", "prev_comm == \"7z\" || prev_comm ~ \"*ab*\""),
            ("flags & 6", "flags & 6"),
            ("(flags & 4) == 4 || (flags & 1) != 1", "flags & 4 || !(flags & 1)"),
            ("!(flags & 6)", "!(flags & 6)"),
            ("flags > 255 || 3 < prev_tid", "prev_pid > 3"),
            ("flags <= 255 && prev_tid < 5000000000 && prev_tid != 7", "prev_pid != 7"),
        ] {
            assert_eq!(pushed(filter), (expected.to_owned(), None), "{filter}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_true() {
        for (filter, expected, why) in [
            ("prev_tid == 5 && prev_state == 0", "prev_pid == 5", "another number"),
            ("!(prev_tid == 5 || prev_state == 0)", "prev_pid != 5", "another number"),
            ("prev_tid == 5 || prev_state == 0", "true", "another number"),
            ("!(prev_tid == 5 && prev_state == 0)", "true", "another number"),
            ("args[1] == 3 && prev_tid == 5", "prev_pid == 5", "elements"),
            ("prev_comm =~ \"a.b\" && prev_tid == 5", "prev_pid == 5", "regular expressions"),
            ("prev_comm == \"a[b]*\" && prev_tid == 5", "prev_pid == 5", "letters"),
            ("prev_comm < \"b\" && prev_tid == 5", "prev_pid == 5", "order"),
            ("prev_comm == \"*swap\" && prev_tid == 5", "prev_pid == 5", "such a pattern"),
            ("prev_comm != \"*swap*\" && prev_tid == 5", "prev_pid == 5", "such a pattern"),
            ("prev_comm == \"7z*\" && prev_tid == 5", "prev_pid == 5", "such a pattern"),
            ("prev_comm == \"sixteen-letters-\" && prev_tid == 5", "prev_pid == 5", "longer"),
            ("cpu_id & 1 && prev_tid == 5", "prev_pid == 5", "bits"),
            ("prev_tid * 3 == 15 && flags == 3", "flags == 3", "arithmetic"),
            ("prev_tid == prev_prio && flags == 3", "flags == 3", "each other"),
        ] {
            let (text, told) = pushed(filter);
            assert_eq!(text, expected, "{filter}");
            assert!(told.as_ref().is_some_and(|told| told.contains(why)), "{filter}: {told:?}");
        }
    }

    fn is_true(test: &RecordTest, record: &dyn Fn(&str) -> i128) -> bool {
        match test {
            RecordTest::All(parts) => parts.iter().all(|part| is_true(part, record)),
            RecordTest::Any(parts) => parts.iter().any(|part| is_true(part, record)),
            RecordTest::Number { field, relation, value } => {
                let order = record(field).cmp(&value.number());
                match relation {
                    RecordRelation::Equal => order.is_eq(),
                    RecordRelation::NotEqual => order.is_ne(),
                    RecordRelation::Less => order.is_lt(),
                    RecordRelation::LessOrEqual => order.is_le(),
                    RecordRelation::Greater => order.is_gt(),
                    RecordRelation::GreaterOrEqual => order.is_ge(),
                }
            }
            RecordTest::Bits { field, mask, is_any } => (record(field) as u64 & mask != 0) == *is_any,
            RecordTest::Text { .. } => unreachable!("there is none"),
        }
    }

    /// An expression of comparisons and sets of the numbers of these fields.
    fn expression(random: &mut RandomNumbers, depth: usize) -> String {
        let name = ["prev_tid", "prev_prio", "flags"][random.below(3)];
        let mut number = || i64::try_from(random.below(50)).expect("it is small") - 20;
        match (number() + 20) % if depth == 0 { 2 } else { 5 } {
            0 => format!("{name} {} {}", ["==", "!=", "<", "<=", ">", ">="][number().rem_euclid(6) as usize], number()),
            1 => {
                let mut range = || (number(), number().abs());
                let ranges: Vec<(i64, i64)> = (0..range().1).map(|_| range()).collect();
                let items: String =
                    ranges.iter().map(|(from, more)| format!(", {from}..{}", from + more / 4)).collect();
                format!("{name} in (300, {}{items})", number())
            }
            2 => format!("!({})", expression(random, depth - 1)),
            kind => {
                let word = if kind == 3 { " && " } else { " || " };
                let parts: Vec<String> = (0..3).map(|_| format!("({})", expression(random, depth - 1))).collect();
                parts.join(word)
            }
        }
    }

    /// The kernel is asked what the evaluator says, also with fewer comparisons.
    #[test]
    fn the_kernel_is_asked_what_the_filter_means() {
        let format = EventFormat::parse("sched", FORMAT).expect("it is one");
        let plan = EventPlan::of(&format);
        let (mut searched_tests, mut trues) = (0, 0);
        for seed in 0..600 {
            let random = &mut RandomNumbers::new(seed);
            let text = expression(random, 3);
            let filter = KernelFilter::parse(&text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
            let bound = BoundFilter::new(&filter, &plan.name, &plan.payload).expect("it is typed");
            let PushedTest { test, why } = push(&bound.predicate, &bound.sources, (&format, &plan));
            assert_eq!(why, None, "{text}");
            let searched = test.searched(&format).ok();
            searched_tests += usize::from(searched.is_some());
            for _ in 0..100 {
                let mut any = |lowest: i64, highest: i64| lowest + random.below((highest - lowest) as usize) as i64;
                let (tid, prio, flags) = (any(-25, 40), any(-25, 40), any(0, 40));
                let of_trace = |name: &str| {
                    [("prev_tid", tid), ("prev_prio", prio), ("flags", flags)]
                        .into_iter()
                        .find(|(known, _)| *known == name)
                        .map_or_else(|| panic!("{name}"), |(_, value)| value)
                };
                let record = |field: &str| {
                    i128::from(match field {
                        "prev_pid" => tid,
                        "prev_prio" => prio + 100,
                        _ => flags,
                    })
                };
                let inputs = bound.predicate.inputs.iter().map(|input| Datum::Number(of_trace(&input.name) as u64));
                let inputs: Vec<Datum> = inputs.collect();
                let wanted = bound.predicate.keeps(&inputs[..]);
                for test in searched.iter().chain([&test]) {
                    assert_eq!(is_true(test, &record), wanted, "{seed}: {tid} {prio} {flags}: {text}\n{test:?}");
                }
                trues += usize::from(wanted);
            }
        }
        assert!(
            searched_tests > 500 && (6_000..54_000).contains(&trues),
            "{searched_tests} {trues}: the test has become weak"
        );
    }
}
