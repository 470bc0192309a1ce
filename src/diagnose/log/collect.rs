//! Collects the log of one attempt from a `pods/log?timestamps=true` answer, in bounded memory.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::clean::clean;
use super::fold::Folder;
use super::full::FullText;

/// Bounds, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct LogLimits {
    /// What is kept of the begin of a log.
    pub head: usize,
    /// What is kept of its end; the newest lines are never lost.
    pub tail: usize,
    /// What is kept of one line.
    pub line: usize,
}

impl LogLimits {
    /// Limits for so many bytes in all: a quarter for the begin, the rest for the end, which says why it ended. At
    /// least 1 KiB.
    pub fn of_size(bytes: usize) -> Self {
        let bytes = bytes.max(1024);
        // Room for the mark between the two.
        Self { head: bytes / 4, tail: bytes - bytes / 4 - 128, line: (bytes / 8).min(2 * 1024) }
    }
}

impl Default for LogLimits {
    /// 16 KiB in all (DESIGN D6).
    fn default() -> Self {
        Self::of_size(16 * 1024)
    }
}

/// The time of an attempt. Attempts do not overlap, so a line from outside belongs to another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogWindow {
    /// Start, as the status has it (whole seconds).
    pub started_at: Option<Timestamp>,
    /// End, as the status has it (whole seconds); none while it runs.
    pub finished_at: Option<Timestamp>,
}

impl LogWindow {
    /// Status times are cut to seconds, log times are not: a second of leave before, two after.
    fn holds(&self, at: Timestamp) -> bool {
        let leave = |time: Timestamp, seconds: i64| {
            let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
            whole.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
        };
        self.started_at.is_none_or(|started| at >= leave(started, -1))
            && self.finished_at.is_none_or(|finished| at < leave(finished, 2))
    }
}

/// What was collected.
#[derive(Clone, Debug, Default)]
pub struct CollectedLog {
    /// The kept lines of the begin, readable, without timestamps.
    pub head: Vec<String>,
    /// The kept lines of the end.
    pub tail: Vec<String>,
    /// Lines and bytes left out between the two.
    pub left_out: (u64, u64),
    /// Bytes of the answer.
    pub bytes_seen: u64,
    /// Lines of the answer.
    pub lines_seen: u64,
    /// Lines that belong to another attempt, by their time.
    pub lines_outside_window: u64,
    /// Something of the log is left out.
    pub truncated: bool,
    /// The log broke off while it was read.
    pub partial: bool,
    /// Time of the oldest line.
    pub first_at: Option<Timestamp>,
    /// Time of the newest line.
    pub last_at: Option<Timestamp>,
    /// The answer was an error text in place of a log, although it came with HTTP 200.
    pub not_a_log: Option<String>,
}

impl CollectedLog {
    /// The text, with a mark where lines are left out. Empty when nothing was printed.
    pub fn text(&self) -> String {
        let mut lines: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let (left_lines, left_bytes) = self.left_out;
        let mark = format!("[… {left_lines} lines, {left_bytes} bytes left out …]");
        if left_lines > 0 {
            lines.push(&mark);
        }
        lines.extend(self.tail.iter().map(String::as_str));
        lines.join("\n")
    }
}

/// Stands where lines may be missing.
const GAP: &str = "[… a part of the log is left out …]";

/// Collects a log from chunks of bytes.
#[derive(Clone, Debug)]
pub struct LogCollector {
    window: LogWindow,
    limits: LogLimits,
    /// Takes all lines, for an archive.
    full: Option<FullText>,
    /// Lines up to this time are there already.
    known_until: Option<Timestamp>,
    /// The begin of the line that is being read, as far as it is kept.
    line: Vec<u8>,
    /// Its end, where it is longer: a progress bar overwrites itself for minutes, and then says why it failed.
    line_end: Vec<u8>,
    /// Its length, as far as it has come.
    line_length: u64,
    folder: Folder,
    ring: Ring,
    log: CollectedLog,
}

