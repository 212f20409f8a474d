//! USDT probes: notes of the section `.note.stapsdt`, one for each place in the code.
//!
//! ```text
//! u32 name size │ u32 size │ u32 type 3 │ "stapsdt\0" │ u64 place │ u64 base │ u64 semaphore │ provider\0 name\0 operands\0
//! ```
//!
//! Addresses are those before a tool such as `prelink` moved the file: the note's base and that of the section
//! `.stapsdt.base` tell by how much.

use crate::machine::Machine;
use crate::operand::{self, OperandSite};

const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;
/// Problems that are told at most.
const PROBLEMS_MAX: usize = 10;
/// Notes at most: programs have thousands.
const NOTES_MAX: usize = 1 << 20;
/// Bytes of a name at most.
const NAME_MAX: usize = 256;

/// A place in the code where a USDT probe is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtSite {
    /// The provider.
    pub provider: String,
    /// The name.
    pub name: String,
    /// The address of the instruction.
    pub address: u64,
    /// The offset of the instruction in the file.
    pub offset: u64,
    /// The offset in the file of the number that is greater than 0 while probes are there.
    pub semaphore: Option<u64>,
    /// Its arguments.
    pub operands: Vec<OperandSite>,
}

/// Facts of the file with the notes.
pub(crate) struct NoteSurroundings<'f> {
    pub(crate) machine: Machine,
    /// The address of `.stapsdt.base`.
    pub(crate) base: Option<u64>,
    /// The offset in the file of an instruction.
    pub(crate) code_offset_of: &'f dyn Fn(u64) -> Option<u64>,
    /// The offset in the file of any address.
    pub(crate) offset_of: &'f dyn Fn(u64) -> Option<u64>,
    /// The address of a symbol.
    pub(crate) address_of: &'f mut dyn FnMut(&str) -> Option<u64>,
}

/// Reads notes.
pub(crate) fn read(mut notes: &[u8], around: &mut NoteSurroundings<'_>) -> (Vec<UsdtSite>, Vec<String>) {
    let (mut sites, mut problems) = (Vec::new(), Vec::new());
    for number in 1..=NOTES_MAX {
        if notes.is_empty() {
            break;
        }
        let Some(((owner, kind, content), rest)) = split(notes) else {
            problems.push(format!("note {number} of .note.stapsdt is longer than the section"));
            break;
        };
        notes = rest;
        if owner != OWNER || kind != TYPE {
            continue;
        }
        match site(content, around) {
            Ok(site) => sites.push(site),
            Err(why) if problems.len() < PROBLEMS_MAX => {
                problems.push(format!("note {number} of .note.stapsdt: {why}"));
            }
            Err(_) => {}
        }
    }
    (sites, problems)
}

/// The owner, type and content of a note.
type NoteParts<'n> = (&'n [u8], u32, &'n [u8]);

/// The first note, and the others.
fn split(notes: &[u8]) -> Option<(NoteParts<'_>, &[u8])> {
    let (owner_size, rest) = word(notes)?;
    let (size, rest) = word(rest)?;
    let (kind, rest) = word(rest)?;
    let (owner, rest) = padded(rest, owner_size)?;
    let (content, rest) = padded(rest, size)?;
    Some(((owner, kind, content), rest))
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*word), rest))
}

/// So many bytes, and those behind the next multiple of 4; the last note may have no padding.
fn padded(bytes: &[u8], size: u32) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let (part, _) = bytes.split_at_checked(size)?;
    let end = size.checked_next_multiple_of(4)?;
    Some((part, bytes.get(end..).unwrap_or_default()))
}

fn site(content: &[u8], around: &mut NoteSurroundings<'_>) -> Result<UsdtSite, String> {
    let (numbers, texts) = content.split_at_checked(24).ok_or("it has no room for three addresses")?;
    let number = |at: usize| u64::from_le_bytes(numbers[at * 8..][..8].try_into().expect("it has 8 bytes"));
    let moved = around.base.map_or(0, |base| base.wrapping_sub(number(1)));
    let mut texts = texts.split(|byte| *byte == 0);
    let mut text = |what: &str| {
        let text = texts.next().and_then(|text| std::str::from_utf8(text).ok());
        text.map(str::to_owned).ok_or_else(|| format!("it has no {what} in UTF-8"))
    };
    let (provider, name, operands) = (text("provider")?, text("name")?, text("list of operands")?);
    if !(1..=NAME_MAX).contains(&provider.len()) || !(1..=NAME_MAX).contains(&name.len()) {
        return Err(format!("a provider and a name have 1 to {NAME_MAX} bytes"));
    }
    let address = number(0).wrapping_add(moved);
    let offset = (around.code_offset_of)(address)
        .ok_or_else(|| format!("{provider}:{name} is at the address {address:#x}, where the file has no code"))?;
    let semaphore = match number(2) {
        0 => None,
        semaphore => {
            let semaphore = semaphore.wrapping_add(moved);
            Some((around.offset_of)(semaphore).ok_or_else(|| {
                format!("the semaphore of {provider}:{name} is at the address {semaphore:#x}, which is not in the file")
            })?)
        }
    };
    let mut mapped = |symbol: &str, more: i64| {
        let target = (around.address_of)(symbol)?.wrapping_add_signed(more);
        Some(offset.wrapping_add(target.wrapping_sub(address)))
    };
    let operands = operand::all(around.machine, &operands, &mut mapped);
    Ok(UsdtSite { provider, name, address, offset, semaphore, operands })
}
