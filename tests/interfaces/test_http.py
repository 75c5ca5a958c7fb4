"""The HTTP face: what is asked, who may ask, how often; problems, pages, tags, headers."""

import http.client
import json
import re
import ssl
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

import hubbub.notebook
from hubbub.aggregator.access.tokens import Tokens, add_token, read_tokens, remove_token
from hubbub.cli.main import main
from hubbub.errors import BadParameter, HubbubError, KeysUnusable, ServiceUnavailable
from hubbub.installation.certificate_authorities import write_certificates
from tests.interfaces.running_aggregator import (
    DAYS,
    LISTED,
    SMALL,
    STRINGS,
    House,
    house,
    wait_for_token,
)
from tests.support import web
from tests.support.commands import Capture, output_of
from tests.support.pasted_code import in_notebook, in_shell
from tests.support.waiting import HANG_SECONDS, eventually


def _get(home: House, path: str, **parameters: Any) -> httpx2.Response:
    return web.get(f"{home.page}{path}", params=parameters)


def test_prometheus_shows_waiting_reports_and_the_epsilon_of_a_report(home: House) -> None:
    page = _get(home, "/v1/metrics", number=2)
    assert page.json()["total"] == LISTED
    assert len(page.json()["metrics"]) == 2
    assert page.headers["link"] == '</v1/metrics?first=2&number=2>; rel="next"'
    rest = _get(home, "/v1/metrics", first=2, number=100)
    assert "link" not in rest.headers
    metrics = {
        metric["name"]: metric for metric in (*page.json()["metrics"], *rest.json()["metrics"])
    }
    theme = metrics["theme"]
    assert theme["reports"] == DAYS * 22_000
    assert len(theme["epochs"]) == DAYS
    assert (theme["waiting"], theme["withheld"]) == (None, None), "nobody told the shuffler's terms"
    assert theme["updated"].endswith("Z")
    assert [epoch["closed"] for epoch in theme["epochs"]] == [True] * (DAYS - 3) + [False] * 3
    assert (metrics["unheard"]["reports"], metrics["unheard"]["updated"]) == (0, None)
    detail = _get(home, "/v1/metrics/theme").json()
    assert 0.999 < detail["per_report"] <= 1
    assert "the odds about them change by a factor of 2.72" in detail["sentence"]
    assert detail["shuffled"]["epsilon"] < 0.2


def test_values_are_found_and_ordered_as_asked(home: House) -> None:
    url = f"{home.page}/v1/metrics/theme/estimates"
    values = web.get(url).json()["values"]
    response = web.get(url, params={"find": "T", "order": "-value", "number": 2}).json()
    assert [value["value"] for value in response["values"]] == ["system", "light"]
    assert response["total"] == 3
    assert response["values"] == [
        value for v in ("system", "light") for value in values if value["value"] == v
    ]
    low = web.get(url, params={"order": "low"}).json()["values"]
    assert [value["low"] for value in low] == sorted(value["low"] for value in values)
    differing = web.get(f"{home.page}/v1/metrics/theme/compare", params={"order": "-difference"})
    differences = [value["difference"] for value in differing.json()["values"]]
    assert differences == sorted(differences, reverse=True)
    refused = web.get(f"{home.page}/v1/metrics/theme/estimates", params={"order": "p_value"})
    assert (refused.status_code, "have no p_value" in refused.text) == (400, True)
    assert web.get(url, params={"order": "colour"}).status_code == 422


def test_values_come_in_pages_by_rank_or_as_listed(home: House) -> None:
    whole = _get(home, "/v1/metrics/launches/estimates", order="listed").json()
    assert [value["value"] for value in whole["values"]][:2] == ["[0, 2)", "[2, 4)"]
    first = _get(home, "/v1/metrics/launches/estimates", number=5)
    assert [value["rank"] for value in first.json()["values"]] == [1, 2, 3, 4, 5]
    assert first.json()["total"] == 12
    following = web.get(home.page + first.headers["link"].split(">")[0][1:])
    assert [value["rank"] for value in following.json()["values"]] == [6, 7, 8, 9, 10]


