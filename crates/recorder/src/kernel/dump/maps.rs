//! Mapped files with code of processes: with them, addresses of code become names.

use std::fs;

use kymo_ftrace::fields::KernelValue;

use super::{StateEvent, event};

/// Maps of a process at most.
pub(super) const MAPS_MAX: usize = 512;

/// A map of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kernel) struct CodeMap {
    pub(in crate::kernel) start: u64,
    pub(in crate::kernel) end: u64,
    pub(in crate::kernel) flags: u64,
    pub(in crate::kernel) offset: u64,
    pub(in crate::kernel) inode: u64,
    pub(in crate::kernel) path: String,
}

/// Tells maps with code of a process, as far as this user may see them.
pub(super) fn tell(pid: u32, tell: &mut impl FnMut(StateEvent)) {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(CodeMap::read).take(MAPS_MAX).for_each(|map| tell(map.event(pid)));
}

/// The map of this process with such a path.
pub(super) fn own(path: &str) -> Option<CodeMap> {
    let text = fs::read("/proc/self/maps").ok()?;
    String::from_utf8_lossy(&text).lines().filter_map(CodeMap::read).find(|map| map.path == path)
}

impl CodeMap {
    pub(super) fn event(&self, pid: u32) -> StateEvent {
        let told = event("lttng_statedump_vm_map", |fields| {
            fields.add("pid", KernelValue::I32(pid as i32));
            fields.add("start", KernelValue::Hex(self.start));
            fields.add("end", KernelValue::Hex(self.end));
            fields.add("flags", KernelValue::Hex(self.flags));
            fields.add("inode", KernelValue::U64(self.inode));
            fields.add("pgoff", KernelValue::U64(self.offset));
            fields.add("filename", KernelValue::Text(&self.path));
        });
        StateEvent { code: Some((pid, self.clone())), ..told }
    }

    /// Reads a line; `None`: it has no code, or is none.
    fn read(line: &str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (modes, rest) = rest.split_once(' ')?;
        // Read, write, execute, share.
        let flags = modes.bytes().zip(0..4).filter(|(mode, _)| !matches!(mode, b'-' | b'p'));
        let flags = flags.fold(0, |flags, (_, bit)| flags | 1 << bit);
        if flags & 1 << 2 == 0 {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (offset, rest) = rest.split_once(' ')?;
        let (_, rest) = rest.split_once(' ')?;
        let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            flags,
            offset: number(offset)?,
            inode: inode.parse().ok()?,
            path: path.trim_start().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "55827f8e3000-55827f8e9000 r-xp 00002000 fe:00 247278                     /usr/bin/a b";
        let map = CodeMap::read(line).expect("it is one");
        let wanted = CodeMap {
            start: 0x5582_7f8e_3000,
            end: 0x5582_7f8e_9000,
            flags: 5,
            offset: 0x2000,
            inode: 247_278,
            path: "/usr/bin/a b".to_owned(),
        };
        assert_eq!(map, wanted);
        assert_eq!(
            CodeMap::read("7f00-7f10 rwxs 0 00:00 0 ").map(|map| (map.flags, map.path)),
            Some((15, String::new()))
        );
        assert_eq!(CodeMap::read("7f00-7f10 rw-p 0 00:00 0 "), None);
        assert_eq!(CodeMap::read("7f00 r-xp"), None);
    }

    #[test]
    fn code_of_this_process_is_there() {
        let mut events = 0;
        tell(std::process::id(), &mut |_| events += 1);
        assert!(events >= 1);
    }
}
