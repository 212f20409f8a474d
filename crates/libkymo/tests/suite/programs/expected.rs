//! What programs in `tests/c` have to record, whatever compiled them.

use super::{Recording, Value};

fn numbers(values: &[u64]) -> Vec<Value> {
    values.iter().map(|value| Value::Number(*value)).collect()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn elements(bytes: &[u8]) -> Value {
    Value::Elements(bytes.to_vec())
}

/// What `fields.c` has to be, whatever compiled it.
pub fn check_fields(recording: &Recording, is_cpp: bool) {
    let all = |name: &str| recording.of_name(name).map(|found| found.values.clone()).collect::<Vec<_>>();
    let one = |name: &str| match &all(name)[..] {
        [one] => one.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(one("test:nothing"), []);
    let most = u64::MAX;
    let integers = [0xff, 0xffff, 0xffff_ffff, most, 0xff, 0xfffe, 0xffff_fffd, most - 3];
    assert_eq!(one("test:integers"), numbers(&integers));
    let others = one("test:others");
    assert_eq!(others[..7], numbers(&[1, 2, 3, 4, 1.5_f32.to_bits().into(), (-2.5_f64).to_bits(), 1]));
    let place = others[7].number();
    assert!(place > 4096, "{place:#x} is no address");
    assert_eq!(one("test:enums"), numbers(&[1, 0xffff]));
    let number = |number: u64| Value::Number(number);
    assert_eq!(
        all("test:texts"),
        [
            vec![text("plain"), number(7), text("(null)"), text("not"), text("(null)")],
            vec![text(""), number(8), text("grüße"), text(""), text("x")],
        ]
    );
    let ports = elements(&[1, 0, 2, 0, 255, 255]);
    let places = elements(&[place.to_le_bytes(), [0; 8]].concat());
    let times = elements(&[(-1_i64).to_le_bytes(), 1_i64.to_le_bytes()].concat());
    let loads = elements(&0.5_f32.to_le_bytes());
    let none = elements(&[]);
    assert_eq!(
        all("test:lists"),
        [
            vec![ports.clone(), elements(&[9, 8, 7]), times, places.clone(), loads, elements(&[1, 0])],
            vec![ports, none.clone(), none.clone(), places, none.clone(), none],
        ]
    );
    assert_eq!(one("test:sixteen"), numbers(&(1..=16).collect::<Vec<_>>()));
    check_cuts(&all("test:cut"));
    assert_eq!((recording.cut(), recording.lost()), (3, 0));
    if is_cpp {
        let texts = [[text("of C")], [text("of a")], [text("of a")]];
        assert_eq!(all("test:of_namespace"), texts);
    }
    recording.check_times();
}

/// An event has 16 KiB of fields: a number, two texts, and a sequence of eight bytes each.
fn check_cuts(cut: &[Vec<Value>]) {
    let lengths: Vec<[usize; 3]> = cut
        .iter()
        .map(|values| match &values[1..] {
            [Value::Text(a), Value::Elements(b), Value::Text(c)] => [a.len(), b.len(), c.len()],
            other => panic!("{other:?}"),
        })
        .collect();
    let room = (16 << 10) - 4 - 3 * 2;
    // An odd byte would be half a character.
    assert_eq!(lengths[0], [(room - 5) / 2 * 2, 0, 5]);
    let half = (room - 5) / 2;
    assert_eq!(lengths[1], [half / 2 * 2, half / 8 * 8, 5]);
    assert_eq!(lengths[2], [3, (room - 8) / 8 * 8, 5]);
    assert_eq!(lengths[3], [3, 2044 * 8, 5], "what just fits is not cut");
}

fn is_profile(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.starts_with("TSC "))
}

/// Ticks that a place takes: of the function, and each second time of one that calls itself.
fn check_profiles(logs: &[Vec<Value>]) {
    let parts = |log: &Vec<Value>| {
        let Value::Text(text) = &log[1] else { panic!("{log:?}") };
        let (name, rest) = text.strip_prefix("TSC ").and_then(|text| text.rsplit_once(": ")).expect("it has a name");
        let (_, calls) = rest.split_once(" (").expect("it has calls");
        let (calls, last) = calls.split_once(" calls, last ").expect("it has the last one");
        let digits = last.trim_end_matches([')', 'K', 'M', 'G']);
        assert!(digits.parse::<u64>().is_ok(), "{text}");
        (
            name.split(['(', ' ']).find(|word| !["static", "void"].contains(word)).unwrap_or("").to_owned(),
            calls.to_owned(),
        )
    };
    let found: Vec<_> = logs.iter().map(parts).collect();
    let expected = [("pass", "1"), ("fall", "2"), ("fall", "4")];
    assert_eq!(found, expected.map(|(name, calls)| (name.to_owned(), calls.to_owned())));
}

/// Two calls of a function: a checkpoint, and two durations of which the second one ends first.
fn check_durations(checkpoints: &[Vec<Value>]) {
    let one = |turn: u64| {
        [("pass", 5, 0), ("pass", 6, 1), ("inside", 1 + turn, 1), ("inside", 1 + turn, 2), ("pass", 6, 2)]
            .map(|(name, data, kind)| (name, data, kind))
    };
    let expected = [one(1), one(2)].concat();
    assert_eq!(checkpoints.len(), expected.len(), "{checkpoints:?}");
    for (found, (name, data, kind)) in checkpoints.iter().zip(expected) {
        let Value::Text(text) = &found[0] else { panic!("{found:?}") };
        assert!(text == name || text.contains(&format!("{name}(")), "{text} is not {name}");
        assert_eq!(found[1..], [Value::Number(data), Value::Number(0), Value::Number(kind)]);
    }
}

/// What `marks.c` has to be.
pub fn check_marks(recording: &Recording) {
    let all = |name: &str| recording.of_name(name).map(|found| found.values.clone()).collect::<Vec<_>>();
    let number = |number: u64| Value::Number(number);
    let logs =
        [vec![number(4), text("3 of them")], vec![number(6), text("plain")], vec![number(14), text(&"x".repeat(1024))]];
    let (said, profiles) = all("kymo:log").into_iter().partition::<Vec<_>, _>(|log| !is_profile(&log[1]));
    assert_eq!(said, logs);
    check_profiles(&profiles);
    let mut checkpoints = all("kymo:checkpoint");
    check_durations(&checkpoints.split_off(2));
    assert_eq!([&checkpoints[0][..2], &checkpoints[0][3..]].concat(), [text("here"), number(42), number(0x10)]);
    assert_eq!(checkpoints[1], [text("there"), number(1), number(0), number(0xff)]);
    assert_eq!(all("kymo:counter"), [[text("queue"), number(-5_i64 as u64)]]);
    for name in ["kymo:send", "kymo:receive"] {
        assert_eq!(all(name), [[number(0x1234)]]);
    }
    for name in ["kymo:rpc_call", "kymo:rpc_dispatch", "kymo:rpc_reply", "kymo:rpc_return"] {
        assert_eq!(all(name), [[number(1), text("open")]]);
    }
    assert_eq!(
        (all("kymo:signal_submit"), all("kymo:signal_receive")),
        (vec![numbers(&[9, 1])], vec![numbers(&[9, 2])])
    );
    let packets: Vec<_> = all("kymo:packet")
        .iter()
        .map(|values| {
            let Value::Elements(data) = &values[5] else { panic!("{values:?}") };
            assert!(data.first().is_none_or(|first| *first == 1) && data.get(3).is_none_or(|byte| *byte == 4));
            (values[..5].to_vec(), data.len())
        })
        .collect();
    let packet = |name: &str, direction: u64, length: u64| {
        vec![text(name), number(direction), number(1), number(length), number(0)]
    };
    assert_eq!(
        packets,
        [
            (packet("eth0", 2, 300), 256),
            (packet("eth1", 1, 60), 4),
            (packet("eth1", 0, 0), 0),
            (packet("eth0", 2, 20000), 16000)
        ]
    );
    // Each end has the key of the last begin of its name that has not ended.
    let mut open: Vec<&[Value]> = Vec::new();
    let mut names = Vec::new();
    for found in &recording.found {
        match &found.name[..] {
            "kymo:begin" => open.push(&found.values),
            "kymo:end" => {
                let begun = open.pop().expect("it has begun");
                assert_eq!(begun, found.values);
                let Value::Text(name) = &begun[1] else { panic!("{begun:?}") };
                names.push(name.as_str());
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(names, ["fact", "fact", "fact", "these", "beside", "outer", "turn", "turn", "turn", "job"]);
    assert_eq!((recording.cut(), recording.lost()), (1, 0));
}
