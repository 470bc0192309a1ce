//! The whole text of a log, for an archive: compressed as it comes, bounded, the newest part never lost.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Text that is compressed at once.
const BLOCK: usize = 256 * 1024;

/// A text that is filled line by line. A clone is the same text.
#[derive(Clone, Debug)]
pub struct FullText {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    /// Compressed bytes that may be held.
    limit: usize,
    /// Compressed blocks of the begin, up to half of the limit.
    head: Vec<Vec<u8>>,
    /// Those after it, the oldest of which give way.
    tail: VecDeque<Block>,
    head_bytes: usize,
    tail_bytes: usize,
    /// Text that is not compressed yet.
    open: Vec<u8>,
    /// Bytes of text that gave way.
    left_out: u64,
}

#[derive(Debug)]
struct Block {
    compressed: Vec<u8>,
    text_bytes: u64,
}

impl FullText {
    /// An empty text that takes up to `limit` bytes of memory, compressed, and 256 KiB besides.
    pub fn new(limit: usize) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner::new(limit))) }
    }

    /// Adds a line.
    pub fn push(&self, line: &str) {
        self.lock().push(line);
    }

    /// Begins anew: what came was another attempt's, or comes again.
    pub fn clear(&self) {
        let mut inner = self.lock();
        *inner = Inner::new(inner.limit);
    }

    /// Memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        let inner = self.lock();
        inner.head_bytes + inner.tail_bytes + inner.open.len()
    }

    /// Bytes of text that were left out between begin and end.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// A part of the text, at line borders; none after the last one. A mark stands where text was left out.
    pub fn block(&self, index: usize) -> Option<String> {
        let inner = self.lock();
        if let Some(block) = inner.head.get(index) {
            return Some(decompressed(block));
        }
        let mut index = index - inner.head.len();
        if inner.left_out > 0 {
            if index == 0 {
                return Some(format!("[… {} bytes left out …]\n", inner.left_out));
            }
            index -= 1;
        }
        if let Some(block) = inner.tail.get(index) {
            return Some(decompressed(&block.compressed));
        }
        let is_open = index == inner.tail.len() && !inner.open.is_empty();
        is_open.then(|| String::from_utf8_lossy(&inner.open).into_owned())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bytes: 0,
            tail_bytes: 0,
            open: Vec::new(),
            left_out: 0,
        }
    }

    fn push(&mut self, line: &str) {
        self.open.extend_from_slice(line.as_bytes());
        self.open.push(b'\n');
        if self.open.len() >= BLOCK {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let text = std::mem::take(&mut self.open);
        let compressed = compressed(&text);
        if self.tail.is_empty() && self.head_bytes + compressed.len() <= self.limit / 2 {
            self.head_bytes += compressed.len();
            self.head.push(compressed);
            return;
        }
        self.tail_bytes += compressed.len();
        self.tail.push_back(Block { compressed, text_bytes: text.len() as u64 });
        while self.tail_bytes > self.limit / 2 && self.tail.len() > 1 {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.compressed.len();
            self.left_out += oldest.text_bytes;
        }
    }
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail; should it, the block is short, and said to be.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

fn decompressed(block: &[u8]) -> String {
    let mut bytes = Vec::new();
    // It is our own; what can be read of it is given.
    let _ = GzDecoder::new(block).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(full: &FullText) -> String {
        (0..).map_while(|index| full.block(index)).collect()
    }

    #[test]
    fn what_fits_comes_back_as_it_was() {
        let full = FullText::new(1 << 20);
        let lines: Vec<_> = (0..50_000).map(|number| format!("line {number} ü")).collect();
        for line in &lines {
            full.push(line);
        }
        assert_eq!(text(&full), format!("{}\n", lines.join("\n")));
        assert!(full.memory() < 1 << 20, "{}", full.memory());
    }

    #[test]
    fn of_what_does_not_fit_begin_and_end_stay() {
        let full = FullText::new(1024 * 1024);
        for number in 0_u64..400_000 {
            // Hard to compress.
            full.push(&format!("{number} {:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)));
        }
        let text = text(&full);
        assert!(
            text.starts_with("0 0\n1 ")
                && text.trim_end().lines().next_back().unwrap().starts_with("399999 ")
        );
        assert!(text.contains(&format!("[… {} bytes left out …]", full.left_out())));
        assert!(full.left_out() > 0 && full.memory() < 1536 * 1024, "{}", full.memory());
    }
}
