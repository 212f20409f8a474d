//! Entries of debug information, found by references between them, in units that are read when they are needed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, DwAt, Dwarf, EndianSlice, LittleEndian, Unit,
    UnitHeader, UnitOffset,
};

/// Bytes of a section.
pub(crate) type DebugBytes<'d> = EndianSlice<'d, LittleEndian>;
type DebugUnit<'d> = Unit<DebugBytes<'d>>;
pub(crate) type DebugEntry<'d> = DebuggingInformationEntry<DebugBytes<'d>>;

/// An entry says by others what it is: so many at most.
const ORIGINS_MAX: usize = 4;

/// All units.
pub(crate) struct DebugEntries<'d> {
    pub(crate) dwarf: Dwarf<DebugBytes<'d>>,
    /// With their offsets, in order.
    headers: Vec<(usize, UnitHeader<DebugBytes<'d>>)>,
    units: RefCell<HashMap<usize, Rc<DebugUnit<'d>>>>,
}

/// Where an entry is: the number of its unit, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    pub(crate) unit: usize,
    pub(crate) offset: UnitOffset,
}

impl<'d> DebugEntries<'d> {
    /// The units up to the first damaged one.
    pub(crate) fn of(dwarf: Dwarf<DebugBytes<'d>>) -> Self {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.extend(header.debug_info_offset().map(|offset| (offset.0, header)));
        }
        Self { dwarf, headers, units: RefCell::default() }
    }

    /// How many units there are.
    pub(crate) fn count(&self) -> usize {
        self.headers.len()
    }

    /// A unit; `None`: it is damaged.
    pub(crate) fn unit(&self, number: usize) -> Option<Rc<DebugUnit<'d>>> {
        if let Some(unit) = self.units.borrow().get(&number) {
            return Some(Rc::clone(unit));
        }
        let unit = Rc::new(self.dwarf.unit(self.headers.get(number)?.1).ok()?);
        self.units.borrow_mut().insert(number, Rc::clone(&unit));
        Some(unit)
    }

    /// Forgets units, which take memory.
    pub(crate) fn forget(&self) {
        self.units.borrow_mut().clear();
    }

    pub(crate) fn entry(&self, place: EntryPlace) -> Option<DebugEntry<'d>> {
        self.unit(place.unit)?.entry(place.offset).ok()
    }

    /// The entry that an attribute of an entry refers to.
    pub(crate) fn referred(&self, unit: usize, value: AttributeValue<DebugBytes<'d>>) -> Option<EntryPlace> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryPlace { unit, offset }),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                let number = self.headers.partition_point(|(begin, _)| *begin <= offset).checked_sub(1)?;
                let offset = DebugInfoOffset(offset).to_unit_offset(&self.headers[number].1)?;
                Some(EntryPlace { unit: number, offset })
            }
            _ => None,
        }
    }

    /// Where an attribute of an entry refers to.
    pub(crate) fn reference(&self, place: EntryPlace, name: DwAt) -> Option<EntryPlace> {
        self.referred(place.unit, self.entry(place)?.attr_value(name)?)
    }

    /// The attribute of an entry, or of the entry that describes it, with the unit that it is in.
    pub(crate) fn inherited(
        &self,
        mut place: EntryPlace,
        name: DwAt,
    ) -> Option<(usize, AttributeValue<DebugBytes<'d>>)> {
        for _ in 0..ORIGINS_MAX {
            let entry = self.entry(place)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((place.unit, value));
            }
            place = self.origin(place, &entry)?;
        }
        None
    }

    /// The entry that describes one.
    pub(crate) fn origin(&self, place: EntryPlace, entry: &DebugEntry<'d>) -> Option<EntryPlace> {
        let value = entry.attr_value(gimli::DW_AT_abstract_origin).or(entry.attr_value(gimli::DW_AT_specification))?;
        self.referred(place.unit, value)
    }

    pub(crate) fn text(&self, unit: usize, value: AttributeValue<DebugBytes<'d>>) -> Option<String> {
        let text = self.dwarf.attr_string(&*self.unit(unit)?, value).ok()?;
        text.to_string().ok().map(str::to_owned)
    }

    /// The entries right below one, up to so many.
    pub(crate) fn children(&self, place: EntryPlace, most: usize) -> Vec<DebugEntry<'d>> {
        let Some(unit) = self.unit(place.unit) else { return Vec::new() };
        let Ok(mut tree) = unit.entries_tree(Some(place.offset)) else { return Vec::new() };
        let Ok(root) = tree.root() else { return Vec::new() };
        let (mut children, mut all) = (root.children(), Vec::new());
        while all.len() < most
            && let Ok(Some(child)) = children.next()
        {
            all.push(child.entry().clone());
        }
        all
    }
}
