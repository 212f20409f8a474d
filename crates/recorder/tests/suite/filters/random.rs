//! Random filters of random arguments: sites in programs keep what the recorder keeps of the packed bytes of the same values.

use kymo_lane::{NoArena, WriterThread};
use kymo_random::RandomNumbers;
use kymo_recorder::filters::{
    ClassFilter, FilterCompiler, FilterPlace, Placed, Placer, ProgramConstants, RecordedEvent,
};
use kymo_tracer::Event;

use super::{find, open, own_memory, say_and_wait};

/// As C lays them out, whatever comes behind what.
#[derive(Default)]
#[repr(C)]
pub struct Arguments {
    a: u8,
    g: u64,
    b: i8,
    c: u16,
    s: [u64; 2],
    d: i16,
    k: f32,
    array: u64,
    m: bool,
    l: f64,
    n: u8,
    sequence: [u64; 2],
    e: u32,
    t: [u64; 2],
    f: i32,
    h: i64,
    o: u64,
    p: u64,
}

impl Arguments {
    pub fn of(g: u64) -> Self {
        Self { g, ..Self::default() }
    }
}

const DEFINITION: &[u8] = b"event test:random\nfield u8 a\nfield u64 g\nfield i8 b\nfield u16 c\nfield text s\nfield i16 d\nfield f32 k\n\
    field array 3 u16 array\nfield bool m\nfield f64 l\nfield enum u8(idle=0, busy=1, gone=7) n\nfield sequence i32 sequence\nfield u32 e\n\
    field text t\nfield i32 f\nfield i64 h\nfield x64 o\nfield pointer p\n";

/// What is asked; it is known from then on.
pub fn event() -> &'static Event {
    static EVENT: Event = Event::new(DEFINITION);
    assert!(EVENT.register());
    &EVENT
}

/// Filters that a program has room for, each as machine code and as bytecode.
const FILTERS: usize = 127;
/// Events that each is asked of.
const EVENTS: usize = 60;

const INTEGERS: [&str; 13] = ["a", "b", "c", "d", "e", "f", "g", "h", "m", "n", "o", "p", "g"];
const TEXTS: [&str; 10] = ["", "a", "ab", "abc", "b", "bcd", "abcabcabcabcabcabcabc", "\u{e9}", "c", "ca"];

fn integer(random: &mut RandomNumbers) -> i128 {
    const EDGES: [i128; 12] = [0, 1, 2, 7, -1, -128, 255, 32767, 4_294_967_295, 1 << 63, (1 << 64) - 1, -(1 << 31)];
    EDGES[random.below(EDGES.len())] + if random.below(4) == 0 { 0 } else { random.below(3) as i128 - 1 }
}

fn literal(random: &mut RandomNumbers) -> String {
    integer(random).clamp(-(1 << 63), (1 << 64) - 1).to_string()
}

fn number(random: &mut RandomNumbers, depth: usize) -> String {
    if depth == 0 || random.below(3) > 0 {
        return match random.below(4) {
            0 => literal(random),
            _ => INTEGERS[random.below(INTEGERS.len())].to_owned(),
        };
    }
    let operator = ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"][random.below(10)];
    format!("({} {operator} {})", number(random, depth - 1), number(random, depth - 1))
}

fn text(random: &mut RandomNumbers) -> String {
    let stars = ["", "*"];
    let [before, behind] = [0; 2].map(|_| stars[random.below(2)]);
    format!("\"{before}{}{behind}\"", TEXTS[random.below(TEXTS.len())])
}

fn test(random: &mut RandomNumbers, depth: usize) -> String {
    let relation = ["==", "!=", "<", "<=", ">", ">="][random.below(6)];
    match random.below(if depth == 0 { 9 } else { 13 }) {
        0..=2 => format!("{} {relation} {}", number(random, depth), number(random, depth)),
        3 => format!("{} in ({}, {})", INTEGERS[random.below(13)], literal(random), literal(random)),
        4 => format!("{} {} {}", ["s", "t"][random.below(2)], ["==", "!="][random.below(2)], text(random)),
        5 => format!("s {relation} t"),
        6 => format!("{} {relation} \"{}\"", ["s", "t"][random.below(2)], TEXTS[random.below(TEXTS.len())]),
        7 => format!("n {} \"{}\"", ["==", "!="][random.below(2)], ["idle", "busy", "*e"][random.below(3)]),
        8 => {
            format!("{} {relation} {}", ["k", "l"][random.below(2)], ["0.5", "-1.0", "k", "a", "1e10"][random.below(5)])
        }
        9 => format!("!({})", test(random, depth - 1)),
        operator => {
            let operator = if operator % 2 == 0 { "&&" } else { "||" };
            let count = 2 + random.below(3);
            let tests: Vec<String> = (0..count).map(|_| test(random, depth - 1)).collect();
            format!("({})", tests.join(&format!(" {operator} ")))
        }
    }
}

