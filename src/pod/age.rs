//! Durations as kubectl prints them.

use jiff::SignedDuration;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The longest duration that Go's `time.Duration` can hold (292 years), in seconds. Where two moments lie
/// further apart, `time.Since` answers with this one.
const GO_MAX: i64 = i64::MAX / 1_000_000_000;

/// A duration in the two units that matter: `75s`, `3m20s`, `4h5m`, `2d3h`, `1y40d`.
///
/// The rule of the columns AGE and RESTARTS: `HumanDuration` in
/// `k8s.io/apimachinery/pkg/util/duration/duration.go`. Clocks of two machines differ a little, so one second
/// in the future reads `0s`; more reads `<invalid>`, as there.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().clamp(-GO_MAX, GO_MAX);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, (MINUTE, "m"), (1, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, (HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, (DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// `3m20s`, or `3m` where nothing is left for the smaller unit.
fn two_units(seconds: i64, (large, large_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let (whole, rest) = (seconds / large, seconds % large / small);
    if rest == 0 { format!("{whole}{large_name}") } else { format!("{whole}{large_name}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of `duration_test.go` beside the rule, and its limits.
    #[test]
    fn prints_as_kubectl_does() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (1, "1s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE, "10m"),
            (10 * MINUTE + 59, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + MINUTE, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
            (i64::MAX, "292y"),
            (i64::MIN, "<invalid>"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected, "{seconds} s");
        }
        // Go cuts the fraction off, towards zero.
        assert_eq!(human_duration(SignedDuration::from_millis(-1_999)), "0s");
        assert_eq!(human_duration(SignedDuration::from_millis(119_999)), "119s");
    }
}