def test_confidence_changes_only_intervals(home: House) -> None:
    wide, narrow = (
        _get(home, "/v1/metrics/theme/estimates", confidence=level).json() for level in (0.99, 0.5)
    )
    for value, other in zip(wide["values"], narrow["values"], strict=True):
        assert (value["estimate"], value["stderr"]) == (other["estimate"], other["stderr"])
        assert value["low"] < other["low"] < other["high"] < value["high"]
    wide, narrow = (
        _get(home, "/v1/metrics/seconds/estimates", confidence=level).json()["values"][0]
        for level in (0.99, 0.5)
    )
    ratio = (wide["high"] - wide["low"]) / (narrow["high"] - narrow["low"])
    assert ratio == pytest.approx(2.575829 / 0.674490, rel=1e-5)


@pytest.mark.parametrize(
    ("path", "parameters", "status", "title", "message"),
    [
        ("/v1/metrics/colour/estimates", {}, 404, "UnknownMetric", "it has"),
        ("/v1/metrics/unheard/estimates", {}, 409, "BatchTooSmall", "minimum batch of 1,000"),
        ("/v1/metrics/theme/estimates", {"epochs": "1"}, 409, "BatchTooSmall", "0 reports"),
        ("/v1/metrics/theme/estimates", {"epochs": "9..1"}, 400, "BadParameter", "before"),
        (
            "/v1/metrics/theme/estimates",
            {"epochs": "all", "last": "7d"},
            400,
            "BadParameter",
            "not both",
        ),
        ("/v1/metrics/theme/estimates", {"last": "7y"}, 400, "BadParameter", "write 7, 12h"),
        ("/v1/metrics/theme/estimates", {"confidence": "1"}, 422, "Malformed", "confidence"),
        ("/v1/metrics/theme/estimates", {"number": "1000000"}, 422, "Malformed", "number"),
        ("/v1/metrics/theme/trend", {"value": "plaid"}, 400, "BadParameter", "has no value"),
        ("/v1/metrics/theme/trend", {"value": "mean"}, 400, "BadParameter", "has no value"),
        ("/v1/metrics/seconds/trend", {"value": "fast"}, 400, "BadParameter", "is over numbers"),
        ("/v1/metrics/unheard/compare", {}, 409, "TooFewEpochs", "and there is none; wait"),
        (
            "/v1/metrics/theme/compare",
            {"epochs": "all"},
            400,
            "BadParameter",
            "would not be independent",
        ),
        ("/v1/metrics/homepage/estimates", {}, 400, "NothingToLookFor", "candidates"),
        ("/v1/metrics/seconds/top", {}, 400, "BadParameter", "mean"),
        ("/v1/nothing", {}, 404, "NotServed", "this path does not exist; /openapi.json lists all"),
    ],
)
def test_an_unanswerable_request_returns_a_problem_with_a_remedy(
    home: House, path: str, parameters: dict[str, str], *, status: int, title: str, message: str
) -> None:
    response = _get(home, path, **parameters)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (problem["title"], problem["status"]) == (title, status)
    assert message in problem["detail"]


def test_a_parameter_that_a_path_does_not_have_is_refused_by_name(home: House) -> None:
    """As the OpenAPI document has them: it is asked for every question there is."""
    for path, methods in _get(home, "/openapi.json").json()["paths"].items():
        if not path.startswith("/v1/"):
            continue
        url = home.page + re.sub(r"{\w+}", "theme", path)
        for method, operation in methods.items():
            body = {"candidates": ["git"]} if "requestBody" in operation else None
            answer = web.request(method.upper(), url, params={"epohc": "3"}, json=body)
            names = [
                parameter["name"]
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "query"
            ]
            problem = answer.json()
            assert (answer.status_code, problem["title"]) == (400, "BadParameter"), (path, method)
            assert problem["detail"].startswith("there is no parameter 'epohc' here"), path
            if names:
                assert problem["detail"].endswith(f"There are {', '.join(sorted(names))}"), path
    slip = _get(home, "/v1/metrics/theme/estimates", epoch="3", confidence=0.9).json()["detail"]
    assert 'did you mean "epochs"? There are anytime, below, confidence, epochs, find,' in slip
    none = _get(home, "/v1/status", epochs="newest").json()["detail"]
    assert none == "there is no parameter 'epochs' here: this path has none; leave it out"
    assert _get(home, "/health", at="now").status_code == 200, "no question"
    twice = web.get(f"{home.page}/v1/metrics/theme/estimates?epochs=all&epochs=newest").json()
    assert twice["detail"] == "'epochs' is given more than once: give it once"
    repeated = web.get(f"{home.page}/v1/metrics/theme/trend?value=dark&value=contrast")
    assert len(repeated.json()["series"]) == 2
    whole = _get(home, "/v1/metrics/theme/estimates", likely="1").json()["detail"]
    assert whole == "likely: must be below 1.0"


