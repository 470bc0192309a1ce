//! The clients, and where each names its server.

use super::{Client, Shape, go, grammar};
use crate::diagnose::wait::tools::arguments::Grammar;

const NO_VARIABLES: (&str, &str) = ("", "");

const HOST: &[&str] = &["h", "host"];

/// The clients that are known.
pub(super) const CLIENTS: [Client; 27] = [
    Client {
        names: &["nc", "ncat", "netcat", "nc.openbsd", "nc.traditional"],
        grammar: grammar(
            "wiqspxXIOTGgmeco",
            &["wait", "source", "source-port", "proxy", "idle-timeout", "delay"],
        ),
        shape: Shape::Operands { default_port: 0 },
    },
    Client { names: &["telnet"], grammar: grammar("l", &[]), shape: Shape::Operands { default_port: 23 } },
    Client {
        names: &["cqlsh"],
        grammar: grammar(
            "uperfk",
            &["username", "password", "execute", "request-timeout", "connect-timeout", "file"],
        ),
        shape: Shape::Operands { default_port: 9042 },
    },
    Client { names: &["nslookup"], grammar: grammar("", &[]), shape: Shape::Resolves },
    Client {
        names: &["host", "dig", "drill", "kdig", "getent", "resolveip"],
        grammar: grammar("tcWRNqxpbfky", &[]),
        shape: Shape::Resolves,
    },
    Client {
        names: &["ping", "ping6", "fping"],
        grammar: grammar("cWwistIlmMpQSTtF", &[]),
        shape: Shape::Echo,
    },
    Client {
        names: &["pg_isready", "psql", "pg_dump", "pg_dumpall", "pg_restore", "createdb", "pg_basebackup"],
        grammar: grammar(
            "hpUdtcfvoFLPRTDnj",
            &["host", "port", "username", "dbname", "timeout", "command", "file", "set"],
        ),
        shape: Shape::Options {
            host: HOST,
            port: &["p", "port"],
            url: &["d", "dbname"],
            default_port: 5432,
            variables: ("PGHOST", "PGPORT"),
        },
    },
    Client {
        names: &[
            "mysql",
            "mysqladmin",
            "mysqldump",
            "mysqlcheck",
            "mysqlshow",
            "mariadb",
            "mariadb-admin",
            "mariadb-dump",
            "mariadb-check",
            "mysqlimport",
        ],
        grammar: Grammar {
            short: "huPeDSwi",
            attached: "p",
            long: &[
                "host",
                "user",
                "port",
                "execute",
                "database",
                "socket",
                "protocol",
                "connect-timeout",
                "wait",
            ],
            one_dash: false,
        },
        shape: Shape::Options {
            host: HOST,
            port: &["P", "port"],
            url: &[],
            default_port: 3306,
            variables: ("MYSQL_HOST", "MYSQL_TCP_PORT"),
        },
    },
    Client {
        names: &["mongosh", "mongo", "mongodump", "mongorestore", "mongoimport", "mongoexport"],
        grammar: grammar(
            "uphd",
            &["host", "port", "username", "password", "eval", "uri", "db", "authenticationDatabase", "file"],
        ),
        shape: Shape::Options {
            host: HOST,
            port: &["port"],
            url: &["uri"],
            default_port: 27017,
            variables: NO_VARIABLES,
        },
    },
    Client {
        names: &["redis-cli", "valkey-cli", "keydb-cli"],
        grammar: grammar("hpanuritsd", &["user", "pass", "cacert", "cert", "key", "sni", "timeout"]),
        shape: Shape::Options {
            host: &["h"],
            port: &["p"],
            url: &["u"],
            default_port: 6379,
            variables: NO_VARIABLES,
        },
    },
    Client {
        names: &["clickhouse-client"],
        grammar: grammar("huqd", &["host", "port", "user", "password", "query", "database"]),
        shape: Shape::Options {
            host: HOST,
            port: &["port"],
            url: &[],
            default_port: 9000,
            variables: NO_VARIABLES,
        },
    },
    Client {
        names: &["sqlcmd"],
        grammar: grammar("SUPQdlti", &[]),
        shape: Shape::Address { options: &["S"], default_port: 1433 },
    },
    Client {
        names: &["cockroach"],
        grammar: grammar("eu", &["host", "port", "execute", "certs-dir", "user", "url"]),
        shape: Shape::Options {
            host: HOST,
            port: &["port", "p"],
            url: &["url"],
            default_port: 26257,
            variables: ("COCKROACH_HOST", ""),
        },
    },
    Client {
        names: &[
            "kafka-topics",
            "kafka-topics.sh",
            "kafka-broker-api-versions",
            "kafka-broker-api-versions.sh",
            "kafka-configs",
            "kafka-configs.sh",
            "kafka-acls",
            "kafka-consumer-groups",
            "kafka-consumer-groups.sh",
        ],
        grammar: grammar(
            "",
            &["bootstrap-server", "zookeeper", "broker-list", "command-config", "topic", "partitions"],
        ),
        shape: Shape::Address {
            options: &["bootstrap-server", "broker-list", "zookeeper"],
            default_port: 9092,
        },
    },
    Client {
        names: &["kafkacat", "kcat"],
        grammar: grammar("btXomGpc", &[]),
        shape: Shape::Address { options: &["b"], default_port: 9092 },
    },
    Client {
        names: &["etcdctl"],
        grammar: grammar(
            "",
            &["endpoints", "endpoint", "cacert", "cert", "key", "user", "dial-timeout", "command-timeout"],
        ),
        shape: Shape::Address { options: &["endpoints", "endpoint"], default_port: 2379 },
    },
    Client {
        names: &["openssl"],
        grammar: go(&["connect", "servername", "CAfile", "cert", "key", "proxy", "verify", "starttls"]),
        shape: Shape::Address { options: &["connect"], default_port: 443 },
    },
    Client {
        names: &["grpc_health_probe", "grpc-health-probe"],
        grammar: go(&["addr", "service", "connect-timeout", "rpc-timeout", "user-agent"]),
        shape: Shape::Address { options: &["addr"], default_port: 0 },
    },
    Client {
        names: &["grpcurl"],
        grammar: go(&["d", "H", "max-time", "connect-timeout", "cacert", "proto", "import-path"]),
        shape: Shape::Operands { default_port: 0 },
    },
    Client {
        names: &["rabbitmq-diagnostics", "rabbitmqctl"],
        grammar: grammar("ntp", &["node", "timeout", "vhost"]),
        shape: Shape::Address { options: &["n", "node"], default_port: 25672 },
    },
    Client {
        names: &["rabbitmqadmin"],
        grammar: grammar("HPup", &["host", "port", "username", "password"]),
        shape: Shape::Options {
            host: &["H", "host"],
            port: &["P", "port"],
            url: &[],
            default_port: 15672,
            variables: NO_VARIABLES,
        },
    },
    Client {
        names: &["ldapsearch", "ldapwhoami"],
        grammar: grammar("HhpDwbs", &[]),
        shape: Shape::Options {
            host: &["h"],
            port: &["p"],
            url: &["H"],
            default_port: 389,
            variables: NO_VARIABLES,
        },
    },
    Client {
        names: &["zkCli.sh", "zookeeper-shell", "zookeeper-shell.sh"],
        grammar: go(&["server", "timeout"]),
        shape: Shape::Address { options: &["server"], default_port: 2181 },
    },
    Client {
        names: &["nats"],
        grammar: grammar("s", &["server", "user", "password", "creds"]),
        shape: Shape::Address { options: &["s", "server"], default_port: 4222 },
    },
    Client {
        names: &["curl"],
        grammar: grammar(
            "oHmXduwAbceEFKTUrtYyzxCDPQ",
            &[
                "output",
                "header",
                "max-time",
                "request",
                "data",
                "user",
                "write-out",
                "user-agent",
                "cookie",
                "connect-timeout",
                "retry",
                "retry-delay",
                "retry-max-time",
                "cacert",
                "cert",
                "key",
                "proxy",
                "data-raw",
                "data-binary",
                "url",
                "resolve",
                "connect-to",
                "form",
                "interface",
                "cookie-jar",
            ],
        ),
        shape: Shape::Url,
    },
    Client {
        names: &["wget"],
        grammar: grammar(
            "OoTtPUwaYQ",
            &[
                "output-document",
                "timeout",
                "tries",
                "header",
                "user-agent",
                "post-data",
                "waitretry",
                "user",
                "password",
                "output-file",
            ],
        ),
        shape: Shape::Url,
    },
    Client {
        names: &["git", "http", "https", "httpie", "xh"],
        grammar: grammar("bCc", &["branch", "depth", "timeout", "config"]),
        shape: Shape::Url,
    },
];
