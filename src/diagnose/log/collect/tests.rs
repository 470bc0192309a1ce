use super::*;
use proptest::prelude::*;

fn collected(body: &[u8]) -> CollectedLog {
    collected_within(LogWindow::default(), body)
}

fn collected_within(window: LogWindow, body: &[u8]) -> CollectedLog {
    let mut collector = LogCollector::new(window, LogLimits::default());
    collector.push(body);
    collector.finish()
}

fn stamped(lines: impl IntoIterator<Item = String>) -> Vec<u8> {
    let lines = lines.into_iter().map(|line| format!("2026-12-01T10:00:00.5Z {line}\n"));
    lines.collect::<String>().into_bytes()
}

#[test]
fn lines_lose_their_timestamps_and_nothing_else() {
    let log = collected(b"2026-12-01T10:00:00.123456789Z one\n2026-12-01T10:00:01.1Z two\n");
    assert_eq!(log.text(), "one\ntwo");
    assert_eq!((log.lines_seen, log.truncated, log.not_a_log), (2, false, None));
}

#[test]
fn an_empty_log_is_a_log() {
    let log = collected(b"");
    assert_eq!((log.text().as_str(), log.not_a_log, log.lines_seen), ("", None, 0));
}

#[test]
fn an_error_text_with_http_200_is_not_a_log() {
    let log = collected(b"unable to retrieve container logs for containerd://1f0c77aa");
    assert!(log.not_a_log.is_some_and(|text| text.starts_with("unable to retrieve")));
    assert!(collected(b"anything without a time").not_a_log.is_some());
}

#[test]
fn an_error_text_behind_a_log_leaves_what_is_genuine() {
    let log = collected(b"2026-12-01T10:00:00Z one\nfailed to open log file \"/var/log/x\": no such file");
    assert_eq!((log.text().as_str(), log.partial, log.not_a_log), ("one", true, None));
}

#[test]
fn lines_of_another_attempt_are_dropped_and_counted() {
    let window = LogWindow {
        started_at: Some("2026-12-01T10:00:10Z".parse().unwrap()),
        finished_at: Some("2026-12-01T10:00:12Z".parse().unwrap()),
    };
    let body = b"2026-12-01T10:00:08.9Z before\n2026-12-01T10:00:09.5Z in\n2026-12-01T10:00:13.9Z in too\n2026-12-01T10:00:14Z after\n";
    let log = collected_within(window, body);
    assert_eq!((log.text().as_str(), log.lines_outside_window), ("in\nin too", 2));
}

#[test]
fn head_and_tail_of_a_long_log_are_kept_and_the_middle_is_counted() {
    let log = collected(&stamped((0..10_000).map(|number| format!("line {number}"))));
    let text = log.text();
    assert!(text.len() <= 16 * 1024, "{}", text.len());
    assert!(text.starts_with("line 0\n") && text.ends_with("\nline 9999"));
    assert!(text.contains(" bytes left out …]"), "{text}");
    let kept = text.lines().filter(|line| line.starts_with("line ")).count() as u64;
    assert_eq!(kept + log.left_out.0, 10_000);
}

#[test]
fn one_enormous_line_stays_small() {
    let mut collector = LogCollector::new(LogWindow::default(), LogLimits::default());
    collector.push(b"2026-12-01T10:00:00Z ");
    let chunk = vec![b'x'; 64 * 1024];
    for _ in 0..800 {
        collector.push(&chunk);
        assert!(collector.line.len() + collector.line_end.len() <= 20 * 1024, "the buffer is bounded");
    }
    collector.push(b"\n2026-12-01T10:00:01Z last");
    let text = collector.finish().text();
    assert!(text.len() < 4096 && text.ends_with("\nlast"), "{} bytes", text.len());
    assert!(text.contains("[… a line of 52428821 bytes …]"), "{}", &text[text.len() - 80..]);
}

#[test]
fn a_progress_bar_is_what_it_says_last() {
    let bar = "\rdownloading 100 MB".repeat(5_000);
    let line = format!("2026-12-01T10:00:01Z start{bar}\rERROR: disk full\n");
    assert_eq!(collected(line.as_bytes()).text(), "ERROR: disk full");
}

#[test]
fn a_long_line_keeps_its_end() {
    let line = format!("2026-12-01T10:00:01Z {} fatal: checksum mismatch\n", "#".repeat(9_000));
    let text = collected(line.as_bytes()).text();
    assert!(text.starts_with("###") && text.ends_with("fatal: checksum mismatch"), "{text}");
    assert!(text.len() <= 2 * 1024, "{}", text.len());
}

#[test]
fn an_answer_that_goes_on_repeats_nothing_and_says_where_lines_may_be_missing() {
    let mut collector = LogCollector::new(LogWindow::default(), LogLimits::default());
    collector.push(b"2026-12-01T10:00:01Z one\n2026-12-01T10:00:02Z two\n2026-12-01T10:00:03Z brok");
    collector.go_on();
    collector.push(b"2026-12-01T10:00:02Z two\n2026-12-01T10:00:03Z broken off\n");
    assert_eq!(collector.snapshot().text(), "one\ntwo\nbroken off");
    collector.go_on();
    collector.gap();
    collector.push(b"2026-12-01T10:09:00Z last\n");
    assert_eq!(collector.finish().text(), "one\ntwo\nbroken off\n[… a part of the log is left out …]\nlast");
}

#[test]
fn a_wait_loop_is_one_line() {
    let log = collected(&stamped(std::iter::repeat_n("waiting for postgres:5432".to_owned(), 5000)));
    assert_eq!(log.text(), "waiting for postgres:5432 (× 5000)");
    assert!(!log.truncated);
}

proptest! {
    #[test]
    fn any_bytes_in_any_chunks_give_the_same_bounded_text(
        body in proptest::collection::vec(any::<u8>(), 0..4096),
        cuts in proptest::collection::vec(0_usize..4096, 0..8),
    ) {
        let whole = collected(&body);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.sort_unstable();
        let mut collector = LogCollector::new(LogWindow::default(), LogLimits::default());
        let mut from = 0;
        for cut in cuts {
            collector.push(&body[from..cut]);
            from = cut;
        }
        collector.push(&body[from..]);
        let pieces = collector.finish();
        prop_assert_eq!(whole.text(), pieces.text());
        prop_assert!(whole.text().len() <= 16 * 1024);
        prop_assert!(whole.text().chars().all(|character| character == '\n' || character == '\t' || !character.is_control()));
    }
}
