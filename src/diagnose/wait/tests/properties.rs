//! Whatever the input: no panic, and within bounds.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Pieces of scripts: random rows of them nest, break and negate like nothing that a person writes.
const PIECES: [&str; 48] = [
    "until ",
    "while ",
    "! ",
    "nc -z db 5432",
    "; ",
    "do ",
    "done",
    "sleep 1",
    "\n",
    "if ",
    "then ",
    "else ",
    "fi",
    "for h in a b",
    "(",
    ")",
    "{ ",
    "}",
    "$(",
    "`",
    "\"",
    "'",
    "&& ",
    "|| ",
    "| ",
    "& ",
    "f() { ",
    "f ",
    "case $x in ",
    "a) ",
    ";; ",
    "esac",
    "[[ ",
    "]]",
    "[ -f /x ]",
    "((",
    "))",
    "${A:-",
    "$A",
    "A=$A$A",
    "<<EOF\n",
    "EOF\n",
    "eval ",
    "sh -c ",
    "</dev/tcp/a/1",
    "exit 1",
    "break",
    "\\",
];

fn check(words: &[String], env: &[EnvVariable]) -> Result<(), TestCaseError> {
    let started = Instant::now();
    for (command, args) in [(words, &[][..]), (&[][..], words)] {
        for has_env_from in [false, true] {
            let analysis = analyse(&ContainerCommand { image: Some("x"), command, args, env, has_env_from });
            prop_assert!(analysis.targets.len() <= MAX_TARGETS);
            for target in &analysis.targets {
                prop_assert!(target.evidence.chars().count() <= MAX_EVIDENCE_CHARS);
                let text = format!("{target:?}");
                prop_assert!(!text.contains("u{e000}") && !text.contains("u{e001}"), "a mark is left");
            }
        }
    }
    prop_assert!(started.elapsed() < Duration::from_secs(5), "{words:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_words(words in proptest::collection::vec("\\PC{0,60}", 0..6), value in "\\PC{0,30}") {
        let env = [EnvVariable { name: "A".into(), value: EnvValue::Literal(value) }];
        check(&words, &env)?;
    }

    #[test]
    fn any_script(pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60)) {
        check(&strings(&["sh", "-c", &pieces.concat()]), &environment(&["A=$(A)$(A)", "B"]))?;
    }

    #[test]
    fn any_tool(
        tool in proptest::sample::select(vec!["nc", "psql", "mysql", "curl", "kubectl", "wait-for-it.sh", "dockerize", "wait4x",
            "mongo", "dig", "getent", "timeout", "env", "sudo", "sh", "python", "su", "k8s-wait-for", "wait-port", "etcdctl"]),
        words in proptest::collection::vec("(-{0,2}[a-zA-Z]{0,8}[=:@/ ]?\\PC{0,12})|wait|get|--|-c|-e", 0..8),
    ) {
        let mut command = strings(&[tool]);
        command.extend(words);
        check(&command, &[])?;
    }
}

#[test]
fn expansions_do_not_grow_without_bound() {
    let env: Vec<EnvVariable> = (1..200)
        .map(|index| EnvVariable {
            name: format!("A{index}"),
            value: EnvValue::Literal(format!("$(A{0})$(A{0})xx", index - 1)),
        })
        .collect();
    let lines: String = (0..200).map(|_| "B=$B$B$A199;".to_owned()).collect();
    check(&strings(&["sh", "-c", &format!("B=x;{lines} until nc -z $B 1; do sleep 1; done")]), &env).unwrap();
}

#[test]
fn large_scripts_are_searched_and_targets_are_bounded() {
    let line = "until nc -z db 5432; do sleep 1; done\n";
    let script = line.repeat(2 * MAX_SCRIPT_BYTES / line.len());
    let analysis = of_script(&script, &[]);
    assert_eq!(analysis.parsed, Parsed::Tolerant);
    assert_eq!(analysis.targets.len(), 1);
    let lines: Vec<String> =
        (0..100).map(|index| format!("until nc -z db{index} 1; do sleep 1; done\n")).collect();
    let script = lines.concat();
    assert_eq!(of_script(&script, &[]).targets.len(), MAX_TARGETS);
}
