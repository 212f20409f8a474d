//! The kernel's events of a session: of which times it wants them, and its snapshots.

use std::os::fd::OwnedFd;
use std::time::SystemTime;

use crate::clock::ClockDescription;
use crate::kernel::wanted::WantedTimes;
use crate::kernel::{KernelBeginning, KernelRecording, kernel_source};
use crate::protocol::Keep;
use crate::rule::RuleOptions;
use crate::session::{RecordingSession, WatchedClocks, flush};
use crate::trace::OutputOptions;

impl RecordingSession {
    /// Begins to record events of the kernel, if the session has some.
    ///
    /// # Errors
    ///
    /// Why not, in sentences.
    pub(crate) fn begin_kernel(&mut self, clocks: &mut WatchedClocks) -> Result<(), String> {
        let Some(options) = self.options.kernel.clone() else { return Ok(()) };
        let (source, trace) = (kernel_source(), self.kernel_options());
        let beginning = KernelBeginning {
            options: &options,
            keep: self.options.keep,
            output: &self.options.output,
            trace: &trace,
            earliest: self.earliest[source as usize],
            wanted: self.kernel_times(clocks, None),
            recorder: self.recorders,
        };
        self.kernel = Some(KernelRecording::begin(&beginning, clocks.of(source))?);
        Ok(())
    }

    /// Rules that the kernel asks.
    pub(crate) fn kernel_rules(&self) -> Vec<RuleOptions> {
        self.kernel.as_ref().map(KernelRecording::rule_options).unwrap_or_default()
    }

    /// Sets the limit of a rule that the kernel asks, in words; `None`: there is none of this name.
    pub(crate) fn limit_of_kernel(
        &mut self,
        name: &str,
        limit: (Option<&str>, Option<&str>),
    ) -> Option<Result<(), String>> {
        let kernel = self.kernel.as_mut()?;
        let set = kernel.set_limit(name, limit)?;
        let rules = kernel.rule_options();
        self.options.kernel.iter_mut().for_each(|options| options.rules.clone_from(&rules));
        Some(set)
    }

    /// The memory of a rule that the kernel asks, for a program: the file, its bytes, and the places in it. `None`: there is none of this
    /// name.
    pub(crate) fn shared_rule(&self, name: &str) -> Option<Result<(OwnedFd, [u64; 5]), String>> {
        self.kernel.as_ref()?.shared_rule(name)
    }

    fn kernel_options(&self) -> OutputOptions {
        let mut options = self.output_options();
        let scope = self.options.kernel.as_ref().and_then(|kernel| kernel.scope.as_ref());
        options.environment.extend(scope.map(|scope| ("kernel_scope".to_owned(), scope.said.clone())));
        let rules = self.options.kernel.iter().flat_map(|kernel| &kernel.rules);
        let rules: Vec<String> = rules.map(|rule| format!("{}: {}", rule.name, rule.words())).collect();
        if !rules.is_empty() {
            options.environment.push(("kernel_rules".to_owned(), rules.join("; ")));
        }
        options
    }

    /// Times of the kernel's events that it wants, as far as firings of its triggers are known: since programs were looked at.
    fn kernel_times(&self, clocks: &mut WatchedClocks, looked: Option<SystemTime>) -> WantedTimes {
        let source = kernel_source();
        let (earliest, latest) = (self.earliest[source as usize], self.latest[source as usize]);
        let Some(windows) = self.triggers.all_windows(source) else {
            let is_all = self.options.keep == Keep::Oldest && latest == u64::MAX;
            return if is_all { WantedTimes::default() } else { WantedTimes::of([(earliest, latest)]) };
        };
        let windows = windows.into_iter().map(|(first, last)| (first.max(earliest), last.min(latest)));
        let windows = WantedTimes::of(windows.filter(|(first, last)| first <= last));
        let Some(looked) = looked else { return windows.known(0, SystemTime::UNIX_EPOCH) };
        let age = SystemTime::now().duration_since(looked).unwrap_or_default().as_nanos();
        let age = u128::from(clocks.of(source).frequency()) * age / 1_000_000_000;
        let until = flush::late(clocks)[source as usize].saturating_sub(u64::try_from(age).unwrap_or(u64::MAX));
        windows.known(until, looked.checked_sub(flush::LATE).unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Ends with the kernel: all of its events until now are in the trace.
    pub(super) fn end_kernel(&mut self, clocks: &mut WatchedClocks) {
        self.look_after_kernel(clocks, None);
        let Some(kernel) = self.kernel.take() else { return };
        let known = self.kernel_clock(clocks);
        let (summary, problems) = kernel.end(clocks.of(kernel_source()), known);
        self.kernel_summary = Some(summary);
        problems.into_iter().for_each(|problem| self.problem(problem));
    }

    /// The clock as the trace of programs describes it, if there is one: measured twice, events of both would be apart.
    fn kernel_clock(&mut self, clocks: &mut WatchedClocks) -> Option<ClockDescription> {
        let source = kernel_source();
        let (_, output) = self.outputs.iter_mut().find(|(of, _)| *of == source)?;
        output.end_clock(clocks.of(source));
        Some(output.clock_description())
    }

    pub(super) fn look_after_kernel(&mut self, clocks: &mut WatchedClocks, looked: Option<SystemTime>) {
        let wanted = self.kernel.is_some().then(|| self.kernel_times(clocks, looked));
        if let (Some(kernel), Some(wanted)) = (&mut self.kernel, wanted) {
            kernel.wants(wanted);
        }
    }

    /// Writes the kernel's events that another session keeps, as far as this one, a snapshot of it, wants them.
    pub(crate) fn take_kernel(&mut self, kept: &Self, clocks: &mut WatchedClocks) {
        let Some(kernel) = &kept.kernel else { return };
        let (source, trace) = (kernel_source(), self.kernel_options());
        let earliest = self.earliest[source as usize];
        // It has been looked at programs for this.
        let wanted = self.kernel_times(clocks, None).certain();
        let known = self.kernel_clock(clocks);
        let clock = (clocks.of(source), known);
        match kernel.snapshot(&self.options.output, &trace, clock, earliest, &wanted) {
            Ok((summary, problems)) => {
                self.kernel_summary = Some(summary);
                problems.into_iter().for_each(|problem| self.problem(problem));
            }
            Err(why) => self.problem(format!("the kernel's events are not in the snapshot: {why}")),
        }
    }
}
