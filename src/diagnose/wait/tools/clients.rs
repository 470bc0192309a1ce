//! Clients of servers: checks that connect once.

mod table;

use self::table::CLIENTS;
use super::arguments::{Arguments, Grammar};
use super::{Found, Lookup, urls};
use crate::diagnose::wait::marked;
use crate::diagnose::wait::types::{LoopShape, Protocol, TargetKind};

/// Where a client's command line names its server.
enum Shape {
    /// `TOOL HOST [PORT]`
    Operands { default_port: u16 },
    /// `TOOL -h HOST -p PORT`, the names of the options in that order; without a host `localhost`.
    Options {
        host: &'static [&'static str],
        port: &'static [&'static str],
        /// Options or operands that may hold a URL or a libpq connection string.
        url: &'static [&'static str],
        default_port: u16,
        /// Variables that the client reads: host and port.
        variables: (&'static str, &'static str),
    },
    /// `TOOL --endpoints HOST:PORT[,…]`
    Address { options: &'static [&'static str], default_port: u16 },
    /// `TOOL NAME`: only resolves.
    Resolves,
    /// `TOOL HOST`: an echo request.
    Echo,
    /// `TOOL URL …`
    Url,
}

/// A client and how to read its command line.
struct Client {
    names: &'static [&'static str],
    grammar: Grammar,
    shape: Shape,
}

const fn grammar(short: &'static str, long: &'static [&'static str]) -> Grammar {
    Grammar { short, attached: "", long, one_dash: false }
}

const fn go(long: &'static [&'static str]) -> Grammar {
    Grammar { short: "", attached: "", long, one_dash: true }
}

/// What a client connects to; none if `name` is no client in our table.
pub(super) fn find(name: &str, words: &[String], lookup: &Lookup<'_>) -> Option<Vec<Found>> {
    let client = CLIENTS.iter().find(|client| client.names.contains(&name))?;
    let tool = client.names.iter().find(|known| **known == name).copied()?;
    let arguments = Arguments::parse(words, client.grammar);
    let kinds = match &client.shape {
        Shape::Operands { default_port } => operands(&arguments, *default_port),
        Shape::Options { host, port, url, default_port, variables } => {
            options(&arguments, (host, port, url), *default_port, *variables, lookup)
        }
        Shape::Address { options, default_port } => arguments
            .values(options)
            .flat_map(|value| value.split(','))
            .filter_map(|address| address_of(address, *default_port))
            .collect(),
        Shape::Resolves => resolved(name, &arguments).into_iter().collect(),
        Shape::Echo => arguments
            .operands
            .first()
            .map(|host| TargetKind::Network {
                host: marked::to_value(host),
                port: None,
                protocol: Protocol::Icmp,
            })
            .into_iter()
            .collect(),
        Shape::Url => web(name, &arguments),
    };
    let repeats =
        (name == "curl" && arguments.has(&["retry"])).then_some(LoopShape { unbounded: false, sleep: None });
    Some(kinds.into_iter().map(|kind| Found { kind, tool, repeats }).collect())
}

fn operands(arguments: &Arguments, default_port: u16) -> Vec<TargetKind> {
    // `nc -l` waits for somebody to connect to it.
    if arguments.has(&["l", "listen"]) {
        return Vec::new();
    }
    let protocol =
        if arguments.has(&["u", "udp"]) && default_port == 0 { Protocol::Udp } else { Protocol::Tcp };
    let Some(first) = arguments.operand(0) else {
        return Vec::new();
    };
    match arguments.operand(1) {
        Some(port) => vec![urls::host_and_port(first, Some(port), default_port, protocol)],
        None => urls::network(first, default_port, protocol).into_iter().collect(),
    }
}

type OptionNames<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str]);

