//! What an event costs that a thread writes to its lane, nobody draining, in overwrite mode: `cargo run --release --example lane_speed`.
//!
//! Medians of 15 runs of 2 million, in ns: the clock alone, and events of 10 bytes (id, low ticks, u32).

#![allow(unsafe_code, reason = "memory is mapped here")]

use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Instant;

use kymo_lane::{
    Identity, Lane, Mapped, MemoryLayout, MemoryView, OverflowMode, ProgramMemory, ProgramSide, RecorderSide,
    RecordingSettings, WriterThread,
};

const EVENTS: u32 = 2_000_000;

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    let ticks: u64;
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks) };
    ticks
}

struct Own<'a>(&'a Mapped);

impl MemoryView for Own<'_> {
    type Fault = ();

    fn word(&self, at: u64) -> Result<u64, ()> {
        Ok(self.0.load(at, Ordering::Acquire))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), ()> {
        into.iter_mut().zip(at..).for_each(|(into, at)| *into = self.0.byte(at));
        Ok(())
    }

    fn fence(&self) {}

    fn settle(&self) {}

    fn set_byte(&self, at: u64, value: u8) -> Result<(), ()> {
        self.0.store(at, value.into(), Ordering::Release);
        Ok(())
    }

    fn set_word(&self, at: u64, value: u64) -> Result<(), ()> {
        self.0.store(at, value, Ordering::Relaxed);
        Ok(())
    }
}

#[inline(never)]
fn write(program: &ProgramSide<'_, Mapped>, lane: &mut Lane, busy: &mut usize) {
    for value in 0..EVENTS {
        unsafe { (busy as *mut usize).write_volatile(1) };
        compiler_fence(Ordering::SeqCst);
        if let Some(slot) = program.room(lane, 0, 10, ticks) {
            program.put(slot.at, &7_u16.to_le_bytes());
            program.put(slot.at + 2, &(slot.ticks as u32).to_le_bytes());
            program.put(slot.at + 6, &value.to_le_bytes());
            program.publish(lane, slot);
        }
        compiler_fence(Ordering::SeqCst);
        unsafe { (busy as *mut usize).write_volatile(0) };
    }
}

fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed().as_nanos() as f64 / f64::from(EVENTS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[7]
}

fn main() {
    let layout = MemoryLayout { sub_buffers: 64, ..MemoryLayout::default() };
    let mut memory = vec![0_u64; layout.bytes() as usize / 8 + 512];
    let base = memory.as_mut_ptr().cast::<u8>();
    let base = unsafe { base.add(base.align_offset(4096)) };
    let mapped = unsafe { Mapped::new(base, |_, _| true, || false) };
    let program = ProgramSide::begin(&mapped, layout, &Identity::default()).expect("there is memory");
    RecorderSide::new(Own(&mapped), layout)
        .say(&RecordingSettings { mode: OverflowMode::OverwriteOldest, lane: 32, pool: 64, contexts: 0 })
        .expect("it is mapped");
    let mut lane = program.lane(WriterThread::default()).expect("there are many");
    let mut busy = 0;
    let clock = median(|| (0..EVENTS).for_each(|_| _ = std::hint::black_box(ticks())));
    println!("clock {clock:.2} ns, event of 10 bytes {:.2} ns", median(|| write(&program, &mut lane, &mut busy)));
}
