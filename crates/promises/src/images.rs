//! Programs of eBPF do the same as images in traced programs, interpreted and as machine code, as in the evaluator: results, where and why
//! they stop, contexts and maps.

use std::sync::atomic::{AtomicU64, Ordering};

use kymo_bytecode::object::{
    EventArguments, FRAME_BYTES, ImageMapKind, NativeMemory, NativeRun, ObjectChange, ObjectFact, ObjectImage,
    ObjectStop, ObjectStopKind, ObjectSurroundings,
};
use kymo_ir::machine::{
    BpfMachine, BpfMapType, MachineFault, MachineFaultKind, MachineProgram, MapDefinition, RunInput, RunMoment,
};
use kymo_jit::{LoadedCode, NativeTarget, TracedPlaces, compile_traced};
use kymo_lane::{MemoryLayout, OBJECTS_BYTES, ObjectUser, PlacedMap, ProgramMemory, ProgramSide, SharedMap};
use kymo_random::RandomNumbers;
use kymo_random::machine::{CONTEXT_BYTES, MachineTrial, ProgramOptions, maps, program, text};
use kymo_recorder::user_programs::machine_image;

/// The error of a table that is in use.
const BUSY: i64 = -16;
/// Runs of a program.
const RUNS: usize = 4;
const LAYOUT: MemoryLayout = MemoryLayout {
    events: 1,
    lanes: 1,
    sub_buffers: 1,
    sub_buffer_bytes: 1024,
    registry_bytes: 4096,
    filter_bytes: 4096,
    object_bytes: OBJECTS_BYTES as u32,
};

/// Words that nobody else has, from the region of objects on.
struct ObjectMemory {
    words: Vec<AtomicU64>,
}

