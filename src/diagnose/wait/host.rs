//! Where a host name points, seen from a Pod.

use std::net::IpAddr;

/// What a host name is, for a Pod with cluster DNS (`dnsPolicy: ClusterFirst`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostKind {
    /// A Service of the cluster, or a name that may be one.
    Service {
        /// The Service's name, lower case.
        name: String,
        /// Its namespace, lower case.
        namespace: String,
        /// The name has the form `a.b`: Service `a` in namespace `b` if that namespace exists, else outside. (That of the
        /// Pod itself does.)
        ambiguous: bool,
        /// The first label of a name such as `db-0.db.shop.svc`: a record of a headless Service.
        pod_hostname: Option<String>,
    },
    /// An IPv4 or IPv6 address: no name is resolved.
    IpLiteral,
    /// The Pod itself.
    Localhost,
    /// A name outside the cluster's Services.
    External,
    /// No name that could ever resolve.
    Malformed(Malformed),
}

/// Why a host is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing is left.
    Empty,
    /// It is written with a scheme, such as `tcp://db`, where a bare name is expected.
    ContainsScheme,
    /// A template or example was not filled in: `<host>`, `{{ .Values.host }}`, `CHANGEME`.
    Placeholder,
    /// A variable reference reached the program as text: `$(DB_HOST)`, `${DB_HOST}`.
    UnresolvedVariable,
    /// A character that no DNS name has, a label or name that is too long, or an empty label.
    InvalidName,
}

/// Domains that stand for the cluster behind `.svc.`, beside whatever the cluster calls itself.
const SERVICE_LABEL: &str = "svc";

/// Says where `host` points for a Pod in `pod_namespace`.
///
/// The rules are those of the search list that the kubelet writes (`<ns>.svc.<domain>`, `svc.<domain>`, `<domain>`)
/// and of the CoreDNS kubernetes plugin. Case and a trailing dot do not count; a port and IPv6 brackets are taken off;
/// a scheme is an error. The cluster's domain is not visible in the API: whatever follows `.svc` is taken for it.
pub fn classify_host(host: &str, pod_namespace: &str) -> HostKind {
    let text = host.trim();
    if text.is_empty() {
        return HostKind::Malformed(Malformed::Empty);
    }
    if let Some(problem) = placeholder(text) {
        return HostKind::Malformed(problem);
    }
    if text.contains("://") {
        return HostKind::Malformed(Malformed::ContainsScheme);
    }
    let bare = without_port(text);
    if bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
        return HostKind::Localhost;
    }
    // IPv6 with a zone: fe80::1%eth0.
    if bare.split('%').next().unwrap_or(bare).parse::<IpAddr>().is_ok() {
        return HostKind::IpLiteral;
    }
    let is_absolute = bare.ends_with('.');
    let name = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
    if name.is_empty() {
        return HostKind::Malformed(Malformed::Empty);
    }
    if name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" {
        return HostKind::Localhost;
    }
    if !is_name(&name) {
        return HostKind::Malformed(Malformed::InvalidName);
    }
    service(&name, pod_namespace, is_absolute)
}

fn service(name: &str, pod_namespace: &str, is_absolute: bool) -> HostKind {
    let labels: Vec<&str> = name.split('.').collect();
    let found = |service: &str, namespace: &str, ambiguous: bool, pod: Option<&str>| HostKind::Service {
        name: service.to_owned(),
        namespace: namespace.to_owned(),
        ambiguous,
        pod_hostname: pod.map(str::to_owned),
    };
    match labels.as_slice() {
        // An absolute name is not completed by the search list, and there is no such top-level domain.
        [_] | [_, _] if is_absolute => HostKind::External,
        [service] => found(service, pod_namespace, false, None),
        // That a Pod's own namespace exists is known.
        [service, namespace] => found(service, namespace, *namespace != pod_namespace, None),
        // `_port._proto.svc.ns.svc`: a SRV record.
        [port, protocol, service, namespace, SERVICE_LABEL, ..]
            if port.starts_with('_') && protocol.starts_with('_') =>
        {
            found(service, namespace, false, None)
        }
        [service, namespace, SERVICE_LABEL] if !is_absolute => found(service, namespace, false, None),
        [service, namespace, SERVICE_LABEL, _, ..] => found(service, namespace, false, None),
        [pod, service, namespace, SERVICE_LABEL] if !is_absolute => {
            found(service, namespace, false, Some(pod))
        }
        [pod, service, namespace, SERVICE_LABEL, _, ..] => found(service, namespace, false, Some(pod)),
        // `db-0.db` and `db-0.db.shop` are completed as well; the first has the form of `service.namespace`.
        [pod, service, namespace] if !is_absolute && has_ordinal(pod) && pod_of(pod) => {
            found(service, namespace, true, Some(pod))
        }
        _ => HostKind::External,
    }
}