fn options(
    arguments: &Arguments,
    (host, port, url): OptionNames<'_>,
    default_port: u16,
    variables: (&str, &str),
    lookup: &Lookup<'_>,
) -> Vec<TargetKind> {
    let texts = arguments.values(url).chain(arguments.operands.iter().map(String::as_str));
    for text in texts {
        let servers = urls::servers(text);
        if !servers.is_empty() {
            return servers;
        }
        if let Some(server) = libpq(text, default_port) {
            return vec![server];
        }
        // `mongo HOST:PORT/DB`
        if default_port == 27017
            && let Some((address, _)) = text.split_once('/')
            && address.contains(':')
        {
            return urls::network(address, default_port, Protocol::Tcp).into_iter().collect();
        }
    }
    let variable = |name: &str| (!name.is_empty()).then(|| lookup(name)).flatten();
    let host = arguments.value(host).map(str::to_owned).or_else(|| variable(variables.0));
    let port = arguments.value(port).map(str::to_owned).or_else(|| variable(variables.1));
    let host = host.filter(|host| !host.is_empty()).unwrap_or_else(|| "localhost".to_owned());
    // A replica set in mongo's form: `rs0/a:27017,b:27017`.
    let list = host
        .split_once('/')
        .map_or(host.as_str(), |(before, after)| if before.is_empty() { &host } else { after });
    if list.starts_with('/') {
        return vec![urls::host_and_port("localhost", port.as_deref(), default_port, Protocol::Tcp)];
    }
    list.split(',')
        .take(8)
        .filter_map(|address| match port.as_deref() {
            Some(port) => Some(urls::host_and_port(address, Some(port), default_port, Protocol::Tcp)),
            None => urls::network(address, default_port, Protocol::Tcp),
        })
        .collect()
}

/// `host=db port=5432 dbname=app`
fn libpq(text: &str, default_port: u16) -> Option<TargetKind> {
    let value = |name: &str| {
        text.split_whitespace().find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name).then_some(value.trim_matches('\''))
        })
    };
    let host = value("host").or_else(|| value("hostaddr"))?;
    Some(urls::host_and_port(host, value("port"), default_port, Protocol::Tcp))
}

fn address_of(address: &str, default_port: u16) -> Option<TargetKind> {
    if address.contains("://") {
        return urls::servers(address).into_iter().next();
    }
    // ZooKeeper's chroot, and Erlang's rabbit@host.
    let address = address.split('/').next().unwrap_or(address);
    let address = address.rsplit('@').next().unwrap_or(address);
    urls::network(address, default_port, Protocol::Tcp)
}

fn resolved(name: &str, arguments: &Arguments) -> Option<TargetKind> {
    let mut operands = arguments.operands.iter().map(String::as_str);
    let host = if name == "getent" {
        let database = operands.next()?;
        if !matches!(database, "hosts" | "ahosts" | "ahostsv4" | "ahostsv6") {
            return None;
        }
        operands.next()?
    } else {
        // dig takes types, classes, `+options` and `@servers` in any order.
        operands.find(|word| {
            !word.starts_with(['+', '@'])
                && !matches!(
                    word.to_ascii_uppercase().as_str(),
                    "A" | "AAAA" | "SRV" | "CNAME" | "IN" | "ANY" | "TXT"
                )
        })?
    };
    Some(TargetKind::Name { host: marked::to_value(host) })
}

fn web(name: &str, arguments: &Arguments) -> Vec<TargetKind> {
    // Of git only what connects, and of httpie not its method.
    let operands: Vec<&str> = arguments.operands.iter().map(String::as_str).collect();
    if name == "git" {
        let connects =
            operands.first().is_some_and(|word| matches!(*word, "clone" | "ls-remote" | "fetch" | "pull"));
        return if connects {
            operands.iter().flat_map(|word| urls::servers(word)).collect()
        } else {
            Vec::new()
        };
    }
    let urls = arguments.values(&["url"]).chain(operands.iter().copied());
    urls.filter(|word| !matches!(*word, "GET" | "HEAD" | "POST")).take(8).flat_map(web_address).collect()
}

/// `http://host:port/path`, and the same without its scheme.
pub(super) fn web_address(text: &str) -> Vec<TargetKind> {
    if text.contains("://") {
        return urls::servers(text);
    }
    let address = text.split(['/', '?', '#']).next().unwrap_or("");
    let address = address.rsplit('@').next().unwrap_or("");
    urls::network(address, 80, Protocol::Http).into_iter().collect()
}
