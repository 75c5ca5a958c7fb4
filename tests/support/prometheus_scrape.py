"""What a service of a local run tells Prometheus."""

import ssl
import urllib.request

from hubbub.installation.local_run import LocalRun


def scraped(run: LocalRun, port: int) -> dict[tuple[str, str], float]:
    tls = run.home / "tls"
    context = ssl.create_default_context(cafile=str(tls / "ca.pem"))
    context.load_cert_chain(tls / "analyst.pem", tls / "analyst.key")
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context) as answer:
        lines = answer.read().decode().splitlines()
    samples: dict[tuple[str, str], float] = {}
    for line in lines:
        if line.startswith("#"):
            continue
        name, _, number = line.rpartition(" ")
        if name.startswith("hubbub_reports{"):
            labels = dict(pair.split("=") for pair in name[15:-1].split(","))
            samples[labels["stream"].strip('"'), labels["state"].strip('"')] = float(number)
        else:
            samples["", name] = float(number)
    return samples
