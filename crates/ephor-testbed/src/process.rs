//! Child processes that cannot outlive us.
//!
//! There is no portable way to ask for it without `unsafe`, so a shell stands between: it holds the reading end of a
//! pipe whose only writing end is ours. When we close it, or die in whatever way, the shell kills the child.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Error;

/// Sends the child the signals whose names come through descriptor 3, kills it when that ends, ends with the child's
/// status when the child ends by itself. The guard is stopped first then, so that it never kills a stranger with the
/// same number.
const GUARD: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
( while read -r signal <&3; do kill -s "$signal" "$child"; done; kill -KILL "$child" ) &
guard=$!
exec 3<&-
wait "$child"
status=$?
kill "$guard" 2>/dev/null
exit "$status"
"#;

/// Removes a directory once descriptor 0 ends; the processes that write into it are being killed at the same time.
const SWEEP: &str = r#"
read -r _
tries=0
while [ -e "$1" ] && [ "$tries" -lt 100 ]; do
    rm -rf -- "$1" 2>/dev/null || sleep 0.1
    tries=$((tries + 1))
done
"#;

/// A process that ends when this value is dropped, or when our process ends.
#[derive(Debug)]
pub struct Guarded {
    name: String,
    shell: Child,
    lifeline: Option<ChildStdin>,
    log: PathBuf,
}

impl Guarded {
    /// Starts a program, with both outputs going to the end of the file `log`. It gets a process group of its own, so
    /// that Ctrl-C reaches us alone.
    pub fn spawn(
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        log: &Path,
    ) -> Result<Self, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(program).args(arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let output = File::options().create(true).append(true).open(log).map_err(Error::file(log))?;
        let errors = output.try_clone().map_err(Error::file(log))?;
        command.stdout(output).stderr(errors);
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        Self::start(command, name, log)
    }

    /// Removes a directory when this value is dropped or our process ends.
    pub fn sweeper(directory: &Path) -> Result<Self, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", SWEEP, "sweep"]).arg(directory).stdout(Stdio::null()).stderr(Stdio::null());
        Self::start(command, "sweeper".to_owned(), directory)
    }

    fn start(mut command: Command, name: String, log: &Path) -> Result<Self, Error> {
        let mut shell = command.stdin(Stdio::piped()).process_group(0).spawn().map_err(Error::run("sh"))?;
        let lifeline = shell.stdin.take();
        Ok(Self { name, shell, lifeline, log: log.to_owned() })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }

    /// Asks it to end, as a kubelet does. Does not wait for it.
    pub fn terminate(&mut self) {
        if let Some(lifeline) = &mut self.lifeline {
            // A shell that is gone has no child any more.
            let _ = lifeline.write_all(b"TERM\n");
        }
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        drop(self.lifeline.take());
        // Nothing can be done about a shell that cannot be waited for.
        let _ = self.shell.wait();
    }

    /// The last lines of its log.
    pub fn log_end(&self, lines: usize) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// An error that quotes the log.
    pub fn complaint(&self, what: &'static str) -> Error {
        Error::Part { part: self.name.clone(), what, log: self.log_end(15) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(script: &str, log: &Path) -> Guarded {
        Guarded::spawn(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], &[], log).unwrap()
    }

    fn wait_for(what: impl Fn() -> bool) {
        while !what() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    fn lives(process: &str) -> bool {
        // A zombie has an empty command line, and so has a process in the moment of `exec`.
        std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
    }

    #[test]
    fn a_dropped_process_is_dead() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let process = spawn("echo $$; exec sleep 1000", &log);
        wait_for(|| process.log_end(1).parse::<u32>().is_ok());
        let number = process.log_end(1);
        wait_for(|| lives(&number));
        drop(process);
        assert!(!lives(&number));
    }

    #[test]
    fn a_process_that_is_asked_to_end_can_tidy_up() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut process = spawn("trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done", &log);
        wait_for(|| process.log_end(1) == "ready");
        process.terminate();
        assert!(process.shell.wait().unwrap().success());
        assert_eq!(process.log_end(1), "tidy");
    }

    #[test]
    fn a_process_that_ends_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut process = spawn("echo gone", &log);
        let status = process.shell.wait().unwrap();
        assert!(status.success());
        assert!(!process.is_running());
        assert_eq!(process.log_end(5), "gone");
    }

    #[test]
    fn a_killed_parent_takes_its_children_along() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // The parent is a shell that holds the lifeline as we do, and is killed as hard as can be.
        let parent = format!(
            "mkfifo lifeline; sh -c '{GUARD}' guard sh -c 'echo $$; exec sleep 1000' <lifeline & exec 9>lifeline; wait"
        );
        let mut shell = Command::new("sh")
            .args(["-c", &parent])
            .current_dir(&directory)
            .stdout(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let number = || std::fs::read_to_string(&log).unwrap_or_default().trim().to_owned();
        wait_for(|| number().parse::<u32>().is_ok());
        wait_for(|| lives(&number()));
        shell.kill().unwrap();
        shell.wait().unwrap();
        wait_for(|| !lives(&number()));
    }

    #[test]
    fn a_swept_directory_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let sweeper = Guarded::sweeper(&inside).unwrap();
        assert!(inside.exists());
        drop(sweeper);
        assert!(!inside.exists());
    }
}
