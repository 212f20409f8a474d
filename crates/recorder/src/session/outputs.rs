//! The traces that a session writes: one for each clock, in its folder; or, in a tree, one for each
//! component and clock.
//!
//! ```text
//! day/metadata                         a session
//! night/init/ping/all/metadata         a session `all` that writes a tree: component `init -> ping`
//! night/init/timer/all/metadata                                                      `init -> timer`
//! night/init/timer/slow/metadata       another session, which is about other threads of that component
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kymo_lane::ClockSource;
use serde::{Deserialize, Serialize};

use crate::protocol::TraceDialect;
use crate::rule::ToldRuleWords;
use crate::select::component_path;
use crate::session::choosing::Choosing;
use crate::session::{RecordingSession, WatchedClocks};
use crate::trace::resume::Resumed;
use crate::trace::{CtfVersion, Output, OutputOptions, is_begun};

/// The folders of components in a session that writes a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ComponentFolders {
    /// By label: the folder of the component's trace.
    folders: BTreeMap<String, PathBuf>,
    /// Labels of programs.
    programs: HashMap<u64, String>,
}

impl ComponentFolders {
    /// The folder of a program's component in a tree; one that has no trace yet gets a folder of this
    /// name, which is empty.
    fn of(&mut self, program: u64, label: &str, tree: &Path, name: &str) -> PathBuf {
        let label = self.programs.entry(program).or_insert_with(|| label.to_owned());
        if let Some(folder) = self.folders.get(label) {
            return folder.clone();
        }
        // A folder that is a trace of another component has no others in it: readers take it as a whole.
        let is_trace = |folder: &Path| self.folders.values().any(|taken| taken == folder) || is_begun(folder);
        let component = component_path(label).split('/').fold(tree.to_owned(), |folder, part| {
            numbered(part).map(|part| folder.join(part)).find(|folder| !is_trace(folder)).expect("numbers do not end")
        });
        let mut folders = numbered(name).map(|name| component.join(name));
        // Labels may have folders in common: `a/b` and `a_b`.
        let is_taken = |folder: &PathBuf| self.folders.values().any(|taken| taken == folder);
        let folder = folders.find(|folder| !folder.exists() && !is_taken(folder)).expect("numbers do not end");
        self.folders.insert(label.clone(), folder.clone());
        folder
    }

    /// A trace cannot be continued: the component's next one has another folder.
    fn forget(&mut self, folder: &Path) {
        self.folders.retain(|_, known| known != folder);
    }
}

/// A name, and others for when it is taken.
fn numbered(name: &str) -> impl Iterator<Item = String> {
    std::iter::once(name.to_owned()).chain((2..).map(move |number| format!("{name}-{number}")))
}

impl RecordingSession {
    /// Acts on the trace that has events of a program; returns whether there is one.
    pub(crate) fn with_output(
        &mut self,
        (program, source): (u64, ClockSource),
        clocks: &mut WatchedClocks,
        act: impl FnOnce(&mut Output, &mut Choosing),
    ) -> bool {
        let _writes = self.writing.begin(&self.trace);
        let folder = self.component_folder(program).map(|folder| folder_of(&folder, source));
        let is_tree = folder.is_some();
        let is_its = |known: &ClockSource, output: &Output| {
            *known == source && folder.as_deref().is_none_or(|folder| output.path() == folder)
        };
        let mut at = self.outputs.iter().position(|(known, output)| is_its(known, output));
        if at.is_none() {
            let path = folder.unwrap_or_else(|| folder_of(&self.trace, source));
            let (earliest, latest) = (self.earliest[source as usize], self.latest[source as usize]);
            match Output::create(&path, self.program_options(), clocks.of(source), earliest) {
                Ok(mut output) => {
                    // Other sessions may take events from before this session.
                    output.wants(earliest, latest);
                    output.lost_before(&std::mem::take(&mut self.unbegun[source as usize]));
                    at = Some(self.outputs.len());
                    self.outputs.push((source, output));
                    if is_tree {
                        // A later recorder does not find the folder otherwise.
                        self.keep_again();
                    }
                }
                Err(error) => {
                    self.problem(error.to_string());
                    return false;
                }
            }
        }
        if let Some((_, output)) = at.map(|at| &mut self.outputs[at]) {
            act(output, &mut self.choosing);
        }
        true
    }

    /// The folder of a program's component; `None`: the session writes no tree.
    fn component_folder(&mut self, program: u64) -> Option<PathBuf> {
        let name = self.options.components.as_deref()?;
        let known = self.choosing.known.get(&program);
        let label = known.map_or("", |who| who.surroundings.label.as_str());
        Some(self.components.of(program, label, &self.trace, name))
    }

