//! No text makes the front end of filters panic, hang or run out of stack; a filter that it accepts
//! and binds is a sound predicate that can be evaluated on any event, and that keeps the events
//! that the binding promises.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use kymo_filter::{
    Binding, Constant, Dimension, FieldResolver, Filter, FilterField, FilterProblem, NamePath, NameStep, PathMeaning,
    Unit, Verdict,
};
use kymo_ir::Encoding;
use kymo_ir::predicate::{Datum, InputKind};
use kymo_random::predicates;

use crate::filter_text;
use crate::random::RandomNumbers;

pub use crate::filter_text::{extremes, text};

/// Classes of events that an expression is bound for.
const CLASSES: usize = 3;
/// Events on which bound filters are evaluated.
const EVENTS: usize = 8;

/// The outcome of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterOutcome {
    /// It is an expression.
    pub parsed: bool,
    /// Classes that it could be bound for.
    pub bound: usize,
    /// Events that were kept.
    pub kept: usize,
}

/// The promise for a text.
///
/// # Panics
///
/// If it is broken.
pub fn hold(text: &str, random: &mut RandomNumbers) -> FilterOutcome {
    let mut outcome = FilterOutcome::default();
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(problems) => {
            explained(&problems, text);
            return outcome;
        }
    };
    outcome.parsed = true;
    assert_eq!(filter.text(), text);
    assert!(!filter.tree().is_empty(), "the tree of an expression is empty");
    for (path, span) in filter.paths() {
        inside(&span, text);
        assert!(matches!(path.steps.first(), Some(NameStep::Name(_))), "{path:?} does not begin with a name");
    }
    for _ in 0..CLASSES {
        match filter.bind(&LetterClass::new(random.any())) {
            Ok(binding) => {
                outcome.bound += 1;
                outcome.kept += sound(&binding, text, random);
            }
            Err(problems) => explained(&problems, text),
        }
    }
    outcome
}

/// Two forms of the same statement keep the same events: folding, merging and the order of tests
/// change nothing. `None`: the statements cannot be bound for the class that was tried.
///
/// # Panics
///
/// If they do not, or one of them is refused and the other is not.
pub fn hold_alike(random: &mut RandomNumbers) -> Option<FilterOutcome> {
    let texts = filter_text::alike(random);
    let class = LetterClass::new(random.any());
    let [one, other] = texts.each_ref().map(|text| Filter::parse(text).and_then(|filter| filter.bind(&class)));
    assert_eq!(one.is_ok(), other.is_ok(), "only one is refused: {texts:#?} {one:#?} {other:#?}");
    let (one, other) = (one.ok()?, other.ok()?);
    let mut outcome = FilterOutcome { parsed: true, bound: 2, kept: 0 };
    for _ in 0..EVENTS {
        let mut values = HashMap::new();
        let [one, other] = [&one, &other].map(|binding| {
            let event = predicates::event(random, &binding.predicate);
            let known = binding.keys.iter().zip(event).map(|(key, datum)| values.entry(*key).or_insert(datum).clone());
            let known: Vec<Datum> = known.collect();
            binding.predicate.keeps(&known[..])
        });
        assert_eq!(one, other, "{texts:#?} with {values:?}");
        outcome.kept += usize::from(one);
    }
    Some(outcome)
}

/// Something is wrong, each problem is about a part of the text, and can be shown.
fn explained(problems: &[FilterProblem], text: &str) {
    assert!(!problems.is_empty(), "refused without a reason");
    for problem in problems {
        inside(&problem.span, text);
        assert!(!problem.render(text).is_empty(), "{problem:?} says nothing");
    }
}

fn inside(span: &Range<usize>, text: &str) {
    assert!(span.start <= span.end && span.end <= text.len(), "{span:?} lies outside of the text");
}

