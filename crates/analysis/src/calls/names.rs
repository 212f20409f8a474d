//! Names of calls, numbered, so that counting compares numbers.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::events::RoleEvent;
use crate::roles::{EventRole, syscall_entry, syscall_exit};
use crate::{FieldSlot, Setup, Wishes};

/// A call: a name that classes of events have, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(u32);

impl CallId {
    /// The event does not say which.
    pub const NONE: Self = Self(u32::MAX);
    // The upper half of the numbers is for calls without a name: one comparison tells the two
    // apart.
    const NUMBERED: u32 = 1 << 31;
}

/// The names of a trace's calls.
#[derive(Debug, Default)]
pub struct CallNames {
    /// In alphabetical order.
    names: Vec<String>,
    /// For each class of events and each of its roles.
    of_classes: Vec<Vec<ClassCall>>,
    by_name: HashMap<Vec<u8>, CallId>,
}

/// Which call an event of a class is.
#[derive(Clone, Copy, Debug)]
enum ClassCall {
    Always(CallId),
    /// What the event itself says.
    ByEvent,
}

impl CallNames {
    /// The names that a trace's classes have.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let slots =
            || setup.classes.iter().flat_map(|class| &class.roles).filter_map(|role| name_slot(role.role, &role.slots));
        let mut names: Vec<String> = slots().filter_map(text).collect();
        names.sort_unstable();
        names.dedup();
        let by_name: HashMap<Vec<u8>, CallId> =
            names.iter().enumerate().map(|(at, name)| (name.clone().into_bytes(), CallId(at as u32))).collect();
        let named = |slot: &FieldSlot| match text(slot).and_then(|name| by_name.get(name.as_bytes()).copied()) {
            Some(call) => ClassCall::Always(call),
            None => ClassCall::ByEvent,
        };
        let of_classes = setup
            .classes
            .iter()
            .map(|class| {
                let roles = class.roles.iter();
                roles.map(|role| name_slot(role.role, &role.slots).map_or(ClassCall::ByEvent, named)).collect()
            })
            .collect();
        Self { names, of_classes, by_name }
    }

    /// The call that an event is about; `place`: of the role among those of the event's class.
    #[inline]
    #[must_use]
    pub fn call(&self, meaning: &RoleEvent<'_>, place: usize) -> CallId {
        match self.of_classes[meaning.event.number][place] {
            ClassCall::Always(call) => call,
            ClassCall::ByEvent => self.said(meaning),
        }
    }

    #[cold]
    fn said(&self, meaning: &RoleEvent<'_>) -> CallId {
        let (name, number) = match meaning.role {
            EventRole::SyscallEntry => (syscall_entry::ENTRY_NAME, syscall_entry::ENTRY_NUMBER),
            _ => (syscall_exit::EXIT_NAME, syscall_exit::EXIT_NUMBER),
        };
        if let Some(call) = meaning.text(name).and_then(|name| self.by_name.get(name)) {
            return *call;
        }
        let number = meaning.integer(number).and_then(|number| u32::try_from(number).ok());
        number
            // The highest number would be equal to `NONE`.
            .filter(|&number| number < CallId::NUMBERED - 1)
            .map_or(CallId::NONE, |number| CallId(CallId::NUMBERED | number))
    }

    /// The name of a call; empty if the event does not say which it is.
    #[must_use]
    pub fn name(&self, call: CallId) -> String {
        match self.names.get(call.0 as usize) {
            Some(name) => name.clone(),
            None if call == CallId::NONE => String::new(),
            None => (call.0 & !CallId::NUMBERED).to_string(),
        }
    }

    /// The wanted calls, where these are not all, in order: those with names, and those that are
    /// called by their numbers.
    #[must_use]
    pub fn wanted(&self, wishes: &Wishes) -> Option<Vec<CallId>> {
        if wishes.names.is_empty() {
            return None;
        }
        let numbered = |name: &String| name.parse().ok().filter(|&number: &u32| number < CallId::NUMBERED - 1);
        let mut calls: Vec<CallId> =
            self.named().filter(|(_, name)| wishes.wants_called(name)).map(|(call, _)| call).collect();
        calls.extend(wishes.names.iter().filter_map(numbered).map(|number| CallId(CallId::NUMBERED | number)));
        calls.extend(wishes.wants_called("").then_some(CallId::NONE));
        calls.sort_unstable();
        Some(calls)
    }

    /// A call by its place among the names, which come first.
    pub fn named(&self) -> impl Iterator<Item = (CallId, &str)> {
        self.names.iter().enumerate().map(|(at, name)| (CallId(at as u32), name.as_str()))
    }
}

impl CallId {
    /// The one of the names at this place.
    #[must_use]
    pub fn at(place: usize) -> Self {
        Self(place as u32)
    }

    /// Its place, if it is one of the names.
    #[must_use]
    pub fn place(self) -> Option<usize> {
        (self.0 < Self::NUMBERED).then_some(self.0 as usize)
    }
}

fn name_slot(role: EventRole, slots: &[FieldSlot]) -> Option<&FieldSlot> {
    match role {
        EventRole::SyscallEntry => slots.get(syscall_entry::ENTRY_NAME),
        EventRole::SyscallExit => slots.get(syscall_exit::EXIT_NAME),
        _ => None,
    }
}

fn text(slot: &FieldSlot) -> Option<String> {
    match slot {
        FieldSlot::Text(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}