impl LogCollector {
    /// A collector for an attempt.
    pub fn new(window: LogWindow, limits: LogLimits) -> Self {
        Self {
            window,
            limits,
            full: None,
            known_until: None,
            line: Vec::new(),
            line_end: Vec::new(),
            line_length: 0,
            folder: Folder::default(),
            ring: Ring::new(limits),
            log: CollectedLog::default(),
        }
    }

    /// The same, and all lines go into a text for an archive as well, which begins anew.
    #[must_use]
    pub fn into_full(mut self, full: Option<FullText>) -> Self {
        if let Some(full) = &full {
            full.clear();
        }
        self.full = full;
        self
    }

    /// Takes a chunk of the answer.
    pub fn push(&mut self, chunk: &[u8]) {
        self.log.bytes_seen += chunk.len() as u64;
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, more) = rest.split_at(end);
            self.extend_line(line);
            self.end_line();
            rest = more.get(1..).unwrap_or_default();
        }
        self.extend_line(rest);
    }

    /// The answer broke off, or is not read to its end: what came is genuine.
    pub fn mark_partial(&mut self) {
        self.log.partial = true;
    }

    /// Goes on with another answer for the same attempt, which may repeat lines that are known.
    pub fn go_on(&mut self) {
        if self.line_length > 0 {
            // A line that broke off comes again as a whole.
            self.line.clear();
            self.line_end.clear();
            self.line_length = 0;
        }
        self.known_until = self.log.last_at;
    }

    /// Says when the attempt has ended: later lines are not its own.
    pub fn ends_at(&mut self, finished_at: Option<Timestamp>) {
        self.window.finished_at = finished_at;
    }

    /// Says that lines may be missing between what came and what comes now.
    pub fn gap(&mut self) {
        self.log.truncated = true;
        if let Some(full) = &self.full {
            full.push(GAP);
        }
        let ring = &mut self.ring;
        self.folder.push(GAP.to_owned(), &mut |line| ring.push(line));
    }

    /// Time of the newest line so far.
    pub fn last_at(&self) -> Option<Timestamp> {
        self.log.last_at
    }

    /// What was collected so far.
    pub fn snapshot(&self) -> CollectedLog {
        self.clone().finish()
    }

    /// Ends the answer.
    pub fn finish(mut self) -> CollectedLog {
        if self.line_length > 0 {
            self.end_line();
        }
        let Self { folder, mut ring, mut log, .. } = self;
        folder.finish(&mut |line| ring.push(line));
        log.truncated |= ring.left_out.0 > 0;
        log.left_out = ring.left_out;
        log.head = ring.head;
        log.tail = ring.tail.into();
        log
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        self.line_length += bytes.len() as u64;
        // Some more than is kept: timestamps, escape codes and overwritten parts of a line go away.
        let room = (4 * self.limits.line).saturating_sub(self.line.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.line.extend_from_slice(head);
        // Of a very long chunk only what can stay.
        let kept = rest.len().saturating_sub(2 * self.limits.line);
        self.line_end.extend_from_slice(rest.get(kept..).unwrap_or_default());
        if self.line_end.len() > 4 * self.limits.line {
            let excess = self.line_end.len() - 2 * self.limits.line;
            self.line_end.drain(..excess);
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        let end = std::mem::take(&mut self.line_end);
        let length = std::mem::take(&mut self.line_length);
        let (at, text) = split_timestamp(&bytes);
        let first = self.log.lines_seen == 0;
        if at.is_none() && (first || is_error_text(text)) {
            let shown = crate::diagnose::cut(&clean(text), 300);
            if first {
                self.log.not_a_log = Some(shown);
            } else {
                // The kubelet writes its error behind what it had sent already.
                self.log.partial = true;
            }
            self.log.lines_seen += 1;
            return;
        }
        self.log.lines_seen += 1;
        if at.is_some_and(|at| !self.window.holds(at)) {
            self.log.lines_outside_window += 1;
            return;
        }
        if at.is_some() && at <= self.known_until {
            return;
        }
        self.log.first_at = self.log.first_at.or(at);
        self.log.last_at = at.or(self.log.last_at);
        let line = self.readable(text, &end, length);
        match &self.full {
            // As it is, where all of it is here.
            Some(full) if end.is_empty() => full.push(&clean(text)),
            Some(full) => full.push(&line),
            None => {}
        }
        let ring = &mut self.ring;
        self.folder.push(line, &mut |line| ring.push(line));
    }
}

impl LogCollector {
    /// A line from its begin and, where that is not all of it, its end.
    fn readable(&mut self, begin: &[u8], end: &[u8], length: u64) -> String {
        // What stood there before the last return was overwritten.
        let overwritten = end.iter().rposition(|byte| *byte == b'\r').map(|at| at + 1);
        if let Some(last) = overwritten.and_then(|at| end.get(at..)).filter(|last| !last.is_empty()) {
            return self.shortened(clean(last), length);
        }
        if end.is_empty() {
            return self.shortened(clean(begin), length);
        }
        self.log.truncated = true;
        // The end may have begun in the middle of a character.
        let (begin, end) = (clean(begin), clean(end));
        let half = self.limits.line / 2 - 20;
        let tail = end.char_indices().map(|(at, _)| at).find(|at| end.len() - at <= half).unwrap_or(0);
        let tail = end.get(tail..).unwrap_or_default();
        format!("{} [… a line of {length} bytes …] {tail}", crate::diagnose::cut(&begin, half))
    }

    fn shortened(&mut self, line: String, length: u64) -> String {
        if line.len() <= self.limits.line {
            return line;
        }
        self.log.truncated = true;
        let kept = crate::diagnose::cut(&line, self.limits.line.saturating_sub(40));
        format!("{kept} [… a line of {length} bytes]")
    }
}

/// Keeps the first lines and the last ones.
#[derive(Clone, Debug)]
struct Ring {
    limits: LogLimits,
    head: Vec<String>,
    head_bytes: usize,
    head_is_full: bool,
    tail: VecDeque<String>,
    tail_bytes: usize,
    left_out: (u64, u64),
}

impl Ring {
    fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            head: Vec::new(),
            head_bytes: 0,
            head_is_full: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out: (0, 0),
        }
    }

    fn push(&mut self, line: String) {
        // With its line break.
        let length = line.len() + 1;
        if !self.head_is_full && self.head_bytes + length <= self.limits.head {
            self.head_bytes += length;
            self.head.push(line);
            return;
        }
        self.head_is_full = true;
        self.tail_bytes += length;
        self.tail.push_back(line);
        while self.tail_bytes > self.limits.tail {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.len() + 1;
            self.left_out.0 += 1;
            self.left_out.1 += oldest.len() as u64 + 1;
        }
    }
}

/// Splits `2026-12-01T10:00:00.123456789Z text` as the kubelet prefixes each line.
fn split_timestamp(bytes: &[u8]) -> (Option<Timestamp>, &[u8]) {
    let end = bytes.iter().take(40).position(|byte| *byte == b' ').unwrap_or(bytes.len().min(40));
    let (stamp, rest) = bytes.split_at(end);
    let at = std::str::from_utf8(stamp)
        .ok()
        .filter(|stamp| stamp.len() >= 20)
        .and_then(|stamp| stamp.parse().ok());
    match at {
        Some(at) => (Some(at), rest.get(1..).unwrap_or_default()),
        None => (None, bytes),
    }
}

/// Error texts that come in place of a log, or behind one, with HTTP 200 (`GetKubeletContainerLogs`, `ReadLogs` in
/// cri-client).
fn is_error_text(text: &[u8]) -> bool {
    const BEGINS: [&str; 6] = [
        "unable to retrieve container logs for ",
        "failed to try resolving symlinks in path ",
        "failed to open log file ",
        "failed to get parse function: ",
        "failed to read log file ",
        "rpc error: ",
    ];
    BEGINS.iter().any(|begin| text.starts_with(begin.as_bytes()))
}

#[cfg(test)]
mod tests;
