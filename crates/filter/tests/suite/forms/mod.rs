//! The forms of code for tracers beside the evaluator: an event that a test has at hand is laid out as arguments of a
//! tracepoint, and every form that can say the predicate must keep it where the evaluator does.

use kymo_filter::{bpf, bytecode};
use kymo_ir::predicate::{ArgumentLayout, Datum, InputKind, InputPlace, Predicate};
use kymo_jit::{NativeFilter, NativeTarget};
use kymo_units::ByteOrder;

/// Nothing lies behind pointers here.
struct NoTexts;

impl kymo_bytecode::Texts for NoTexts {
    fn text(&self, _address: u64, _length: u64) -> &[u8] {
        &[]
    }
}

/// Whether the event is kept.
pub fn keeps(predicate: &Predicate, data: &[Datum]) -> bool {
    let keeps = predicate.keeps(data);
    let Some((layout, mut arguments)) = laid_out(predicate, data) else { return keeps };
    if let Ok(bytes) = bytecode::compile(predicate, &layout) {
        let program = kymo_bytecode::validate(&bytes).expect("what is compiled is sound");
        assert_eq!(program.run(&arguments, &NoTexts), Ok(keeps), "{predicate}{data:?}\n{program}");
    }
    let native = NativeTarget::host().and_then(|target| NativeFilter::new(&target, predicate, &layout).ok());
    if let Some(filter) = native.and_then(|filter| filter.load()) {
        assert_eq!(filter.run(&arguments), keeps, "{predicate}{data:?}");
    }
    if let Ok(program) = bpf::compile(predicate, &layout) {
        let bytes: Vec<u8> = program.iter().flat_map(|instruction| instruction.to_bytes()).collect();
        let machine = rbpf::EbpfVmRaw::new(Some(&bytes)).expect("what is compiled is sound");
        let answer = machine.execute_program(&mut arguments).expect("it stays inside of the arguments");
        assert_eq!(answer, u64::from(keeps), "{predicate}{data:?}");
    }
    keeps
}

/// The arguments of an event; `None` where a text has a zero byte, at which it would end.
fn laid_out(predicate: &Predicate, data: &[Datum]) -> Option<(ArgumentLayout, Vec<u8>)> {
    let (mut places, mut arguments) = (Vec::new(), Vec::new());
    for (input, datum) in predicate.inputs.iter().zip(data) {
        let offset = arguments.len() as u32;
        places.push(match (datum, input.kind) {
            (Datum::Missing, _) => InputPlace::Missing,
            (Datum::Number(bits), InputKind::Real) => {
                arguments.extend(bits.to_ne_bytes());
                InputPlace::Real { offset, bytes: 8 }
            }
            (Datum::Number(bits), _) => {
                arguments.extend(bits.to_be_bytes());
                InputPlace::Integer { offset, bytes: 8, order: ByteOrder::Big }
            }
            (Datum::Text(text), _) => {
                if text.contains(&0) {
                    return None;
                }
                // Some texts have room behind them, some end with their place.
                let capacity = text.len().next_multiple_of(8);
                arguments.extend_from_slice(text);
                arguments.resize(offset as usize + capacity, 0);
                InputPlace::Inline { offset, capacity: capacity as u32 }
            }
        });
    }
    Some((ArgumentLayout { size: arguments.len() as u32, places }, arguments))
}
