//! Shell scripts as people write them.

use std::time::Duration;

use rstest::rstest;

use super::*;

#[rstest]
// Loops and negations.
#[case("until nc -z db 5432; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("while ! nc -z db 5432; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("while ! nc -zvw3 db 5432 > /dev/null 2>&1; do echo waiting; sleep 1; done; echo up", &["tcp db:5432 forever"])]
#[case("until (nc -z db 5432) do sleep 1; done", &["tcp db:5432 forever"])]
#[case("while true; do nc -z db 5432 && break; sleep 2; done", &["tcp db:5432 forever"])]
#[case("while :; do if nc -z db 5432; then break; fi; sleep 2; done", &["tcp db:5432 forever"])]
#[case("while true; do if ! nc -z db 5432; then sleep 2; continue; fi; exit 0; done", &["tcp db:5432 forever"])]
#[case("while pgrep postgres; do sleep 1; done", &[])]
#[case("while nc -z old-db 5432; do echo still up; sleep 1; done", &[])]
#[case("until ! nc -z old-db 5432; do sleep 1; done", &[])]
#[case("nc -z db 5432; while [ $? -ne 0 ]; do sleep 1; nc -z db 5432; done", &["tcp db:5432 once"])]
#[case("n=0; until nc -z db 5432 || [ $n -ge 30 ]; do n=$((n+1)); sleep 1; done", &["tcp db:5432"])]
#[case("n=0; until [ $n -ge 30 ]; do nc -z db 5432 && break; n=$((n+1)); sleep 1; done", &["tcp db:5432"])]
#[case("for i in $(seq 1 60); do nc -z db 5432 && exit 0; sleep 1; done; exit 1", &["tcp db:5432"])]
#[case("for i in 1 2 3 4 5; do if nc -z db 5432; then exit 0; fi; sleep 5; done; exit 1", &["tcp db:5432"])]
#[case("for ((i=0; i<30; i++)); do nc -z db 5432 && break; sleep 1; done", &["tcp db:5432"])]
#[case("timeout 60 sh -c 'until nc -z db 5432; do sleep 1; done'", &["tcp db:5432"])]
#[case("timeout -t 60 sh -c 'until nc -z db 5432; do sleep 1; done'", &["tcp db:5432"])]
#[case("for host in kafka-0 kafka-1; do until nc -z $host.kafka 9092; do sleep 1; done; done",
    &["tcp kafka-0.kafka:9092 forever", "tcp kafka-1.kafka:9092 forever"])]
#[case("for hp in db:5432 mq:5672; do until nc -z ${hp%%:*} ${hp##*:}; do sleep 1; done; done",
    &["tcp db:5432 forever", "tcp mq:5672 forever"])]
#[case("until nc -z a 1 && nc -z b 2; do sleep 1; done", &["tcp a:1 forever", "tcp b:2 forever"])]
#[case("until nc -z a 1; do sleep 1; done\nuntil nc -z b 2; do sleep 1; done", &["tcp a:1 forever", "tcp b:2 forever"])]
// What follows the wait is work.
#[case("until nc -z db 5432; do sleep 1; done; psql -h db -f /schema.sql; curl -O http://cdn/x", &["tcp db:5432 forever"])]
#[case("until nslookup db; do nslookup other; sleep 1; done", &["name db forever"])]
// Checks that are made once.
#[case("nc -z db 5432 || exit 1", &["tcp db:5432 once"])]
#[case("nc -z db 5432 || true", &[])]
#[case("if ! curl -sf http://api:8080/health; then echo down; exit 1; fi", &["http api:8080 once"])]
#[case("sleep 10; nslookup db", &["name db once"])]
// Functions, groups, wrappers.
#[case("wait_for() { until nc -z \"$1\" \"$2\"; do sleep 1; done; }; wait_for db 5432; wait_for mq 5672",
    &["tcp db:5432 forever", "tcp mq:5672 forever"])]