def test_a_method_that_a_path_does_not_take_is_a_problem_with_those_that_it_takes(
    home: House,
) -> None:
    for path in ("/v1/metrics", "/", "/static/style.css", "/openapi.json"):
        answer = web.delete(f"{home.page}{path}")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    answer = web.delete(f"{home.page}/v1/metrics/theme/estimates")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert "does not support this method; /openapi.json lists all" in answer.json()["detail"]


def test_an_unchanged_answer_is_not_sent_again(home: House) -> None:
    first = _get(home, "/v1/metrics/theme/estimates")
    tag = first.headers["etag"]
    for tags in (tag, f'"other", W/{tag}', "*"):
        again = web.get(str(first.url), headers={"if-none-match": tags})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    head = web.request("HEAD", str(first.url))
    assert (head.status_code, head.content, head.headers) == (200, b"", first.headers)
    other = web.get(str(first.url), params={"last": "7d"}, headers={"if-none-match": tag})
    assert other.status_code == 200


def test_pages_run_their_own_scripts_alone(home: House) -> None:
    for path in ("/", "/metric?name=theme", "/pipeline", "/static/style.css"):
        response = web.get(home.page + path)
        assert response.status_code == 200
        policy = response.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers
        assert "<script>" not in response.text
        assert " style=" not in response.text


