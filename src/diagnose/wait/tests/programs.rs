//! Programs that are run without a shell, and images that wait by themselves.

use rstest::rstest;

use super::*;

struct Container {
    image: &'static str,
    command: &'static [&'static str],
    args: &'static [&'static str],
    env: &'static [&'static str],
}

const NONE: Container = Container { image: "", command: &[], args: &[], env: &[] };

#[rstest]
#[case(Container { image: "ghcr.io/groundnuty/k8s-wait-for:v2.0", args: &["job", "migrate", "-n", "db"], ..NONE },
    &["object job/migrate -n db (complete) forever"])]
#[case(Container { image: "mirror/wait:1", args: &["pod", "-lapp=db"], ..NONE }, &["object pod -l app=db (ready) forever"])]
#[case(Container { image: "mirror/wait:1", args: &["service", "$(NAME)"], env: &["NAME"], ..NONE },
    &["object service/$NAME (ready) forever"])]
#[case(Container { image: "willwill/wait-for-it", args: &["db:5432", "-t", "30"], ..NONE }, &["tcp db:5432"])]
#[case(Container { command: &["/wait-for-it.sh", "db:5432", "--", "echo"], ..NONE }, &["tcp db:5432"])]
#[case(Container { image: "jwilder/dockerize", args: &["-wait", "tcp://db:5432", "-wait=http://api/x", "-timeout", "0s"], ..NONE },
    &["tcp db:5432 forever", "http api:80 forever"])]
#[case(Container { image: "atkrad/wait4x:2.12", args: &["tcp", "db:5432", "--timeout", "60s"], ..NONE }, &["tcp db:5432"])]
#[case(Container { image: "wait4x/wait4x", args: &["mysql", "root:pw@tcp(db:3306)/x", "-t", "0"], ..NONE }, &["tcp db:3306 forever"])]
#[case(Container { command: &["kubectl", "wait", "--for=condition=complete", "job/a", "job/b", "--timeout=60s"], ..NONE },
    &["object job/a (complete)", "object job/b (complete)"])]
#[case(Container { command: &["timeout", "60", "bash", "-c", "until nc -z db 1; do sleep 1; done"], ..NONE }, &["tcp db:1"])]
#[case(Container { command: &["/bin/sh"], args: &["-c", "--", "until nc -z db 1; do sleep 1; done"], ..NONE }, &["tcp db:1 forever"])]
#[case(Container { command: &["bash", "-elc"], args: &["until nc -z db 1; do sleep 1; done"], ..NONE }, &["tcp db:1 forever"])]
#[case(Container { command: &["bash", "-eo", "pipefail", "-c", "until nc -z $0 $1; do sleep 1; done", "x", "1"], ..NONE },
    &["tcp $0:1 forever"])]
#[case(Container { command: &["pg_isready", "-h", "$(HOST)"], env: &["HOST=pg"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["pg_isready", "-h", "$$(HOST)"], env: &["HOST=pg"], ..NONE }, &["tcp $(HOST):5432 once"])]
#[case(Container { command: &["migrate", "-database", "$(DB)", "up"], env: &["DB=postgres://u:pw@pg:5432/x"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["flyway", "-url=jdbc:postgresql://pg/x", "migrate"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["./app"], env: &["DATABASE_URL=postgresql+psycopg2://u:p@pg/x"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["./app"], env: &["REDIS_HOST=r", "REDIS_PORT=6380", "HTTP_PROXY=http://proxy:3128"], ..NONE }, &["tcp r:6380 once"])]
#[case(Container { command: &["chown", "-R", "1:1", "/data"], env: &["DB_HOST=db"], ..NONE }, &[])]
#[case(Container { command: &["python", "-c", "import socket,time\nwhile True:\n  try:\n    s=socket.socket(); s.connect((os.environ['DB_HOST'], int(os.environ['DB_PORT']))); break\n  except Exception: time.sleep(1)"], env: &["DB_HOST=pg", "DB_PORT=5432"], ..NONE },
    &["tcp pg:5432 forever"])]
#[case(Container { command: &["node", "-e", "const net=require('net');net.connect(5432,'pg').on('connect',()=>process.exit(0))"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["node", "-e", "require('net').createConnection({host: 'pg', port: 5432})"], ..NONE }, &["tcp pg:5432 once"])]
#[case(Container { command: &["python3", "-c", "import requests; requests.get('http://api:8080/x')"], ..NONE }, &["http api:8080 once"])]
#[case(NONE, &[])]
fn programs_wait_for(#[case] container: Container, #[case] expected: &[&str]) {
    let (command, args, env) =
        (strings(container.command), strings(container.args), environment(container.env));
    let analysis = analyse(&ContainerCommand {
        image: Some(container.image),
        command: &command,
        args: &args,
        env: &env,
        has_env_from: false,
    });
    assert_eq!(all_shown(&analysis), expected, "{command:?} {args:?}");
    assert!(!format!("{analysis:?}").contains("pw"), "{analysis:?}");
}

#[rstest]
#[case("postgres://u:s3/c?r#e@t@db:5432/app", "tcp db:5432 once")]
#[case("mysql://u:s3c,ret@db/app?x=1", "tcp db:3306 once")]
#[case("http://u:s3c/ret@db/app", "http db:80 once")]
#[case("jdbc:sqlserver://db:1433;databaseName=a;password=s3cret", "tcp db:1433 once")]
#[case("jdbc:oracle:thin:@//db:1521/x", "tcp db:1521 once")]
#[case("redis://:s3cret@[fd00::1]:6380/0", "tcp fd00::1:6380 once")]
fn urls_lose_their_passwords(#[case] url: &str, #[case] expected: &str) {
    let command = strings(&["./wait-for-db", url]);
    let analysis = analyse(&ContainerCommand { command: &command, ..ContainerCommand::default() });
    assert_eq!(all_shown(&analysis), [expected]);
    let text = format!("{analysis:?}");
    assert!(!text.contains("s3") && !text.contains("ret@"), "{text}");
}

#[test]
fn with_env_from_any_name_may_be_set() {
    let command = strings(&["sh", "-c", "until nc -z ${DB_HOST:-db} $(PORT); do sleep 1; done"]);
    let analysis =
        analyse(&ContainerCommand { command: &command, has_env_from: true, ..ContainerCommand::default() });
    assert_eq!(all_shown(&analysis), ["tcp $DB_HOST:$PORT forever"]);
}
