//! An object whose programs count the records that find no room in its ring buffers.
//!
//! The kernel does not count them: `bpf_ringbuf_reserve` and `bpf_ringbuf_output` return an error, and programs go on. So their calls become
//! calls of functions with the same arguments, which are added to the object. No instruction moves:
//!
//! ```text
//! call bpf_ringbuf_reserve   ──>   call kymo_reserve ──> call bpf_ringbuf_reserve
//!                                                        if r0 == 0: kymo_lost += 1
//! ```
//!
//! The verifier looks at such functions where they are called, so that it knows the room that they return.

use crate::btf::BtfTypes;
use crate::rewrite::{ChangedObject, ExtensionParts, FLAG_CODE, SectionHead, TYPE_PROGBITS, TYPE_RELOCATIONS, word};

/// The section with the number of records, 8 bytes.
pub const COUNT_SECTION: &str = ".data.kymo";
const CODE_SECTION: &str = ".text.kymo";
const COUNT: &str = "kymo_lost";
/// The address of the new code: loaders tell functions of all sections apart by addresses alone.
const CODE_ADDRESS: u64 = 1 << 40;

const FLAG_WRITE: u64 = 1;
const FLAG_ALLOCATED: u64 = 2;
const SYMBOL_OBJECT: u8 = 1;
const SYMBOL_FUNCTION: u8 = 2;
/// Relocations of constants of 64 bits and of calls.
const OF_CONSTANT: u64 = 1;
const OF_CALL: u64 = 10;
const CALL: u8 = 0x85;
const WIDE_CONSTANT: u8 = 0x18;

/// A function that takes the place of one of the kernel.
struct CountingFunction {
    name: &'static str,
    /// The number of the helper function.
    helper: u32,
    code: &'static [[u8; 8]],
    /// Its instruction that is the address of the count.
    count_at: usize,
}

const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];
/// `r1 = &count; r2 = 1; *(u64 *)r1 += r2`, for all CPUs at once.
const ADDRESS: [[u8; 8]; 2] = [[WIDE_CONSTANT, 1, 0, 0, 0, 0, 0, 0], [0; 8]];
const ONE: [u8; 8] = [0xb7, 2, 0, 0, 1, 0, 0, 0];
const ADD: [u8; 8] = [0xdb, 0x21, 0, 0, 0, 0, 0, 0];

const FUNCTIONS: [CountingFunction; 2] = [
    CountingFunction {
        name: "kymo_reserve",
        helper: 131,
        // if r0 != 0 goto exit; ...; r0 = 0
        code: &[
            [CALL, 0, 0, 0, 131, 0, 0, 0],
            [0x55, 0, 5, 0, 0, 0, 0, 0],
            ADDRESS[0],
            ADDRESS[1],
            ONE,
            ADD,
            [0xb7, 0, 0, 0, 0, 0, 0, 0],
            EXIT,
        ],
        count_at: 2,
    },
    CountingFunction {
        name: "kymo_output",
        helper: 130,
        // if r0 s>= 0 goto exit; ...; r0 is the error still
        code: &[[CALL, 0, 0, 0, 130, 0, 0, 0], [0x75, 0, 4, 0, 0, 0, 0, 0], ADDRESS[0], ADDRESS[1], ONE, ADD, EXIT],
        count_at: 2,
    },
];

/// The same object with programs that count records without room in [`COUNT_SECTION`]; `None`: they take no room in ring buffers, or the
/// object is not one that can be changed.
#[must_use]
pub fn counting_object(data: &[u8]) -> Option<Vec<u8>> {
    let mut object = ChangedObject::read(data)?;
    let calls = object.calls()?;
    if calls.is_empty() {
        return None;
    }
    object.add_types()?;
    object.add_code()?;
    for (section, at, function) in calls {
        object.redirect(section, at, function)?;
    }
    object.finish()
}