/// The StatefulSet naming of Pods: `name-ordinal`.
fn has_ordinal(label: &str) -> bool {
    label.rsplit_once('-').is_some_and(|(name, ordinal)| {
        !name.is_empty() && !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn pod_of(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// The Service that an environment variable of a service link names (`POSTGRES_SERVICE_HOST` → `postgres`), which the
/// kubelet sets for each Service of the namespace that exists when the container starts (`enableServiceLinks`).
/// Since `-` became `_`, a name with several words is a guess.
pub fn service_of_link_variable(variable: &str) -> Option<String> {
    let stem = variable.strip_suffix("_SERVICE_HOST").or_else(|| variable.strip_suffix("_SERVICE_PORT"))?;
    (!stem.is_empty()
        && stem.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'))
    .then(|| stem.to_ascii_lowercase().replace('_', "-"))
}

fn placeholder(text: &str) -> Option<Malformed> {
    if text.contains("{{") || (text.contains('<') && text.contains('>')) || text.contains("map[") {
        return Some(Malformed::Placeholder);
    }
    if text.contains('$') || text.contains("%(") {
        return Some(Malformed::UnresolvedVariable);
    }
    let lower = text.to_ascii_lowercase();
    let example = [
        "changeme",
        "change-me",
        "change_me",
        "todo",
        "xxx",
        "your-host",
        "your-db-host",
        "null",
        "undefined",
        "none",
        "nil",
    ];
    (example.contains(&lower.as_str()) || lower.starts_with("replace_") || lower.starts_with("your_"))
        .then_some(Malformed::Placeholder)
}

/// The host without a port and without brackets.
fn without_port(text: &str) -> &str {
    if let Some(inner) = text.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => text,
    }
}

/// A DNS name as resolvers take it; underscores occur in SRV records and in practice.
fn is_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, namespace: &str, ambiguous: bool, pod: Option<&str>) -> HostKind {
        HostKind::Service {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            ambiguous,
            pod_hostname: pod.map(str::to_owned),
        }
    }

    #[test]
    fn hosts_point_where_cluster_dns_says() {
        for (host, kind) in [
            ("postgres", service("postgres", "shop", false, None)),
            ("Postgres:5432", service("postgres", "shop", false, None)),
            ("cassandra.cassandra", service("cassandra", "cassandra", true, None)),
            ("db.data.svc", service("db", "data", false, None)),
            ("db.data.svc.cluster.local", service("db", "data", false, None)),
            ("db.data.svc.cluster.local.:5432", service("db", "data", false, None)),
            ("db.data.svc.k8s.example.org", service("db", "data", false, None)),
            ("db-0.db.data.svc.cluster.local", service("db", "data", false, Some("db-0"))),
            ("db-0.db.data.svc", service("db", "data", false, Some("db-0"))),
            ("db-0.db.data", service("db", "data", true, Some("db-0"))),
            ("_pg._tcp.db.data.svc.cluster.local", service("db", "data", false, None)),
            ("db.example.com", HostKind::External),
            ("github.com", service("github", "com", true, None)),
            ("github.com.", HostKind::External),
            ("a.b.example.org", HostKind::External),
            ("10.0.0.1", HostKind::IpLiteral),
            ("10.0.0.1:5432", HostKind::IpLiteral),
            ("[fd00::1]:5432", HostKind::IpLiteral),
            ("fe80::1%eth0", HostKind::IpLiteral),
            ("::1", HostKind::Localhost),
            ("127.0.0.1:3306", HostKind::Localhost),
            ("LOCALHOST", HostKind::Localhost),
            ("", HostKind::Malformed(Malformed::Empty)),
            (" . ", HostKind::Malformed(Malformed::Empty)),
            ("tcp://10.0.0.1:5432", HostKind::Malformed(Malformed::ContainsScheme)),
            ("$(DB_HOST)", HostKind::Malformed(Malformed::UnresolvedVariable)),
            ("${DB_HOST}", HostKind::Malformed(Malformed::UnresolvedVariable)),
            ("{{ .Values.db }}", HostKind::Malformed(Malformed::Placeholder)),
            ("<db-host>", HostKind::Malformed(Malformed::Placeholder)),
            ("CHANGEME", HostKind::Malformed(Malformed::Placeholder)),
            ("db..shop", HostKind::Malformed(Malformed::InvalidName)),
            ("db host", HostKind::Malformed(Malformed::InvalidName)),
        ] {
            assert_eq!(classify_host(host, "shop"), kind, "{host}");
        }
        assert_eq!(classify_host(&"a".repeat(64), "shop"), HostKind::Malformed(Malformed::InvalidName));
    }

    #[test]
    fn service_links_name_their_service() {
        assert_eq!(service_of_link_variable("MY_DB_SERVICE_HOST").as_deref(), Some("my-db"));
        assert_eq!(service_of_link_variable("DB_HOST"), None);
        assert_eq!(service_of_link_variable("_SERVICE_HOST"), None);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(host in ".{0,80}", namespace in "[a-z]{1,10}") {
            let _ = classify_host(&host, &namespace);
        }
    }
}
