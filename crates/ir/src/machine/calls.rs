//! Helper functions, as Linux documents them.
//!
//! Errors that a program can handle are its results, as in Linux; calls that the kernel's verifier would refuse end the run. Bytes that
//! a function copies, clears or compares count as steps of the run: a call is no way around its limit.

use super::helper::{self, BpfHelper};
use super::map::{BAD_ADDRESS, BAD_ARGUMENT, BpfMapType, EXISTS, NO_ENTRY, NO_MEMORY, TOO_BIG};
use super::memory::{self, ReservedRecord};
use super::printing;
use super::problem::{MachineFault, MachineFaultKind};
use super::run::{MachineRun, OutputRecord, STEP_BYTES};

/// Bytes of lines that a run may print.
const LINE_BYTES_MAX: usize = 1 << 16;
/// Bytes of a record at most.
const RECORD_BYTES_MAX: u64 = 1 << 26;
/// Calls of a function that a loop may ask for, as in Linux.
const LOOPS_MAX: u32 = 1 << 23;
/// Bytes that a ring needs for each record beside the record's own.
const RING_HEAD_BYTES: u64 = 8;
/// Bytes of the name of a thread.
const THREAD_NAME_BYTES: usize = 16;
/// Insert a key only, replace a value only.
const ONLY_NEW: u64 = 1;
const ONLY_OLD: u64 = 2;

/// Where a call is: its instruction, and how many functions are outside of this one.
type CallPlace = (usize, usize);

/// An error number as a result.
fn error(number: i64) -> u64 {
    number as u64
}