#[case("check() { nc -z db 5432; }\nuntil check; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("f() { f; }; f; until nc -z db 1; do sleep 1; done", &["tcp db:1 forever"])]
#[case("exec bash -c \"until nc -z db 5432; do sleep 1; done\"", &["tcp db:5432 forever"])]
#[case("busybox sh -c 'until nc -z db 5432; do sleep 1; done'", &["tcp db:5432 forever"])]
#[case("eval \"until nc -z db 5432; do sleep 1; done\"", &["tcp db:5432 forever"])]
#[case("(until nc -z db 5432; do sleep 1; done) & wait", &[])]
#[case("nc -l -p 8080", &[])]
// /dev/tcp.
#[case("until timeout 1 bash -c '</dev/tcp/db/5432'; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("while ! (echo > /dev/tcp/db/5432) >/dev/null 2>&1; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until exec 3<>/dev/tcp/db/5432; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until bash -c 'cat < /dev/null > /dev/tcp/$DB_HOST/5432'; do sleep 1; done", &["tcp $DB_HOST:5432 forever"])]
#[case("while ! </dev/tcp/db/5432; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until printf '' 2>>/dev/null >>/dev/tcp/db/5432; do sleep 1; done", &["tcp db:5432 forever"])]
// From well-known charts.
#[case("dockerize -wait \"tcp://$DB_HOST:$DB_PORT\" -wait \"tcp://$REDIS_HOST:$REDIS_PORT\" -timeout 120s",
    &["tcp $DB_HOST:$DB_PORT", "tcp $REDIS_HOST:$REDIS_PORT"])]
#[case(". /opt/bitnami/scripts/libos.sh\ncheck_db() {\n  local result=1\n  if [[ -n $(PGPASSWORD=$P psql -h \"pg\" -U u -tA -c 'select 1') ]]; then result=0; fi\n  return $result\n}\nif ! retry_while \"check_db\"; then\n  error no\n  exit 1\nfi",
    &["tcp pg:5432"])]
#[case("retry_while() { for ((i=1; i<=12; i++)); do \"$@\" && return 0; sleep 5; done; return 1; }\nup() { nc -z mq 5672; }\nretry_while up",
    &["tcp mq:5672"])]
#[case("HOSTS=(es-0.es es-1.es)\nfor h in \"${HOSTS[@]}\"; do until curl -s http://$h:9200; do sleep 1; done; done",
    &["http es-0.es:9200 forever", "http es-1.es:9200 forever"])]
#[case("until [ `curl -s -o /dev/null -w '%{http_code}' http://gitlab-minio:9000/minio/health/live` = 200 ]; do sleep 1; done",
    &["http gitlab-minio:9000 forever"])]
#[case("until [ $(curl -sk -u \"elastic:$PW\" https://es:9200/_cluster/health | jq -r .status) = green ]; do sleep 1; done",
    &["https es:9200 forever"])]
#[case("retry=0; while ! nc -z db 5432; do retry=$((retry+1)); [ $retry -eq 10 ] && exit 1; sleep 1; done", &["tcp db:5432"])]
#[case("C=0; while [ $C -lt 60 ]; do if pg_isready -h pg; then exit 0; fi; let C++; sleep 1; done; exit 1", &["tcp pg:5432"])]
#[case("until [ \"$(getent ahosts kafka-headless | wc -l)\" -ge 3 ]; do sleep 1; done", &["name kafka-headless forever"])]
#[case("until curl -fsI http://localhost:15021/healthz/ready; do sleep 1; done; curl http://api/x", &["http localhost:15021 forever"])]
#[case("set -e\nend=$(( $(date +%s) + 60 ))\nwhile ! nc -z db 5432; do [ $(date +%s) -gt $end ] && exit 1; sleep 1; done", &["tcp db:5432"])]
#[case("cmd=\"nc -z db 5432\"; until $cmd; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until git ls-remote https://git.example/a.git; do sleep 1; done", &["https git.example:443 forever"])]
#[case("nc -zw5 db 5432 && echo ok || (echo failed; exit 1)", &["tcp db:5432 once"])]
#[case("wait-for-port --timeout=120 --host=\"db\" --state=inuse 5432", &["tcp db:5432"])]
#[case("until nc -z db 5432\r\ndo sleep 1\ndone", &["tcp db:5432 forever"])]
#[case("until test -d /var/lib/headscale; do sleep 1; done", &["file /var/lib/headscale forever"])]
#[case("code=\"0\"; while [[ $code != \"200\" && $code != \"301\" ]]; do echo \"not ready, $code\"; code=\"$(curl --insecure -s -o /dev/null -w ''%{http_code}'' http://arango:8529)\"; sleep 5; done",
    &["http arango:8529 forever"])]
