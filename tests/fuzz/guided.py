"""One target by libFuzzer, which ends its process: python -m tests.fuzz.guided TARGET RUNS SEED."""

import hashlib
import sys
from pathlib import Path

import atheris

CORPUS = Path(__file__).parent / "corpus"
FOUND = Path("build/fuzz")


def main() -> None:
    name, runs, seed = sys.argv[1:]
    with atheris.instrument_imports(include=["hubbub", "json", "tomllib"]):
        from tests.fuzz.decoders import decoders  # what is imported here is guided
        from tests.fuzz.mutate import LONGEST
    target = decoders()[name]
    found, seeds = FOUND / name, FOUND / f"{name}.seeds"
    for folder in (found, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    for data in [*target.examples, *(path.read_bytes() for path in (CORPUS / name).glob("*"))]:
        (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [f"-atheris_runs={runs}", f"-seed={seed}", f"-max_len={LONGEST}"]
    options += ["-timeout=20", "-rss_limit_mb=1500", f"-artifact_prefix={found}/", str(seeds)]
    atheris.Setup([sys.argv[0], *options], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
