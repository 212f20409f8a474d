//! Files in formats other than CTF are opened or refused; those that are opened are read without a fault, however often.

use std::fs;
use std::path::PathBuf;

use kymo_session::{
    CountOptions, ImportOptions, OpenFailure, OpenOptions, PrintOptions, Progress, ReportProblem, Session,
};
use kymo_source::SourceErrorKind;

/// A folder for one file after the other.
#[derive(Debug)]
pub struct ImportFolder {
    root: tempfile::TempDir,
}

/// That of Genode's recorder.
const GENODE_METADATA: &[u8] = include_bytes!("../../../tests/genode/metadata");

/// A dump of Barrelfish of each kind.
const DUMPS: [&str; 2] = [
    "# Start 9 Duration 0 Stop 18446744073709551615\n# Min_timestamp 9\n# Core 0 LOG DUMP ===\n# Offset 0 0\n\
     # DCB 0 ffffff8002656c00 app\n0 9 10000000000000\n0 10 2656c00\n0 11 ea0000776f803000\n0 12 1300000000\n\
     # Core 1 LOG DUMP ===\n# Offset 1 9223372036854775803\n1 20 eb0000776f803000\n1 19 400002656c00\n",
    "000123# Start 5 Duration 6 Stop 11\r\n# Core 2 LOG DUMP ===\r\n2 0 1234000000000001\r\n# DCB 2 100 fish\r\n\
     2 1 ffffcccc00000100 4th\r\nnoise\r\n2 2 bbbb\r\n2 3 aaaa\r\n",
];

impl ImportFolder {
    /// An empty one.
    ///
    /// # Panics
    ///
    /// If a temporary folder cannot be made.
    #[must_use]
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    /// Small files of each format, to begin with.
    #[must_use]
    pub fn seeds() -> Vec<Vec<u8>> {
        let dumps = DUMPS.iter().map(|dump| dump.as_bytes().to_vec());
        dumps.chain([pcapng(), pcap(false), pcap(true)]).collect()
    }

    /// Definitions of events, to begin with.
    #[must_use]
    pub fn definition_seeds() -> Vec<Vec<u8>> {
        let json = "{\n\"0\" : {\n\t\"name\" : \"kernel\",\n\t\"events\" : {\n\t\t\"0\" : [\"CSWITCH\", \"a \"switch\"\" ]\n\t}\n},\n\
                    -5632 : {\n\t\"name\" : \"ump send\"\n}\n}";
        let pleco = "/* /* */ */ subsystem kernel {\n event CSWITCH \"\\955 \\SOH\\\n  \\\",\n event b' \"\", };\n";
        vec![json.as_bytes().to_vec(), pleco.as_bytes().to_vec()]
    }

    /// Files of a thread in a tree of Genode's recorder, to begin with.
    #[must_use]
    pub fn thread_seeds() -> Vec<Vec<u8>> {
        let one = |begin: u64, priority: u8| {
            let names = b"init -> ping\0ep\0";
            let name = |id: u8, time: u64| [&[id][..], &time.to_le_bytes(), b"go\0"].concat();
            let number = [&[5][..], &(begin + 2).to_le_bytes(), &[1, 0, 0, 0]].concat();
            let body = [name(1, begin), number, name(2, begin + 9)].concat();
            let head_bits = (33 + names.len()) * 8;
            let sizes = [&((head_bits + body.len() * 8) as u32).to_le_bytes()[..], &(head_bits as u16).to_le_bytes()];
            let times = [begin.to_le_bytes(), (begin + 9).to_le_bytes()].concat();
            let magic = [0xC1, 0x1F, 0xFC, 0xC1, 0, 0, 0, 0];
            [&magic[..], &times, &sizes.concat(), &[1, 0x11, priority], names, &body].concat()
        };
        let wrap = (1 << 32) - 5;
        vec![[one(1 << 40, 1), one((1 << 40) + 5, 1), one(1 << 41, 2)].concat(), [one(wrap, 1), one(7, 1)].concat()]
    }

    /// The promise for the bytes of a file.
    ///
    /// # Panics
    ///
    /// If it is broken.
    pub fn hold(&self, data: &[u8]) {
        let path = self.write("file", data);
        self.read(&path, &ImportOptions::default());
    }