#[case("wait_for_db() {\n  counter=0\n  while ! nc -z db 5432; do\n    counter=$((counter+1))\n    if [ $counter == 30 ]; then\n      exit 1\n    fi\n    sleep 5\n  done\n}\nwait_for_db",
    &["tcp db:5432"])]
#[case("until body=$(wget -qO- http://web); do sleep 1; done; echo $body", &["http web:80 forever"])]
#[case("if [ \"$DATABASE\" = postgres ]\nthen\n  while ! nc -z $SQL_HOST $SQL_PORT; do sleep 0.1; done\nfi", &["tcp $SQL_HOST:$SQL_PORT forever"])]
#[case("until nc kafka-0.kafka 9092 -w1; do echo waiting; sleep 2; done;", &["tcp kafka-0.kafka:9092 forever"])]
// Tests of outputs.
#[case("until [ \"$(curl -s -o /dev/null -w '%{http_code}' http://es:9200)\" = \"200\" ]; do sleep 5; done", &["http es:9200 forever"])]
#[case("while [ \"$(curl -s -o /dev/null -w ''%{http_code}'' http://es:9200)\" != \"200\" ]; do sleep 5; done", &["http es:9200 forever"])]
#[case("while [[ \"$(curl -s -o /dev/null -w '%{http_code}' es:9200/_health)\" != 200 ]]; do sleep 5; done", &["http es:9200 forever"])]
#[case("while [ -z \"$(nslookup db)\" ]; do sleep 1; done", &["name db forever"])]
#[case("while true; do code=$(curl -s -o /dev/null -w '%{http_code}' http://api/x); if [ $code -eq 200 ]; then break; fi; sleep 1; done", &["http api:80 forever"])]
#[case("until [[ $(kubectl get job migrate -o jsonpath='{.status.succeeded}') == 1 ]]; do sleep 3; done", &["object job/migrate (exists) forever"])]
#[case("until kubectl get secret tls -n certs; do sleep 1; done", &["object secret/tls -n certs (exists) forever"])]
#[case("while [ $(kubectl get pods -l app=db --no-headers | grep -c Running) -lt 3 ]; do sleep 1; done", &["object pod -l app=db (exists) forever"])]
#[case("until curl -s http://kibana:5601/api/status | grep -q available; do sleep 1; done", &["http kibana:5601 forever"])]
#[case("while nslookup db | grep -q NXDOMAIN; do sleep 1; done", &["name db forever"])]
// Files.
#[case("until [ -f /shared/ready ]; do sleep 1; done", &["file /shared/ready forever"])]
#[case("while [ ! -f /shared/ready ]; do sleep 1; done", &["file /shared/ready forever"])]
#[case("while [[ ! -S /run/spire/agent.sock ]]; do sleep 1; done", &["file /run/spire/agent.sock forever"])]
#[case("while [ -f /shared/lock ]; do sleep 1; done", &[])]
#[case("if [ -f /data/done ]; then echo done; fi; cp -r /seed /data", &[])]
#[case("while true; do if [ -e /certs/tls.crt ]; then exit 0; fi; sleep 1; done", &["file /certs/tls.crt forever"])]
// Tools.
#[case("until pg_isready -h $(hostname -f) -p 5432; do sleep 1; done", &["tcp $(…):5432 forever"])]
#[case("until pg_isready; do sleep 1; done", &["tcp localhost:5432 forever"])]
#[case("until PGPASSWORD=x psql -h pg -U app -d app -c '\\q'; do sleep 1; done", &["tcp pg:5432 forever"])]
#[case("until psql postgres://app:s3cret@pg/app -c 'select 1'; do sleep 1; done", &["tcp pg:5432 forever"])]
#[case("until psql \"host=pg port=6432 user=x\" -c 'select 1'; do sleep 1; done", &["tcp pg:6432 forever"])]
#[case("export PGHOST=pg; until pg_isready -q; do sleep 1; done", &["tcp pg:5432 forever"])]
#[case("until mysqladmin ping -h mysql -uroot -pbash --silent; do sleep 1; done", &["tcp mysql:3306 forever"])]
#[case("until mysql -hmysql -P 3307 -uroot -p$PW -e 'select 1'; do sleep 1; done", &["tcp mysql:3307 forever"])]
#[case("until mongosh --host mongo-0.mongo --eval 'db.ping()'; do sleep 1; done", &["tcp mongo-0.mongo:27017 forever"])]
#[case("until mongo --host rs0/m0:27017,m1:27017 --eval x; do sleep 1; done", &["tcp m0:27017 forever", "tcp m1:27017 forever"])]
#[case("until mongosh 'mongodb://u:p@m0,m1:27018/db' --eval x; do sleep 1; done", &["tcp m0:27017 forever", "tcp m1:27018 forever"])]
#[case("until [ \"$(redis-cli -h redis -a secret ping)\" = PONG ]; do sleep 1; done", &["tcp redis:6379 forever"])]
#[case("until wget -qO- http://web; do sleep 1; done", &["http web:80 forever"])]
#[case("until curl -fsS --connect-timeout 2 -H 'A: b' -o /dev/null https://vault.vault:8200/v1/sys/health; do sleep 1; done", &["https vault.vault:8200 forever"])]
#[case("until getent hosts rabbit; do sleep 1; done", &["name rabbit forever"])]
#[case("until dig +short db.ns.svc.cluster.local A | grep .; do sleep 1; done", &["name db.ns.svc.cluster.local forever"])]
#[case("until host db; do sleep 1; done", &["name db forever"])]
#[case("until ping -c1 -W 2 db; do sleep 1; done", &["icmp db forever"])]
#[case("until echo quit | telnet db 5432; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until nc -zu dns 53; do sleep 1; done", &["udp dns:53 forever"])]
#[case("until echo ruok | nc zk 2181 | grep imok; do sleep 1; done", &["tcp zk:2181 forever"])]
#[case("until kafka-topics.sh --bootstrap-server k0:9092,k1 --list; do sleep 1; done", &["tcp k0:9092 forever", "tcp k1:9092 forever"])]
#[case("until etcdctl --endpoints=http://etcd-0.etcd:2379 endpoint health; do sleep 1; done", &["http etcd-0.etcd:2379 forever"])]
#[case("until openssl s_client -connect ldap:636 </dev/null; do sleep 1; done", &["tcp ldap:636 forever"])]
#[case("until grpc_health_probe -addr=api:50051; do sleep 1; done", &["tcp api:50051 forever"])]
#[case("until rabbitmq-diagnostics -n rabbit@mq-0.mq ping; do sleep 1; done", &["tcp mq-0.mq:25672 forever"])]
#[case("until cqlsh -u c -p c cassandra -e 'describe keyspaces'; do sleep 1; done", &["tcp cassandra:9042 forever"])]
#[case("./wait-for-it.sh db:5432 -t 0 -- curl http://x", &["tcp db:5432 forever"])]
#[case("/scripts/wait-for-it.sh -h db -p 5432 --timeout=30 --strict", &["tcp db:5432"])]
#[case("/wait-for db:5432 -t 60 -- echo up", &["tcp db:5432"])]
#[case("kubectl wait --for=condition=ready pod -l app=db -n data --timeout=-1s", &["object pod -n data -l app=db (condition=ready) forever"])]
#[case("kubectl rollout status deploy/api -n shop", &["object deployment/api -n shop (rollout) forever"])]
#[case("until python -c \"import socket; socket.create_connection(('db', 5432), 2)\"; do sleep 1; done", &["tcp db:5432 forever"])]
#[case("until python manage.py migrate --check; do sleep 1; done", &[])]
fn scripts_wait_for(#[case] script: &str, #[case] expected: &[&str]) {
    let analysis = of_script(script, &[]);
    assert_eq!(all_shown(&analysis), expected, "{script}");
    assert_eq!(analysis.parsed, Parsed::Shell, "{script}");
    assert_eq!(
        analysis.unbounded_wait,
        script.contains("--check")
            || script.contains("! nc -z old")
            || expected.iter().any(|text| text.ends_with("forever")),
        "{script}"
    );
}

