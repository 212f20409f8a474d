//! A program that lies: whatever is in its memory, the recorder stays within it, and ends.

use std::cell::RefCell;

use kymo_lane::{ABI, DefinitionPlace, LayoutRefusal, MAGIC, MemoryLayout, MemoryView, RecorderSide};

/// Memory that ends.
struct Bytes(RefCell<Vec<u8>>);

/// It was asked for something that is not there.
#[derive(Debug)]
struct Beyond;

impl Bytes {
    fn range(&self, at: u64, bytes: usize) -> Result<std::ops::Range<usize>, Beyond> {
        let begin = usize::try_from(at).map_err(|_| Beyond)?;
        let end = begin.checked_add(bytes).filter(|end| *end <= self.0.borrow().len()).ok_or(Beyond)?;
        Ok(begin..end)
    }
}

impl MemoryView for &Bytes {
    type Fault = Beyond;

    fn word(&self, at: u64) -> Result<u64, Beyond> {
        let mut word = [0; 8];
        self.copy(at, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn copy(&self, at: u64, into: &mut [u8]) -> Result<(), Beyond> {
        into.copy_from_slice(&self.0.borrow()[self.range(at, into.len())?]);
        Ok(())
    }

    fn fence(&self) {}

    fn settle(&self) {}

    fn set_byte(&self, at: u64, value: u8) -> Result<(), Beyond> {
        let range = self.range(at, 1)?;
        self.0.borrow_mut()[range].fill(value);
        Ok(())
    }

    fn set_word(&self, at: u64, value: u64) -> Result<(), Beyond> {
        let range = self.range(at, 8)?;
        self.0.borrow_mut()[range].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }
}

/// A small generator: the same bytes each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

const LAYOUT: MemoryLayout = MemoryLayout {
    events: 16,
    lanes: 8,
    sub_buffers: 4,
    sub_buffer_bytes: 4096,
    registry_bytes: 4096,
    filter_bytes: 4096,
    object_bytes: 64 << 10,
};

/// Memory of that layout in which half of all bytes are nonsense.
fn nonsense(random: &mut Random) -> Bytes {
    let mut bytes = vec![0; LAYOUT.bytes() as usize];
    let share = random.next() % 4;
    bytes.iter_mut().filter(|_| share > 0).for_each(|byte| {
        let word = random.next();
        *byte = if word % 4 < share { (word >> 8) as u8 } else { (word >> 8) as u8 % 4 };
    });
    // Words that could be some are nonsense of another kind.
    let mut words = |begin: usize, end: usize, step: usize, make: fn(u64) -> u64| {
        for at in (begin..end).step_by(step) {
            let word = make(random.next());
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    };
    let descriptors = 3 * 4096;
    words(descriptors, descriptors + 4 * 128, 128, |any| {
        (any % 5) | (((any >> 8) % 10) << 16) | (((any >> 16) % 3) << 32)
    });
    words(descriptors + 8, descriptors + 4 * 128, 128, |any| ((any % 8192) << 32) | (any >> 40));
    words(8 * 4096, 9 * 4096, 8 + 8 * (share as usize), |any| {
        ((any & 1) << 63) | (((any >> 1) % 20) << 32) | ((any >> 8) % 100)
    });
    let sizes = [MAGIC, ABI, 16, 8, 4, 4096, 4096];
    sizes.into_iter().zip(bytes.chunks_mut(8)).for_each(|(size, word)| word.copy_from_slice(&size.to_le_bytes()));
    bytes[72..80].copy_from_slice(&4096_u64.to_le_bytes());
    bytes[384..392].copy_from_slice(&u64::from(LAYOUT.object_bytes).to_le_bytes());
    Bytes(RefCell::new(bytes))
}

#[test]
fn nothing_beyond_is_asked_for() {
    let mut random = Random(7);
    let (mut seen, mut defined, mut path) = (0, 0, [0; 100]);
    for _ in 0..3000 {
        let bytes = nonsense(&mut random);
        let layout = MemoryLayout::read(&&bytes, LAYOUT.bytes()).expect("it is there");
        assert_eq!(layout, Ok(LAYOUT));
        let recorder = RecorderSide::new(&bytes, LAYOUT);
        for number in 0..LAYOUT.sub_buffers {
            let Some(found) = recorder.look(number).expect("it is there") else { continue };
            seen += 1;
            assert!(found.bytes <= LAYOUT.sub_buffer_bytes && u32::from(found.lane) < LAYOUT.lanes);
            let from = random.next() as u32;
            recorder.copy(&found, from % 5000, &mut [0; 5000]).expect("it is there");
            recorder.losses(found.lane).expect("it is there");
            recorder.free(&found).expect("it is there");
            assert_eq!(recorder.look(number).expect("it is there"), None, "it is free");
        }
        let mut last: Option<DefinitionPlace> = None;
        while let Some(definition) = recorder.definition(last.as_ref()).expect("it is there") {
            defined += 1;
            recorder.said(&definition, &mut [0; 8192]).expect("it is there");
            assert!(u32::from(definition.id) < LAYOUT.events);
            last = Some(definition);
        }
        recorder.discarded().expect("it is there");
        assert!(recorder.ready().expect("it is there") <= LAYOUT.sub_buffers);
        let identity = recorder.identity(&mut path).expect("it is there");
        assert!(identity.path.len() + identity.label.len() <= 100);
        for slot in 0..=u8::MAX {
            recorder.runs(slot).expect("it is there");
            recorder.said_code(slot).expect("it is there");
        }
        for lane in 0..LAYOUT.lanes as u16 {
            let holder = recorder.holder(lane).expect("it is there");
            holder.into_iter().for_each(|holder| recorder.release(lane, &holder).expect("it is there"));
            assert_eq!(recorder.holder(lane).expect("it is there"), None, "it is nobody's");
        }
        recorder.put_bytecode(random.next() as u32 % 5000, &[1; 100]).expect("it is there");
    }
    assert!(seen > 100 && defined > 10, "{seen} seen, {defined} defined");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let mut random = Random(9);
    let bytes = nonsense(&mut random);
    let read = |at: usize, value: u64, length: u64| {
        let changed = Bytes(RefCell::new(bytes.0.borrow().clone()));
        changed.0.borrow_mut()[at..at + 8].copy_from_slice(&value.to_le_bytes());
        MemoryLayout::read(&&changed, length).expect("it is there")
    };
    let all = LAYOUT.bytes();
    assert_eq!(read(0, MAGIC, all), Ok(LAYOUT));
    assert_eq!(read(0, 0, all), Err(LayoutRefusal::NoProgram), "it has not begun yet");
    assert_eq!(read(0, MAGIC, 100), Err(LayoutRefusal::NoProgram));
    assert_eq!(read(8, ABI + 1, all), Err(LayoutRefusal::Version(ABI + 1)));
    assert_eq!(read(24, 0, all), Err(LayoutRefusal::Size { what: "lanes", found: 0, most: 65535 }));
    assert_eq!(read(24, 1 << 40, all), Err(LayoutRefusal::Size { what: "lanes", found: 1 << 40, most: 65535 }));
    assert_eq!(
        read(40, 5000, all),
        Err(LayoutRefusal::Size { what: "bytes of a sub-buffer", found: 5000, most: 1 << 20 })
    );
    assert_eq!(
        read(32, (1 << 16) + 1, all),
        Err(LayoutRefusal::Size { what: "sub-buffers", found: (1 << 16) + 1, most: 1 << 16 })
    );
    let most = 16 << 20;
    assert_eq!(read(384, most + 1, all), Err(LayoutRefusal::Size { what: "bytes for objects", found: most + 1, most }));
    assert_eq!(read(384, 0, all), Ok(MemoryLayout { object_bytes: 0, ..LAYOUT }), "it is older, or has no room");
    let more = MemoryLayout { sub_buffers: 5, ..LAYOUT }.bytes();
    assert_eq!(read(32, 5, all), Err(LayoutRefusal::Size { what: "bytes of all", found: more, most: all }));
    {
        let mut words = bytes.0.borrow_mut();
        words[32..40].copy_from_slice(&(1_u64 << 11).to_le_bytes());
        words[40..48].copy_from_slice(&(1_u64 << 20).to_le_bytes());
    }
    let pool = LayoutRefusal::Size { what: "bytes of sub-buffers", found: 1 << 31, most: 1 << 30 };
    assert_eq!(MemoryLayout::read(&&bytes, u64::MAX).expect("it is there"), Err(pool));
}
