//! The archive in a folder, and in a real S3 server that runs as a process of this test (`tests/s3` brings it).
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails must say so"
)]

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use initwatch::archive::{Archive, AttemptFacts, AttemptPath, Entry, Outcome, Target};
use initwatch::diagnose::log::{FullText, Masker};
use object_store::ObjectStoreExt;
use serde_json::Value;
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(60);

fn entry(number: i32, lines: impl IntoIterator<Item = String>) -> Entry {
    let text = FullText::new(8 << 20);
    for line in lines {
        text.push(&line);
    }
    Entry {
        path: AttemptPath {
            namespace: "shop".to_owned(),
            workload: "deployment.api".to_owned(),
            revision: Some("7d9c6b8f5d".to_owned()),
            pod: "api-7d9c6b8f5d-x2x4p".to_owned(),
            container: "migrate".to_owned(),
            number,
            short_id: "1f0c77aa".to_owned(),
        },
        facts: AttemptFacts { pod_uid: "u".to_owned(), exit_code: Some(3), ..AttemptFacts::default() },
        text,
        literals: vec!["vom-Pod-selbst".to_owned()],
    }
}

fn archive(target: Target) -> (Archive, Arc<Mutex<Vec<Outcome>>>) {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let told = outcomes.clone();
    let report = move |outcome| told.lock().unwrap().push(outcome);
    (Archive::start(target, Arc::new(Masker::shipped()), report), outcomes)
}

const PLACE: &str = "shop/deployment.api/7d9c6b8f5d/api-7d9c6b8f5d-x2x4p/migrate";

#[tokio::test]
async fn a_folder_holds_the_whole_masked_log_and_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let (archive, outcomes) = archive(Target::open(&url, []).unwrap());
    // Over several blocks, with a key that spans the border of two of them.
    let key = std::iter::once("-----BEGIN PRIVATE KEY-----".to_owned())
        .chain((0..6_000).map(|_| "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".to_owned()))
        .chain(["-----END PRIVATE KEY-----".to_owned()]);
    let lines = (0..4_500)
        .map(|number| format!("{number} password=hunter2 and vom-Pod-selbst"))
        .chain(key)
        .chain((0..60_000).map(|number| format!("line {number}")));
    archive.hand_in(entry(3, lines));
    assert!(archive.flush(PATIENCE).await);
    assert_eq!(*outcomes.lock().unwrap(), [Outcome::Stored]);
    let place = folder.path().join(PLACE);
    let text = std::fs::read_to_string(place.join("3-1f0c77aa.log")).unwrap();
    assert!(text.starts_with("0 password=[masked] and [masked]\n") && text.ends_with("line 59999\n"));
    assert!(!text.contains("MIIEvQ") && !text.contains("hunter2"), "nothing slips through at a border");
    let index: Value =
        serde_json::from_slice(&std::fs::read(place.join("3-1f0c77aa.json")).unwrap()).unwrap();
    assert_eq!(index["workload"], "deployment.api");
    assert_eq!((&index["exitCode"], &index["attempt"]), (&3.into(), &3.into()));
    assert_eq!(index["log"], "3-1f0c77aa.log");
    assert_eq!(index["bytes"].as_u64().unwrap(), text.len() as u64);
    assert!(index["masked"].as_u64().unwrap() >= 9_000);
}

#[rstest::rstest]
#[case("shop", "not a URL")]
#[case("ftp://x/y", "ftp")]
#[case("file:///nowhere/at/all", "no such folder")]
#[tokio::test]
async fn what_is_no_archive_is_said(#[case] url: &str, #[case] expected: &str) {
    let message = Target::open(url, []).unwrap_err().to_string();
    assert!(message.starts_with("--archive ") && message.contains(expected), "{message}");
}

/// An S3 server on a port; the bucket is made by asking for it.
struct S3 {
    port: u16,
    _server: Child,
}

impl S3 {
    async fn start(port: u16) -> Self {
        let program = std::env::var_os("INITWATCH_TEST_S3")
            .expect("INITWATCH_TEST_S3 is not set: run `make test`, or set it to what tests/s3 prints");
        let server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let s3 = Self { port, _server: server };
        let end = Instant::now() + PATIENCE;
        while !s3.request("PUT", "/logs").await.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            assert!(Instant::now() < end, "the S3 server does not come up");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        s3
    }

    /// A plain request; the server asks for no signature.
    async fn request(&self, method: &str, path: &str) -> Option<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn settings(port: u16) -> [(String, String); 5] {
    let settings = [
        ("AWS_ENDPOINT", format!("http://127.0.0.1:{port}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value))
}

const BUCKET: &str = "s3://logs/clusters/one";

fn target(port: u16) -> Target {
    Target::open(BUCKET, settings(port)).unwrap()
}

/// What the server holds, asked for as any client of it would.
async fn stored(port: u16, name: &str) -> String {
    let (store, prefix) = object_store::parse_url_opts(&BUCKET.parse().unwrap(), settings(port)).unwrap();
    let answer = store.get(&format!("{prefix}/{PLACE}/{name}").into()).await.unwrap();
    String::from_utf8(answer.bytes().await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn an_s3_server_that_comes_up_late_gets_all_of_it() {
    let port = free_port();
    let (archive, outcomes) = archive(target(port));
    let before = Instant::now();
    archive.hand_in(entry(0, ["early".to_owned()]));
    // Large enough for a write in several parts.
    archive.hand_in(entry(1, (0..600_000).map(|number| format!("line {number} of a long log"))));
    assert!(before.elapsed() < Duration::from_secs(5), "handing in waits for nobody");
    assert!(outcomes.lock().unwrap().is_empty(), "nothing is there to take it");
    let _s3 = S3::start(port).await;
    assert!(archive.flush(PATIENCE).await, "{:?}", outcomes.lock().unwrap());
    assert_eq!(*outcomes.lock().unwrap(), [Outcome::Stored, Outcome::Stored]);
    assert_eq!(stored(port, "0-1f0c77aa.log").await, "early\n");
    let large = stored(port, "1-1f0c77aa.log").await;
    assert!(large.starts_with("line 0 of") && large.ends_with("line 599999 of a long log\n"));
    let index: Value = serde_json::from_str(&stored(port, "1-1f0c77aa.json").await).unwrap();
    assert_eq!(index["leftOut"], 0);
}

#[tokio::test]
async fn a_server_that_hangs_holds_nothing_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (archive, outcomes) = archive(target(listener.local_addr().unwrap().port()));
    for number in 0..400 {
        archive.hand_in(entry(number, ["a line".to_owned()]));
    }
    assert!(!archive.flush(Duration::from_millis(200)).await);
    let outcomes = outcomes.lock().unwrap();
    assert!(
        !outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == Outcome::Dropped),
        "{outcomes:?}"
    );
}