/// An event's arguments, and the bytes that would be recorded of them.
fn values(random: &mut RandomNumbers) -> (Arguments, Vec<u8>) {
    let (s, t) = (TEXTS[random.below(TEXTS.len())], TEXTS[random.below(TEXTS.len())]);
    let pointer = |text: &'static str| [text.as_ptr() as u64, text.len() as u64];
    let mut any = || integer(random);
    let values = Arguments {
        a: any() as u8,
        g: any() as u64,
        b: any() as i8,
        c: any() as u16,
        s: pointer(s),
        d: any() as i16,
        k: any() as f32 / 2.0,
        array: 0,
        m: any() % 2 == 0,
        l: any() as f64 / 4.0,
        n: any() as u8 & 7,
        sequence: [0, 0],
        e: any() as u32,
        t: pointer(t),
        f: any() as i32,
        h: any() as i64,
        o: any() as u64,
        p: any() as u64,
    };
    let mut bytes = Vec::new();
    let mut put = |more: &[u8]| bytes.extend_from_slice(more);
    put(&[values.a]);
    put(&values.g.to_le_bytes());
    put(&values.b.to_le_bytes());
    put(&values.c.to_le_bytes());
    put(&(s.len() as u16).to_le_bytes());
    put(s.as_bytes());
    put(&values.d.to_le_bytes());
    put(&values.k.to_le_bytes());
    put(&[1, 2, 3, 4, 5, 6]);
    put(&[values.m.into()]);
    put(&values.l.to_le_bytes());
    put(&[values.n]);
    put(&[2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    put(&values.e.to_le_bytes());
    put(&(t.len() as u16).to_le_bytes());
    put(t.as_bytes());
    put(&values.f.to_le_bytes());
    put(&values.h.to_le_bytes());
    put(&values.o.to_le_bytes());
    put(&values.p.to_le_bytes());
    (values, bytes)
}

/// A program that records itself, and asks many filters.
pub fn ask_all() {
    let seed = std::env::var("KYMO_TEST_SEED").expect("it was said").parse().expect("it is a number");
    let (random, event) = (&mut RandomNumbers::new(seed), event());
    let user = rustix::process::getuid().as_raw();
    let program = open(own_memory(), std::process::id(), user);
    let (id, class) = find(&program, "random");
    let mut compiler = FilterCompiler::default();
    let mut filters = Vec::new();
    while filters.len() < FILTERS {
        let text = test(random, 3);
        let Ok(filter) = ClassFilter::of_texts([text.as_str()], &class, ProgramConstants::default()) else { continue };
        if filter.verdict() == kymo_filter::Verdict::Depends {
            filters.push((text, filter));
        }
    }
    let wanted: Vec<_> = filters.iter().map(|(_, filter)| (filter, &*class)).collect();
    let lane = program.lane();
    let mut place = |mut placer: Placer| placer.place(lane, &mut compiler, &wanted).expect("it is there");
    let native = place(Placer::new(&program, user).expect("it is there"));
    let interpreted = place(Placer::open(lane, Err(NoArena::Off), None, user).expect("it is there"));
    let count = |all: &[Placed], place| all.iter().filter(|placed| placed.place == place).count();
    assert!(count(&native, FilterPlace::Native) > 100, "{native:?}");
    assert!(count(&interpreted, FilterPlace::Interpreter) > 100, "{interpreted:?}");

    let mut kept = 0;
    for (((text, filter), native), interpreted) in filters.iter().zip(&native).zip(&interpreted) {
        let asked = filter.asked(&class, ProgramConstants::default());
        for _ in 0..EVENTS {
            let (arguments, fields) = values(random);
            let event_bytes =
                RecordedEvent { thread: &WriterThread::default(), contexts: 0, carried: &[], fields: &fields };
            let expected = asked.keeps(&event_bytes);
            kept += usize::from(expected);
            for placed in [native, interpreted] {
                program.switch(id, placed.control).expect("it is there");
                let is_kept = event.is_kept(&arguments);
                assert!(
                    is_kept == expected || placed.place == FilterPlace::Recorder,
                    "{text}\n{placed:?}\n{fields:x?}"
                );
            }
        }
    }
    let all = FILTERS * EVENTS;
    assert!(kept > all / 10 && kept < all * 9 / 10, "{kept} of {all}");
    say_and_wait();
}
