//! Programs that cannot be read: what their variables say about the servers they need.

use super::environment::Environment;
use super::marked;
use super::script::Findings;
use super::tools::{self, Found};
use super::types::{Port, Protocol, TargetKind, Value};

/// Words by which people call servers in variable names, with the usual port.
const SERVERS: [(&str, u16); 41] = [
    ("DB", 0),
    ("DATABASE", 0),
    ("SQL", 0),
    ("PG", 5432),
    ("PGHOST", 5432),
    ("POSTGRES", 5432),
    ("POSTGRESQL", 5432),
    ("PSQL", 5432),
    ("TIMESCALE", 5432),
    ("MYSQL", 3306),
    ("MARIADB", 3306),
    ("MSSQL", 1433),
    ("ORACLE", 1521),
    ("COCKROACH", 26257),
    ("MONGO", 27017),
    ("MONGODB", 27017),
    ("REDIS", 6379),
    ("VALKEY", 6379),
    ("CACHE", 0),
    ("MEMCACHED", 11211),
    ("RABBITMQ", 5672),
    ("RABBIT", 5672),
    ("AMQP", 5672),
    ("MQ", 0),
    ("BROKER", 0),
    ("KAFKA", 9092),
    ("ZOOKEEPER", 2181),
    ("ZK", 2181),
    ("NATS", 4222),
    ("ELASTICSEARCH", 9200),
    ("ELASTIC", 9200),
    ("OPENSEARCH", 9200),
    ("ES", 9200),
    ("CLICKHOUSE", 9000),
    ("CASSANDRA", 9042),
    ("SCYLLA", 9042),
    ("ETCD", 2379),
    ("VAULT", 8200),
    ("MINIO", 9000),
    ("CONSUL", 8500),
    ("LDAP", 389),
];

/// Parts of a name that say that it holds an address.
const ADDRESSES: [&str; 10] =
    ["HOST", "HOSTNAME", "HOSTS", "ADDR", "ADDRESS", "SERVER", "SERVERS", "BROKERS", "NODES", "PGHOST"];

/// Parts of a name that say that a URL in it is the program's own, or is not connected to.
const NOT_DEPENDENCIES: [&str; 21] = [
    "PROXY", "PUBLIC", "CALLBACK", "REDIRECT", "SITE", "ROOT", "EXTERNAL", "OTEL", "OTLP", "SENTRY",
    "HOMEPAGE", "LOGO", "ISSUER", "ORIGIN", "ORIGINS", "CORS", "FRONTEND", "DOCS", "SELF", "APP", "BASE",
];

/// Adds what the variables name, if an unknown program runs. Without one the variables are somebody else's.
pub(super) fn from_environment(environment: &Environment, findings: &mut Findings) {
    let Some(program) = findings.opaque.first().cloned() else {
        return;
    };
    let known_port = |kind: &TargetKind| matches!(kind, TargetKind::Network { host: Value::Known(_), .. });
    let mut found: Vec<(TargetKind, String)> = environment
        .iter()
        .filter_map(|(name, value)| Some((name, target(name, value, environment)?)))
        .map(|(name, kind)| {
            let evidence = format!("{name}={}", host_of(&kind));
            (kind, evidence)
        })
        .collect();
    // A host that is known says more than a connection string in a Secret.
    found.sort_by_key(|(kind, _)| !known_port(kind));
    if found.iter().any(|(kind, _)| known_port(kind)) {
        found.retain(|(kind, _)| known_port(kind));
    }
    for (kind, evidence) in found {
        findings.target(Found { kind, tool: "environment", repeats: None }, &evidence, program.repeats);
    }
}

fn host_of(kind: &TargetKind) -> String {
    match kind {
        TargetKind::Network { host, port: Some(port), .. } => format!("{host}:{port}"),
        TargetKind::Network { host, port: None, .. } => host.to_string(),
        _ => String::new(),
    }
}

fn target(name: &str, value: &str, environment: &Environment) -> Option<TargetKind> {
    let upper = name.to_ascii_uppercase();
    let parts: Vec<&str> = upper.split('_').filter(|part| !part.is_empty()).collect();
    let server = parts.iter().find_map(|part| SERVERS.iter().find(|(word, _)| word == part));
    if let Some(kind) = tools::servers(value).into_iter().next() {
        let web = matches!(kind, TargetKind::Network { protocol: Protocol::Http | Protocol::Https, .. });
        let foreign = parts.iter().any(|part| NOT_DEPENDENCIES.contains(part));
        return (!web || (!foreign && (server.is_some() || names_an_endpoint(&parts)))).then_some(kind);
    }
    let (_, default_port) = server?;
    if parts.iter().any(|part| ADDRESSES.contains(part)) {
        let address = value.split(',').next().unwrap_or("");
        let (host, port) = marked::split_host_port(address);
        if host.is_empty() || host.contains(['/', ' ', '@']) {
            return None;
        }
        let port = port
            .and_then(marked::to_port)
            .or_else(|| port_beside(&upper, environment))
            .or_else(|| (*default_port != 0).then_some(Port::Number(*default_port)));
        return Some(TargetKind::Network { host: marked::to_value(host), port, protocol: Protocol::Tcp });
    }
    // `DATABASE_URL` from a Secret: the variable is all there is to say.
    let holds_url = parts.iter().any(|part| matches!(*part, "URL" | "URI" | "DSN" | "CONN" | "CONNECTION"));
    (holds_url && value == marked::unknown(name)).then(|| TargetKind::Network {
        host: marked::to_value(value),
        port: None,
        protocol: Protocol::Tcp,
    })
}

fn names_an_endpoint(parts: &[&str]) -> bool {
    parts.last().is_some_and(|last| matches!(*last, "URL" | "URI" | "ENDPOINT" | "ADDR" | "ADDRESS" | "HOST"))
}

/// `DB_PORT` beside `DB_HOST`.
fn port_beside(host_name: &str, environment: &Environment) -> Option<Port> {
    ["HOSTNAME", "HOSTS", "HOST", "ADDRESS", "ADDR", "SERVER"].iter().find_map(|word| {
        let wanted = host_name.contains(word).then(|| host_name.replacen(word, "PORT", 1))?;
        environment
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&wanted))
            .and_then(|(_, value)| marked::to_port(value))
    })
}
