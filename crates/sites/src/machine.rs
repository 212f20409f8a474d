//! Processors, and the kernel's names of their registers.

/// Registers of x86-64 for arguments that are integers or addresses.
pub(crate) const X86_INTEGERS: [&str; 6] = ["di", "si", "dx", "cx", "r8", "r9"];

/// Names of registers of aarch64 by their number.
pub(crate) const ARM: [&str; 31] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
    "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30",
];

/// Processors whose registers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86,
    /// 64-bit ARM.
    Arm,
}

impl Machine {
    /// The register of an argument that is an integer or an address, from 1.
    ///
    /// ```
    /// assert_eq!(kymo_sites::Machine::X86.argument(1), Some("di"));
    /// ```
    #[must_use]
    pub fn argument(self, number: usize) -> Option<&'static str> {
        let registers = match self {
            Self::X86 => &X86_INTEGERS[..],
            Self::Arm => &ARM[..8],
        };
        registers.get(number.checked_sub(1)?).copied()
    }
}
