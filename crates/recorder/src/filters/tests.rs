//! Filters on packed bytes decide as the evaluator does on the values in them, for any bytes.

use std::sync::Arc;

use kymo_ir::predicate::{Datum, InputKind, Predicate};
use kymo_lane::{WriterThread, contexts};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};
use kymo_schema::definition::ContextClass;
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};

use super::names::{EventContext, InputSource};
use super::*;

/// Purpose of a field of an event.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// It only takes space.
    Filler,
    /// It is an input.
    Whole(usize),
    /// An element of it is an input.
    Element(usize, usize),
}

/// A class of events that has a predicate's inputs, in any place.
struct Shaped {
    class: EventClass,
    plans: Vec<Plan>,
    filter: ClassFilter,
    contexts: Vec<Option<Arc<ContextClass>>>,
}

fn integer(bits: u8, is_signed: bool) -> ScalarType {
    ScalarType::Integer(IntegerType { bytes: bits.div_ceil(8).next_power_of_two(), is_signed, is_hex: false })
}

fn filler(random: &mut RandomNumbers) -> FieldType {
    match random.below(5) {
        0 => FieldType::Text,
        1 => FieldType::Sequence(integer(16, false)),
        2 => FieldType::Array(integer(32, true), 3),
        3 => FieldType::Scalar(ScalarType::Real(4)),
        _ => FieldType::Scalar(ScalarType::Boolean),
    }
}

fn shaped(random: &mut RandomNumbers, predicate: &Predicate) -> Shaped {
    let mut fields = Vec::new();
    let (mut plans, mut sources, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (number, input) in predicate.inputs.iter().enumerate() {
        let fillers = (0..random.below(3)).map(|_| (Plan::Filler, filler(random))).collect::<Vec<_>>();
        let at = (fields.len() + fillers.len()) as u16;
        let element = 1 + random.below(3);
        let scalar = match input.kind {
            InputKind::Integer { bits: 1, signed: false } => Some(ScalarType::Boolean),
            InputKind::Integer { bits, signed } => Some(integer(bits, signed)),
            InputKind::Real => Some(ScalarType::Real(8)),
            InputKind::Text(_) => None,
        };
        let (plan, kind, source) = match scalar {
            // An input that may be missing is an element after the end, or a context that is not
            // carried.
            Some(scalar) if input.optional && random.below(2) == 0 => {
                (Plan::Element(number, element), FieldType::Sequence(scalar), InputSource::Element(at, element as u32))
            }
            kind if input.optional => {
                let kind = kind.map_or(FieldType::Text, FieldType::Scalar);
                let class =
                    ContextClass { id: own.len() as u8, field: DefinedField { name: format!("c{number}"), kind } };
                own.push(Some(Arc::new(class)));
                sources.push(InputSource::Carried(EventContext::Own(own.len() as u8 - 1)));
                continue;
            }
            None => (Plan::Whole(number), FieldType::Text, InputSource::Field(at)),
            Some(scalar) if random.below(3) == 0 => {
                (Plan::Element(number, element), FieldType::Array(scalar, 4), InputSource::Element(at, element as u32))
            }
            Some(scalar) => (Plan::Whole(number), FieldType::Scalar(scalar), InputSource::Field(at)),
        };
        sources.push(source);
        for (plan, kind) in fillers.into_iter().chain([(plan, kind)]) {
            fields.push(DefinedField { name: format!("f{}", fields.len()), kind });
            plans.push(plan);
        }
    }
    let (provider, name) = ("test".to_owned(), "shaped".to_owned());
    let class = EventClass { fields, ..EventClass::new(provider, name) };
    let filter = ClassFilter::of(predicate.clone(), sources);
    Shaped { class, plans, filter, contexts: own }
}

fn put(bytes: &mut Vec<u8>, random: &mut RandomNumbers, kind: &FieldType, value: Option<(&Datum, usize)>) {
    let one = |bytes: &mut Vec<u8>, scalar: &ScalarType, value: u64| {
        bytes.extend_from_slice(&value.to_le_bytes()[..usize::from(scalar.bytes())]);
    };
    let all = |bytes: &mut Vec<u8>, random: &mut RandomNumbers, scalar: &ScalarType, count: usize| {
        for index in 0..count {
            match value {
                Some((Datum::Number(value), at)) if at == index => one(bytes, scalar, *value),
                _ => one(bytes, scalar, random.any()),
            }
        }
    };
    match (kind, value) {
        (FieldType::Scalar(scalar), _) => all(bytes, random, scalar, 1),
        (FieldType::Array(scalar, count), _) => all(bytes, random, scalar, *count as usize),
        (FieldType::Sequence(scalar), value) => {
            let count = match value {
                Some((Datum::Missing, at)) => random.below(at + 1),
                Some((_, at)) => at + 1 + random.below(3),
                None => random.below(4),
            };
            bytes.extend((count as u16).to_le_bytes());
            all(bytes, random, scalar, count);
        }
        (_, value) => {
            let text = if let Some((Datum::Text(text), _)) = value { text.to_vec() } else { random.bytes(3) };
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text);
        }
    }
}

