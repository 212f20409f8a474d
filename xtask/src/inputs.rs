//! What the result of a stage depends on, as one hash.
//!
//! Contents count, not times: a fresh clone of the same commit has the same hashes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// One thing that a result depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Files of the repository that match these pathspecs of git, tracked or not. Files that git ignores do not count.
    Files(Vec<String>),
    /// One file, or all files below a folder; that it is absent counts, too.
    Path(PathBuf),
    /// What a command of bash prints, as the versions of tools. It is asked once a run.
    Output(String),
}

/// Variables that change what tests do. A stage that passed without them has not passed with them.
const VARIABLES: [&str; 5] = ["KYMO_", "UPDATE", "LC_", "LANG", "TZ"];

/// Hashes inputs.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    root: &'a Path,
    environment: &'a [(String, String)],
    /// Commands that were asked, and the hash of what each printed.
    outputs: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl<'a> Inputs<'a> {
    /// For commands that run in the repository with these variables.
    pub(crate) fn new(root: &'a Path, environment: &'a [(String, String)]) -> Self {
        Self { root, environment, outputs: Mutex::default() }
    }

    /// One number for a command and all of its inputs, as hexadecimal digits.
    ///
    /// # Errors
    ///
    /// git lists no files, or a command fails: which input is meant is not known then.
    pub(crate) fn hash(&self, command: &str, inputs: &[Input]) -> Result<String, String> {
        let mut hasher = Sha256::new();
        piece(&mut hasher, "command", command.as_bytes());
        let variables = std::env::vars().filter(|(name, _)| VARIABLES.iter().any(|begin| name.starts_with(begin)));
        let variables: BTreeMap<String, String> = variables.collect();
        for (name, value) in &variables {
            piece(&mut hasher, name, value.as_bytes());
        }
        for input in inputs {
            match input {
                Input::Files(specs) => self.files(&mut hasher, specs)?,
                Input::Path(path) => tree(&mut hasher, path, Path::new("")),
                Input::Output(command) => piece(&mut hasher, command, &self.output(command)?),
            }
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The hash of what a command prints.
    fn output(&self, command: &str) -> Result<Vec<u8>, String> {
        // Stages that ask at the same time wait for one answer.
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = outputs.get(command) {
            return Ok(known.clone());
        }
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).current_dir(self.root);
        bash.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = bash.output().map_err(|error| format!("bash: {error}"))?;
        if !output.status.success() {
            return Err(format!("`{command}`: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let hash = Sha256::digest(&output.stdout).to_vec();
        outputs.insert(command.to_owned(), hash.clone());
        Ok(hash)
    }

    fn files(&self, hasher: &mut Sha256, specs: &[String]) -> Result<(), String> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]).args(specs);
        let output = git.current_dir(self.root).output().map_err(|error| format!("git: {error}"))?;
        if !output.status.success() || output.stdout.is_empty() {
            return Err(format!("git names no files of {specs:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // A file that is both in the index and changed is named once; one that was deleted is named, and absent.
        let mut names: Vec<&str> = text.split('\0').filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            tree(hasher, &self.root.join(name), Path::new(name));
        }
        Ok(())
    }
}

/// Adds a file, or all files below a folder by their names below it.
fn tree(hasher: &mut Sha256, path: &Path, name: &Path) {
    let shown = name.display().to_string();
    if path.is_dir() {
        let entries = fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        let mut entries: Vec<_> = entries.unwrap_or_default();
        entries.sort();
        for entry in entries {
            tree(hasher, &path.join(&entry), &name.join(&entry));
        }
        return;
    }
    match fs::File::open(path) {
        Ok(mut file) => {
            let mut content = Sha256::new();
            match io::copy(&mut file, &mut content) {
                Ok(_) => piece(hasher, &shown, &content.finalize()),
                Err(_) => piece(hasher, &shown, b"unreadable"),
            }
        }
        Err(_) => piece(hasher, &shown, b"absent"),
    }
}

/// Names and contents with their lengths, so that no two lists of pieces are the same bytes.
fn piece(hasher: &mut Sha256, name: &str, content: &[u8]) {
    for bytes in [name.as_bytes(), content] {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_names_and_outputs_count() {
        let folder = std::env::temp_dir().join(format!("kymo-inputs-{}", std::process::id()));
        fs::create_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join("data/one"), "1").unwrap();
        let hash = |inputs: &[Input]| Inputs::new(&folder, &[]).hash("true", inputs).unwrap();
        let data = [Input::Path(folder.join("data"))];
        let first = hash(&data);
        assert_eq!(first, hash(&data));
        fs::write(folder.join("data/one"), "2").unwrap();
        let second = hash(&data);
        assert_ne!(first, second);
        fs::rename(folder.join("data/one"), folder.join("data/two")).unwrap();
        assert_ne!(second, hash(&data));
        assert_ne!(hash(&[Input::Output("echo 1".to_owned())]), hash(&[Input::Output("echo 2".to_owned())]));
        let failing = Inputs::new(&folder, &[]).hash("true", &[Input::Output("false".to_owned())]);
        assert!(failing.is_err());
        // The folder is no clone.
        assert!(Inputs::new(&folder, &[]).hash("true", &[Input::Files(vec!["data".to_owned()])]).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