#[rstest]
#[case("until nc -z $DB_HOST $DB_PORT; do sleep 1; done", &["DB_HOST=pg", "DB_PORT=5432"], "tcp pg:5432 forever")]
#[case("until nc -z $DB_HOST $DB_PORT; do sleep 1; done", &["DB_HOST", "DB_PORT=5432"], "tcp $DB_HOST:5432 forever")]
#[case("until nc -z ${DB_HOST:-postgres} ${DB_PORT:-5432}; do sleep 1; done", &[], "tcp postgres:5432 forever")]
#[case("until nc -z ${DB_HOST:-postgres} 5432; do sleep 1; done", &["DB_HOST"], "tcp $DB_HOST:5432 forever")]
#[case(": ${DB_HOST:=pg} \"${DB_PORT:=5432}\"; until nc -z $DB_HOST $DB_PORT; do sleep 1; done", &[], "tcp pg:5432 forever")]
#[case("HOST=pg\nPORT=5432\nuntil nc -z $HOST $PORT; do sleep 1; done", &[], "tcp pg:5432 forever")]
#[case("until nc -z ${RELEASE}-db 5432; do sleep 1; done", &["RELEASE"], "tcp $RELEASE-db:5432 forever")]
#[case("until nc -z $(DB_HOST) 5432; do sleep 1; done", &["DB_HOST=pg"], "tcp pg:5432 forever")]
#[case("until nc -z $(DB_HOST) 5432; do sleep 1; done", &["DB_HOST"], "tcp $DB_HOST:5432 forever")]
#[case("until nc -z $DB_HOST 5432; do sleep 1; done", &["NS=data", "DB_HOST=pg.$(NS).svc"], "tcp pg.data.svc:5432 forever")]
#[case("until curl -s $URL/health; do sleep 1; done", &["URL=http://api:8080"], "http api:8080 forever")]
#[case("until pg_isready -d $URL; do sleep 1; done", &["URL=postgresql://u:p@pg:6432/x"], "tcp pg:6432 forever")]
#[case("ADDR=\"pg 5432\"; until nc -z $ADDR; do sleep 1; done", &[], "tcp pg:5432 forever")]
#[case("until nc -z '$(DB_HOST)' 5432; do sleep 1; done", &[], "tcp $(DB_HOST):5432 forever")]
fn variables_are_filled_in(#[case] script: &str, #[case] env: &[&str], #[case] expected: &str) {
    assert_eq!(all_shown(&of_script(script, env)), [expected], "{script}");
}

