//! Promises for every expression: a written expression is read again, simplifying changes nothing,
//! nothing panics.

mod written;

use kymo_ir::Encoding;
use kymo_ir::predicate::{Datum, InputKind};
use kymo_random::RandomNumbers;
use kymo_random::predicates::{self, PredicateOptions};

use self::written::{Written, expression};
use crate::fields::{Constant, Dimension, FieldResolver, FilterField, NamePath, NameStep, PathMeaning, Unit};
use crate::{Filter, ProblemKind, bind, fold, order, parser};

/// A class with a field of every kind.
struct Everything;

impl FieldResolver for Everything {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let NameStep::Name(name) = &path.steps[0] else { return PathMeaning::Missing { near: Vec::new() } };
        let integer = |signed, bits| InputKind::Integer { signed, bits };
        let unit = |multiply, divide| Some(Unit { dimension: Dimension::Time, multiply, divide });
        let labels = || vec![("ONE".to_owned(), vec![(1, 1)]), ("MANY".to_owned(), vec![(2, 9), (12, 300)])];
        let (kind, optional, labels, unit) = match name.as_str() {
            "small" => (integer(false, 8), false, Vec::new(), None),
            "signed" => (integer(true, 32), true, Vec::new(), None),
            "wide" => (integer(false, 64), true, Vec::new(), None),
            "state" => (integer(true, 64), false, labels(), None),
            "took" => (integer(false, 32), true, Vec::new(), unit(1000, 1)),
            "ticks" => (integer(false, 20), false, Vec::new(), unit(10, 3)),
            "temperature" => (InputKind::Real, true, Vec::new(), None),
            "comm" => (InputKind::Text(Encoding::Utf8), false, Vec::new(), None),
            "word" => (InputKind::Text(Encoding::Utf16Le), true, Vec::new(), None),
            "fixed" => return PathMeaning::Constant(Constant::Integer(-3)),
            "named" => return PathMeaning::Constant(Constant::Text("aab".to_owned())),
            "inner" => return PathMeaning::Compound { what: "a structure" },
            _ => return PathMeaning::Missing { near: Vec::new() },
        };
        let key = name.bytes().fold(0_u32, |key, byte| key.wrapping_mul(31) + u32::from(byte)) % 65_536;
        PathMeaning::Field(FilterField { key, name: name.clone(), kind, optional, labels, unit, base: 10 })
    }

    fn instant(&self, text: &str) -> Option<i64> {
        text.parse().ok()
    }
}

#[test]
fn what_is_written_is_read_again() {
    for seed in 0..6_000 {
        let random = &mut RandomNumbers::new(seed);
        let Written { text, tree, .. } = expression(random, 4);
        let read = parser::parse(&text).unwrap_or_else(|problem| panic!("{}", problem.render(&text)));
        assert_eq!(read.show(), tree, "{text}");
    }
}

/// A zone is part of a time; a sum and a difference are none.
#[test]
fn times_end_with_their_zone() {
    let shown = |text: &str| parser::parse(text).map(|read| read.show()).unwrap_or_else(|problem| problem.render(text));
    for (text, instants) in [
        ("time > @2016-03-04T17:46:22Z", vec!["@2016-03-04T17:46:22Z"]),
        ("time > @2016-03-04T19:46:22.5+02:00", vec!["@2016-03-04T19:46:22.5+02:00"]),
        ("time > @12:46:22-05:00", vec!["@12:46:22-05:00"]),
        ("time in (@17:46Z .. @17:46Z + 20ms)", vec!["@17:46Z", "@17:46Z"]),
        ("time > @17:46:22+20ms", vec!["@17:46:22"]),
        ("time > @17:46:22+20", vec!["@17:46:22"]),
    ] {
        let shown = shown(text);
        let found: Vec<&str> = shown
            .split(|byte: char| byte.is_whitespace() || "()".contains(byte))
            .filter(|word| word.starts_with('@'))
            .collect();
        assert_eq!(found, instants, "{shown}");
    }
    assert!(parser::parse("time > @17:46Zulu").is_err());
}

