//! What a session has written, against what programs say that they did.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use kymo_session::{OpenOptions, PrintOptions, Progress, Session};

const KINDS: [&str; 3] = ["chaos:counted", "chaos:kept", "chaos:switched"];

/// What is known of a slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    found: u64,
    /// The least number that may come in this trace. Handlers of signals record to several lanes, so that of the events in two traces of
    /// one session not all in the first are the earlier ones.
    next: u64,
    /// Which numbers were found, a bit each.
    numbers: Vec<u64>,
    kind: usize,
}

impl Slot {
    /// Whether it is for the first time.
    fn finds(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.numbers.len() <= word {
            self.numbers.resize(word + 1, 0);
        }
        let is_new = self.numbers[word] & bit == 0;
        self.numbers[word] |= bit;
        self.found += u64::from(is_new);
        is_new
    }

    /// One more than the largest number that was found.
    fn end(&self) -> u64 {
        self.numbers.last().map_or(0, |word| 64 * self.numbers.len() as u64 - u64::from(word.leading_zeros()))
    }
}

/// What traces of a session have.
#[derive(Debug, Default)]
pub struct Written {
    slots: Vec<Slot>,
    /// Events that are known to be lost.
    lost: u64,
    traces: usize,
    /// The line that is not whole yet.
    rest: Vec<u8>,
    lines: u64,
}

/// The traces of a session: its own, and one of each recorder that went on with it elsewhere.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let resumed = (1..).map(|number| folder.join(format!("resumed-{number}")));
    let mut all: Vec<PathBuf> = resumed.take_while(|path| path.exists()).collect();
    all.insert(0, folder.to_owned());
    // A recorder that was killed at once has written nothing.
    all.retain(|path| path.join("metadata").exists());
    all
}

impl Written {
    pub fn read(folder: &Path) -> Self {
        let mut this = Self::default();
        for trace in traces(folder) {
            let session = Session::open(std::slice::from_ref(&trace), &OpenOptions::default()).expect("it is a trace");
            let before = this.lines;
            this.slots.iter_mut().for_each(|slot| slot.next = 0);
            let progress = Progress::default();
            let printed = session.print(&PrintOptions::default(), &mut this, &progress).expect("it can be printed");
            assert!(printed.report.is_complete(), "{}: {:?}", trace.display(), printed.report);
            assert_eq!(printed.report.packets_lost, 0, "{}", trace.display());
            this.lost += printed.report.events_discarded;
            this.traces += 1;
            let mut findings =
                kymo_session::check(std::slice::from_ref(&trace), &kymo_session::ImportOptions::default(), &progress)
                    .expect("it goes on");
            findings.retain(|finding| finding.rule != "events-discarded");
            assert!(findings.is_empty(), "{findings:?}");
            counted_by_babeltrace(&trace, this.lines - before);
        }
        this
    }

    fn line(&mut self, line: &str) {
        self.lines += 1;
        let what = line.split_once(": {").map_or(line, |(head, _)| head);
        let name = what.rsplit(' ').next().expect("it is split");
        let Some(kind) = KINDS.iter().position(|known| *known == name) else {
            assert!(name.starts_with("kymo:"), "{line}");
            // The only thing that may become of events that are not in a lane.
            assert!(name != "kymo:lost" || line.contains("\"no_lane\""), "{line}");
            return;
        };
        let value = |field: &str| -> u64 {
            let digits = line.split_once(field).unwrap_or_else(|| panic!("{line}")).1;
            let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().unwrap_or_else(|_| panic!("{line}"))
        };
        let (number, of) = (value("{ slot = "), value(", number = "));
        let at = number as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot::default());
        }
        let slot = &mut self.slots[at];
        assert!(slot.found == 0 || slot.kind == kind, "{line}");
        // A number that is out of its range is refused before room is made for it.
        assert!(of < 1 << 32, "{line}");
        assert!(of >= slot.next, "out of order, behind {}: {line}", slot.next);
        assert!(slot.finds(of), "it was there before: {line}");
        (slot.next, slot.kind) = (of + 1, kind);
    }

    /// What programs say is what is written and lost.
    pub fn check(&self, counts: &[u8], has_room: bool) {
        let word = |at: usize| u64::from_le_bytes(counts[8 * at..8 * at + 8].try_into().expect("8 bytes"));
        let used = word(1) as usize;
        assert!(self.slots.len() <= used, "events of {} slots, {used} are used", self.slots.len());
        let (mut all, mut ended_all, mut found_all, mut open, mut wrong) = (0, 0, 0, 0, Vec::new());
        // Of events that somebody switches: how many were not found.
        let mut switched = 0;
        for number in 0..used {
            let [begun, ended, pid, kind] = std::array::from_fn(|of| word(4 + 4 * number + of));
            let none = Slot::default();
            let slot = self.slots.get(number).unwrap_or(&none);
            let is_its = slot.found == 0 || slot.kind as u64 + 1 == kind;
            let (found, end) = (slot.found, slot.end());
            assert!(is_its && end <= begun, "slot {number}, kind {kind}: {begun} begun, {found} found up to {end}");
            if kind == 3 {
                switched += begun - slot.found;
                continue;
            }
            if !(ended..=begun).contains(&slot.found) {
                wrong.push(format!(
                    "slot {number} of process {pid}, kind {kind}: {ended} ended, {begun} begun, {slot:?}"
                ));
            }
            all += begun;
            ended_all += ended;
            found_all += slot.found;
            open += begun - ended;
        }
        let known = found_all + self.lost;
        let said = format!(
            "{used} slots, {all} events begun, {found_all} found in {} traces, {} lost, {open} in flight when they were killed or \
             jumped over",
            self.traces, self.lost
        );
        println!("{said}");
        let is_all = ended_all <= known && known <= all + switched;
        assert!(is_all, "{said}: {known} known, {switched} were off or lost\n{}", wrong.join("\n"));
        assert!(self.lost > 0 || wrong.is_empty(), "{said}\n{}", wrong.join("\n"));
        assert!(self.lost == 0 || !has_room, "{said}");
        assert!(found_all > 1000, "{said}");
    }
}

/// What is printed, line by line.
impl Write for Written {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(text);
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let whole = std::str::from_utf8(&rest[..end]).expect("it is text");
        whole.lines().for_each(|line| self.line(line));
        self.rest = rest.split_off(end);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Babeltrace reads a trace without a warning, and finds as many events.
fn counted_by_babeltrace(trace: &Path, events: u64) {
    let output = Command::new("babeltrace2").arg(trace).args(["--component", "sink.utils.counter"]).output();
    let Ok(output) = output else {
        eprintln!("NOT TESTED: babeltrace2 is not there to count events");
        return;
    };
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.is_empty(), "{}: {told}", trace.display());
    let line = said.lines().rev().find(|line| line.contains("Event message")).unwrap_or_default();
    let digits: String = line.chars().take_while(|digit| !digit.is_alphabetic()).filter(char::is_ascii_digit).collect();
    assert_eq!(digits.parse().ok(), Some(events), "{said}");
}