    /// The promise for the bytes of definitions.
    ///
    /// # Panics
    ///
    /// If it is broken.
    pub fn hold_definitions(&self, data: &[u8]) {
        let path = self.write("dump.trc", DUMPS[0].as_bytes());
        let definitions = Some(self.write("definitions", data));
        self.read(&path, &ImportOptions { definitions, ..ImportOptions::default() });
    }

    /// The promise for the bytes of a thread in a tree. Its events are as they are in the file, so that some may be
    /// unreadable.
    ///
    /// # Panics
    ///
    /// If it is broken.
    pub fn hold_thread(&self, data: &[u8]) {
        self.write("2022-8-29 14:3:9/init/ping/metadata", GENODE_METADATA);
        self.write("2022-8-29 14:3:9/init/ping/ep", data);
        let options = OpenOptions { threads: 1, ..OpenOptions::default() };
        let tree = self.root.path().join("2022-8-29 14:3:9");
        let session =
            Session::open(std::slice::from_ref(&tree), &options).expect("a tree is opened, whatever is in it");
        Self::counted(&session);
        kymo_session::check(&[tree], &ImportOptions::default(), &Progress::default()).expect("nobody cancels it");
    }

    fn write(&self, name: &str, data: &[u8]) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a temporary folder can be made");
        fs::write(&path, data).expect("a temporary file can be written");
        path
    }

    fn read(&self, path: &PathBuf, import: &ImportOptions) {
        let options = OpenOptions { threads: 1, import: import.clone(), ..OpenOptions::default() };
        let session = match Session::open(std::slice::from_ref(path), &options) {
            Ok(session) => session,
            Err(OpenFailure::Source(error)) => {
                let is_refused = matches!(error.kind, SourceErrorKind::Import(_) | SourceErrorKind::NotInTrace { .. });
                // Other bytes may begin an archive.
                let is_archive = data_is_archive(path);
                assert!(is_refused || is_archive, "{error}");
                return;
            }
            Err(failure) => panic!("what an importer makes is understood: {failure}"),
        };
        let unreadable = Self::counted(&session);
        assert_eq!(unreadable, session.opening_report().unreadable, "packets that an importer makes are read");
        let findings = kymo_session::check(std::slice::from_ref(path), import, &Progress::default());
        assert!(!findings.expect("nobody cancels it").iter().any(|finding| finding.rule == "record"));
    }
}

impl ImportFolder {
    /// Prints and counts the events; returns the parts that cannot be read.
    fn counted(session: &Session) -> Vec<ReportProblem> {
        let mut text = Vec::new();
        let printed =
            session.print(&PrintOptions::default(), &mut text, &Progress::default()).expect("it can be written");
        let counts = session.count(&CountOptions::default(), &Progress::default()).expect("nobody cancels it");
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(lines, counts.total, "each event is a line");
        printed.report.unreadable
    }
}

impl Default for ImportFolder {
    fn default() -> Self {
        Self::new()
    }
}

fn data_is_archive(path: &PathBuf) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    [&[0x1F, 0x8B][..], &[0x28, 0xB5, 0x2F, 0xFD], b"PK"].iter().any(|magic| bytes.starts_with(magic))
}

/// Two sections with a packet each.
fn pcapng() -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = block(0x0A0D_0D0A, &[0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let interface = block(1, &[1, 0, 0, 0, 64, 6, 0, 0, 2, 0, 5, 0, b'e', b'_', b'o', b'u', b't', 0, 0, 0, 1, 0, 0, 0]);
    let words = [0_u32, 7, 9, 42, 42].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let packet = block(6, &[&words[..], &udp(), &[0, 0], &[2, 0, 4, 0, 1, 0, 0, 0]].concat());
    let statistics = block(5, &[&[0; 12][..], &[5, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0]].concat());
    let one = [section, interface, packet, statistics].concat();
    [one.clone(), one].concat()
}

fn pcap(is_big_endian: bool) -> Vec<u8> {
    let words = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65535, 1, 5, 6, 42, 42];
    let order = |word: &u32| if is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    [words.iter().flat_map(order).collect::<Vec<u8>>(), udp()].concat()
}

/// UDP over IPv4 over Ethernet.
fn udp() -> Vec<u8> {
    let ethernet = [[0xFF; 6].as_slice(), &[2, 0, 0, 0, 0, 1], &[8, 0]].concat();
    let ip = [&[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0][..], &[10, 0, 4, 2], &[10, 0, 4, 1]].concat();
    [ethernet, ip, [3, 232, 7, 208, 0, 8, 0, 0].to_vec()].concat()
}
