//! The meanings of events for analyses, independent of their names in a tracer.
//!
//! ```text
//! sched_switch           prev_tid ──┐                       ┌── Cpu
//! sched:sched_switch     prev_pid ──┼──> Role::Switch ──────┼── Sched
//! my_rtos:task_resumed   from ──────┘     PREV_TID, ...     └── Syscalls
//! ```
//!
//! An analysis asks for roles and their fields. A mapping says which events of a trace have a role,
//! and which of their fields are the role's; see [`crate::mapping`].

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventRole {
    /// A CPU stops running one thread and runs another.
    Switch,
    /// A thread is asked to run again, on the CPU of the thread that asks.
    Waking,
    /// A thread can run again: it waits for a CPU.
    Wakeup,
    /// A thread goes to another CPU.
    Migrate,
    /// A thread makes another one.
    Fork,
    /// A thread becomes another program.
    Exec,
    /// A thread ends.
    Exit,
    /// Nothing is left of a thread.
    Free,
    /// A thread has another priority from now on.
    Priority,
    /// A thread has another name from now on.
    Rename,
    /// A thread that existed before the trace began.
    ThreadState,
    /// A thread asks something of the kernel.
    SyscallEntry,
    /// The kernel answers.
    SyscallExit,
    /// A CPU begins to serve a device's interrupt.
    IrqEntry,
    /// It is done.
    IrqExit,
    /// Work is put off until a softirq.
    SoftirqRaise,
    /// A CPU begins with such work.
    SoftirqEntry,
    /// It is done.
    SoftirqExit,
    /// A request to a block device is queued.
    BlockInsert,
    /// A request goes to its device.
    BlockIssue,
    /// A device is done with a request.
    BlockComplete,
    /// A packet is handed to a network interface.
    NetSend,
    /// A network interface got a packet.
    NetReceive,
    /// Pages of memory are taken.
    PageAlloc,
    /// Pages of memory are given back.
    PageFree,
    /// A file that a process had open before the trace began.
    FileState,
    /// A disk that existed before the trace began.
    DiskState,
    /// A network interface that existed before the trace began.
    InterfaceState,
    /// Something begins; its end has the same key.
    Begin,
    /// It ends.
    End,
    /// A number has another value from now on.
    Counter,
    /// A component is in another state from now on.
    State,
    /// Something is sent; the event that receives it has the same key.
    Send,
    /// It is received.
    Receive,
    /// A request of io_uring is submitted, or refused at once.
    UringSubmit,
    /// It is handed over to a worker thread.
    UringQueue,
    /// The file that it is about is looked up.
    UringFile,
    /// It completes, or tells one of several results.
    UringComplete,
    /// A thread makes or uses a ring of io_uring.
    UringRing,
    /// A thread has this call stack, by its number.
    CallStack,
    /// A rule of an own analysis: see [`crate::declared`]. Mappings do not know it, and an event
    /// may have it several times.
    Rule,
}

/// The facts about a role.
#[derive(Debug)]
pub struct RoleFacts {
    /// The role.
    pub role: EventRole,
    /// As mappings write it.
    pub name: &'static str,
    /// Its meaning, in a line.
    pub meaning: &'static str,
    /// Its own fields.
    pub fields: &'static [FieldFacts],
}

/// A field that a role may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldFacts {
    /// As mappings write it.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: RoleFieldKind,
    /// An event without it has not the role.
    pub is_required: bool,
}

/// The kinds of values of a role's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleFieldKind {
    /// Integers.
    Integer,
    /// Texts.
    Text,
    /// Integers or texts, as the trace has them.
    Either,
    /// Integers or real numbers.
    Number,
}

/// A field of a role: its place among [`RoleFacts::fields`].
pub type FieldIndex = usize;

/// Fields that an event may have beside those of its role: the CPU and the thread that were there
/// when it happened.
pub const CONTEXT: &[FieldFacts] = &[integer("cpu"), integer("tid"), integer("pid"), text("comm")];
/// The CPU that recorded the event; a place in [`CONTEXT`], as those that follow.
pub const CPU: FieldIndex = 0;
/// The thread that was running.
pub const TID: FieldIndex = 1;
/// Its process.
pub const PID: FieldIndex = 2;
/// Its name.
pub const COMM: FieldIndex = 3;

const fn integer(name: &'static str) -> FieldFacts {
    FieldFacts { name, kind: RoleFieldKind::Integer, is_required: false }
}

const fn text(name: &'static str) -> FieldFacts {
    FieldFacts { name, kind: RoleFieldKind::Text, is_required: false }
}

