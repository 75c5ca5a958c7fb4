"""The Helm chart: rendered, checked against the schemas of Kubernetes, and against what we run.

Rendered by `helm` where there is one, and by the engine it is made of where there is Go
(tests/deploy/chart). What only a cluster could show is that it schedules and enforces all of it.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from hubbub.aggregator.settings import parse as parse_aggregator
from hubbub.issuer.settings import parse as parse_issuer
from hubbub.relay.settings import parse as parse_relay
from hubbub.runtime.probe import main as probe
from hubbub.shuffler.settings import parse as parse_shuffler

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "hubbub"
INSTALLING = ROOT / "docs" / "operate" / "install.md"
WAYS_IN = ROOT / "deploy" / "kubernetes"
KUBERNETES = ("1.27", "1.30", "1.33")
GO_LIBRARIES = Path("/usr/share/gocode/src/github.com/Masterminds/sprig")

OPERATORS = "monitoring.coreos.com/v1"
NEEDED: dict[str, Any] = {"image": {"repository": "registry.example.org/team"}}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example.org/team", "pullSecrets": ["pull"]},
    "redis": {"create": True, "storageClassName": "fast"},
    "shuffler": {
        "arguments": ["--peer-rate=0"],
        "autoscaling": {"unwrittenReports": 10_000},
        "service": {"annotations": {"example.org/balancer": "tcp"}, "httpPort": 8443},
    },
    "secrets": {"access": "hubbub-access", "objectStore": "hubbub-store"},
    "aggregator": {
        "shards": 4,
        "redisReplicas": 1,
        "totals": "/files/totals",
        "redisDays": 30,
        "estimates": "/files",
        "filesClaim": "hubbub-files",
        "autoscaling": {"waitingReports": 50_000},
    },
    "monitoring": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "runbooks": "https://wiki.example.org/hubbub",
    },
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "telemetry", "operator": "Exists"}],
}
BARE: dict[str, Any] = {
    "image": {"repository": "registry.example.org/team"},
    "secrets": {"tokens": ""},
    "aggregator": {"autoscaling": {"enabled": False}, "audit": False},
    "shuffler": {"autoscaling": {"enabled": False}, "service": {"type": "ClusterIP"}},
    "networkPolicies": {"enabled": False},
}
PARTIES: dict[str, dict[str, Any]] = {
    party: {
        **EVERYTHING,
        "party": party,
        "peer": peer,
        "networkPolicies": {"peer": [{"ipBlock": {"cidr": "192.0.2.7/32"}}]},
    }
    for party, peer in (
        ("shuffler", "counts.example.net:7071"),
        ("aggregator", "reports.example.org:7073"),
    )
}

ISSUER: dict[str, Any] = {
    **EVERYTHING,
    "party": "issuer",
    "secrets": {"tokenKey": "hubbub-token-key", "accounts": "hubbub-accounts"},
    "issuer": {"oidc": {"url": "https://id.example.org", "audiences": ["app", "pages"]}},
}

RELAY: dict[str, Any] = {
    **EVERYTHING,
    "party": "relay",
    "relay": {"gateway": "https://reports.example.org:7077", "arguments": ["--peer-rate=0"]},
    "networkPolicies": {"peer": [{"ipBlock": {"cidr": "192.0.2.7/32"}}]},
}


def _rendered(values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    if helm := shutil.which("helm"):
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        command = [helm, "template", "prod", str(CHART), "--namespace", "web", "-f", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)
    go = shutil.which("go")
    if not go or not GO_LIBRARIES.exists():
        pytest.skip(
            "neither helm nor Go with Debian's golang-github-masterminds-sprig-dev and "
            "golang-gopkg-yaml.v3-dev: install one of them"
        )
    program = folder / "render"
    if not program.exists():  # `go run` would link it anew for every chart
        build = [go, "build", "-o", str(program), str(ROOT / "tests/deploy/chart/main.go")]
        paths = {"GOPATH": "/usr/share/gocode", "GOCACHE": str(folder / "go")}
        subprocess.run(build, env={**os.environ, "GO111MODULE": "off", **paths}, check=True)
    return subprocess.run(
        [str(program), str(CHART), "prod", "web"],
        input=yaml.safe_dump(values),
        capture_output=True,
        text=True,
        check=False,
    )


def _documents(values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    done = _rendered(values, folder)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chart")


@pytest.mark.parametrize(
    "values",
    [NEEDED, EVERYTHING, BARE, *PARTIES.values(), ISSUER, RELAY],
    ids=["needed", "everything", "bare", *PARTIES, "issuer", "relay"],
)
def test_kubernetes_accepts_the_documents_of_the_chart(values: dict[str, Any], cache: Path) -> None:
    documents = _documents(values, cache)
    for document in documents:
        if document["apiVersion"] == OPERATORS:
            continue  # of the Prometheus Operator, which brings its own schemas
        for version in KUBERNETES:
            kubernetes_validate.validate(document, version, strict=True)
    named = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(named) == len(set(named))


def test_the_services_take_the_arguments_that_they_are_given(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    for values in (NEEDED, EVERYTHING, BARE):
        pods = _pods(_documents(values, cache))
        shuffler = parse_shuffler(pods["shuffler"]["containers"][0]["args"])
        assert shuffler.aggregators == ("prod-hubbub-aggregator:7071",)
        aggregator = parse_aggregator(pods["aggregator"]["containers"][0]["args"])
        assert bool(aggregator.http.listen) == (values is not BARE)
        assert aggregator.http.audit == ("" if values is BARE else "-")
        access = Path("/etc/hubbub/access/access.toml")
        assert aggregator.http.access == (access if values is EVERYTHING else None)
        for pod in (pods["shuffler"], pods["aggregator"]):
            [container] = pod["containers"]
            files = [
                source["secret"]["name"]
                for volume in pod["volumes"]
                for source in volume.get("projected", {"sources": []})["sources"]
            ]
            assert files == [
                name
                for name in ("hubbub-tokens", values.get("secrets", {}).get("access"))
                if name and pod is pods["aggregator"] and values is not BARE
            ]
            # Every file that an argument names is in a volume that is mounted.
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            volumes = {volume["name"] for volume in pod["volumes"]}
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            for argument in container["args"]:
                if path := re.search(r"=(/etc/hubbub/\w+)", argument):
                    assert path[1] in mounts, argument
            checked = container["readinessProbe"]["exec"]["command"]
            assert checked[2] == probe.__module__
            ports = {port["containerPort"] for port in container["ports"]}
            assert int(checked[3].partition(":")[2]) in ports


@pytest.mark.parametrize("party", PARTIES)
def test_each_of_two_parties_has_only_its_own_service_and_redis(
    party: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    documents, values = _documents(PARTIES[party], cache), PARTIES[party]
    role, port = {"shuffler": ("pool", 7073), "aggregator": ("totals", 7071)}[party]
    pods = _pods(documents)
    assert set(pods) == {party, f"redis-{role}"}
    arguments = pods[party]["containers"][0]["args"]
    if party == "shuffler":
        assert parse_shuffler(arguments).aggregators == (values["peer"],)
    else:
        assert parse_aggregator(arguments).shuffler_status == values["peer"]
    [other] = [d for d in documents if d["metadata"]["name"] == f"prod-hubbub-{party}-peer"]
    assert other["kind"] == "Service"
    assert [port["port"] for port in other["spec"]["ports"]] == [port]
    policy = _by_name(documents, "NetworkPolicy")[f"prod-hubbub-{party}"]["spec"]
    there = values["networkPolicies"]["peer"]
    assert {"ports": [{"port": port}], "from": there} in policy["ingress"]
    rule = {"ports": [{"port": int(values["peer"].partition(":")[2])}], "to": there}
    assert rule in policy["egress"]
    secrets = {v["secret"]["secretName"] for v in pods[party]["volumes"] if "secret" in v}
    assert ("hubbub-opening-keys" in secrets) is (party == "aggregator")
    assert [*_by_name(documents, "ServiceMonitor")] == [f"prod-hubbub-{party}"]


def test_the_issuers_party_has_its_service_and_its_redis_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    documents = _documents(ISSUER, cache)
    pods = _pods(documents)
    assert set(pods) == {"issuer", "redis-issuer"}
    [container] = pods["issuer"]["containers"]
    assert container["image"].startswith("registry.example.org/team/hubbub-shuffler:")
    settings = parse_issuer(container["args"])
    assert (settings.provider, settings.audiences) == ("https://id.example.org", ("app", "pages"))
    assert settings.accounts == Path("/etc/hubbub/accounts/accounts")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    for argument in container["args"]:
        if path := re.search(r"=(/etc/hubbub/\w+)", argument):
            assert path[1] in mounts, argument
    secrets = {v["secret"]["secretName"] for v in pods["issuer"]["volumes"] if "secret" in v}
    assert secrets == {"hubbub-token-key", "hubbub-accounts", "hubbub-issuer-tls"}
    policies = _by_name(documents, "NetworkPolicy")
    assert set(policies) == {"prod-hubbub-issuer", "prod-hubbub-redis-issuer"}
    egress = policies["prod-hubbub-issuer"]["spec"]["egress"]
    outward = [port["port"] for rule in egress for port in rule["ports"]]
    assert outward == [53, 53, 6379, 443]
    [monitor] = _by_name(documents, "ServiceMonitor").values()
    [endpoint] = monitor["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["port"]) == ("http", "metrics")
    assert not [d for d in documents if d["metadata"]["name"].endswith("-peer")]
    done = _rendered({**ISSUER, "secrets": {}}, cache)
    assert done.returncode != 0
    assert "secrets.tokenKey: a secret with tokens.key" in done.stderr


def test_a_shuffler_has_the_issuers_key_if_the_catalog_names_an_issuer(cache: Path) -> None:
    for secrets in ({}, {"tokenKey": "hubbub-token-key"}):
        pod = _pods(_documents({**NEEDED, "secrets": secrets}, cache))["shuffler"]
        [container] = pod["containers"]
        has_key = "--token-key=/etc/hubbub/tokens/tokens.key" in container["args"]
        mounted = "/etc/hubbub/tokens" in {
            volumemount["mountPath"] for volumemount in container["volumeMounts"]
        }
        assert has_key is mounted is bool(secrets)


def test_a_third_party_has_a_relay_and_nothing_of_the_other_two(cache: Path) -> None:
    documents = _documents(RELAY, cache)
    [(part, pod)] = _pods(documents).items()
    assert part == "relay"
    [container] = pod["containers"]
    relay = parse_relay(container["args"])
    gateway, there = RELAY["relay"]["gateway"], RELAY["networkPolicies"]["peer"]
    assert relay.gateway == f"{gateway}/.well-known/ohttp-gateway"
    assert container["command"][1:] == ["-m", "hubbub.relay"]
    assert "envFrom" not in container
    secrets = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v]
    assert secrets == ["hubbub-relay-tls"]
    [policy] = _by_name(documents, "NetworkPolicy").values()
    assert policy["spec"]["egress"][1:] == [{"ports": [{"port": 7077}], "to": there}]
    assert policy["spec"]["ingress"][0] == {"ports": [{"port": 7080}]}
    [service] = _by_name(documents, "Service").values()
    assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("devices", 443)]
    default = {**RELAY, "relay": {"gateway": "https://reports.example.org/gateway"}}
    [policy] = _by_name(_documents(default, cache), "NetworkPolicy").values()
    assert policy["spec"]["egress"][1:] == [{"ports": [{"port": 443}], "to": there}]


def test_a_shuffler_accepts_reports_through_relays(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    values = {
        **EVERYTHING,
        "secrets": {"gatewayKey": "hubbub-gateway-key"},
        "shuffler": {"service": {"httpPort": 8443}, "arguments": ["--relay=192.0.2.9"]},
    }
    pod = _pods(_documents(values, cache))["shuffler"]
    shuffler = parse_shuffler(pod["containers"][0]["args"])
    assert shuffler.http is not None
    assert shuffler.http.gateway_key == Path("/etc/hubbub/gateway/gateway.key")
    assert [str(relay) for relay in shuffler.http.relays] == ["192.0.2.9/32"]
    secrets = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v]
    assert "hubbub-gateway-key" in secrets


@pytest.mark.parametrize(
    "values", [EVERYTHING, ISSUER, RELAY], ids=["everything", "issuer", "relay"]
)
def test_every_container_is_hardened(values: dict[str, Any], cache: Path) -> None:
    for pod in _pods(_documents(values, cache)).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def test_network_policies_allow_exactly_the_needed_connections(cache: Path) -> None:
    documents = _documents(EVERYTHING, cache)
    pods = {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: document["spec"]["template"][
            "metadata"
        ]["labels"]
        for document in documents
        if document["kind"] in {"Deployment", "StatefulSet"}
    }
    policies = [policy["spec"] for policy in _by_name(documents, "NetworkPolicy").values()]

    def allowed(source: str, target: str, port: int) -> bool:
        return all(
            any(
                port in [entry["port"] for entry in rule["ports"]]
                and (
                    way not in rule
                    or any(_selects(peer.get("podSelector"), pods[other]) for peer in rule[way])
                )
                for rule in policy[kind]
            )
            for policy in policies
            for kind, way, pod, other in (
                ("egress", "to", source, target),
                ("ingress", "from", target, source),
            )
            if _selects(policy["podSelector"], pods[pod])
        )

    assert set(pods) == {"shuffler", "aggregator", "redis-pool", "redis-totals"}
    for part, labels in pods.items():  # nobody is left without a policy
        assert any(_selects(policy["podSelector"], labels) for policy in policies), part
    assert allowed("shuffler", "aggregator", 7071)
    assert allowed("shuffler", "redis-pool", 6379)
    assert allowed("aggregator", "redis-totals", 6379)
    assert allowed("aggregator", "shuffler", 7073)
    services = [service["spec"] for service in _by_name(documents, "Service").values()]
    [devices] = [spec["ports"] for spec in services if spec.get("type") == "LoadBalancer"]
    assert [(port["name"], port["port"]) for port in devices] == [
        ("devices", 443),
        ("devices-http", 8443),
    ]
    for source, target, port in (
        ("shuffler", "redis-totals", 6379),
        ("aggregator", "redis-pool", 6379),
        ("shuffler", "aggregator", 7076),
        ("redis-pool", "aggregator", 7071),
        ("redis-totals", "redis-pool", 6379),
    ):
        assert not allowed(source, target, port), (source, target, port)


def test_the_chart_gives_a_prometheus_operator_targets_and_alerts(
    cache: Path, tmp_path: Path
) -> None:
    documents = _documents(EVERYTHING, cache)
    services = _by_name(documents, "Service")
    jobs = set()
    for monitor in _by_name(documents, "ServiceMonitor").values():
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        [endpoint] = monitor["spec"]["endpoints"]
        selector = monitor["spec"]["selector"]
        [service_name] = [
            name
            for name, service in services.items()
            if _selects(selector, service["metadata"]["labels"])
            and endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
        ]
        # A name that install.md has in the certificate.
        assert endpoint["tlsConfig"]["serverName"] == service_name
        assert service_name.removeprefix("prod-") in INSTALLING.read_text()
        jobs |= {rule["replacement"] for rule in endpoint["relabelings"]}
    assert jobs == {"hubbub-shuffler", "hubbub-aggregator"}
    [rule] = _by_name(documents, "PrometheusRule").values()
    alerts = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())
    assert [
        (alert["alert"], alert["expr"])
        for group in rule["spec"]["groups"]
        for alert in group["rules"]
    ] == [(alert["alert"], alert["expr"]) for group in alerts["groups"] for alert in group["rules"]]
    for alert in rule["spec"]["groups"][0]["rules"]:
        runbook = alert["annotations"]["runbook_url"]
        assert runbook.startswith("https://wiki.example.org/hubbub/"), runbook
    if shutil.which("promtool"):
        (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]))
        subprocess.run(["promtool", "check", "rules", str(tmp_path / "rules.yml")], check=True)
    assert not [d for d in _documents(NEEDED, cache) if d["apiVersion"] == OPERATORS]


def test_the_ways_in_lead_to_services_that_the_chart_makes(cache: Path) -> None:
    ports = {
        (name.removeprefix("prod-"), key)
        for name, service in _by_name(_documents(NEEDED, cache), "Service").items()
        for port in service["spec"]["ports"]
        for key in (port["name"], port["port"])
    }
    [ingress] = yaml.safe_load_all((WAYS_IN / "ingress.yaml").read_text())
    for version in KUBERNETES:
        kubernetes_validate.validate(ingress, version, strict=True)
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    service = path["backend"]["service"]
    assert (service["name"], service["port"]["name"]) in ports
    _, route = yaml.safe_load_all((WAYS_IN / "gateway.yaml").read_text())
    [[behind]] = [rule["backendRefs"] for rule in route["spec"]["rules"]]
    assert (behind["name"], behind["port"]) in ports


def test_an_aggregator_may_reach_only_the_login_provider(
    cache: Path,
) -> None:
    def outward(values: dict[str, Any]) -> list[dict[str, Any]]:
        policies = _by_name(_documents(values, cache), "NetworkPolicy")
        rules: list[dict[str, Any]] = policies["prod-hubbub-aggregator"]["spec"]["egress"]
        inward = {53, 7073, 6379}
        return [rule for rule in rules if not {port["port"] for port in rule["ports"]} <= inward]

    assert outward(NEEDED) == []
    assert outward(EVERYTHING) == [{"ports": [{"port": 443}]}]
    provider = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    policies = {"networkPolicies": {"provider": provider, "providerPort": 8443}}
    assert outward(EVERYTHING | policies) == [{"ports": [{"port": 8443}], "to": provider}]
    filed = {"aggregator": {"totals": "s3://stats/hubbub", "redisDays": 30}}
    assert outward(NEEDED | filed) == [{"ports": [{"port": 443}]}]
    collector = {"aggregator": {"totals": "/files", "otlp": "http://collector:4318/v1/metrics"}}
    policies = {"networkPolicies": {"outlets": provider, "outletPorts": [4318]}}
    assert outward(NEEDED | collector | policies) == [{"ports": [{"port": 4318}], "to": provider}]
    assert outward(NEEDED | {"aggregator": {"totals": "/files"}}) == []


def _by_name(documents: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {
        document["metadata"]["name"]: document for document in documents if document["kind"] == kind
    }


def _selects(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    labels_needed = (selector or {"matchLabels": {"": ""}})["matchLabels"]
    return bool(labels_needed.items() <= labels.items())


def _pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: document["spec"]["template"][
            "spec"
        ]
        for document in documents
        if document["kind"] in {"Deployment", "StatefulSet"}
    }


def test_a_value_that_is_missing_or_wrong_is_refused(cache: Path) -> None:
    done = _rendered({}, cache)
    assert done.returncode != 0
    assert "image.repository: where the images" in done.stderr
    done = _rendered(NEEDED | {"party": "shuffler"}, cache)
    assert done.returncode != 0
    assert "peer: where the other party's service is" in done.stderr
    done = _rendered(NEEDED | {"party": "relay"}, cache)
    assert "relay.gateway: the shuffler's HTTP door" in done.stderr
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(values, schema)
    for path, wrong in (
        (("shuffler", "replicas"), 0),
        (("aggregator", "shards"), 300),
        (("shuffler", "arguments"), ["peer-rate 0"]),
        (("networkPolicies", "enable"), True),
        (("image", "pullPolicy"), "Sometimes"),
        (("peerService", "type"), "Public"),
        (("issuer", "replicas"), 0),
        (("issuer", "oidc"), {"url": "id.example.org", "audiences": []}),
    ):
        copy = json.loads(json.dumps(values))
        copy[path[0]][path[1]] = wrong
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(copy, schema)