impl Shaped {
    /// The bytes of an event: its set of contexts, their bytes, and the bytes of its fields.
    fn event(&self, random: &mut RandomNumbers, data: &[Datum]) -> (u64, Vec<u8>, Vec<u8>) {
        let (mut mask, mut carried, mut fields) = (0, Vec::new(), Vec::new());
        for (bit, bytes) in [(contexts::CPU, 2), (contexts::TID, 4), (contexts::NAME, 16), (contexts::STACK, 0)] {
            if random.below(2) == 0 {
                mask |= bit;
                carried.extend(random.bytes(bytes));
                if bit == contexts::STACK {
                    put(&mut carried, random, &FieldType::Sequence(integer(64, false)), None);
                }
            }
        }
        for (number, source) in self.filter.sources.iter().enumerate() {
            let InputSource::Carried(EventContext::Own(own)) = source else { continue };
            if data[number] != Datum::Missing {
                mask |= contexts::FIRST_OWN << own;
                let class = self.contexts[usize::from(*own)].as_ref().expect("it is there");
                put(&mut carried, random, &class.field.kind, Some((&data[number], 0)));
            }
        }
        for (field, plan) in self.class.fields.iter().zip(&self.plans) {
            let value = match *plan {
                Plan::Filler => None,
                Plan::Whole(input) => Some((&data[input], 0)),
                Plan::Element(input, at) => Some((&data[input], at)),
            };
            put(&mut fields, random, &field.kind, value);
        }
        (mask, carried, fields)
    }
}

#[test]
fn packed_bytes_are_what_the_evaluator_says_of_their_values() {
    let (mut kept, mut dropped) = (0, 0);
    for seed in 0..3000 {
        let random = &mut RandomNumbers::new(seed);
        let options = PredicateOptions { encodings: false, nodes: 1 + random.below(40), ..PredicateOptions::ALL };
        let (predicate, _) = predicates::predicate(random, &options);
        let shaped = shaped(random, &predicate);
        let asked = shaped.filter.asked(&shaped.class, ProgramConstants { pid: None, contexts: &shaped.contexts });
        for _ in 0..4 {
            let data = predicates::event(random, &predicate);
            let (contexts, carried, mut fields) = shaped.event(random, &data);
            let thread = WriterThread::default();
            let event = RecordedEvent { thread: &thread, contexts, carried: &carried, fields: &fields };
            let expected = predicate.keeps(&data[..]);
            assert_eq!(asked.keeps(&event), expected, "{predicate}{data:?}\n{:?}\n{fields:x?}", shaped.class.fields);
            *if expected { &mut kept } else { &mut dropped } += 1;
            // Damaged bytes cause no panic.
            for _ in 0..4 {
                fields = random.damaged(&fields);
                let contexts = random.any();
                let carried = random.damaged(&carried);
                let _ = asked.keeps(&RecordedEvent { thread: &thread, contexts, carried: &carried, fields: &fields });
            }
        }
    }
    assert!(kept > 1000 && dropped > 1000, "{kept} and {dropped}");
}

#[test]
fn threads_are_known_of_lanes_that_carry_nothing() {
    let Ok(kymo_schema::definition::Definition::Event(class)) =
        kymo_schema::definition::parse(b"event a:b\nfield u8 x\n")
    else {
        panic!("it is understood")
    };
    let keeps = |text: &str, mask: u64, carried: &[u8]| {
        let filter = kymo_filter::Filter::parse(text).expect("it is one");
        let filter = ClassFilter::new(&filter, &class, ProgramConstants::default()).expect("it is typed");
        let mut name = [0; 16];
        name[..6].copy_from_slice(b"worker");
        let thread = WriterThread { tid: 7, level: 0, name };
        let event = RecordedEvent { thread: &thread, contexts: mask, carried, fields: &[1] };
        filter.asked(&class, ProgramConstants::default()).keeps(&event)
    };
    assert!(keeps("$ctx.vtid == 7 && $ctx.procname == \"wor*\" && x", 0, &[]));
    assert!(keeps("$ctx.tid == 9", contexts::TID, &[9, 0, 0, 0]));
    assert!(keeps("cpu_id == 3 && tid == 7", contexts::CPU, &[3, 0]));
    assert!(!keeps("cpu_id == 3", 0, &[]) && !keeps("cpu_id != 3", 0, &[]), "nobody knows");
}
