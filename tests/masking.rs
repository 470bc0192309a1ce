//! What is masked of two hundred secrets, and what of two hundred lines that look alike.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that fails must say so"
)]

use std::collections::BTreeMap;

use initwatch::diagnose::log::Masker;

const POSITIVES: &str = include_str!("masking/positives.txt");
const LOOKALIKES: &str = include_str!("masking/lookalikes.txt");
const MASK: &str = "[masked]";

/// Samples by kind.
fn samples(text: &str) -> Vec<(&str, String)> {
    let mut kind = "";
    let mut samples = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("## ") {
            Some(name) => kind = name,
            None if line.is_empty() || line.starts_with("# ") => {}
            None => samples.push((kind, line.replace('⏎', "\n"))),
        }
    }
    samples
}

/// What is wrong with a masked positive: a secret that is still there, or ordinary text that is gone.
fn fault(sample: &str, masked: &str) -> Option<String> {
    let mut rest = masked;
    for (index, part) in sample.split(['«', '»']).enumerate() {
        let is_secret = index % 2 == 1;
        if is_secret && masked.contains(part) {
            return Some(format!("{part:?} is still there"));
        }
        // Between two secrets of one block nothing but the break needs to stay.
        if !is_secret && !part.trim().is_empty() {
            let Some(at) = rest.find(part.trim()) else { return Some(format!("{part:?} is gone")) };
            rest = &rest[at + part.trim().len()..];
        }
    }
    None
}

#[test]
fn secrets_go_and_what_looks_alike_stays() {
    let masker = Masker::shipped();
    let mut table: BTreeMap<(bool, &str), (usize, usize)> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut note = |is_secret: bool, kind, wrong: Option<String>| {
        let row = table.entry((is_secret, kind)).or_default();
        row.0 += 1;
        match wrong {
            None => row.1 += 1,
            Some(wrong) => faults.push(format!("{kind}: {wrong}")),
        }
    };
    let (positives, lookalikes) = (samples(POSITIVES), samples(LOOKALIKES));
    for (kind, sample) in &positives {
        let plain = sample.replace(['«', '»'], "");
        let after = masker.mask(&plain, &[]).text.into_owned();
        let wrong = fault(sample, &after).map(|wrong| format!("{wrong}: {plain:?} became {after:?}"));
        note(true, kind, wrong);
    }
    for (kind, sample) in &lookalikes {
        let after = masker.mask(sample, &[]).text.into_owned();
        note(false, kind, (after != *sample).then(|| format!("{sample:?} became {after:?}")));
    }
    println!("{:<32} {:>5} {:>6}", "", "all", "right");
    let mut totals = [(0, 0), (0, 0)];
    for ((is_secret, kind), (all, right)) in &table {
        println!("{:<10} {kind:<21} {all:>5} {right:>6}", if *is_secret { "secret" } else { "look-alike" });
        let total = &mut totals[usize::from(!is_secret)];
        *total = (total.0 + all, total.1 + right);
    }
    for (name, (all, right)) in ["recall", "look-alikes untouched"].iter().zip(totals) {
        println!("{name}: {right} of {all}");
        assert!(all >= 150, "too few to say anything");
        if right < all {
            println!("{}", faults.join("\n"));
        }
        assert!(right * 100 >= all * 99, "{name}: {right} of {all}\n{}", faults.join("\n"));
    }
}

#[test]
fn masking_what_is_masked_changes_nothing() {
    let masker = Masker::shipped();
    for (_, sample) in samples(POSITIVES) {
        let once = masker.mask(&sample.replace(['«', '»'], ""), &[]).text.into_owned();
        assert!(once.contains(MASK), "{once}");
        assert_eq!(masker.mask(&once, &[]).text, once);
    }
}
