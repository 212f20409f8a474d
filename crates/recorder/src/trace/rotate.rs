//! Chunks of a trace: one ends when it has its size or its time, the next one begins, and a ring deletes the oldest.

use std::time::Instant;

use crate::clock::ClockDescription;
use crate::trace::journal::{Journal, JournalHead, beginning};
use crate::trace::{Output, TraceError, begin, file_error, live, raw_clock};

impl Output {
    /// Ends the chunk and begins the next one; if none can be begun, the last chunk goes on.
    /// Returns whether there is a new one.
    pub(super) fn roll(&mut self) -> bool {
        // What happens to files of parts that are complete is no loss.
        self.look_after_files();
        self.put_own();
        self.put_firings();
        let number = self.tally.chunks + 1;
        let path = if self.options.has_chunks() {
            self.path.join(format!("{number:06}"))
        } else {
            let name = self.path.file_name().map_or_else(Default::default, std::ffi::OsStr::to_string_lossy);
            self.path.with_file_name(format!("{name}-{number}"))
        };
        // The old chunk tells the losses until now, and the next one begins with the position of
        // every lane.
        if let Err(error) = self.chunk.tell() {
            self.error = Some(error.into());
        }
        let now = self.clock.now().saturating_sub(self.facts.base);
        let facts = ClockDescription { base: self.facts.base, ..self.clock.facts(self.facts.base) };
        let last = self.known_better(facts);
        let begun = self.next(number, facts).and_then(|beginning| begin(&path, &beginning, now));
        let (chunk, own, own_stream) = match begun {
            Ok(next) => next,
            Err(error) => {
                (self.error, self.last_failure) = (Some(error), Some(Instant::now()));
                return false;
            }
        };
        // The next chunk is announced before the old one ends, so that a follower always finds one
        // that goes on.
        live::go_on(self.chunk.path(), chunk.path());
        let old = std::mem::replace(&mut self.chunk, chunk);
        let given_up = self.own.give_up() + self.end_firings();
        (self.own, self.own_stream, self.facts) = (own, own_stream, facts);
        self.chunk.lose(own_stream, given_up, 0);
        (self.chunk_begin, self.tally.chunks) = (Instant::now(), number);
        self.tell_counters();
        let (path, mut counts) = (old.path().to_owned(), (old.packets, old.bytes));
        match old.finish(last.map(|facts| raw_clock(self.clock.source(), &facts)).as_ref()) {
            Ok(all) => counts = all,
            Err(error) => self.error = Some(error.into()),
        }
        live::say(&path, false, None, None);
        Journal::delete(&path);
        let (packets, bytes) = counts;
        self.tally.packets_before += packets;
        self.tally.bytes_before += bytes;
        self.chunks.push_back((path, bytes));
        self.delete();
        for state in self.programs.values_mut() {
            state.tables.clear();
            state.streams.clear();
            state.masks.clear();
            self.own.process(now, &state.identity, state.pid_outside);
            state.objects.iter().for_each(|object| self.own.object(now, state.identity.key, object));
        }
        true
    }

    /// The beginning of the next chunk.
    fn next(&self, number: u64, facts: ClockDescription) -> Result<JournalHead, TraceError> {
        let mut beginning = beginning(&self.path, &self.options, &self.clock, facts)?;
        beginning.chunk = number;
        beginning.before = self.tally.clone();
        beginning.before.packets_before += self.chunk.packets;
        beginning.before.bytes_before += self.chunk.bytes;
        let programs = self.programs.iter().map(|(program, state)| (*program, state.known()));
        beginning.programs = self.resumed.clone().into_iter().chain(programs).collect();
        Ok(beginning)
    }

    /// Deletes the oldest chunks of a ring.
    fn delete(&mut self) {
        let Some(most) = self.options.ring_bytes else { return };
        let mut all: u64 = self.chunk.bytes + self.chunks.iter().map(|chunk| chunk.1).sum::<u64>();
        while all + self.options.chunk_bytes().unwrap_or(0) > most {
            let Some((path, bytes)) = self.chunks.pop_front() else { break };
            match std::fs::remove_dir_all(&path) {
                Ok(()) => self.tally.deleted += 1,
                Err(error) => self.error = Some(file_error(&path, error).into()),
            }
            all -= bytes;
        }
    }
}
