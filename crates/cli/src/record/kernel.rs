//! The helper that may read the kernel's events, and the user that it helps.
//!
//! ```text
//! sudo kymo record --kernel -- ./app
//!   ├─ starts kymo helper-of-the-kernel, which keeps root's rights
//!   └─ becomes the user of sudo, and begins again as kymo record --kernel -- ./app
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_recorder::folder::own_user;
use kymo_recorder::kernel::{HELPER_WORD, ProbeRights, help, listen};
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::this_program;
use crate::stop::StopReason;

/// Names the socket of the helper for the process that goes on as the user.
pub(super) const HELPER_VARIABLE: &str = "KYMO_KERNEL_HELPER";
/// The helper's only word.
const READY: &str = "ready";
/// Says to a helper that it may make probes of functions of the kernel; paths of files begin with `/`.
const FUNCTIONS: &str = "functions";
/// The same of call stacks.
const STACKS: &str = "stacks";
/// The same of counts.
const WATCH: &str = "watch";
/// The same of rules about the kernel's events.
const RULES: &str = "rules";
/// The same of counts beside a recording.
const COUNTS: &str = "counts";
/// The same of a user's eBPF object, and of nothing else.
const OBJECTS: &str = "objects";

/// Becomes a helper, if these words ask for it; returns the exit status for the process then.
pub(crate) fn become_helper(words: &[OsString]) -> Option<u8> {
    let [_, word, name, user, rights @ ..] = words else { return None };
    if word != HELPER_WORD {
        return None;
    }
    let (name, user) = (name.to_str()?, user.to_str()?.parse().ok()?);
    let Ok(listener) = listen(name) else { return Some(1) };
    // The command that waits for this may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    // Each CPU that there may be takes some descriptors.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
    let said = |wanted: &str| rights.iter().any(|word| word == wanted);
    let [functions, stacks, watch, rules, counts, objects] =
        [FUNCTIONS, STACKS, WATCH, RULES, COUNTS, OBJECTS].map(said);
    let files = rights.iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    help(&listener, user, ProbeRights { files, functions, stacks, watch, rules, counts, objects });
    Some(0)
}

/// A process that is root by `sudo` starts a helper and goes on as the user that called it: files are read with that user's
/// rights. Others go on as they are.
pub(super) fn become_user(rights: &ProbeRights) -> Result<(), StopReason> {
    match (std::env::var(HELPER_VARIABLE), InvokingUser::find()) {
        (Err(_), Some(user)) => {
            let name = start(rights, user.uid)?;
            Err(user.go_on(&name).into())
        }
        _ => Ok(()),
    }
}

/// The name of the socket of a helper, which is started if it is not there yet. It keeps its capabilities, and this process gives up
/// its own.
pub(super) fn helper(rights: &ProbeRights) -> Result<String, StopReason> {
    let name = std::env::var(HELPER_VARIABLE).or_else(|_| start(rights, own_user()))?;
    give_up_capabilities();
    Ok(name)
}

/// A process of a user other than root goes on without capabilities, and so do programs that it starts.
pub(super) fn give_up_capabilities() {
    let none = CapabilitySet::empty();
    if own_user() != 0 {
        // The kernel takes them from the ambient set, too.
        let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    }
}

fn start(rights: &ProbeRights, user: u32) -> Result<String, StopReason> {
    let mut random = [0; 8];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random))?;
    let name = format!("kymo-kernel-{}-{:016x}", std::process::id(), u64::from_le_bytes(random));
    let program = this_program();
    let helper = Command::new(&program[0])
        .args(&program[1..])
        .args([HELPER_WORD, &name, &user.to_string()])
        .args(rights.functions.then_some(FUNCTIONS))
        .args(rights.stacks.then_some(STACKS))
        .args(rights.watch.then_some(WATCH))
        .args(rights.rules.then_some(RULES))
        .args(rights.counts.then_some(COUNTS))
        .args(rights.objects.then_some(OBJECTS))
        .args(&rights.files)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    helper.stdout.map(BufReader::new).map(|mut output| output.read_line(&mut line)).transpose()?;
    if line.trim_end() != READY {
        return Err(StopReason::Usage("the helper that reads the kernel's events cannot be started".to_owned()));
    }
    Ok(name)
}

/// The user that called `sudo`.
struct InvokingUser {
    uid: u32,
    gid: u32,
    name: Option<String>,
    home: Option<PathBuf>,
    groups: Vec<u32>,
}

impl InvokingUser {
    /// `None`: this process is not root, or not by `sudo`.
    fn find() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
        let uid = number("SUDO_UID").or_else(|| number("PKEXEC_UID")).filter(|uid| *uid != 0 && own_user() == 0)?;
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let entry: Option<Vec<&str>> = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.get(2).is_some_and(|number| number.parse() == Ok(uid)));
        let field = |at: usize| entry.as_ref().and_then(|fields| fields.get(at)).map(|&field| field.to_owned());
        let name = field(0).or_else(|| std::env::var("SUDO_USER").ok());
        let gid = field(3).and_then(|gid| gid.parse().ok()).or_else(|| number("SUDO_GID"))?;
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        let is_its = |fields: &[&str]| {
            fields.get(3).is_some_and(|members| members.split(',').any(|member| Some(member) == name.as_deref()))
        };
        let its = groups.lines().map(|line| line.split(':').collect::<Vec<_>>()).filter(|fields| is_its(fields));
        let groups = its.filter_map(|fields| fields.get(2)?.parse().ok()).chain([gid]).collect();
        Some(Self { uid, gid, home: field(5).map(PathBuf::from), name, groups })
    }

    /// Begins this command again with the user's rights; returns why that is not possible.
    fn go_on(self, helper: &str) -> io::Error {
        let Self { uid, gid, name, home, groups } = self;
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
        // This thread is the one that goes on.
        let changed = set_thread_groups(&groups)
            .and_then(|()| set_thread_res_gid(group, group, group))
            .and_then(|()| set_thread_res_uid(user, user, user));
        if let Err(error) = changed {
            return error.into();
        }
        let program = this_program();
        let mut command = Command::new(&program[0]);
        command.args(std::env::args_os().skip(1)).env(HELPER_VARIABLE, helper);
        if let Some(name) = name {
            command.env("USER", &name).env("LOGNAME", name);
        }
        if let Some(home) = home {
            command.env("HOME", home);
        }
        // Where the user's programs and recorder are; `sudo` does not pass it on.
        let runtime = PathBuf::from(format!("/run/user/{uid}"));
        match runtime.metadata() {
            Ok(found) if found.uid() == uid => command.env("XDG_RUNTIME_DIR", runtime),
            _ => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let error = command.exec();
        let kymo = PathBuf::from(&program[0]);
        io::Error::new(error.kind(), format!("user {uid} cannot go on with {}: {error}", kymo.display()))
    }
}