#[test]
fn names_alone_are_those_of_expressions() {
    for text in
        ["next_tid", "packet.cpu_id", "stack[3]", "a->b[1][2].c", "$ctx.vtid", "`a b`.c", " $time ", "event.name"]
    {
        let path = NamePath::parse(text).unwrap_or_else(|problem| panic!("{}", problem.render(text)));
        let filter = Filter::parse(&format!("has({text})")).expect("it is a name");
        assert_eq!(filter.paths().first().map(|(path, _)| path), Some(&path), "{text}");
        assert_eq!(NamePath::parse(&path.to_string()).as_ref(), Ok(&path), "{text}");
    }
    let problem = |text: &str| NamePath::parse(text).expect_err("it is no name").kind.to_string();
    assert_eq!(problem(""), "found the end, expected the name of a field");
    assert_eq!(problem("3"), "found `3`, expected the name of a field");
    assert_eq!(problem("a b"), "found `b`, expected `.`, `[` or the end of the name");
    assert_eq!(problem("a == 1"), "found `==`, expected `.`, `[` or the end of the name");
    assert_eq!(problem("a."), "found the end, expected a name");
    assert_eq!(problem("$nothing"), "`$nothing` is not a word of the language");
}

#[test]
fn simplifying_random_predicates_changes_nothing() {
    let options = PredicateOptions { scaled: false, ..PredicateOptions::ALL };
    for seed in 0..4_000 {
        let random = &mut RandomNumbers::new(seed);
        let nodes = 1 + random.below(40);
        let (predicate, _) = predicates::predicate(random, &PredicateOptions { nodes, ..options });
        let test = fold::folded_test(&predicate);
        let folded = order::ordered(fold::folded(predicate.clone()));
        folded.verify().unwrap_or_else(|error| panic!("{error}\n{predicate}\n{folded}"));
        for _ in 0..16 {
            let event = predicates::event(random, &predicate);
            let same = (predicate.test(&predicate.root, &event[..]), predicate.test(&test, &event[..]));
            assert_eq!(same.0, same.1, "{event:?}\n{predicate}\n{test:?}");
            assert_eq!(predicate.keeps(&event[..]), folded.keeps(&event[..]), "{event:?}\n{predicate}\n{folded}");
        }
    }
}

/// Known values stay; values that could not be held may become known.
#[test]
fn scaled_inputs_are_compared_as_what_they_are() {
    for seed in 0..4_000 {
        let random = &mut RandomNumbers::new(seed);
        let (predicate, _) = predicates::predicate(random, &PredicateOptions { nodes: 12, ..PredicateOptions::ALL });
        let test = fold::folded_test(&predicate);
        for _ in 0..16 {
            let event = predicates::event(random, &predicate);
            let before = predicate.test(&predicate.root, &event[..]);
            let after = predicate.test(&test, &event[..]);
            assert!(before.is_none() || before == after, "{event:?} {after:?}\n{predicate}\n{test:?}");
        }
    }
}

/// From the text on: binding, simplifying, ordering, leaving inputs out.
#[test]
fn bound_expressions_keep_what_they_say() {
    let (mut bound, mut kept) = (0, 0);
    for seed in 0..10_000 {
        let random = &mut RandomNumbers::new(seed);
        let Written { text, .. } = expression(random, 3);
        let Ok(filter) = Filter::parse(&text) else { continue };
        let tree = parser::parse(&text).expect("it was parsed just now");
        let Ok(raw) = bind::bind(&tree, &text, &Everything) else { continue };
        let binding = filter.bind(&Everything).unwrap_or_else(|_| panic!("{text}"));
        bound += 1;
        for _ in 0..8 {
            let event = predicates::event(random, &raw.predicate);
            let place = |key: &u32| raw.keys.iter().position(|known| known == key).expect("keys are those of before");
            let rest: Vec<Datum> = binding.keys.iter().map(|key| event[place(key)].clone()).collect();
            let before = raw.predicate.keeps(&event[..]);
            let after = binding.predicate.keeps(&rest[..]);
            assert_eq!(before, after, "{text}\n{event:?}\n{}\n{}", raw.predicate, binding.predicate);
            kept += usize::from(after);
        }
    }
    println!("{bound} expressions were bound, {kept} events kept");
    assert!(bound > 1_500 && kept > 3_000, "{bound} {kept}");
}

/// Parses, binds, shows: for every result, nothing panics.
fn use_all(text: &str) {
    match Filter::parse(text) {
        Err(problems) => problems.iter().for_each(|problem| drop(problem.render(text))),
        Ok(filter) => {
            let _ = (filter.tree(), filter.paths());
            match filter.bind(&Everything) {
                Err(problems) => problems.iter().for_each(|problem| drop(problem.render(text))),
                Ok(binding) => {
                    binding.predicate.verify().expect("what is bound is sound");
                    let _ = (binding.verdict(), binding.predicate.to_string());
                }
            }
        }
    }
}