/// How many of some events a sound binding keeps.
fn sound(binding: &Binding, text: &str, random: &mut RandomNumbers) -> usize {
    let predicate = &binding.predicate;
    assert_eq!(predicate.verify(), Ok(()), "what was bound is not sound:\n{predicate}");
    assert_eq!(binding.keys.len(), predicate.inputs.len(), "each input has the key of its field");
    let notes = binding.notes.iter().map(|note| &note.span);
    notes.chain(binding.missing.iter().map(|missing| &missing.span)).for_each(|span| inside(span, text));
    let (verdict, outcomes) = (binding.verdict(), predicate.outcomes(&[]));
    let mut kept = 0;
    for _ in 0..EVENTS {
        let event = predicates::event(random, predicate);
        let keeps = predicate.keeps(&event[..]);
        let is_possible = if keeps { outcomes.is_true } else { outcomes.is_false || outcomes.is_unknown };
        assert!(is_possible, "{outcomes:?} leaves out {keeps} for {event:?}:\n{predicate}");
        match verdict {
            Verdict::AlwaysTrue => assert!(keeps, "{event:?} is not kept:\n{predicate}"),
            Verdict::NeverTrue => assert!(!keeps, "{event:?} is kept:\n{predicate}"),
            Verdict::Depends => {}
        }
        kept += usize::from(keeps);
    }
    kept
}

/// A class of events that has a field under every name, by the letters of the name and the seed of
/// the class.
struct LetterClass {
    seed: u64,
    /// The paths that were asked for; the position of one is its key.
    asked: RefCell<Vec<NamePath>>,
}

impl LetterClass {
    fn new(seed: u64) -> Self {
        Self { seed, asked: RefCell::default() }
    }

    fn key(&self, path: &NamePath) -> u32 {
        let mut asked = self.asked.borrow_mut();
        let known = asked.iter().position(|known| known == path);
        let key = known.unwrap_or_else(|| {
            asked.push(path.clone());
            asked.len() - 1
        });
        u32::try_from(key).expect("a text has fewer names than bytes")
    }
}

impl FieldResolver for LetterClass {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name: String = path.steps.iter().map(|step| format!("{step:?}")).collect();
        let seed = name.bytes().fold(self.seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
        found(&mut RandomNumbers::new(seed), self.key(path), name)
    }

    fn instant(&self, text: &str) -> Option<i64> {
        let digits: String = text.chars().filter(char::is_ascii_digit).take(18).collect();
        digits.parse().ok()
    }
}

fn found(random: &mut RandomNumbers, key: u32, name: String) -> PathMeaning {
    match random.below(12) {
        0 => PathMeaning::Missing { near: vec![name] },
        1 => PathMeaning::Compound { what: "an array" },
        2 => PathMeaning::Constant(constant(random)),
        3 => {
            let kind = InputKind::Integer { signed: random.below(2) == 0, bits: 64 };
            let [multiply, divide] = [(); 2].map(|()| (random.any() >> random.below(64)).max(1));
            let add = random.any() as i64 >> random.below(64);
            let before = if random.below(2) == 0 { 0 } else { random.any() % divide };
            PathMeaning::Scaled { field: field(random, key, name, kind), before, multiply, divide, add }
        }
        _ => {
            let kind = kind(random);
            PathMeaning::Field(field(random, key, name, kind))
        }
    }
}

fn constant(random: &mut RandomNumbers) -> Constant {
    match random.below(4) {
        0 => Constant::Real(f64::from_bits(random.any())),
        1 => Constant::Text("a".repeat(random.below(3))),
        2 => Constant::Integer(i128::from(random.any())),
        _ => Constant::Integer(i128::from(random.any() as i64)),
    }
}

fn kind(random: &mut RandomNumbers) -> InputKind {
    match random.below(8) {
        0 | 1 => InputKind::Text(Encoding::Utf8),
        2 => InputKind::Text(Encoding::Utf16Le),
        3 => InputKind::Real,
        _ => InputKind::Integer { signed: random.below(2) == 0, bits: 1 + random.below(64) as u8 },
    }
}

fn field(random: &mut RandomNumbers, key: u32, name: String, kind: InputKind) -> FilterField {
    let is_integer = matches!(kind, InputKind::Integer { .. });
    let labels = if is_integer && random.below(4) == 0 {
        vec![("a".into(), vec![(0, 0), (2, 5)]), ("b c".into(), vec![(-7, -3)]), ("d".into(), vec![(3, 1 << 60)])]
    } else {
        Vec::new()
    };
    let dimension = if random.below(2) == 0 { Dimension::Time } else { Dimension::Size };
    let [multiply, divide] = [(); 2].map(|()| (random.any() >> random.below(64)).max(1));
    let unit = (is_integer && random.below(4) == 0).then_some(Unit { dimension, multiply, divide });
    FilterField { key, name, kind, optional: random.below(2) == 0, labels, unit, base: 10 }
}