const fn either(name: &'static str) -> FieldFacts {
    FieldFacts { name, kind: RoleFieldKind::Either, is_required: false }
}

const fn number(name: &'static str) -> FieldFacts {
    FieldFacts { name, kind: RoleFieldKind::Number, is_required: false }
}

const fn required(fact: FieldFacts) -> FieldFacts {
    FieldFacts { is_required: true, ..fact }
}

macro_rules! fields {
    ($module:ident: $($index:ident $fact:expr;)*) => {
        /// Places of the role's fields.
        #[allow(missing_docs, reason = "a field's meaning is its name's, as tracers use it")]
        pub mod $module {
            use super::{FieldFacts, FieldIndex, either, integer, number, required, text};
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "places as constants")]
            enum Places { $($index),* }
            $(pub const $index: FieldIndex = Places::$index as FieldIndex;)*
            pub(super) const FACTS: &[FieldFacts] = &[$($fact),*];
            // Not every group has fields of all kinds.
            #[allow(clippy::needless_pass_by_value, reason = "a name of static life is a reference")]
            const _: [fn(&'static str) -> FieldFacts; 4] = [|name| required(integer(name)), text, either, number];
        }
    };
}

fields! { switch:
    PREV_TID required(integer("prev_tid"));
    PREV_STATE integer("prev_state");
    NEXT_TID required(integer("next_tid"));
    PREV_COMM text("prev_comm");
    NEXT_COMM text("next_comm");
    PREV_PRIO integer("prev_prio");
    NEXT_PRIO integer("next_prio");
}
fields! { wake:
    WOKEN_TID required(integer("woken_tid"));
    WOKEN_COMM text("woken_comm");
    WOKEN_PRIO integer("woken_prio");
    TARGET_CPU integer("target_cpu");
}
fields! { migrate:
    MOVED_TID required(integer("moved_tid"));
    FROM_CPU integer("from_cpu");
    TO_CPU integer("to_cpu");
}
fields! { fork:
    CHILD_TID required(integer("child_tid"));
    CHILD_PID integer("child_pid");
    CHILD_COMM text("child_comm");
    PARENT_TID integer("parent_tid");
    PARENT_PID integer("parent_pid");
}
fields! { exec:
    EXEC_TID integer("exec_tid");
    EXEC_COMM text("exec_comm");
    FILENAME text("filename");
}
fields! { exit:
    EXITED_TID required(integer("exited_tid"));
    EXITED_COMM text("exited_comm");
}
fields! { priority:
    CHANGED_TID required(integer("changed_tid"));
    NEW_PRIO integer("new_prio");
    NEW_COMM text("new_comm");
}
fields! { thread_state:
    KNOWN_TID required(integer("known_tid"));
    KNOWN_PID integer("known_pid");
    KNOWN_PPID integer("known_ppid");
    KNOWN_COMM text("known_comm");
    KNOWN_CPU integer("known_cpu");
    KNOWN_FILE_TABLE integer("known_file_table");
}
fields! { syscall_entry:
    ENTRY_NAME text("syscall");
    ENTRY_NUMBER integer("number");
    FD integer("fd");
    OTHER_FD integer("other_fd");
    COUNT integer("count");
    PATH text("path");
    FLAGS integer("flags");
    FAMILY integer("family");
    COMMAND integer("command");
}
fields! { syscall_exit:
    EXIT_NAME text("syscall");
    EXIT_NUMBER integer("number");
    RET integer("ret");
    NEW_FD integer("new_fd");
    NEW_OTHER_FD integer("new_other_fd");
    TOOK_NS integer("took_ns");
}
fields! { irq:
    IRQ required(integer("irq"));
    IRQ_NAME text("irq_name");
    IRQ_RET integer("irq_ret");
}
fields! { softirq:
    VEC required(integer("vec"));
}
fields! { block:
    DEV required(integer("dev"));
    SECTOR required(integer("sector"));
    SECTORS integer("sectors");
    BYTES integer("bytes");
    RWBS either("rwbs");
    BLOCK_TID integer("block_tid");
    BLOCK_COMM text("block_comm");
    ERROR integer("error");
}
fields! { net:
    INTERFACE text("interface");
    LENGTH required(integer("length"));
}
fields! { page:
    ORDER integer("order");
}
fields! { file_state:
    FILE_PID integer("file_pid");
    FILE_FD required(integer("file_fd"));
    FILE_PATH text("file_path");
    FILE_TABLE integer("file_table");
}
fields! { disk_state:
    DISK_DEV required(integer("disk_dev"));
    DISK_NAME text("disk_name");
}
fields! { interface_state:
    INTERFACE_NAME text("interface_name");
}
// An end belongs to the last begin of the same group, key and place (`within`) that has no end yet.
fields! { pair:
    KEY either("key");
    PAIR_NAME either("name");
    WITHIN either("within");
    GROUP either("group");
}

