//! From text to what runs: `cargo run --release -p kymo-filter --example text_speed`.
//!
//! A chain `field0 == 17 && field1 == 1000020 && ...` over the fields of a structure, as a person gives it to a tracer.
//! Prints `name<TAB>nanoseconds` of one filter: the median of bursts, the first one thrown away. `bench/filter` has the
//! peers.
//!
//! ```text
//! text.predicate.N     parsed and bound
//! text.bytecode.N      the same, as validated bytecode
//! text.native.N        the same, as code in executable memory
//! text.native.N.bytes  how many bytes of code that is
//! ```

use std::hint::black_box;
use std::time::Instant;

use kymo_filter::{Binding, FieldResolver, Filter, FilterField, NamePath, NameStep, PathMeaning, bytecode};
use kymo_ir::predicate::{ArgumentLayout, InputKind, InputPlace};
use kymo_jit::{NativeFilter, NativeTarget};
use kymo_units::ByteOrder;

const BURSTS: usize = 16;
/// Filters of a burst.
const FILTERS: u32 = 200;
const FIELDS: u32 = 50;

/// Fields `field0`, `field1` and so on, 32 bits each.
struct Structure;

impl FieldResolver for Structure {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let missing = PathMeaning::Missing { near: Vec::new() };
        let [NameStep::Name(name)] = &path.steps[..] else { return missing };
        let number = name.strip_prefix("field").and_then(|number| number.parse().ok());
        let Some(key) = number.filter(|&number| number < FIELDS) else { return missing };
        let kind = InputKind::Integer { signed: false, bits: 32 };
        PathMeaning::Field(FilterField {
            key,
            name: name.clone(),
            kind,
            optional: false,
            labels: Vec::new(),
            unit: None,
            base: 10,
        })
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}

fn main() {
    for count in [1, 10, FIELDS] {
        // As in `bench/filter`: far apart, so that no two of them make a range.
        let predicates: Vec<String> = (0..count).map(|at| format!("field{at} == {}", 1_000_003 * at + 17)).collect();
        let text = predicates.join(" && ");
        report(&format!("text.predicate.{count}"), || drop(black_box(bound(&text))));
        report(&format!("text.bytecode.{count}"), || {
            let binding = bound(&text);
            let bytes = bytecode::compile(&binding.predicate, &layout(&binding)).expect("bytecode takes integers");
            kymo_bytecode::validate(black_box(&bytes)).expect("what is compiled is sound");
        });
        let Some(target) = NativeTarget::host() else { continue };
        let native = || {
            let binding = bound(&text);
            NativeFilter::new(&target, &binding.predicate, &layout(&binding)).expect("integers have machine code")
        };
        report(&format!("text.native.{count}"), || drop(black_box(native().load().expect("code may run here"))));
        println!("text.native.{count}.bytes\t{}", native().code().len());
    }
}

fn bound(text: &str) -> Binding {
    Filter::parse(black_box(text)).expect("it is an expression").bind(&Structure).expect("the types fit")
}

fn layout(binding: &Binding) -> ArgumentLayout {
    let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
    let place = |key: &u32| InputPlace::Integer { offset: 4 * key, bytes: 4, order };
    ArgumentLayout { size: 4 * FIELDS, places: binding.keys.iter().map(place).collect() }
}

fn report(name: &str, mut call: impl FnMut()) {
    let mut burst = || {
        let start = Instant::now();
        (0..FILTERS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(FILTERS)
    };
    burst();
    let mut taken: Vec<f64> = (0..BURSTS).map(|_| burst()).collect();
    taken.sort_by(f64::total_cmp);
    println!("{name}\t{:.3}", (taken[BURSTS / 2 - 1] + taken[BURSTS / 2]) / 2.0);
}
