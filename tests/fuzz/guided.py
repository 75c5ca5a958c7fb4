"""One target by libFuzzer, which ends its process: python -m tests.fuzz.guided TARGET RUNS SEED."""

import hashlib
import random
import sys

import atheris

OWN = 0.8  # the part of inputs that the target's own mutations make; libFuzzer the others


def main() -> None:
    name, runs, seed = sys.argv[1:]
    with atheris.instrument_imports(include=["hubbub", "json", "tomllib"]):
        # What is imported here is guided.
        from tests.fuzz.targets import targets
        from tests.fuzz.unguided import FAULT_FOLDER, corpus, quiet
    target = targets()[name]
    quiet()
    artifacts, seeds = FAULT_FOLDER / name, FAULT_FOLDER / f"{name}.seeds"
    for folder in (artifacts, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    for data in [*target.examples, *corpus(name)]:
        (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)

    def mutate(data: bytes, longest: int, seeded: int) -> bytes:
        chance = random.Random(seeded)
        if data and chance.random() < OWN:
            examples = [data, *(target.examples if chance.random() < 0.1 else ())]
            return target.mutate(chance, examples)[:longest]
        return bytes(atheris.Mutate(data, longest))

    options = [f"-atheris_runs={runs}", f"-seed={seed}", f"-max_len={target.longest}"]
    options += ["-timeout=60", "-rss_limit_mb=1500", f"-artifact_prefix={artifacts}/", str(seeds)]
    atheris.Setup([sys.argv[0], *options], target.run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