// Counters of the same name are one, but for those of another place.
fields! { counter:
    COUNTER_NAME required(either("name"));
    COUNTER_VALUE required(number("value"));
    COUNTER_WITHIN either("within");
    COUNTER_UNIT text("unit");
}

// Components of the same name are one, but for those of another place or group. Without a state, it is in none from then on.
fields! { state:
    COMPONENT required(either("name"));
    STATE either("state");
    STATE_WITHIN either("within");
    STATE_GROUP either("group");
}

// What is received was sent with the same group, key and place (`within`), the oldest first; `count` of them at once. Where clocks of
// senders and receivers disagree, and keys are those of one message, a receive may be up to `early` nanoseconds before its send.
fields! { message:
    MESSAGE_KEY required(either("key"));
    MESSAGE_NAME either("name");
    MESSAGE_WITHIN either("within");
    MESSAGE_GROUP either("group");
    MESSAGE_COUNT integer("count");
    MESSAGE_EARLY integer("early");
}

// All roles of io_uring. A request is known by its address, which is used again; `by_kernel`: a thread of the kernel submits for the
// process that has the ring.
fields! { uring:
    RING required(integer("ring"));
    REQUEST integer("request");
    USER_DATA integer("user_data");
    OPCODE either("opcode");
    REQUEST_FLAGS integer("request_flags");
    BY_KERNEL integer("by_kernel");
    RESULT integer("result");
    RESULT_FLAGS integer("result_flags");
    RING_FD integer("ring_fd");
}

// Stacks are numbered for each trace. Kinds: `sample`, where the CPU is busy; `wait`, where the thread stops running; `waker`, where it
// wakes another one; any other one: the stack of an event, by its number.
fields! { call_stack:
    STACK required(integer("stack"));
    STACK_TID required(integer("stack_tid"));
    STACK_PID integer("stack_pid");
    STACK_KIND text("kind");
    STACK_EVENT integer("stack_event");
    STACK_WOKEN integer("woken_tid");
}

fields! { rule:
    NUMBER required(integer("number"));
    VALUE either("value");
    KEY_1 either("key1");
    KEY_2 either("key2");
    KEY_3 either("key3");
    KEY_4 either("key4");
    KEY_5 either("key5");
    KEY_6 either("key6");
    KEY_7 either("key7");
    KEY_8 either("key8");
}

const RULE: RoleFacts = facts(EventRole::Rule, "rule", "a rule of a declared analysis", rule::FACTS);

