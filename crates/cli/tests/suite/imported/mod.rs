//! Files in formats other than CTF, as commands show them.

mod barrelfish;
mod capture;
pub(crate) mod genode;

use std::fs;
use std::path::{Path, PathBuf};

use crate::program;

/// A folder with files.
struct Setup {
    folder: tempfile::TempDir,
}

/// The output of a command.
struct Said {
    output: String,
    errors: String,
    status: Option<i32>,
}

impl Setup {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let setup = Self { folder };
        files.iter().for_each(|(name, content)| setup.write(name, content));
        setup
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("there is room");
        fs::write(path, content).expect("there is room");
    }

    /// Runs `kymo` with these words in the folder.
    fn say(&self, words: &str) -> Said {
        self.done(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// The output of a command with words that have spaces.
    fn say_words(&self, words: &[&str]) -> String {
        self.done(words).output
    }

    fn done(&self, words: &[&str]) -> Said {
        let mut command = program::kymo();
        command.args(words).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache")).env("NO_COLOR", "1").env("TZ", "UTC");
        let output = command.output().expect("the program is there");
        let folder = self.folder.path().display().to_string();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder, "FOLDER");
        Said { output: text(&output.stdout), errors: text(&output.stderr), status: output.status.code() }
    }

    /// The output of a command that succeeds.
    fn run(&self, words: &str) -> String {
        let said = self.say(words);
        assert_eq!(said.status, Some(0), "{words}: {}{}", said.output, said.errors);
        said.output
    }

    /// Output, errors and status.
    fn all(&self, words: &str) -> String {
        let Said { output, errors, status } = self.say(words);
        format!("{output}{errors}status {}\n", status.unwrap_or(-1))
    }
}

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}