#[test]
fn the_loop_s_pause_is_told() {
    let analysis = of_script("until nc -z db 5432; do echo no; sleep 2.5; done", &[]);
    assert_eq!(analysis.targets[0].repeats.unwrap().sleep, Some(Duration::from_millis(2500)));
    assert_eq!(analysis.targets[0].evidence, "nc -z db 5432");
}

#[test]
fn evidence_has_no_secret() {
    for script in [
        "until psql postgres://app:s3cret@pg/app -c x; do sleep 1; done",
        "until mysqladmin ping -h db -ps3cret; do sleep 1; done",
        "until curl -u admin:s3cret http://es:9200; do sleep 1; done",
        "PASS=s3cret; until redis-cli -h r -a $PASS ping; do sleep 1; done",
        "until PGPASSWORD=s3cret psql -h db; do sleep 1; done",
        "sh -c \"until redis-cli -h r --pass s3cret ping; do sleep 1; done\"",
    ] {
        let analysis = of_script(script, &[]);
        assert_eq!(analysis.targets.len(), 1, "{script}");
        assert!(!format!("{analysis:?}").contains("s3cret"), "{analysis:?}");
    }
}

#[test]
fn what_never_ends_is_no_wait() {
    for script in ["while true; do date; sleep 60; done", "sleep infinity", "cp a b; exec sleep infinity"] {
        let analysis = of_script(script, &[]);
        assert!(analysis.never_ends && !analysis.unbounded_wait, "{script}");
    }
}

#[test]
fn a_broken_script_is_searched_by_lines() {
    for script in [
        "until nc -z db 5432; do sleep 2; done; if [ x",
        "for i in (seq 1000); if nc -z db 5432; exit 0; end; sleep 1; end",
        "{{ .Values.pre }} ((\nuntil nc -z $DB_HOST 5432\ndo sleep 2; done",
    ] {
        let analysis = of_script(script, &["DB_HOST=db"]);
        assert_eq!(analysis.parsed, Parsed::Tolerant, "{script}");
        assert_eq!(analysis.targets.len(), 1, "{script}");
        assert!(shown(&analysis.targets[0]).starts_with("tcp db:5432"), "{script}");
    }
}