/// All roles that mappings know, in the order of [`EventRole`].
pub const ROLES: &[RoleFacts] = &[
    facts(EventRole::Switch, "thread_switch", "a CPU stops running one thread and runs another", switch::FACTS),
    facts(EventRole::Waking, "thread_waking", "a thread is asked to run again, on the CPU of the waker", wake::FACTS),
    facts(EventRole::Wakeup, "thread_wakeup", "a thread can run again: it waits for a CPU", wake::FACTS),
    facts(EventRole::Migrate, "thread_migrate", "a thread goes to another CPU", migrate::FACTS),
    facts(EventRole::Fork, "thread_fork", "a thread makes another one", fork::FACTS),
    facts(EventRole::Exec, "thread_exec", "a thread becomes another program", exec::FACTS),
    facts(EventRole::Exit, "thread_exit", "a thread ends", exit::FACTS),
    facts(EventRole::Free, "thread_free", "nothing is left of a thread", exit::FACTS),
    facts(EventRole::Priority, "thread_priority", "a thread has another priority from now on", priority::FACTS),
    facts(EventRole::Rename, "thread_rename", "a thread has another name from now on", priority::FACTS),
    facts(EventRole::ThreadState, "thread_state", "a thread that existed before the trace began", thread_state::FACTS),
    facts(EventRole::SyscallEntry, "syscall_entry", "a thread asks something of the kernel", syscall_entry::FACTS),
    facts(EventRole::SyscallExit, "syscall_exit", "the kernel answers", syscall_exit::FACTS),
    facts(EventRole::IrqEntry, "irq_entry", "a CPU begins to serve a device's interrupt", irq::FACTS),
    facts(EventRole::IrqExit, "irq_exit", "it is done with it", irq::FACTS),
    facts(EventRole::SoftirqRaise, "softirq_raise", "work is put off until a softirq", softirq::FACTS),
    facts(EventRole::SoftirqEntry, "softirq_entry", "a CPU begins with such work", softirq::FACTS),
    facts(EventRole::SoftirqExit, "softirq_exit", "it is done with it", softirq::FACTS),
    facts(EventRole::BlockInsert, "block_insert", "a request to a block device is queued", block::FACTS),
    facts(EventRole::BlockIssue, "block_issue", "a request goes to its device", block::FACTS),
    facts(EventRole::BlockComplete, "block_complete", "a device is done with a request", block::FACTS),
    facts(EventRole::NetSend, "net_send", "a packet is handed to a network interface", net::FACTS),
    facts(EventRole::NetReceive, "net_receive", "a network interface got a packet", net::FACTS),
    facts(EventRole::PageAlloc, "page_alloc", "pages of memory are taken", page::FACTS),
    facts(EventRole::PageFree, "page_free", "pages of memory are given back", page::FACTS),
    facts(EventRole::FileState, "file_state", "a file that a process had open before", file_state::FACTS),
    facts(EventRole::DiskState, "disk_state", "a disk that existed before the trace began", disk_state::FACTS),
    facts(
        EventRole::InterfaceState,
        "interface_state",
        "a network interface that existed before",
        interface_state::FACTS,
    ),
    facts(EventRole::Begin, "begin", "something begins; its end has the same key", pair::FACTS),
    facts(EventRole::End, "end", "it ends", pair::FACTS),
    facts(EventRole::Counter, "counter", "a number has another value from now on", counter::FACTS),
    facts(EventRole::State, "state", "a component is in another state from now on", state::FACTS),
    facts(EventRole::Send, "send", "a message is sent; the receive event has the same key", message::FACTS),
    facts(EventRole::Receive, "receive", "it is received", message::FACTS),
    facts(EventRole::UringSubmit, "uring_submit", "a request of io_uring is submitted, or refused", uring::FACTS),
    facts(EventRole::UringQueue, "uring_queue", "it is handed over to a worker thread", uring::FACTS),
    facts(EventRole::UringFile, "uring_file", "the file that it is about is looked up", uring::FACTS),
    facts(EventRole::UringComplete, "uring_complete", "it completes, or tells one of its results", uring::FACTS),
    facts(EventRole::UringRing, "uring_ring", "a thread makes or uses a ring of io_uring", uring::FACTS),
    facts(EventRole::CallStack, "call_stack", "a thread has this call stack, by its number", call_stack::FACTS),
];

const fn facts(role: EventRole, name: &'static str, meaning: &'static str, fields: &'static [FieldFacts]) -> RoleFacts {
    RoleFacts { role, name, meaning, fields }
}

impl EventRole {
    /// The facts about it.
    #[must_use]
    pub fn facts(self) -> &'static RoleFacts {
        if self == Self::Rule { &RULE } else { &ROLES[self as usize] }
    }

    /// As mappings write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether events of the role say which threads, files and devices there are, and which thread a CPU runs. What
    /// analyses say of an event depends on all of these before it.
    #[must_use]
    pub fn tells_of_threads(self) -> bool {
        use EventRole::{
            DiskState, Exec, Exit, FileState, Fork, Free, InterfaceState, Migrate, Priority, Rename, Switch,
            ThreadState,
        };
        let of_threads = matches!(self, Switch | Migrate | Fork | Exec | Exit | Free | Priority | Rename | ThreadState);
        of_threads || matches!(self, FileState | DiskState | InterfaceState)
    }

    /// The role of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ROLES.iter().find(|facts| facts.name == name).map(|facts| facts.role)
    }

    /// The place of one of its own fields.
    #[must_use]
    pub fn field(self, name: &str) -> Option<FieldIndex> {
        self.facts().fields.iter().position(|field| field.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_stand_where_they_are_looked_for() {
        for (place, facts) in ROLES.iter().enumerate() {
            assert_eq!(facts.role as usize, place, "{}", facts.name);
            assert_eq!(EventRole::named(facts.name), Some(facts.role));
        }
        assert_eq!(EventRole::Switch.field("next_tid"), Some(switch::NEXT_TID));
        assert_eq!(EventRole::SyscallExit.field("ret"), Some(syscall_exit::RET));
    }
}
