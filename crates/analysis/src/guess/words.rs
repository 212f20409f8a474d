//! Words in names, and their meanings.
//!
//! ```text
//! lib.eal.service.run.begin    lib eal service run begin
//! Event_IoOperationBegin       event io operation begin
//! ```

/// A name in words, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameWords {
    words: Vec<String>,
    /// The name as it is written, and where each word begins and ends in it.
    name: String,
    spans: Vec<(usize, usize)>,
}

/// Meaning of a word for the time of an event.
pub(super) struct TimeHint(&'static str);

/// Words of which one ends what the other began, and how sure that is.
const PAIRS: &[(&str, &str, f64)] = &[
    ("begin", "end", 0.9),
    ("begin", "complete", 0.8),
    ("begin", "finish", 0.85),
    ("start", "stop", 0.85),
    ("start", "end", 0.85),
    ("start", "finish", 0.85),
    ("start", "done", 0.8),
    ("start", "complete", 0.8),
    ("started", "stopped", 0.8),
    ("started", "finished", 0.8),
    ("enter", "exit", 0.9),
    ("enter", "leave", 0.9),
    ("entry", "exit", 0.9),
    ("entry", "return", 0.85),
    ("call", "return", 0.8),
    ("call", "returned", 0.8),
    ("request", "reply", 0.8),
    ("request", "response", 0.8),
    ("submit", "complete", 0.75),
    ("issue", "complete", 0.75),
    ("alloc", "free", 0.8),
    ("malloc", "free", 0.8),
    ("calloc", "free", 0.8),
    ("zmalloc", "free", 0.8),
    ("memalign", "free", 0.7),
    ("lock", "unlock", 0.75),
    ("locked", "unlocked", 0.75),
    ("acquire", "release", 0.75),
    ("acquired", "released", 0.75),
    ("open", "close", 0.65),
    ("connect", "disconnect", 0.65),
    ("suspend", "resume", 0.65),
    ("create", "destroy", 0.6),
    ("create", "delete", 0.55),
    ("mount", "unmount", 0.6),
    ("push", "pop", 0.6),
    ("enqueue", "dequeue", 0.6),
    ("send", "receive", 0.55),
    ("send", "recv", 0.55),
    ("submit", "receive", 0.55),
    ("register", "unregister", 0.5),
    ("attach", "detach", 0.5),
    ("enable", "disable", 0.5),
    ("get", "put", 0.35),
];

/// Words of which one stands for the earlier one, the other for its successor.
pub(super) const SUCCESSIONS: [(&str, &str); 4] =
    [("prev", "next"), ("previous", "next"), ("from", "to"), ("old", "new")];

impl NameWords {
    pub(super) fn of(name: &str) -> Self {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        let mut before = None;
        for (at, letter) in name.char_indices() {
            let end = at + letter.len_utf8();
            // `IoRead`: two words; `locationID`: two; `CPU`: one.
            let is_next = |before: char| before.is_lowercase() && letter.is_uppercase();
            match (letter.is_alphanumeric(), before) {
                (false, _) => before = None,
                (true, Some(last)) if !is_next(last) => {
                    if let Some(span) = spans.last_mut() {
                        span.1 = end;
                    }
                    before = Some(letter);
                }
                (true, _) => {
                    spans.push((at, end));
                    before = Some(letter);
                }
            }
        }
        let words = spans.iter().map(|&(begin, end)| name[begin..end].to_lowercase()).collect();
        Self { words, name: name.to_owned(), spans }
    }

    pub(super) fn get(&self, word: usize) -> &str {
        &self.words[word]
    }

    /// The place of a word.
    pub(super) fn at(&self, wanted: &str) -> Option<usize> {
        self.words.iter().position(|word| word == wanted)
    }

    /// All words but one.
    pub(super) fn others(&self, without: usize) -> impl Iterator<Item = &str> {
        self.words.iter().enumerate().filter(move |(at, _)| *at != without).map(|(_, word)| word.as_str())
    }

    /// The rest of a name without a word, as a key.
    pub(super) fn without(&self, word: usize) -> String {
        let mut rest = self.words[..word].join(" ");
        rest.push_str(" * ");
        rest + &self.words[word + 1..].join(" ")
    }

    /// The name without a word, for people.
    pub(super) fn title(&self, word: usize) -> String {
        let (begin, end) = self.spans[word];
        let is_letter = |letter: char| letter.is_alphanumeric();
        let before = self.name[..begin].trim_end_matches(|letter| !is_letter(letter));
        let behind = &self.name[end..];
        let title = format!("{before}{behind}");
        let title = title.trim_matches(|letter| !is_letter(letter));
        if title.is_empty() { self.name.clone() } else { title.to_owned() }
    }

    /// Words that say that something begins.
    pub(super) fn begins(&self) -> impl Iterator<Item = (usize, TimeHint)> {
        let known = |word: &String| PAIRS.iter().find(|pair| pair.0 == word).map(|pair| TimeHint(pair.0));
        self.words.iter().enumerate().filter_map(move |(at, word)| Some((at, known(word)?)))
    }

    /// Words that say that something ends.
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> {
        let is_end = |word: &String| PAIRS.iter().any(|pair| pair.1 == word);
        self.words.iter().enumerate().filter(move |(_, word)| is_end(word)).map(|(at, _)| at)
    }
}

impl TimeHint {
    /// Whether the word is about something that a program has, and not about a part of its run: any thread may give it
    /// back, and in any order.
    pub(super) fn is_of_object(&self) -> bool {
        let objects = [
            "alloc", "malloc", "calloc", "zmalloc", "memalign", "lock", "locked", "acquire", "acquired", "open",
            "connect", "create", "mount", "push", "enqueue", "register", "attach", "enable", "get",
        ];
        objects.contains(&self.0)
    }

    /// How sure it is that a word says that this ends.
    pub(super) fn ended_by(&self, word: &str) -> Option<f64> {
        PAIRS.iter().find(|pair| pair.0 == self.0 && pair.1 == word).map(|pair| pair.2)
    }
}

/// How much a field's name looks like an identifier; 0: not at all.
pub(super) fn is_identity(name: &str) -> u8 {
    let words = NameWords::of(name);
    let last = words.words.last().map(String::as_str);
    // The place of an event tells less than its object.
    if ["lcore", "cpu", "location", "thread", "core", "tid", "pid", "vtid", "vpid"]
        .iter()
        .any(|word| words.at(word).is_some())
    {
        return 1;
    }
    match last {
        Some("id" | "cookie" | "uuid") => 4,
        Some("ptr" | "pointer" | "handle") => 3,
        Some("req" | "request" | "addr" | "address" | "tag" | "seq" | "sequence" | "key" | "fd" | "obj" | "object") => {
            2
        }
        Some("name" | "lock" | "mutex" | "dev" | "queue" | "region") => 2,
        _ => 0,
    }
}

/// A field that says how long another one is.
pub(super) fn is_kind_of_length(name: &str) -> bool {
    name.ends_with("_length") || name == "len" || name.ends_with("_len")
}

/// A field that measures something: equal values do not mean the same thing.
pub(super) fn is_measure(name: &str) -> bool {
    let words = NameWords::of(name);
    let last = words.words.last().map(String::as_str);
    matches!(
        last,
        Some(
            "size"
                | "sizes"
                | "length"
                | "bytes"
                | "count"
                | "amount"
                | "total"
                | "capacity"
                | "usable"
                | "align"
                | "alignment"
                | "offset"
                | "depth"
                | "level"
                | "priority"
                | "prio"
                | "weight"
                | "flags"
                | "mode"
                | "type"
                | "kind"
                | "state"
                | "status"
                | "result"
                | "ret"
                | "retval"
                | "error"
                | "errno"
                | "time"
                | "duration"
                | "latency"
                | "timeout"
                | "delay"
        )
    )
}

/// A word for threads, or for nothing else.
pub(super) fn is_of_thread(word: &str) -> bool {
    matches!(word, "tid" | "pid" | "task" | "thread" | "id" | "tcb" | "process" | "proc" | "dcb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_no_keys() {
        for name in ["size", "usable_size", "nr_bytes", "bufferCount", "flags"] {
            assert!(is_measure(name) && is_identity(name) == 0, "{name}");
        }
        for name in ["ptr", "cb", "request_id", "fd", "size_class"] {
            assert!(!is_measure(name), "{name}");
        }
    }

    #[test]
    fn names_are_words() {
        let check = |name: &str, expected: &[&str]| assert_eq!(NameWords::of(name).words, expected, "{name}");
        check("lib.eal.service.run.begin", &["lib", "eal", "service", "run", "begin"]);
        check("Event_IoOperationBegin", &["event", "io", "operation", "begin"]);
        check("locationID", &["location", "id"]);
        check("sys2_a__b:", &["sys2", "a", "b"]);
        check("", &[]);
        assert_eq!(NameWords::of("Event_IoOperationBegin").title(3), "Event_IoOperation");
        assert_eq!(NameWords::of("begin").title(0), "begin");
    }
}