impl ObjectMemory {
    fn new(bytes: u64) -> Self {
        Self { words: (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Where a whole memory would begin.
    fn base(&self) -> *mut u8 {
        self.words.as_ptr().cast::<u8>().cast_mut().wrapping_sub(LAYOUT.objects() as usize)
    }

    fn cell(&self, at: u64) -> &AtomicU64 {
        &self.words[((at - LAYOUT.objects()) / 8) as usize]
    }
}

impl ProgramMemory for ObjectMemory {
    fn load(&self, at: u64, _: Ordering) -> u64 {
        self.cell(at).load(Ordering::Relaxed)
    }

    fn store(&self, at: u64, value: u64, _: Ordering) {
        self.cell(at).store(value, Ordering::Relaxed);
    }

    fn compare_exchange(&self, at: u64, old: u64, new: u64) -> bool {
        self.cell(at).compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn add(&self, at: u64, more: u64) -> u64 {
        self.cell(at).fetch_add(more, Ordering::Relaxed)
    }

    fn byte(&self, at: u64) -> u8 {
        self.load_part(at, 1) as u8
    }

    fn clear(&self, at: u64) {
        self.store_part(at, 1, 0);
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        (at..).zip(bytes).for_each(|(at, byte)| self.store_part(at, 1, (*byte).into()));
    }

    fn fence(&self, _: Ordering) {}

    fn reserve(&self, _: u64, _: u64) -> bool {
        true
    }

    fn ring(&self) -> bool {
        false
    }
}

/// The surroundings of a run at a moment.
struct TrialSurroundings<'t> {
    program: ProgramSide<'t, ObjectMemory>,
    maps: &'t [PlacedMap],
    moment: RunMoment,
}

impl ObjectSurroundings for TrialSurroundings<'_> {
    // A damaged image may have two maps in one place, so that a table seems to be in use.
    fn look_up(&mut self, map: usize, key: &[u8]) -> Option<u32> {
        self.program.look_up(&self.maps[map], (0, ObjectUser::new(7, 7)), key).unwrap_or_default()
    }

    fn update(&mut self, map: usize, key: &[u8], value: &[u8], flags: u64) -> i64 {
        let done = self.program.update(&self.maps[map], (0, ObjectUser::new(7, 7)), (key, value), flags);
        done.unwrap_or(BUSY)
    }

    fn remove(&mut self, map: usize, key: &[u8]) -> i64 {
        self.program.remove(&self.maps[map], ObjectUser::new(7, 7), key).unwrap_or(BUSY)
    }

    fn place(&self, map: usize, offset: u32, bytes: usize) -> Option<u64> {
        self.maps.get(map)?.value(offset.into(), bytes as u64)
    }

    fn load(&self, place: u64, bytes: u8) -> u64 {
        self.program.object_number(place, bytes)
    }

    fn store(&mut self, place: u64, bytes: u8, value: u64) {
        self.program.set_object_number(place, bytes, value);
    }

    fn change(&mut self, place: u64, bytes: u8, change: ObjectChange, (value, expected): (u64, u64)) -> u64 {
        self.program.change_object_number(place, bytes, |before| change.after(before, value, expected))
    }

    fn fact(&mut self, fact: ObjectFact) -> u64 {
        let known = |number: Option<u32>| u64::from(number.unwrap_or_default());
        match fact {
            ObjectFact::Nanos => self.moment.nanos.unwrap_or_default(),
            ObjectFact::Cpu => known(self.moment.cpu),
            ObjectFact::ProcessAndThread => known(self.moment.process) << 32 | known(self.moment.thread),
            ObjectFact::Random => 0,
        }
    }

    fn thread_name(&self) -> [u8; 16] {
        let mut name = [0; 16];
        let known = self.moment.thread_name.as_deref().unwrap_or_default();
        name[..known.len()].copy_from_slice(known);
        name
    }

    fn text(&self, _: usize) -> Option<&[u8]> {
        None
    }
}

/// The same for a damaged image: it is refused, or runs to its end or stops, inside of its memory.
///
/// # Panics
///
/// If the promise is broken.
pub fn hold_damaged(random: &mut RandomNumbers) {
    let options = ProgramOptions { is_new: true, is_wild: true, has_maps: random.below(2) > 0 };
    let (code, maps, place) = (program(random, options), maps(), LAYOUT.objects() + 4096);
    let Ok(program) = MachineProgram::new(&code, &maps) else { return };
    let Ok((image, _)) = machine_image(&program, &maps, CONTEXT_BYTES as u32, place) else { return };
    let image = random.damaged(&image);
    let Some(image) = ObjectImage::read(&image) else { return };
    let memory = ObjectMemory::new(OBJECTS_BYTES);
    let program = ProgramSide::of(&memory, LAYOUT);
    let shared = |number| {
        let map = image.map(number)?;
        Some(SharedMap {
            is_hash: map.kind != ImageMapKind::Array,
            is_lru: map.kind == ImageMapKind::LruHash,
            key_bytes: map.key_bytes,
            value_bytes: map.value_bytes,
            entries: map.entries,
            lines: map.lines,
            place: map.place,
        })
    };
    let Some(maps) = (0..image.map_count()).map(shared).collect::<Option<Vec<_>>>() else { return };
    // As the tracer does.
    if !maps.iter().all(|map| program.has_map(map)) {
        return;
    }
    let maps: Vec<PlacedMap> = maps.into_iter().map(SharedMap::placed).collect();
    let moment = RunMoment { thread_name: Some(b"name"[..].into()), ..RunMoment::default() };
    let mut around = TrialSurroundings { program, maps: &maps, moment };
    let head = image.head();
    let (mut context, mut stack) = (vec![0; head.context_bytes as usize], vec![0; head.frames as usize * FRAME_BYTES]);
    image.fill(&random.bytes(head.size as usize), &(), &mut context);
    let _ = image.run(&mut context, &mut stack, &mut around);
}

/// A program in a traced program.
struct TracedTrial<'t> {
    image: ObjectImage<'t>,
    code: Option<LoadedCode>,
    maps: &'t [PlacedMap],
    memory: ObjectMemory,
}

impl TracedTrial<'_> {
    /// Runs it: its code, or in the interpreter.
    fn run(&self, context: &mut [u8], moment: &RunMoment) -> Result<u64, ObjectStop> {
        let program = ProgramSide::of(&self.memory, LAYOUT);
        let mut around = TrialSurroundings { program, maps: self.maps, moment: moment.clone() };
        let mut stack = vec![0; self.image.head().frames as usize * FRAME_BYTES];
        let Some(code) = &self.code else { return self.image.run(context, &mut stack, &mut around) };
        let memory = NativeMemory { context, stack: &mut stack, base: self.memory.base(), line: 0 };
        let arguments = EventArguments { bytes: &[], texts: &() };
        // SAFETY: the code was compiled for this image, these functions and places of maps behind that base.
        #[allow(unsafe_code)]
        unsafe {
            NativeRun::run((self.image, code.address()), arguments, memory, &mut around)
        }
    }
}

/// Machine code of a program in this process; `None`: it is left to the interpreter.
fn code(program: &MachineProgram, maps: &[MapDefinition], places: &[SharedMap]) -> Option<LoadedCode> {
    let values: Vec<u64> = places.iter().map(SharedMap::values).collect();
    let functions = NativeRun::<TrialSurroundings<'_>, ()>::functions();
    let places = TracedPlaces { functions, values: &values, moves: &[], context_bytes: CONTEXT_BYTES as u32 };
    LoadedCode::new(&compile_traced(&NativeTarget::host()?, program, maps, places)?)
}

/// What was found out about a program.
#[derive(Clone, Copy, Debug)]
pub struct ImageTrial {
    /// Runs that came to their end.
    pub ended: usize,
    /// It was machine code, too.
    pub is_native: bool,
}