def test_pages_of_others_may_not_ask(home: House) -> None:
    """Under another name (DNS rebinding), or from another origin."""
    port = home.page.rpartition(":")[2]
    strange = web.get(f"{home.page}/v1/metrics", headers={"host": f"evil.example:{port}"})
    assert (strange.status_code, strange.json()["title"]) == (403, "WrongHost")
    ask = {"metric": "theme", "query": "count", "purpose": "tests", "by": "me", "value": "dark"}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        posted = web.post(f"{home.page}/v1/releases", json=ask, headers=headers)
        assert (posted.status_code, posted.json()["title"]) == (403, "OtherOrigin")
    preflight = web.options(f"{home.page}/v1/metrics", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in preflight.headers


def test_pages_of_a_named_origin_may_ask(guarded: tuple[House, Path]) -> None:
    home, path = guarded
    secret = add_token(path, "page", "viewer", 1, time.time())
    wait_for_token(home, secret)
    url = f"{home.page}/v1/metrics/homepage/estimates"
    asks = {"access-control-request-method": "POST"}
    for origin, may in (("https://board.example", True), ("https://evil.example", False)):
        flight = web.options(url, headers={"origin": origin, **asks})
        assert (flight.headers.get("access-control-allow-origin") == origin) is may
        headers = {"origin": origin, "authorization": f"Bearer {secret}"}
        posted = web.post(url, json={"candidates": STRINGS}, headers=headers)
        assert posted.status_code == (200 if may else 403)
        assert (posted.headers.get("access-control-allow-origin") == origin) is may


def test_large_and_endless_requests_are_refused_without_reading(home: House) -> None:
    connection = http.client.HTTPConnection(home.page.removeprefix("http://"), timeout=HANG_SECONDS)
    connection.putrequest("POST", "/v1/metrics/homepage/estimates")
    connection.putheader("Content-Length", str(33 << 20))
    connection.endheaders()  # and not a byte of it
    assert connection.getresponse().status == 413
    connection.close()
    url = f"{home.page}/v1/metrics/homepage/estimates"
    assert web.post(url, content=iter([b"{", b"}"])).status_code == 411


def test_prometheus_reads_estimates_with_their_bounds(home: House) -> None:
    text = _get(home, "/metrics").text
    response = _get(home, "/v1/metrics/theme/estimates").json()["values"][0]
    for name, number in (
        ("estimate", response["estimate"]),
        ("estimate_low", response["low"]),
        ("estimate_high", response["high"]),
    ):
        assert f'hubbub_{name}{{metric="theme",value="{response["value"]}"}} {number}' in text
    assert 'hubbub_metric_reports{metric="unheard"} 0.0' in text
    assert 'value="\\"><img' in text, "quotes in a value are no quotes of the format"
    assert 'hubbub_http_requests_total{code="200"}' in text


def test_status_shows_the_known_terms_of_the_law(home: House) -> None:
    response = _get(home, "/v1/status").json()
    assert (response["complete"], response["balanced"]) == (False, None)
    assert response["total"]["counted"] == DAYS * (5 * 20_000 + 22_000 + 20_090)
    for line in (response["total"], *response["windows"]):
        assert (line["acknowledged"], line["withheld"], line["balanced"]) == (None, None, None)


def test_tokens_open_what_their_role_may(guarded: tuple[House, Path], capsys: Capture) -> None:
    home, path = guarded
    role_tokens = {}
    for role in ("viewer", "publisher", "admin"):
        words = ["keys", "token", str(path), "--name", role, "--role", role]
        role_tokens[role] = output_of(capsys, *words).strip()
    assert all(role_tokens[role] not in path.read_text() for role in role_tokens), (
        "hashes alone are kept"
    )
    assert path.stat().st_mode & 0o077 == 0
    for token in role_tokens.values():
        wait_for_token(home, token)
    ask = {"metric": "theme", "query": "count", "purpose": "tests", "by": "me", "value": "dark"}
    paths = {"/v1/metrics": "viewer", "/v1/releases": "publisher", "/v1/tokens": "admin"}
    ranks = list(role_tokens)
    for wanted_path, least_role in paths.items():
        none = web.get(home.page + wanted_path)
        assert (none.status_code, none.headers["www-authenticate"]) == (401, "Bearer")
        for role, token in role_tokens.items():
            headers = {"authorization": f"Bearer {token}"}
            status = web.get(home.page + wanted_path, headers=headers).status_code
            assert status == (200 if ranks.index(role) >= ranks.index(least_role) else 403)
    viewer = {"authorization": f"Bearer {role_tokens['viewer']}"}
    refused = web.post(f"{home.page}/v1/releases", json=ask, headers=viewer)
    assert (refused.status_code, "publisher" in refused.json()["detail"]) == (403, True)
    assert web.get(f"{home.page}/metrics").status_code == 401
    for path_of_all in ("/", "/static/style.css", "/health", "/ready", "/openapi.json"):
        assert web.get(home.page + path_of_all).status_code == 200
    assert hubbub.notebook.connect(home.page, token=role_tokens["viewer"]).metrics()
    with pytest.raises(HubbubError, match="send a token"):
        hubbub.notebook.connect(home.page).metrics()
    with pytest.raises(HubbubError, match="does not know this token"):
        hubbub.notebook.connect(home.page, token=role_tokens["viewer"][:-1]).metrics()
    assert main(["keys", "token", str(path), "--remove", "--name", "viewer"]) == 0
    eventually(lambda: web.get(f"{home.page}/v1/metrics", headers=viewer).status_code == 401)
    assert "publisher" in output_of(capsys, "keys", "token", str(path))


def test_a_caller_above_the_rate_is_asked_to_wait(tmp_path: Path) -> None:
    """One in ten seconds and two at once, by address for who has no token."""
    with house(tmp_path / "house", "--http-rate", "0.1", catalog=SMALL) as home:

        def refused() -> httpx2.Response | None:
            response = web.get(f"{home.page}/health")
            return response if response.status_code == 429 else None

        result = eventually(refused)
        assert result
        delay = int(result.headers["retry-after"])
        assert 1 <= delay <= 10
        problem = result.json()
        assert (problem["title"], problem["detail"]) == ("TooManyRequests", f"wait {delay} s")
        response = web.get(f"http://{home.metrics}/metrics").text
        assert 'hubbub_throttled_calls_total{reason="peer_limit"} ' in response


def test_tokens_expire_and_invalid_files_are_named(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.json", 1_000_000.0
    secret = add_token(path, "a", "viewer", 1, now)
    clock = [now]
    tokens = Tokens(path, lambda: clock[0])
    assert tokens.find(secret)
    assert tokens.find(secret + "x") is None
    clock[0] += 86_401
    assert tokens.find(secret) is None
    with pytest.raises(BadParameter, match="already"):
        add_token(path, "a", "viewer", 1, now)
    with pytest.raises(BadParameter, match='no token "b"'):
        remove_token(path, "b")
    for name in ("", " ", "x" * 101, "a\nb"):
        with pytest.raises(BadParameter, match="printable"):
            add_token(path, name, "viewer", 1, now)
    path.unlink()
    assert tokens.find(secret) is None
    path.write_text("{}")
    with pytest.raises(KeysUnusable, match="make one with"):
        read_tokens(path)


def test_remote_interfaces_need_tls_and_tokens(tmp_path: Path) -> None:
    with (
        pytest.raises((AssertionError, OSError)),
        house(tmp_path / "open", "--http-listen", "0.0.0.0:0", catalog=SMALL),
    ):
        pass
    assert "is not on this machine: give --http-tls" in (
        (tmp_path / "open" / "aggregator.log").read_text()
    )
    write_certificates(tmp_path / "tls", {})
    path = tmp_path / "tokens.json"
    secret = add_token(path, "me", "viewer", 1, time.time())
    options = ("--http-tls", str(tmp_path / "tls"), "--http-tokens", str(path))
    secure = tmp_path / "tls" / "ca.pem"
    with house(tmp_path / "house", *options, catalog=SMALL, secure=secure) as running:
        address = running.page
        trusted = hubbub.notebook.connect(address, token=secret, authority=secure)
        assert len(trusted.metrics()) == 1
        estimates = trusted.estimates("theme").document
        trust = ssl.create_default_context(cafile=secure)
        response = web.get(
            f"{address}/v1/metrics/theme/commands",
            headers={"authorization": f"Bearer {secret}"},
            verify=trust,
        ).json()
        environment = {"HUBBUB_TOKEN": secret, "HUBBUB_CA": str(secure)}
        in_json = f"{response['shell']} --format json"
        pasted = json.loads(in_shell(in_json, tmp_path, **environment))
        assert pasted["values"] == estimates["values"]
        assert in_notebook(response["notebook"], **environment)["values"] == estimates["values"]
        del environment["HUBBUB_TOKEN"]
        with pytest.raises(AssertionError, match="send a token"):
            in_shell(response["shell"], tmp_path, **environment)
        with pytest.raises(ServiceUnavailable, match="give its authority: --authority"):
            hubbub.notebook.connect(address, token=secret).metrics()
        with pytest.raises(ServiceUnavailable, match="TLS needs https"):
            hubbub.notebook.connect(address.replace("https", "http")).metrics()
    with pytest.raises(ServiceUnavailable, match="unencrypted"):
        hubbub.notebook.connect("http://aggregator.example.org", token=secret)
    with pytest.raises(ServiceUnavailable, match="is not an address"):
        hubbub.notebook.connect("aggregator.example.org")


def test_strings_are_asked_for_by_post(home: House) -> None:
    url = f"{home.page}/v1/metrics/homepage"
    body = {"candidates": [*STRINGS, STRINGS[0]]}
    response = web.post(f"{url}/estimates", json=body).json()
    assert sorted(value["value"] for value in response["values"]) == sorted(STRINGS)
    assert response["others"] is None  # of a sketch nobody can say rightly
    top = web.post(f"{url}/top", json=body, params={"number": 1}).json()
    assert top["values"][0]["value"]["value"] == "often.example"
    trend = web.post(f"{url}/trend", json=body, params={"epochs": "all", "number": 2}).json()
    assert [len(series["points"]) for series in trend["series"]] == [DAYS, DAYS]
    longest = web.post(f"{url}/estimates", json={"candidates": ["x" * 10_000]})
    assert (longest.status_code, "4096 bytes" in longest.json()["detail"]) == (400, True)
    listed = web.post(f"{home.page}/v1/metrics/theme/estimates", json=body)
    assert (listed.status_code, 'leave "candidates" out' in listed.json()["detail"]) == (400, True)
    empty = web.post(f"{url}/estimates", json={"candidates": []})
    assert empty.status_code == 422
    assert empty.json()["detail"] == (
        "body.candidates: must have at least 1 of them; leave it out for none"
    )
    unknown = web.put(f"{home.page}/v1/marks/a", json={"date": "2026-11-22", "colour": "red"})
    assert (
        unknown.json()["detail"]
        == "body.colour: is not a field here; leave it out, see /openapi.json"
    )
    fields = "; its fields are date, text, metric"
    for place, content, problem in (
        ("marks", "[]", f"body: must be a JSON object, sent as application/json{fields}"),
        ("marks", "{", f"body: is not JSON{fields}"),
        ("marks", '{"date": "\\ud800"}', "body.date: is malformed; see /openapi.json"),
        ("candidates", "[]", 'body: must be a JSON object: {"candidates": [...]}'),
        ("candidates", '{"candidates": [1]}', "body.candidates.0: is not a text"),
    ):
        headers = {"content-type": "application/json"}
        malformed = web.put(f"{home.page}/v1/{place}/a", content=content, headers=headers)
        assert (malformed.status_code, malformed.json()["detail"]) == (422, problem)
    assert json.loads(web.get(f"{home.page}/openapi.json").text)["openapi"].startswith("3.")


@pytest.mark.parametrize(
    "confidence", ["0.9999999999999999", "1e-400", "5e-324", "nan", "inf", "-1", "1", "0", "1e999"]
)
def test_a_confidence_without_an_interval_is_refused_by_every_face(
    home: House, confidence: str
) -> None:
    for metric, question in (("theme", "estimates"), ("theme", "top"), ("theme", "trend")):
        url = f"{home.page}/v1/metrics/{metric}/{question}"
        assert web.get(url, params={"confidence": confidence}).status_code == 422
    number = float(confidence)
    if number:  # which means the default
        with pytest.raises(BadParameter, match="confidence: must be"):
            home.endpoints.connection.estimates("theme", confidence=number)


@pytest.mark.parametrize("confidence", [1e-6, 0.5, 1 - 1e-9])
def test_the_least_and_the_most_confidence_have_intervals(home: House, confidence: float) -> None:
    url = f"{home.page}/v1/metrics/theme/estimates"
    answer = web.get(url, params={"confidence": repr(confidence)})
    assert answer.status_code == 200
    for value in answer.json()["values"]:
        assert value["low"] <= value["estimate"] <= value["high"]


@pytest.mark.parametrize("field", ["metric", "query", "value", "purpose", "by"])
def test_half_of_a_character_is_malformed_wherever_it_stands(home: House, field: str) -> None:
    whole = {"metric": "theme", "query": "count", "value": "dark", "purpose": "tests", "by": "me"}
    body = json.dumps({**whole, field: "half \ud800 of one"})
    answer = web.post(
        f"{home.page}/v1/releases", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"body.{field}: ")
    assert web.get(f"{home.page}/v1/releases").status_code == 200


def test_half_of_a_character_among_candidates_or_names_is_malformed(home: House) -> None:
    url, headers = f"{home.page}/v1/metrics/homepage/top", {"content-type": "application/json"}
    for body in ({"candidates": ["a", "\udfff"]}, {"candidates": ["a"], "\ud800": 1}):
        answer = web.post(url, content=json.dumps(body), headers=headers)
        assert answer.status_code == 422
        assert answer.json()["title"] == "Malformed"
