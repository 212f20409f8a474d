//! Bounds of a thread's stack, read from the kernel without allocating memory.

use crate::place::Descriptor;

/// Bounds of a thread's stack; all zeros: not looked up yet.
#[derive(Debug)]
pub(crate) struct StackBounds {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    /// Number of lookups.
    asked: u32,
}

/// Maximum number of lookups. A thread that switches stacks all the time gets no return addresses.
const ASKED_MAX: u32 = 16;

impl StackBounds {
    /// Whether `other` and `here` are on the same stack.
    pub(crate) fn has(&mut self, other: usize, here: usize) -> bool {
        ((self.begin..self.end).contains(&here) || self.find(here)) && (self.begin..self.end).contains(&other)
    }

    /// Looks up the bounds in `/proc/self/maps`, without allocating memory.
    #[cold]
    pub(crate) fn find(&mut self, here: usize) -> bool {
        if self.asked == ASKED_MAX {
            return false;
        }
        self.asked += 1;
        let Some(file) = Descriptor::open(c"/proc/self/maps", libc::O_RDONLY | libc::O_CLOEXEC) else { return false };
        let mut buffer = [0; 1024];
        let (mut numbers, mut field, mut is_number) = ([0_usize; 2], 0, true);
        loop {
            let read = file.read(&mut buffer);
            if read == 0 {
                return false;
            }
            for byte in &buffer[..read] {
                match byte {
                    b'\n' => (numbers, field, is_number) = ([0; 2], 0, true),
                    b'-' if is_number => field = 1,
                    _ if !is_number => {}
                    _ => match (*byte as char).to_digit(16) {
                        Some(digit) => numbers[field] = numbers[field] << 4 | digit as usize,
                        None => {
                            is_number = false;
                            if (numbers[0]..numbers[1]).contains(&here) {
                                [self.begin, self.end] = numbers;
                                return true;
                            }
                        }
                    },
                }
            }
        }
    }
}