/// The promise for a random program, if it can be in traced programs.
///
/// # Panics
///
/// If it is broken.
pub fn hold(random: &mut RandomNumbers) -> Option<ImageTrial> {
    let options = ProgramOptions { is_new: true, is_wild: random.below(2) == 0, has_maps: random.below(4) > 0 };
    let code = program(random, options);
    // Values of CPUs are those of runs in traced programs.
    let shared = |kind| match kind {
        BpfMapType::PerCpuHash => BpfMapType::Hash,
        BpfMapType::PerCpuArray => BpfMapType::Array,
        other => other,
    };
    let maps: Vec<MapDefinition> =
        maps().into_iter().map(|map| MapDefinition { map_type: shared(map.map_type), ..map }).collect();
    let program = MachineProgram::new(&code, &maps).ok()?;
    // Random numbers are others.
    if program.helpers().contains(&"bpf_get_prandom_u32") {
        return None;
    }
    let place = LAYOUT.objects() + 4096;
    let (image, places) = machine_image(&program, &maps, CONTEXT_BYTES as u32, place).ok()?;
    let image = ObjectImage::read(&image).expect("what is written is read");
    let placed: Vec<PlacedMap> = places.iter().map(|map| map.placed()).collect();
    let bytes = places.iter().map(SharedMap::bytes).sum::<u64>() + 16384;
    let code_here = self::code(&program, &maps, &places);
    let is_native = code_here.is_some();
    let traced =
        [None, code_here].map(|code| TracedTrial { image, code, maps: &placed, memory: ObjectMemory::new(bytes) });
    let ways = if is_native { &traced[..] } else { &traced[..1] };
    let mut machine = BpfMachine::new(&maps).expect("the maps are small");
    let trials = MachineTrial::some(random, RUNS, CONTEXT_BYTES);
    let mut is_alike = true;
    let outcome = MachineTrial::outcome(&trials, &mut machine, |machine, RunInput { context, moment, .. }| {
        let before = context.to_vec();
        let expected = machine.run(&program, RunInput { context: &mut *context, data: &[], moment });
        // Texts and the limit of steps are other ones, and so are facts that are not known.
        is_alike &= !matches!(
            expected,
            Err(MachineFault { kind: MachineFaultKind::NoEnd { .. } | MachineFaultKind::UnknownFact { .. }, .. })
        );
        if is_alike {
            // The evaluator has no memory for entries before they are made; the map of 64 bytes has one entry, which is always there.
            let is_no_entry = |kind: &MachineFaultKind| matches!(kind, MachineFaultKind::OutsideMemory { place, .. } if place.contains("of the values of map map1"));
            is_alike &= !expected.as_ref().is_err_and(|fault| is_no_entry(&fault.kind));
            let expected = expected.as_ref().copied().map_err(|fault| (fault.at, kind(&fault.kind)));
            let found = ways.iter().map(|way| {
                let mut other = before.clone();
                let found = way.run(&mut other, moment).map_err(|stop| (stop.at as usize, stop.kind));
                (found, other)
            });
            let found: Vec<_> = found.collect();
            assert!(found.iter().all(|way| *way == found[0]), "{found:?}\n{}", text(&code));
            // Traced programs take fewer steps.
            is_alike &= !matches!(found[0].0, Err((_, ObjectStopKind::NoEnd)));
            if is_alike {
                assert_eq!(found[0], (expected, context.to_vec()), "{}", text(&code));
            }
        }
        expected
    });
    if is_alike {
        for way in ways {
            same_maps(&machine, &ProgramSide::of(&way.memory, LAYOUT), &places, &text(&code));
        }
    }
    Some(ImageTrial { ended: outcome.ended(), is_native })
}

fn kind(fault: &MachineFaultKind) -> ObjectStopKind {
    match fault {
        MachineFaultKind::DeepCalls { .. } => ObjectStopKind::DeepCalls,
        MachineFaultKind::Absent => ObjectStopKind::Absent,
        MachineFaultKind::NoMap { .. } | MachineFaultKind::OtherMap { .. } => ObjectStopKind::NoMap,
        _ => ObjectStopKind::OutsideMemory,
    }
}

/// Each entry of the machine's tables is in the shared memory, and there are no others.
fn same_maps(machine: &BpfMachine, program: &ProgramSide<'_, ObjectMemory>, places: &[SharedMap], code: &str) {
    for (map, shared) in machine.maps().iter().zip(places) {
        if !map.definition().map_type.is_table() {
            continue;
        }
        for entry in map.entries() {
            let found = program
                .look_up(&shared.placed(), (0, ObjectUser::new(7, 7)), &entry.key)
                .expect("nobody else changes it");
            let at = shared.values() + u64::from(found.unwrap_or_else(|| panic!("{:?} is missing\n{code}", entry.key)));
            let value: Vec<u8> =
                (0..shared.value_bytes.into()).map(|byte| program.object_number(at + byte, 1) as u8).collect();
            assert_eq!(value, entry.values[0].1, "{code}");
        }
        if shared.is_hash {
            let count = program.object_number(shared.place + 16, 8);
            assert_eq!(count, map.entries().count() as u64, "{code}");
        }
    }
}