impl MachineRun<'_> {
    /// Calls a helper function; its result.
    pub(super) fn call(&mut self, number: u32, arguments: [u64; 5], place: CallPlace) -> Result<u64, MachineFault> {
        let name = helper::name_of(number).unwrap_or_default();
        let helper = BpfHelper::of(number).expect("programs are checked");
        match helper {
            BpfHelper::Loop => self.repeat(name, arguments, place),
            BpfHelper::ForEachElement => self.for_each(name, arguments, place),
            _ => self.call_plain(helper, name, arguments).map_err(|kind| MachineFault { at: place.0, kind }),
        }
    }

    fn call_plain(
        &mut self,
        helper: BpfHelper,
        name: &'static str,
        [first, second, third, fourth, fifth]: [u64; 5],
    ) -> Result<u64, MachineFaultKind> {
        match helper {
            BpfHelper::MapLookup => self.look_up(name, (first, second), None),
            BpfHelper::MapLookupOfCpu => self.look_up(name, (first, second), Some(third as u32)),
            BpfHelper::MapUpdate => self.update(name, first, (second, third), fourth),
            BpfHelper::MapDelete => {
                let (map, key) = self.map_and_key(name, first, second)?;
                Ok(error(self.memory.maps[map].remove(&key)))
            }
            BpfHelper::ProbeRead => self.probe_read(first, second, third),
            BpfHelper::ProbeReadText => self.probe_read_text(first, second, third),
            BpfHelper::Nanos | BpfHelper::BootNanos => known(name, "its time", self.moment.nanos),
            BpfHelper::Cpu => self.cpu(name).map(u64::from),
            BpfHelper::ProcessAndThread => {
                let process = known(name, "its process", self.moment.process)?;
                Ok(u64::from(process) << 32 | u64::from(known(name, "its thread", self.moment.thread)?))
            }
            BpfHelper::ThreadName => self.thread_name(name, first, second),
            BpfHelper::Random => {
                *self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                Ok(*self.random >> 32)
            }
            BpfHelper::EventOutput => self.event_output(name, second, (fourth, fifth)),
            BpfHelper::RingOutput => self.ring_output(name, first, (second, third)),
            BpfHelper::RingReserve => self.reserve(name, first, second),
            BpfHelper::RingSubmit => self.submit(name, first),
            BpfHelper::RingDiscard => self.reserved(name, first).map(|_| 0),
            BpfHelper::RingQuery => {
                let map = self.map_of(name, first, BpfMapType::RingBuffer)?;
                let size = u64::from(self.memory.maps[map].definition().entries_max);
                // Bytes of records, the size, and the places of both sides: readers are never behind.
                Ok(if second == 1 { size } else { 0 })
            }
            BpfHelper::PrintText => self.print(first, second, &[third, fourth, fifth]),
            BpfHelper::PrintTextArray => {
                let values = self.numbers(third, fourth)?;
                self.print(first, second, &values)
            }
            BpfHelper::FormatText => self.format(first, second, third, (fourth, fifth)),
            BpfHelper::CompareText => {
                let left = self.copied(first, second & 0xffff_ffff)?;
                let right = self.memory.text(third, left.len()).ok_or_else(|| self.unreadable(third))?;
                Ok(compared(&left, &right))
            }
            BpfHelper::Loop | BpfHelper::ForEachElement => Ok(error(BAD_ARGUMENT)),
        }
    }

    fn unreadable(&self, address: u64) -> MachineFaultKind {
        self.memory.bytes(address, 1).err().unwrap_or_else(|| MachineFaultKind::OutsideMemory {
            is_write: false,
            bytes: 1,
            place: "the end of a text that has no zero byte".into(),
        })
    }

    fn cpu(&self, helper: &'static str) -> Result<u32, MachineFaultKind> {
        known(helper, "its CPU", self.moment.cpu)
    }

    fn map(&self, helper: &'static str, address: u64) -> Result<usize, MachineFaultKind> {
        let map = memory::map_at(address).filter(|map| *map < self.memory.maps.len());
        map.ok_or(MachineFaultKind::NoMap { helper, address })
    }

    fn map_of(&self, helper: &'static str, address: u64, kind: BpfMapType) -> Result<usize, MachineFaultKind> {
        let map = self.map(helper, address)?;
        let found = self.memory.maps[map].definition().map_type;
        if found == kind { Ok(map) } else { Err(MachineFaultKind::OtherMap { helper, found: found.name() }) }
    }

    fn table(&self, helper: &'static str, address: u64) -> Result<usize, MachineFaultKind> {
        let map = self.map(helper, address)?;
        let found = self.memory.maps[map].definition().map_type;
        if found.is_table() { Ok(map) } else { Err(MachineFaultKind::OtherMap { helper, found: found.name() }) }
    }

    /// A copy of bytes, which counts as steps.
    fn copied(&mut self, from: u64, size: u64) -> Result<Vec<u8>, MachineFaultKind> {
        self.memory.bytes(from, size)?;
        self.count_bytes(size)?;
        Ok(self.memory.bytes(from, size)?.to_vec())
    }

    fn map_and_key(&mut self, helper: &'static str, map: u64, key: u64) -> Result<(usize, Vec<u8>), MachineFaultKind> {
        let map = self.table(helper, map)?;
        let size = self.memory.maps[map].definition().key_bytes;
        Ok((map, self.copied(key, size.into())?))
    }

    /// The CPU whose value of a map is meant.
    fn cpu_of_map(&self, helper: &'static str, map: usize) -> Result<u32, MachineFaultKind> {
        if self.memory.maps[map].definition().map_type.is_per_cpu() { self.cpu(helper) } else { Ok(0) }
    }

    fn look_up(
        &mut self,
        helper: &'static str,
        (map, key): (u64, u64),
        cpu: Option<u32>,
    ) -> Result<u64, MachineFaultKind> {
        let (map, key) = self.map_and_key(helper, map, key)?;
        let cpu = match cpu {
            Some(cpu) => cpu,
            None => self.cpu_of_map(helper, map)?,
        };
        let found = memory::cpu_of(cpu).ok().and_then(|_| self.memory.maps[map].find(&key));
        let place = found.and_then(|slot| self.memory.maps[map].place(slot, cpu, self.allowance).ok());
        Ok(place.map_or(0, |offset| memory::value_address(map, cpu, offset)))
    }

    fn update(
        &mut self,
        helper: &'static str,
        map: u64,
        (key, value): (u64, u64),
        flags: u64,
    ) -> Result<u64, MachineFaultKind> {
        let (map, key) = self.map_and_key(helper, map, key)?;
        let cpu = self.cpu_of_map(helper, map)?;
        let definition = self.memory.maps[map].definition();
        let size = definition.value_bytes;
        let is_array = matches!(definition.map_type, BpfMapType::Array | BpfMapType::PerCpuArray);
        let value = self.copied(value, size.into())?;
        if flags > ONLY_OLD {
            return Ok(error(BAD_ARGUMENT));
        }
        let slot = match self.memory.maps[map].find(&key) {
            None if is_array => return Ok(error(TOO_BIG)),
            None if flags == ONLY_OLD => return Ok(error(NO_ENTRY)),
            Some(_) if flags == ONLY_NEW => return Ok(error(EXISTS)),
            Some(slot) => Ok(slot),
            None => {
                self.count_bytes(self.memory.maps[map].bytes_to_clear())?;
                self.memory.maps[map].insert(&key, self.allowance)
            }
        };
        let place = slot.and_then(|slot| {
            let cpu = memory::cpu_of(cpu)?;
            self.memory.maps[map].place(slot, cpu, self.allowance)
        });
        match place {
            Ok(offset) => {
                let address = memory::value_address(map, cpu, offset);
                self.memory.bytes_mut(address, size.into())?.copy_from_slice(&value);
                Ok(0)
            }
            Err(number) => Ok(error(number)),
        }
    }

    /// Copies memory; what cannot be read is 0, and an error the program's.
    fn probe_read(&mut self, to: u64, size: u64, from: u64) -> Result<u64, MachineFaultKind> {
        let size = size & 0xffff_ffff;
        self.memory.bytes_mut(to, size)?;
        self.count_bytes(size)?;
        let bytes = self.memory.find(from, size).map(<[u8]>::to_vec);
        let place = self.memory.bytes_mut(to, size)?;
        match &bytes {
            Some(bytes) => place.copy_from_slice(bytes),
            None => place.fill(0),
        }
        Ok(if bytes.is_some() { 0 } else { error(BAD_ADDRESS) })
    }

    /// Copies a text with the zero byte at its end; how many bytes these are.
    fn probe_read_text(&mut self, to: u64, size: u64, from: u64) -> Result<u64, MachineFaultKind> {
        let size = (size & 0xffff_ffff) as usize;
        if size == 0 {
            return Ok(0);
        }
        self.memory.bytes_mut(to, size as u64)?;
        let text = self.memory.text(from, size - 1);
        self.count_bytes(text.as_ref().map_or(size, Vec::len) as u64)?;
        let place = self.memory.bytes_mut(to, size as u64)?;
        match text {
            Some(text) => {
                place[..text.len()].copy_from_slice(&text);
                place[text.len()] = 0;
                Ok(text.len() as u64 + 1)
            }
            None => {
                place.fill(0);
                Ok(error(BAD_ADDRESS))
            }
        }
    }

    fn thread_name(&mut self, helper: &'static str, to: u64, size: u64) -> Result<u64, MachineFaultKind> {
        let name = known(helper, "the name of its thread", self.moment.thread_name.as_deref())?;
        let size = size & 0xffff_ffff;
        self.memory.bytes_mut(to, size)?;
        self.count_bytes(size)?;
        let place = self.memory.bytes_mut(to, size)?;
        place.fill(0);
        let count = name.len().min(THREAD_NAME_BYTES - 1).min(place.len().saturating_sub(1));
        place[..count].copy_from_slice(&name[..count]);
        Ok(0)
    }

    fn event_output(
        &mut self,
        helper: &'static str,
        map: u64,
        (from, size): (u64, u64),
    ) -> Result<u64, MachineFaultKind> {
        let map = self.map_of(helper, map, BpfMapType::PerfEventArray)?;
        let bytes = self.copied(from, size.min(RECORD_BYTES_MAX))?;
        self.ring_bytes += bytes.len() as u64;
        if self.ring_bytes > RECORD_BYTES_MAX {
            self.outputs.lost += 1;
            return Ok(error(NO_MEMORY));
        }
        self.outputs.records.push(OutputRecord { map, bytes });
        Ok(0)
    }

    fn ring_output(
        &mut self,
        helper: &'static str,
        map: u64,
        (from, size): (u64, u64),
    ) -> Result<u64, MachineFaultKind> {
        let map = self.map_of(helper, map, BpfMapType::RingBuffer)?;
        let bytes = self.copied(from, size.min(RECORD_BYTES_MAX))?;
        if !self.has_room(map, size) {
            return Ok(error(-11));
        }
        self.outputs.records.push(OutputRecord { map, bytes });
        Ok(0)
    }

    /// Takes room of a ring for a record. Readers are quick: only records of the same run lie in it.
    fn has_room(&mut self, map: usize, size: u64) -> bool {
        let limit = u64::from(self.memory.maps[map].definition().entries_max).min(RECORD_BYTES_MAX);
        // A size may be any number of 64 bits: those that fit make small sums.
        let needed = |size: u64| (size + RING_HEAD_BYTES + self.ring_bytes).next_multiple_of(8);
        let needed = (size <= limit).then(|| needed(size)).filter(|needed| *needed <= limit);
        match needed {
            Some(needed) => self.ring_bytes = needed,
            None => self.outputs.lost += 1,
        }
        needed.is_some()
    }

    fn reserve(&mut self, helper: &'static str, map: u64, size: u64) -> Result<u64, MachineFaultKind> {
        let map = self.map_of(helper, map, BpfMapType::RingBuffer)?;
        if !self.has_room(map, size) {
            return Ok(0);
        }
        self.count_bytes(size)?;
        self.memory.reserved.push(ReservedRecord { map, bytes: Some(vec![0; size as usize]) });
        Ok(memory::record_address(self.memory.reserved.len() - 1))
    }

    /// Takes a reserved record away from the program.
    fn reserved(&mut self, helper: &'static str, address: u64) -> Result<OutputRecord, MachineFaultKind> {
        let record = memory::record_at(address).and_then(|index| self.memory.reserved.get_mut(index));
        let taken = record.and_then(|record| Some(OutputRecord { map: record.map, bytes: record.bytes.take()? }));
        taken.ok_or(MachineFaultKind::NoRecord { helper, address })
    }

    fn submit(&mut self, helper: &'static str, address: u64) -> Result<u64, MachineFaultKind> {
        let record = self.reserved(helper, address)?;
        self.outputs.records.push(record);
        Ok(0)
    }

    /// So many bytes as numbers of 8 bytes.
    fn numbers(&self, from: u64, size: u64) -> Result<Vec<u64>, MachineFaultKind> {
        let size = (size & 0xffff_ffff).min(8 * printing::VALUES_MAX as u64);
        let bytes = self.memory.bytes(from, size)?;
        Ok(bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect())
    }

    fn print(&mut self, format: u64, size: u64, values: &[u64]) -> Result<u64, MachineFaultKind> {
        let format = self.copied(format, size & 0xffff_ffff)?;
        let text = printing::formatted(&format, values, |address, limit| self.memory.text(address, limit));
        let Some(text) = text else { return Ok(error(BAD_ARGUMENT)) };
        self.count_bytes(text.len() as u64)?;
        self.line_bytes += text.len();
        if self.line_bytes > LINE_BYTES_MAX {
            return Ok(error(-16));
        }
        self.outputs.lines.push(String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned());
        Ok(text.len() as u64)
    }

    fn format(
        &mut self,
        to: u64,
        size: u64,
        format: u64,
        (values, bytes): (u64, u64),
    ) -> Result<u64, MachineFaultKind> {
        let values = if bytes & 0xffff_ffff == 0 { Vec::new() } else { self.numbers(values, bytes)? };
        let format = self.memory.text(format, printing::TEXT_MAX).ok_or_else(|| self.unreadable(format))?;
        let text = printing::formatted(&format, &values, |address, limit| self.memory.text(address, limit));
        let Some(text) = text else { return Ok(error(BAD_ARGUMENT)) };
        self.count_bytes((format.len() + text.len()) as u64)?;
        let place = self.memory.bytes_mut(to, size & 0xffff_ffff)?;
        let count = text.len().min(place.len().saturating_sub(1));
        place[..count].copy_from_slice(&text[..count]);
        if let Some(end) = place.get_mut(count) {
            *end = 0;
        }
        // As many as there would be, and the zero byte.
        Ok(text.len() as u64 + 1)
    }

    fn function(&self, helper: &'static str, address: u64, at: usize) -> Result<usize, MachineFault> {
        let kind = MachineFaultKind::NoFunction { helper, address };
        memory::function_at(address).filter(|at| *at < self.code.len()).ok_or(MachineFault { at, kind })
    }

    /// Calls a function so often, until it says 1; how often it was called.
    fn repeat(
        &mut self,
        helper: &'static str,
        [count, function, argument, flags, _]: [u64; 5],
        (at, depth): CallPlace,
    ) -> Result<u64, MachineFault> {
        let function = self.function(helper, function, at)?;
        let count = count as u32;
        if flags != 0 {
            return Ok(error(BAD_ARGUMENT));
        }
        if count > LOOPS_MAX {
            return Ok(error(TOO_BIG));
        }
        for index in 0..u64::from(count) {
            if self.execute(function, [index, argument, 0, 0, 0], depth + 1)? != 0 {
                return Ok(index + 1);
            }
        }
        Ok(count.into())
    }

    /// Calls a function with each entry of a map, until it says 1; how many entries it saw.
    fn for_each(
        &mut self,
        helper: &'static str,
        [map, function, argument, flags, _]: [u64; 5],
        (at, depth): CallPlace,
    ) -> Result<u64, MachineFault> {
        let index = self.table(helper, map).map_err(|kind| MachineFault { at, kind })?;
        let function = self.function(helper, function, at)?;
        let cpu = self.cpu_of_map(helper, index).map_err(|kind| MachineFault { at, kind })?;
        if flags != 0 {
            return Ok(error(BAD_ARGUMENT));
        }
        let mut seen = 0;
        for slot in 0..self.memory.maps[index].slot_count() {
            // Keys are copied, and a free slot is a step, too.
            let key_bytes = u64::from(self.memory.maps[index].definition().key_bytes);
            self.count_bytes(STEP_BYTES + key_bytes).map_err(|kind| MachineFault { at, kind })?;
            let Some(key) = self.memory.maps[index].key(slot) else { continue };
            let place = memory::cpu_of(cpu).and_then(|cpu| self.memory.maps[index].place(slot, cpu, self.allowance));
            let Ok(offset) = place else { return Ok(error(NO_MEMORY)) };
            let value = memory::value_address(index, cpu, offset);
            let shown = self.memory.keys.len();
            self.memory.keys.push(key);
            seen += 1;
            let answer = self.execute(function, [map, memory::key_address(shown), value, argument, 0], depth + 1)?;
            self.memory.keys.truncate(shown);
            if answer != 0 {
                break;
            }
        }
        Ok(seen)
    }
}

fn known<T>(helper: &'static str, fact: &'static str, value: Option<T>) -> Result<T, MachineFaultKind> {
    value.ok_or(MachineFaultKind::UnknownFact { helper, fact })
}

/// How two texts compare, as `strncmp` does: the first one ends at a zero byte or with its bytes.
fn compared(left: &[u8], right: &[u8]) -> u64 {
    for (index, byte) in left.iter().enumerate() {
        let other = right.get(index).copied().unwrap_or(0);
        if *byte != other {
            return i64::from(i32::from(*byte) - i32::from(other)) as u64;
        }
        if other == 0 {
            break;
        }
    }
    0
}
