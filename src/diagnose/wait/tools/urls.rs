//! Connection URLs and addresses in arguments and variables. Users and passwords are dropped at once.

use super::Found;
use crate::diagnose::wait::marked;
use crate::diagnose::wait::types::{Port, Protocol, TargetKind};

/// Schemes that name a server, with the port that their clients use when none is written.
const SCHEMES: [(&str, u16, Protocol); 38] = [
    ("http", 80, Protocol::Http),
    ("https", 443, Protocol::Https),
    ("ws", 80, Protocol::Http),
    ("wss", 443, Protocol::Https),
    ("tcp", 0, Protocol::Tcp),
    ("tcp4", 0, Protocol::Tcp),
    ("udp", 0, Protocol::Udp),
    ("tls", 0, Protocol::Tcp),
    ("postgres", 5432, Protocol::Tcp),
    ("postgresql", 5432, Protocol::Tcp),
    ("pgsql", 5432, Protocol::Tcp),
    ("postgis", 5432, Protocol::Tcp),
    ("ecto", 5432, Protocol::Tcp),
    ("cockroachdb", 26257, Protocol::Tcp),
    ("mysql", 3306, Protocol::Tcp),
    ("mysql2", 3306, Protocol::Tcp),
    ("mariadb", 3306, Protocol::Tcp),
    ("sqlserver", 1433, Protocol::Tcp),
    ("mssql", 1433, Protocol::Tcp),
    ("oracle", 1521, Protocol::Tcp),
    ("mongodb", 27017, Protocol::Tcp),
    ("mongodb+srv", 0, Protocol::Tcp),
    ("redis", 6379, Protocol::Tcp),
    ("rediss", 6379, Protocol::Tcp),
    ("sentinel", 26379, Protocol::Tcp),
    ("memcached", 11211, Protocol::Tcp),
    ("amqp", 5672, Protocol::Tcp),
    ("amqps", 5671, Protocol::Tcp),
    ("rabbitmq", 5672, Protocol::Tcp),
    ("kafka", 9092, Protocol::Tcp),
    ("nats", 4222, Protocol::Tcp),
    ("clickhouse", 9000, Protocol::Tcp),
    ("cassandra", 9042, Protocol::Tcp),
    ("ldap", 389, Protocol::Tcp),
    ("ldaps", 636, Protocol::Tcp),
    ("neo4j", 7687, Protocol::Tcp),
    ("bolt", 7687, Protocol::Tcp),
    ("ssh", 22, Protocol::Tcp),
];

/// Most servers that are taken from one URL or list.
const MAX_SERVERS: usize = 8;

/// The servers that a marked text names as a URL, a JDBC URL, or a Go MySQL DSN; empty if it names none.
pub(in crate::diagnose::wait) fn servers(text: &str) -> Vec<TargetKind> {
    let text = text.trim().trim_matches(['"', '\'']);
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    if let Some(rest) = text.strip_prefix("oracle:thin:@") {
        return authority(rest.trim_start_matches('/'), 1521, Protocol::Tcp);
    }
    if let Some((_, rest)) = text.split_once("@tcp(")
        && let Some((address, _)) = rest.split_once(')')
    {
        return authority(address, 3306, Protocol::Tcp);
    }
    // What git calls the scp form: git@host:path.
    if let Some((host, _)) = text.strip_prefix("git@").and_then(|rest| rest.split_once(':')) {
        return vec![host_and_port(host, None, 22, Protocol::Tcp)];
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Vec::new();
    };
    let full = scheme.rsplit(':').next().unwrap_or(scheme).to_ascii_lowercase();
    // SQLAlchemy writes the driver behind a plus: postgresql+psycopg2.
    let base = if full == "mongodb+srv" { full.as_str() } else { full.split('+').next().unwrap_or("") };
    let known = SCHEMES.iter().find(|(name, _, _)| *name == base);
    match known {
        Some((_, port, protocol)) => authority(rest, *port, *protocol),
        None => Vec::new(),
    }
}

/// The part of a URL behind `scheme://`, which may list several servers.
fn authority(rest: &str, default_port: u16, protocol: Protocol) -> Vec<TargetKind> {
    let ends = ['/', '?', ';', '#'];
    let authority = rest.split(ends).next().unwrap_or("");
    let web = matches!(protocol, Protocol::Http | Protocol::Https);
    let is_user = |text: &str| {
        text.split_once(':')
            .is_some_and(|(_, port)| marked::to_port(port).is_none_or(|port| matches!(port, Port::Named(_))))
    };
    let hosts = match (authority.rsplit_once('@'), rest.rsplit_once('@')) {
        (Some((_, hosts)), _) if web => hosts,
        // A password may hold any of the characters that end an authority, while the path of a web address may hold
        // an at sign.
        (_, Some((_, behind))) if !web || is_user(authority) => behind.split(ends).next().unwrap_or(""),
        _ => authority,
    };
    hosts
        .split(',')
        .take(MAX_SERVERS)
        .filter_map(|address| network(address, default_port, protocol))
        // What is no number is no port of a URL, but perhaps a part of a password.
        .filter(|kind| !matches!(kind, TargetKind::Network { port: Some(Port::Named(_)), .. }))
        .collect()
}

/// A target for `host:port`, `host` or `[::1]:port`; none for an empty host. Port 0 is no default.
pub(super) fn network(address: &str, default_port: u16, protocol: Protocol) -> Option<TargetKind> {
    let (host, port) = marked::split_host_port(address.trim());
    if host.is_empty() || host.starts_with('/') {
        return None;
    }
    Some(host_and_port(host, port, default_port, protocol))
}

/// A target for a host and a port, both marked.
pub(super) fn host_and_port(
    host: &str,
    port: Option<&str>,
    default_port: u16,
    protocol: Protocol,
) -> TargetKind {
    let default = || (default_port != 0).then_some(Port::Number(default_port));
    TargetKind::Network {
        host: marked::to_value(host.trim()),
        port: port.and_then(marked::to_port).or_else(default),
        protocol,
    }
}

/// The servers that the words of an unknown program name by URLs (`--url=jdbc:…`, `postgres://…`). Web addresses
/// count only for a program that says it waits, since anybody may be given one for any purpose.
pub(in crate::diagnose::wait) fn connection_urls(words: &[String]) -> Vec<Found> {
    let waits = words.iter().take(3).any(|word| word.contains("wait"));
    words
        .iter()
        .flat_map(|word| {
            let value = word
                .split_once('=')
                .filter(|(name, _)| name.starts_with('-'))
                .map_or(word.as_str(), |(_, value)| value);
            servers(value)
        })
        .filter(|kind| {
            waits || !matches!(kind, TargetKind::Network { protocol: Protocol::Http | Protocol::Https, .. })
        })
        .map(|kind| Found { kind, tool: "connection URL", repeats: None })
        .collect()
}
