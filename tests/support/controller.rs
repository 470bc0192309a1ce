//! The controller as a user runs it: the real program, as a process.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// A running controller. Dropping it kills it.
pub struct Controller {
    child: Child,
    log: NamedTempFile,
}

impl Controller {
    /// Starts the controller on one namespace of the test cluster, with a short threshold.
    pub fn start(namespace: &str) -> Self {
        Self::start_with(&super::kubeconfig(), &["--namespace", namespace, "--stuck-after", "3s"])
    }

    /// Starts it with a kubeconfig and arguments of the test's own.
    pub fn start_with(kubeconfig: &std::ffi::OsStr, arguments: &[&str]) -> Self {
        let log = NamedTempFile::new().unwrap();
        // Another build of it, to measure: a debug build is several times as large.
        let program = std::env::var_os("INITWATCH_TEST_BINARY")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_initwatch").into());
        let child = Command::new(program)
            .args(["controller", "--listen", "none", "--log", "initwatch=debug", "--log-format", "text"])
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen().unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    /// All that it has logged so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.log.path()).unwrap()).into_owned()
    }

    /// Waits until its log holds a text.
    pub async fn says(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.log().contains(text) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({ended:?}) before it said {text:?}:\n{}", self.log());
            assert!(Instant::now() < end, "it did not say {text:?}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Its resident set in KiB.
    pub fn resident_kib(&self) -> u64 {
        let id = self.child.id().expect("it has ended already");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Asks it to end as Kubernetes does, and waits. Returns how it ended and how long that took.
    pub async fn terminate(mut self) -> (ExitStatus, Duration) {
        let started = Instant::now();
        let id = self.child.id().expect("it has ended already").to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        let status = tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await;
        (status.expect("it does not end").unwrap(), started.elapsed())
    }

    /// Ends it without a chance to do anything.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until it ends by itself.
    pub async fn ends(mut self) -> (ExitStatus, String) {
        let status = tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("it does not end:\n{}", self.log())).unwrap();
        (status, self.log())
    }
}