#[test]
fn garbage_is_refused_politely() {
    const PIECES: [&str; 40] = [
        "a", "small", "comm", "state", "\"x*\"", "'", "\"", "(", ")", "[", "]", "[1]", "1", "5ms", "0x", "1e", "..",
        "..=", "in", "in (", ",", "&&", "||", "!", "~", "!~", "=~", "==", "<", "-", "->", ".", "$", "$ctx", "@", "@5",
        "\\", "`", "\u{E9}", "/*",
    ];
    for seed in 0..10_000 {
        let random = &mut RandomNumbers::new(seed);
        let count = random.below(12);
        let pieces: Vec<&str> = (0..count).map(|_| PIECES[random.below(PIECES.len())]).collect();
        use_all(&pieces.join(if random.below(2) == 0 { " " } else { "" }));
        let Written { text, .. } = expression(random, 3);
        use_all(&String::from_utf8_lossy(&random.damaged(text.as_bytes())));
    }
}

fn kind_of(text: &str) -> Option<ProblemKind> {
    match Filter::parse(text) {
        Err(problems) => Some(problems[0].kind.clone()),
        Ok(filter) => filter.bind(&Everything).err().map(|problems| problems[0].kind.clone()),
    }
}

#[test]
fn deep_and_long_expressions_meet_clear_limits() {
    let nested = |open: &str, close: &str, count| format!("{}small{}", open.repeat(count), close.repeat(count));
    assert_eq!(kind_of(&nested("(", ")", 30_000)), None);
    for operator in ["!", "~", "-", "+", "- ", "+-"] {
        assert_eq!(kind_of(&nested(operator, "", 1_500)), None, "{operator}");
    }
    assert_eq!(kind_of(&nested("-!", "", 1_500)), Some(ProblemKind::Depth));
    assert_eq!(kind_of(&nested("(1 + ", ")", 5_000)), Some(ProblemKind::Depth));
    assert_eq!(kind_of(&nested("1 && (0 || ", ")", 5_000)), Some(ProblemKind::Depth));
    assert_eq!(kind_of(&format!("small{}", " + 1".repeat(5_000))), Some(ProblemKind::Depth));
    assert!(matches!(kind_of(&nested("(1 + ", ")", 150)), None | Some(ProblemKind::Predicate(_))));
    // Copies of copies.
    let squares = format!("{}small{}", "(".repeat(60), " in (1..small, small))".repeat(60));
    assert!(matches!(kind_of(&squares), Some(ProblemKind::Predicate(_))), "{:?}", kind_of(&squares));
    assert_eq!(kind_of(&"small ".repeat(20_000)), Some(ProblemKind::TextTooLong(120_000)));
    let regexes = vec!["comm =~ \"a\""; 65].join(" && ");
    assert_eq!(kind_of(&regexes), Some(ProblemKind::Regexes));
}

#[test]
fn ten_thousand_tests_are_quick() {
    let begin = std::time::Instant::now();
    let chain = |separator: &str, part: &dyn Fn(usize) -> String| {
        let text = (0..9_000).map(part).collect::<Vec<_>>().join(separator);
        assert!(text.len() <= crate::limits::TEXT_BYTES_MAX, "{}", text.len());
        use_all(&text);
    };
    chain("||", &|number| ["small", "wide", "fixed"][number % 3].to_owned());
    chain("&&", &|_| "!wide".to_owned());
    let numbers = |count| (0..count).map(|number| format!("{}", number * 7 % 10_000));
    use_all(&format!("wide in ({})", numbers(10_000).collect::<Vec<_>>().join(",")));
    use_all(&format!("wide+small in ({})", numbers(10_000).collect::<Vec<_>>().join(",")));
    use_all(&numbers(5_000).map(|number| format!("wide!={number}")).collect::<Vec<_>>().join("&&"));
    use_all(&numbers(5_000).map(|number| format!("a{number}==1")).collect::<Vec<_>>().join("||"));
    use_all(&numbers(3_000).map(|number| format!("wide<{number}||signed>5")).collect::<Vec<_>>().join("&&"));
    println!("{:?}", begin.elapsed());
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
