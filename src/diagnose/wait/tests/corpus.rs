//! The init containers of the corpus.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    case: String,
    name: String,
    #[serde(default)]
    image: String,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<EnvEntry>,
    #[serde(default, rename = "envFrom")]
    env_from: bool,
    /// What it waits for, as judged by hand from the command.
    expect: Vec<String>,
    /// Why we do not find that.
    weak: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EnvEntry {
    name: String,
    value: Option<String>,
}

#[test]
fn the_corpus_s_init_containers_wait_for_what_a_person_reads() {
    let text = include_str!("../../../../tests/data/wait/commands.yaml");
    let entries: Vec<Entry> = serde_saphyr::from_str(text).unwrap();
    let mut wrong = Vec::new();
    for entry in &entries {
        let env: Vec<EnvVariable> = entry
            .env
            .iter()
            .map(|one| EnvVariable {
                name: one.name.clone(),
                value: one.value.clone().map_or(EnvValue::Reference, EnvValue::Literal),
            })
            .collect();
        let analysis = analyse(&ContainerCommand {
            image: Some(&entry.image),
            command: &entry.command,
            args: &entry.args,
            env: &env,
            has_env_from: entry.env_from,
        });
        let found = all_shown(&analysis);
        println!("{} {} {:?} {found:?}", entry.case, entry.name, analysis.parsed);
        // An entry that is marked as weak and is found after all has to lose its mark.
        if (found == entry.expect) == entry.weak.is_some() {
            wrong
                .push(format!("{} {}: found {found:?}, expected {:?}", entry.case, entry.name, entry.expect));
        }
    }
    assert!(entries.len() > 250);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
