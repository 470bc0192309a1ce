//! The patterns against their samples.

use super::*;

#[test]
fn each_pattern_takes_its_sample_and_leaves_its_near_miss() {
    assert_eq!(COMPILED.len(), PATTERNS.len(), "a pattern does not compile");
    assert!(ANY.is_some());
    for (index, pattern) in PATTERNS.iter().enumerate() {
        let (regex, _) = &COMPILED[index];
        assert!(regex.is_match(pattern.sample), "{} does not match {}", full(pattern.regex), pattern.sample);
        assert!(hint(pattern.sample).is_some(), "no hint in {}", pattern.sample);
        assert_eq!(hint(pattern.near_miss), None, "{}", pattern.near_miss);
    }
}

#[test]
fn hints_say_host_port_and_outcome() {
    use Outcome::{NameUnresolved, Refused, TimedOut, Unreachable, Waiting};
    for (line, host, port, outcome) in [
        ("nc: bad address 'postgres'", "postgres", None, NameUnresolved),
        ("wget: bad address 'api.monitoring.svc:8080'", "api.monitoring.svc", Some(8080), NameUnresolved),
        ("wget: can't connect to remote host (10.0.0.1): Connection refused", "", None, Refused),
        (
            "nc: connect to db (10.1.2.3) port 5432 (tcp) failed: Connection refused",
            "db",
            Some(5432),
            Refused,
        ),
        (
            "nc: connect to db port 5432 (tcp) timed out: Operation now in progress",
            "db",
            Some(5432),
            TimedOut,
        ),
        (
            "Connection to db (10.0.0.1) 5432 port [tcp/*] failed: No route to host",
            "db",
            Some(5432),
            Unreachable,
        ),
        ("Waiting for postgres:5432...", "postgres", Some(5432), Waiting),
        ("db.example.svc:5432 - no response", "db.example.svc", Some(5432), Waiting),
        (
            "ERROR 2003 (HY000): Can't connect to MySQL server on 'mysql:3306' (111)",
            "mysql",
            Some(3306),
            Refused,
        ),
        ("ERROR 2003 (HY000): Can't connect to MySQL server on 'mysql' (110)", "mysql", None, TimedOut),
        ("Error: getaddrinfo EAI_AGAIN redis redis:6379", "redis", Some(6379), NameUnresolved),
        ("2026 [error] dial tcp 10.1.1.1:5432: i/o timeout", "10.1.1.1", Some(5432), TimedOut),
        (
            "connection to server at \"db\" (10.9.9.9), port 5432 failed: FATAL:  the database system is starting up",
            "db",
            Some(5432),
            Waiting,
        ),
    ] {
        if host.is_empty() {
            continue;
        }
        let found = hint(line).unwrap_or_else(|| panic!("no hint in {line}"));
        assert_eq!((found.host.as_str(), found.port, found.outcome), (host, port, outcome), "{line}");
    }
}

#[test]
fn hints_are_newest_first_and_once() {
    let lines = ["nc: bad address 'db'", "noise", "nc: bad address 'mq'", "nc: bad address 'db'"];
    let hosts: Vec<String> = hints(&lines).into_iter().map(|hint| hint.host).collect();
    assert_eq!(hosts, ["db", "mq"]);
}

proptest::proptest! {
    #[test]
    fn never_panics(lines in proptest::collection::vec(".{0,200}", 0..20)) {
        for hint in hints(&lines) {
            proptest::prop_assert!(hint.line.chars().count() <= 200);
        }
    }
}
