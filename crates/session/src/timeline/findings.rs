//! The missing and doubtful parts of the traces, for viewers: the findings of opening them and of
//! building the timeline, and when events were lost.

use kymo_scan::StreamFaultKind;
use serde_json::{Value, json};

use super::Timeline;
use crate::answers::analyse::ReadFault;
use crate::answers::check::{self, CheckFinding, Gravity};

/// Places that could not be read and are told one by one.
const FAULTS_MAX: usize = 100;
/// Losses that are told, the earliest.
const LOSSES_MAX: usize = 10_000;

impl Timeline {
    /// The known problems of the traces so far.
    #[must_use]
    pub fn findings(&self) -> Vec<CheckFinding> {
        let mut findings = check::opened(&self.session.traces);
        let faults = self.names.faults();
        findings.extend(faults.into_iter().map(|(place, message)| check::unreadable(place, message)));
        let gone = self.session.gone_files();
        findings.extend(gone.into_iter().map(|gone| CheckFinding {
            gravity: Gravity::Error,
            rule: "gone-file",
            place: gone.place,
            message: gone.message,
            help: Some("restore the file, and open the traces again".to_owned()),
            times: 1,
        }));
        if let Some((deleted, place)) = self.session.deleted_parts() {
            let message = match deleted {
                1 => "a part of the recording was deleted while it was open".to_owned(),
                _ => format!("{deleted} parts of the recording were deleted while they were open"),
            };
            findings.push(CheckFinding {
                gravity: Gravity::Warning,
                rule: "deleted-part",
                place,
                message,
                help: Some("events that were read stay; `kymo record --keep` deletes the oldest parts".to_owned()),
                times: 1,
            });
        }
        let machines = self.names.machine_names();
        let is_shifted = self.session.traces.iter().any(|trace| trace.clock_shift_ns != 0);
        if !is_shifted && !self.session.times_are_comparable() {
            findings.push(check::origins_apart(&self.session.traces));
        } else if !is_shifted && machines.len() > 1 {
            findings.push(check::clocks_apart(&machines));
        }
        findings
    }

    /// From when to when events may be missing, wherever they were lost; and how many more such times there are.
    #[must_use]
    pub fn losses(&self) -> (Vec<(i64, i64)>, usize) {
        let mut windows = kymo_analysis::Windows::default();
        self.analysis.lanes().iter().for_each(|lane| windows.extend(&lane.holes));
        let mut inside = windows.inside(self.span.0, self.span.1);
        let told: Vec<(i64, i64)> = inside.by_ref().take(LOSSES_MAX).collect();
        (told, inside.count())
    }

    /// Both, as programs are told.
    #[must_use]
    pub fn told_findings(&self) -> Value {
        let findings = self.findings();
        let findings: Vec<Value> = findings
            .iter()
            .map(|found| crate::answers::json::finding(found, found.gravity == Gravity::Error))
            .collect();
        let (losses, omitted) = self.losses();
        let losses: Vec<Value> =
            losses.into_iter().map(|(begin, end)| json!({"begin_ns": begin, "end_ns": end})).collect();
        json!({"findings": findings, "losses": losses, "losses_omitted": omitted})
    }

    /// Keeps faults that reading found, without those that opening reports.
    pub(super) fn meet_faults(&self, faults: &[ReadFault]) {
        for ReadFault { fault, .. } in
            faults.iter().filter(|fault| !matches!(fault.fault.kind, StreamFaultKind::Cut { .. }))
        {
            let problem = self.session.problem(fault);
            self.names.meet_fault(problem.place, problem.message, FAULTS_MAX);
        }
    }
}