    pub(super) fn output_options(&self) -> OutputOptions {
        let options = &self.options;
        let command = options.command.iter().map(|command| ("command".to_owned(), command.clone()));
        OutputOptions {
            format: match options.dialect {
                TraceDialect::Tsdl => CtfVersion::Ctf18,
                TraceDialect::Ctf2 => CtfVersion::Ctf2,
            },
            chunk_bytes: options.rotate_bytes,
            chunk_time: options.rotate_seconds.map(Duration::from_secs),
            // The traces of the kernel and of programs have half of it each.
            ring_bytes: options.kept_bytes.map(|bytes| if options.kernel.is_some() { bytes / 2 } else { bytes }),
            session: self.kept.as_ref().map(|kept| kept.0.clone()),
            namespaces: options.namespaces,
            counters: options.counters.clone(),
            environment: std::iter::once(("session".to_owned(), self.name.clone()))
                .chain(command)
                .chain(self.choosing.binaries())
                .collect(),
        }
    }

    /// The same of a trace of programs, which tells the rules that its events were kept by.
    pub(super) fn program_options(&self) -> OutputOptions {
        let mut options = self.output_options();
        let rules: Vec<ToldRuleWords> = self.options.rules.iter().map(ToldRuleWords::of).collect();
        if !rules.is_empty() {
            let join = |told: &dyn Fn(&ToldRuleWords) -> String| rules.iter().map(told).collect::<Vec<_>>().join("; ");
            options.environment.push(("rules".to_owned(), join(&|rule| format!("{}: {}", rule.name, rule.words))));
            let ruled: Vec<String> =
                rules.iter().filter(|rule| !rule.events.is_empty()).map(ToldRuleWords::ruled).collect();
            if !ruled.is_empty() {
                options.environment.push(("ruled".to_owned(), ruled.join("; ")));
            }
        }
        options
    }

    /// Continues the traces of a session whose recorder was killed.
    pub(super) fn go_on(&mut self, clocks: &mut WatchedClocks, mut unwritten: [u64; 2], mut untold: [u64; 2]) {
        let is_tree = self.options.components.is_some();
        let folders =
            if is_tree { self.components.folders.values().cloned().collect() } else { vec![self.trace.clone()] };
        for folder in folders {
            for source in [ClockSource::Counter, ClockSource::Monotonic] {
                let (unwritten, untold) = (&mut unwritten[source as usize], &mut untold[source as usize]);
                self.go_on_in(&folder, source, clocks, (unwritten, untold));
            }
        }
        for (source, unwritten) in unwritten.into_iter().enumerate() {
            self.unbegun[source].unwritten += unwritten;
        }
    }

    /// Continues a trace, or begins another one beside it if the trace cannot be continued. Takes the
    /// losses that the trace does not have.
    fn go_on_in(
        &mut self,
        folder: &Path,
        source: ClockSource,
        clocks: &mut WatchedClocks,
        (unwritten, untold): (&mut u64, &mut u64),
    ) {
        let path = folder_of(folder, source);
        match Output::resume(&path, self.program_options(), clocks.of(source), *untold) {
            Ok(None) => {}
            Ok(Some(Resumed { mut output, programs })) => {
                *untold = 0;
                output.wants(self.earliest[source as usize], u64::MAX);
                output.has_not_written(std::mem::take(unwritten));
                for (program, progress) in programs {
                    let known = self.progress.entry(program).or_default();
                    *known = std::mem::take(known).later(&progress);
                }
                output.is_resumed_at(&self.progress);
                self.outputs.push((source, output));
            }
            Err(error) => {
                let there = match self.options.components {
                    Some(_) => {
                        self.components.forget(folder);
                        "a folder beside it".to_owned()
                    }
                    None => {
                        self.trace = self.options.output.join(format!("resumed-{}", self.recorders));
                        self.trace.display().to_string()
                    }
                };
                self.problem(format!(
                    "the recorder was killed, and its trace does not go on ({error}): the rest is in {there}"
                ));
            }
        }
    }
}

pub(crate) fn folder_of(output: &Path, source: ClockSource) -> PathBuf {
    match source {
        ClockSource::Counter => output.to_owned(),
        ClockSource::Monotonic => output.join("monotonic"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component's traces of several sessions, and labels that lead to one folder.
    #[test]
    fn each_component_has_a_folder_of_its_own() {
        let tree = std::env::temp_dir().join(format!("kymo-components-{}", std::process::id()));
        std::fs::create_dir_all(tree.join("init/ping/all")).expect("it can be made");
        let mut folders = ComponentFolders::default();
        let mut of = |program, label: &str| {
            let folder = folders.of(program, label, &tree, "all");
            folder.strip_prefix(&tree).expect("it is in the tree").display().to_string()
        };
        assert_eq!(of(1, "init -> ping"), "init/ping/all-2", "another session has the first one");
        assert_eq!(of(2, "init -> ping"), "init/ping/all-2");
        assert_eq!(of(1, "changed"), "init/ping/all-2", "a program stays where it is");
        assert_eq!(of(3, "a/b"), "a_b/all");
        assert_eq!(of(4, "a_b"), "a_b/all-2");
        folders.forget(&tree.join("a_b/all"));
        std::fs::create_dir_all(tree.join("a_b/all")).expect("it can be made");
        assert!(folders.of(3, "", &tree, "all").ends_with("a_b/all-3"));
        std::fs::remove_dir_all(&tree).expect("it is there");
    }
}
