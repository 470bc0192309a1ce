//! The messages of tools and loops, with a sample and a near miss for each.

use super::Outcome;

/// One message.
pub(super) struct Pattern {
    pub(super) regex: &'static str,
    /// None: the words in the group `why` tell.
    pub(super) outcome: Option<Outcome>,
    /// A line that matches.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests replay it"))]
    pub(super) sample: &'static str,
    /// A line that looks like it and says nothing about a server.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests replay it"))]
    pub(super) near_miss: &'static str,
}

const fn pattern(
    regex: &'static str,
    outcome: Option<Outcome>,
    sample: &'static str,
    near_miss: &'static str,
) -> Pattern {
    Pattern { regex, outcome, sample, near_miss }
}

const UNRESOLVED: Option<Outcome> = Some(Outcome::NameUnresolved);
const REFUSED: Option<Outcome> = Some(Outcome::Refused);
const WAITING: Option<Outcome> = Some(Outcome::Waiting);

/// In the order in which they are tried; the first that matches decides. `{host}`, `{port}`, and `{why}` for the
/// words of an error.
pub(super) const PATTERNS: [Pattern; 33] = [
    pattern(
        r"nc: bad address ['‘`]?{host}['’]?",
        UNRESOLVED,
        "nc: bad address 'postgres'",
        "nc: bad port '54x2'",
    ),
    pattern(
        r"(?:ping|telnet|wget|nslookup): (?:bad address|unknown host|unable to resolve host address) ['‘]?{host}(?::{port})?['’]?",
        UNRESOLVED,
        "wget: bad address 'agent-api.monitoring.svc:8080'",
        "wget: bad option 'x'",
    ),
    pattern(
        r"nc: getaddrinfo for host \x22{host}\x22 port {port}: ",
        UNRESOLVED,
        "nc: getaddrinfo for host \"db\" port 5432: Name or service not known",
        "nc: getopt for host: x",
    ),
    pattern(
        r#"could not translate host name "{host}" to address"#,
        UNRESOLVED,
        "psql: error: could not translate host name \"db\" to address: Name or service not known",
        "could not translate message to address",
    ),
    pattern(
        r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) {host}(?: [A-Za-z0-9_.\-]+)?(?::{port})?",
        UNRESOLVED,
        "Error: getaddrinfo ENOTFOUND redis-master",
        "getaddrinfo ECONNREFUSED",
    ),
    pattern(
        r"UnknownHostException: {host}\b",
        UNRESOLVED,
        "java.net.UnknownHostException: kafka-0.kafka: Name or service not known",
        "java.net.UnknownServiceException: foo",
    ),
    pattern(
        r"dial tcp: lookup {host}(?: on [^ ]+)?: (?:no such host|server misbehaving|i/o timeout|Temporary failure)",
        UNRESOLVED,
        "dial tcp: lookup postgres on 10.96.0.10:53: no such host",
        "dial tcp: missing address",
    ),
    pattern(
        r"curl: \(6\) Could(?:n't| not) resolve host:? '?{host}'?",
        UNRESOLVED,
        "curl: (6) Could not resolve host: keycloak",
        "curl: (60) SSL certificate problem: x",
    ),
    pattern(
        r"(?:nslookup: can't resolve|server can't find|can't resolve|can't find) '?{host}'?(?::|$|\s)",
        UNRESOLVED,
        "** server can't find mydb.default.svc.cluster.local: NXDOMAIN",
        "nslookup: can't resolve '(null)': x",
    ),
    pattern(
        r"Unknown (?:MySQL|MariaDB) server host '({host})'",
        UNRESOLVED,
        "ERROR 2005 (HY000): Unknown MySQL server host 'mysql' (-2)",
        "Unknown MySQL server option 'mysql'",
    ),
    pattern(
        r"Could not connect to (?:Redis|Valkey) at {host}:{port}: (?:Name|Temporary|Try again|nodename)",
        UNRESOLVED,
        "Could not connect to Redis at redis-master:6379: Name or service not known",
        "Could not connect to Redis now",
    ),
    pattern(
        r"Host {host} not found: [23]\(",
        UNRESOLVED,
        "Host cassandra not found: 3(NXDOMAIN)",
        "Host cassandra not found in cache",
    ),
    pattern(
        r#"(?:could not resolve|failed to resolve|unable to resolve|cannot resolve)(?: host(?:name)?)?:? ['"]?{host}['"]?(?::{port})?(?:$|[\s:,;(])"#,
        UNRESOLVED,
        "failed to resolve host 'zookeeper'",
        "could not resolve all dependencies for configuration ':x'",
    ),
    pattern(
        r#"Name or service not known[^\n]{0,40}\bhost(?:=|: )['"]?{host}"#,
        UNRESOLVED,
        "socket.gaierror: Name or service not known host='db'",
        "Name or service not known",
    ),
    pattern(
        r#"connection to server at "{host}"(?: \([^)]*\))?, port {port} failed: {why}"#,
        None,
        "connection to server at \"db\" (10.96.3.4), port 5432 failed: Connection refused",
        "connection to server at pool failed",
    ),
    pattern(
        r"nc: (?:connect to )?{host} (?:\([^)]*\) )?(?:port )?\(?{port}\)? \(tcp\) (?:failed|timed out)?:? ?{why}",
        None,
        "nc: connect to db port 5432 (tcp) failed: Connection refused",
        "nc: connect to port",
    ),
    pattern(
        r"nc: {host} \((?:[0-9a-f.:]+):{port}\): {why}",
        None,
        "nc: db (10.96.3.4:5432): Connection refused",
        "nc: db (tcp): open",
    ),
    pattern(
        r"Connection to {host} (?:\([^)]*\) )?{port} port \[tcp/[^\]]*\] failed: {why}",
        None,
        "Connection to db (10.0.0.1) 5432 port [tcp/postgresql] failed: Connection refused",
        "Connection to db (10.0.0.1) 5432 port [tcp/postgresql] succeeded!",
    ),
    pattern(
        r"curl: \((?:7|28)\) (?:Failed to connect|Connection timeout|connect) to {host} port {port}(?: after \d+ ms)?:? ?{why}",
        None,
        "curl: (7) Failed to connect to es port 9200 after 3 ms: Connection refused",
        "curl: (7) Failed to open file",
    ),
    pattern(
        r"connect to host {host} port {port}: {why}",
        None,
        "ssh: connect to host git port 22: Connection timed out",
        "connect to host port",
    ),
    pattern(
        r"Can't connect to (?:MySQL|MariaDB) server on '(?:{host})(?::{port})?' \({why}",
        None,
        "ERROR 2003 (HY000): Can't connect to MySQL server on 'mysql:3306' (111)",
        "Can't connect to local MySQL server through socket '/run/mysqld.sock' (2)",
    ),
    pattern(
        r"Could not connect to (?:Redis|Valkey) at {host}:{port}: {why}",
        None,
        "Could not connect to Redis at redis:6379: Connection refused",
        "Could not connect to Redis cluster: x",
    ),
    pattern(
        r"connect (ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) {host}:{port}",
        None,
        "Error: connect ECONNREFUSED 10.96.3.4:5432",
        "connect ECONNREFUSED /var/run/x.sock",
    ),
    pattern(
        r"dial tcp {host}:{port}: (?:connect: )?{why}",
        None,
        "dial tcp 10.96.3.4:5432: connect: connection refused",
        "dial tcp: address x",
    ),
    pattern(
        r"(?:HTTPS?Connection(?:Pool)?|NewConnectionError)[^\n]{0,40}\(host='{host}', port='?{port}'?\).{0,300}?{why}",
        None,
        "HTTPConnectionPool(host='es', port=9200): Max retries exceeded (Caused by NewConnectionError: [Errno 111] Connection refused)",
        "HTTPConnectionPool(size=3)",
    ),
    pattern(
        r"Connection to {host}:{port} refused",
        REFUSED,
        "org.postgresql.util.PSQLException: Connection to db:5432 refused. Check that the hostname and port are correct",
        "Connection to the pool refused",
    ),
    pattern(
        r#"connect(?:ion)?(?: to)? (?:server )?(?:at )?\(?['"]?{host}['"]?(?:[:,]| port) ?{port}\)?[^\n]{0,60}?: ?{why}"#,
        None,
        "failed to connect to kafka:9092: Connection refused",
        "connection to server closed",
    ),
    pattern(
        r"^(?:/[^ :]+)?{host}:{port} - (?:no response|rejecting connections)",
        WAITING,
        "db:5432 - no response",
        "db:5432 - accepting connections",
    ),
    pattern(
        r"timeout occurred after waiting (?:\d+ seconds )?for {host}:{port}",
        Some(Outcome::TimedOut),
        "wait-for-it.sh: timeout occurred after waiting 15 seconds for db:5432",
        "timeout occurred after waiting 15 seconds",
    ),
    pattern(
        r"(?i)\bwaiting (?:\d+ seconds )?(?:for|on|until)[^\n]{0,30}? (?:tcp://|https?://|postgres(?:ql)?://)?{host}:{port}\b",
        WAITING,
        "Waiting for postgres:5432...",
        "waiting for 10:30 to pass",
    ),
    pattern(
        r"(?i)\bwaiting for:? (?:tcp|https?)://{host}(?::{port})?",
        WAITING,
        "Waiting for: tcp://db:5432",
        "Waiting for file:///x",
    ),
    pattern(
        r"(?i)\bwaiting for (?:host|service|server|hostname) ['\x22]?{host}['\x22]?(?: port {port})?(?: ?\.\.\.?|$|[\s,])",
        WAITING,
        "Waiting for host db.example.svc",
        "waiting for servers",
    ),
    pattern(
        r"(?i)\bwaiting for ['\x22]?{name}['\x22]?(?: service)?(?: ?\.{2,3})?$",
        WAITING,
        "waiting for mydb-postgresql...",
        "waiting for database",
    ),
];