impl ChangedObject<'_> {
    /// Calls that take room: section, byte and function.
    fn calls(&self) -> Option<Vec<(usize, usize, usize)>> {
        let mut calls = Vec::new();
        for (section, head) in self.heads.iter().enumerate() {
            if head.kind != TYPE_PROGBITS || head.flags & FLAG_CODE == 0 {
                continue;
            }
            let bytes = self.bytes(section)?;
            let mut at = 0;
            while let Some(instruction) = bytes.get(at..at + 8) {
                if instruction[..2] == [CALL, 0] {
                    let helper = word(instruction, 4)?;
                    let found = FUNCTIONS.iter().position(|function| function.helper == helper);
                    calls.extend(found.map(|function| (section, at, function)));
                }
                at += if instruction[0] == WIDE_CONSTANT { 16 } else { 8 };
            }
        }
        Some(calls)
    }

    /// The functions have types, as all functions of an object must, and a line of a source.
    fn add_types(&mut self) -> Option<()> {
        let (types, extension) = (self.section(".BTF")?, self.section(".BTF.ext")?);
        let known = BtfTypes::read(self.bytes(types)?).ok()?.types().len() as u32;
        let btf = self.bytes(types)?;
        let [head, type_at, type_bytes, name_at, name_bytes] = [4, 8, 12, 16, 20].map(|at| word(btf, at));
        let (head, type_bytes, name_bytes) = (head? as usize, type_bytes? as usize, name_bytes? as usize);
        let part = |at: u32, bytes: usize| btf.get(head.checked_add(at as usize)?..)?.get(..bytes);
        let (mut all, mut names) = (part(type_at?, type_bytes)?.to_vec(), part(name_at?, name_bytes)?.to_vec());
        let mut name = |text: &str| {
            let at = names.len() as u32;
            names.extend(text.bytes().chain([0]));
            at
        };
        // A prototype without arguments and result: the verifier does not compare it with the code of functions that are not global.
        [0, 13 << 24, 0].iter().for_each(|word: &u32| all.extend(word.to_le_bytes()));
        for function in &FUNCTIONS {
            [name(function.name), 12 << 24, known].iter().for_each(|word| all.extend(word.to_le_bytes()));
        }
        let (section, line) = (name(CODE_SECTION), name("kymo"));
        let mut changed = btf.get(..8)?.to_vec();
        let (all_bytes, names_bytes) = (all.len() as u32, names.len() as u32);
        [0, all_bytes, all_bytes, names_bytes].iter().for_each(|word| changed.extend(word.to_le_bytes()));
        changed.extend(btf.get(24..head)?);
        changed.extend(all);
        changed.extend(names);
        self.changed.insert(types, changed);
        self.changed.insert(extension, more_extension(self.bytes(extension)?, section, line, known + 1)?);
        Some(())
    }

    /// New sections: the code, the count, and relocations of the code; and symbols.
    fn add_code(&mut self) -> Option<()> {
        let mut code = Vec::new();
        let mut places = Vec::new();
        let mut relocations = Vec::new();
        for function in &FUNCTIONS {
            places.push(code.len() as u64);
            let count = self.first_symbol + FUNCTIONS.len() as u64;
            relocations.extend((code.len() as u64 + 8 * function.count_at as u64).to_le_bytes());
            relocations.extend((count << 32 | OF_CONSTANT).to_le_bytes());
            code.extend(function.code.as_flattened());
        }
        let usual = SectionHead { kind: TYPE_PROGBITS, flags: FLAG_ALLOCATED, alignment: 8, ..SectionHead::default() };
        let head = SectionHead { flags: FLAG_ALLOCATED | FLAG_CODE, address: CODE_ADDRESS, ..usual };
        let code_section = self.add(CODE_SECTION, head, code)?;
        let head = SectionHead { flags: FLAG_ALLOCATED | FLAG_WRITE, ..usual };
        let count_section = self.add(COUNT_SECTION, head, vec![0; 8])?;
        self.add_relocations(code_section, relocations)?;
        let functions = FUNCTIONS.iter().zip(places).map(|(function, place)| {
            let size = size_of_val(function.code) as u64;
            (function.name, SYMBOL_FUNCTION, code_section, CODE_ADDRESS + place, size)
        });
        for symbol in functions.chain([(COUNT, SYMBOL_OBJECT, count_section, 0, 8)]) {
            self.add_symbol(symbol)?;
        }
        Some(())
    }

    /// A call of the kernel becomes one of a function.
    fn redirect(&mut self, section: usize, at: usize, function: usize) -> Option<()> {
        let instruction = self.change(section)?.get_mut(at..at + 8)?;
        instruction.copy_from_slice(&[CALL, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        let is_its = |head: &SectionHead| head.kind == TYPE_RELOCATIONS && head.info as usize == section;
        let relocations = match self.heads.iter().position(is_its) {
            Some(relocations) => relocations,
            None => self.add_relocations(section, Vec::new())?,
        };
        let symbol = self.first_symbol + function as u64;
        let relocations = self.change(relocations)?;
        relocations.extend((at as u64).to_le_bytes());
        relocations.extend((symbol << 32 | OF_CALL).to_le_bytes());
        Some(())
    }
}

/// `.BTF.ext` with the new functions, of types from this number on, and a line for each.
fn more_extension(old: &[u8], section: u32, line: u32, first_type: u32) -> Option<Vec<u8>> {
    let mut parts = ExtensionParts::read(old)?;
    let places = FUNCTIONS.iter().scan(0, |place, function| {
        let begin = *place;
        *place += size_of_val(function.code) as u32;
        Some(begin)
    });
    let (mut of_functions, mut of_lines) = (Vec::new(), Vec::new());
    for (place, number) in places.zip(first_type..) {
        of_functions.push([place, number, 0, 0]);
        // Line 1 of a file with this name and text.
        of_lines.push([place, line, line, 1 << 10]);
    }
    append_rows(&mut parts.functions, section, &of_functions, 2)?;
    append_rows(&mut parts.lines, section, &of_lines, 4)?;
    parts.write(old)
}

/// Appends rows of a section, of so many words: the part says how many bytes each row has.
fn append_rows(part: &mut Vec<u8>, section: u32, rows: &[[u32; 4]], words: usize) -> Option<()> {
    // A part without rows says no size, and a program without them needs none.
    let row_bytes = word(part, 0)? as usize;
    if row_bytes < 4 * words || row_bytes > 1 << 10 {
        return None;
    }
    [section, rows.len() as u32].iter().for_each(|word| part.extend(word.to_le_bytes()));
    for row in rows {
        let end = part.len() + row_bytes;
        row[..words].iter().for_each(|word| part.extend(word.to_le_bytes()));
        part.resize(end, 0);
    }
    Some(())
}
