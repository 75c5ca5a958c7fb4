# Needs python3 (>= 3.11) and make; everything else goes into .venv.
#   make demo ARGS="--people 5000 --json out.json"
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# Every program that is started would else compile all of hubbub again.
unexport PYTHONDONTWRITEBYTECODE

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The parts of `make test` and of `make test-rest`, the longest first, so that none is left alone at
# the end. Each test is in one of the two.
TESTS := faces units-e-to-z system statistics services units-a-to-d enumerations
REST := slow statistics-m-to-z statistics-a-to-l system-p-to-z system-a-to-o faces services sdk deploy units-a-to-d units-e-to-z mutants

.PHONY: demo test test-rest test-all test-times faults $(sort $(TESTS) $(REST) newest) proofs quick quick-units-a-to-d quick-units-e-to-z quick-proofs lint bench chaos soak fuzz pictures reference weights docs docs-build release clean lock protos check-protos typescript
.DEFAULT_GOAL := test

NEW_ENOUGH = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hubbub needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }

UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

# The lock names every version and its hash; it is installed as it stands: uv by pip, and all else by
# uv, which is faster; by pip if only pip's own settings name an index.
.venv/ready: locks/dev.lock pyproject.toml
	@$(NEW_ENOUGH)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing what the lock names into .venv (once) ..." >&2
	@sed -n '/^uv==/,/[^\\]$$/p' locks/dev.lock > .venv/uv.lock
	@$(PIP) --no-compile --require-hashes -r .venv/uv.lock
	@$(UV) --require-hashes -r locks/dev.lock || $(PIP) --no-compile --require-hashes -r locks/dev.lock
	@$(UV) --no-deps --no-build-isolation --editable ./client --editable . || $(PIP) --no-deps --no-build-isolation --editable ./client --editable .
# Neither compiles. A file that is of another Python stays as it is, as with pip; tests are not used.
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' .venv/lib || true
	@touch $@

# What the demo needs has a lock of its own, a fifth of the developers'; theirs does as well.
# Not compiled: Python compiles what it loads, which takes half as long as all of it.
DEMO := $(if $(wildcard .venv/ready),.venv,build/demo)
demo: $(DEMO)/ready
	@$(DEMO)/bin/hubbub demo $(ARGS)

build/demo/ready: locks/demo.lock pyproject.toml client/pyproject.toml
	@$(NEW_ENOUGH)
	@$(PYTHON) -m venv --clear build/demo
	@echo "Installing what the demo needs into build/demo (once) ..." >&2
	@build/demo/bin/python -m pip install --disable-pip-version-check --no-compile --require-hashes -r locks/demo.lock >&2
	@build/demo/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./client --editable .
	@touch $@

# Four at once, since some compute and others mostly wait; lint first, since it is soonest done.
test: .venv/ready
	@$(BIN)/coverage erase
	@$(MAKE) --no-print-directory -j4 --keep-going lint $(TESTS) ONLY="not thorough"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

# What takes minutes: whole days of services, browsers with thousands of devices, large statistics;
# and, once the longest run, the tests on the Python NEWEST, if it is given. Six at once, since most
# of them wait for half of their time.
test-rest: .venv/ready
	@$(MAKE) --no-print-directory -j6 --keep-going $(wordlist 1,4,$(REST)) $(if $(NEWEST),newest) $(wordlist 5,99,$(REST)) ONLY=thorough

test-all: test
	@$(MAKE) --no-print-directory test-rest

# Records what tests cost, of all anew or of ARGS beside what was recorded, and writes the tables of
# tests/README.md.
test-times: .venv/ready
	@$(if $(ARGS),,rm -rf build/test-times)
	@$(PYTEST) -p tests.support.times -q $(ARGS) || true
	@$(BIN)/python -m tests.support.times

# Which of the small faults in tests/faults.toml the tests catch, in a clone: hours of one processor.
# ARGS: words of a fault's file or description; --seconds to give each; --all for survivors.
faults: .venv/ready
	@$(BIN)/python -m tests.faults $(ARGS)

# The slow ones start programs of their own.
SLOW := $(addprefix tests/system/,test_torture.py test_bare_install.py test_chaos.py test_soak.py)
CLUSTER := tests/system/test_cluster.py
SDK := tests/system/typescript
SYSTEM := $(wildcard tests/system/test_[p-z]*.py)
EARLY := $(wildcard tests/unit/test_[a-d]*.py)
LATE := $(filter-out $(EARLY),$(wildcard tests/unit/test_*.py))
LATER := $(wildcard tests/statistics/test_[m-z]*.py)
# The proofs alone run every line of the mechanisms. Coverage makes a test three times slower, so
# those that reach no line alone run without it.
MUTANTS := tests/proofs/test_mutants.py
UNWATCHED := tests/proofs/vectors $(addprefix tests/proofs/test_,judging.py linkage.py mean_table.py paper_figures.py)
ONLY ?=
COVERED := $(BIN)/coverage run --parallel-mode -m pytest
PYTEST := $(BIN)/python -m pytest
# Few files have thorough tests; to load the others takes seven seconds.
MARKED = $(if $(filter 1,$(words $(ONLY))),$(shell grep -rl --include=*.py mark.$(ONLY) $(1)),$(1))
faces:
	@$(PYTEST) $(call MARKED,$(wildcard tests/interfaces/test_*.py)) -m "$(ONLY)" $(ARGS)
deploy:
	@$(PYTEST) tests/deploy tests/architecture $(CLUSTER) -m "$(ONLY)" $(ARGS)
# With the SDK, and the statistics with deploy: each start of pytest imports all for two seconds.
system:
	@$(PYTEST) tests/system $(addprefix --ignore=,$(SLOW) $(CLUSTER)) -m "$(ONLY)" $(ARGS)
# In two parts, of thorough tests, or they would end alone: much of their time they wait.
system-a-to-o:
	@$(PYTEST) tests/system $(addprefix --ignore=,$(SLOW) $(CLUSTER) $(SDK) $(SYSTEM)) -m "$(ONLY)" $(ARGS)
system-p-to-z:
	@$(PYTEST) $(filter-out $(SLOW),$(SYSTEM)) -m "$(ONLY)" $(ARGS)
sdk:
	@$(PYTEST) $(SDK) -m "$(ONLY)" $(ARGS)
services:
	@$(PYTEST) $(call MARKED,$(wildcard tests/services/test_*.py)) -m "$(ONLY)" $(ARGS)
statistics:
	@$(PYTEST) tests/statistics tests/deploy tests/architecture $(UNWATCHED) -m "$(ONLY)" $(ARGS)
# In two parts, of thorough tests, or they would end alone: all of their time they compute.
statistics-a-to-l:
	@$(PYTEST) tests/statistics $(addprefix --ignore=,$(LATER)) -m "$(ONLY)" $(ARGS)
statistics-m-to-z:
	@$(PYTEST) $(LATER) -m "$(ONLY)" $(ARGS)
slow:
	@$(PYTEST) $(SLOW) -m "$(ONLY)" $(ARGS)
# In two parts, or the units would end alone: half of their time they wait.
units-a-to-d:
	@$(PYTEST) $(call MARKED,$(EARLY)) -m "$(ONLY)" $(ARGS)
units-e-to-z:
	@$(PYTEST) $(call MARKED,$(LATE)) -m "$(ONLY)" $(ARGS)
proofs: enumerations mutants
enumerations:
	@$(COVERED) tests/proofs $(addprefix --ignore=,$(MUTANTS) $(UNWATCHED)) -m "$(ONLY)" $(ARGS)
mutants:
	@$(PYTEST) $(call MARKED,$(MUTANTS) $(UNWATCHED)) -m "$(ONLY)" $(ARGS)

# What another Python may do otherwise, of TLS, processes and files: the client, and what it reaches;
# but for the client's own tests, which test_bare_install.py runs on every Python of PATH, and for
# what only computes or depends on Redis.
NEWER := $(addprefix tests/unit/test_,certificates.py http_transport.py transports.py restricted_systems.py \
  exit.py witnesses.py trust.py bundle.py notice.py tokens.py oblivious.py proxy.py redis_url.py) \
  $(addprefix tests/services/test_,http_door.py relay.py roles.py \
  tokens.py::test_reports_with_tokens_are_counted_and_those_without_are_not \
  tokens.py::test_a_token_goes_through_a_relay_with_its_report \
  redis_server.py::test_redis_over_tls_proves_its_role redis_server.py::test_a_cluster_is_reached_over_tls \
  pipeline.py::test_killed_services_lose_nothing_and_count_nothing_twice) \
  tests/interfaces/test_http.py::test_remote_interfaces_need_tls_and_tokens
# Two thirds of what is locked, by size, which these tests do not import.
NOT_NEEDED := django|duckdb|fonttools|kubernetes-validate|matplotlib|mypy|opendp|pandas|polars.*|pyarrow|scikit-learn|zensical
newest: .venv/ready
	@$(NEWEST) -m venv --clear --without-pip build/newest
	@sed -E '/^($(NOT_NEEDED))==/,/[^\\]$$/d' locks/dev.lock > build/newest/lock
	@$(BIN)/uv pip install --quiet --python build/newest/bin/python --no-deps --require-hashes -r build/newest/lock
	@$(BIN)/uv pip install --quiet --python build/newest/bin/python --no-deps --no-build-isolation --editable ./client --editable .
	@build/newest/bin/python -m pytest $(NEWER) $(ARGS)

# For use after every change. Each part has a cache of its own: the part that ends last would
# overwrite the failures of the others. The units are two parts, since they take longer than the rest.
QUICK = $(PYTEST) -q -x --ff -o cache_dir=.pytest_cache/$@ -m "not slow and not thorough"
quick: .venv/ready
	@$(MAKE) --no-print-directory -j2 --output-sync quick-units-e-to-z quick-units-a-to-d quick-proofs lint
quick-units-a-to-d:
	@$(QUICK) $(EARLY) $(ARGS)
quick-units-e-to-z:
	@$(QUICK) $(LATE) $(ARGS)
quick-proofs:
	@$(QUICK) tests/proofs $(ARGS)

# check-protos is a line of it: with a part to wait for, lint would begin when all others have.
lint: .venv/ready
	@$(MAKE) --no-print-directory check-protos
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: .venv/ready build/peers/ready
	@$(BIN)/python -m benchmarks $(ARGS)

# The pictures of the README, from a run of the demo and a browser (chromium).
pictures: .venv/ready
	@$(BIN)/python -m docs.pictures $(ARGS)

# The pages of docs/ that are made from what they describe; a test compares.
reference: .venv/ready
	@$(BIN)/python -m docs.reference

# Wheels, source distributions, npm tarball, bill of materials, checklist and provenance of the commit,
# the same bytes anywhere.
release: .venv/ready client/typescript/node_modules/ready
	@$(BIN)/python -m deploy.release build/release

# What each extra weighs, installed by itself: needs a package index, and two minutes.
weights: .venv/ready
	@$(BIN)/python -m docs.reference.weights

# The documentation as a site: built strictly, and shown on 127.0.0.1 (ARGS="--port 8000") until Ctrl-C.
docs: .venv/ready
	@$(BIN)/python -m docs.site $(ARGS)

docs-build: .venv/ready
	@$(BIN)/python -m docs.site --build $(ARGS)

# Everything fails for SECONDS, as SEED says; then every cell must be what was sent.
SECONDS ?= 60
SEED ?= 1
RUNS ?= 1
chaos: .venv/ready
	@$(BIN)/python -m tests.system.chaos --seconds $(SECONDS) --seed $(SEED) --runs $(RUNS) $(ARGS)

# Strangers hold open and flood what they can for SECONDS, beside twenty devices whose reports count.
soak: .venv/ready
	@$(BIN)/python -m tests.system.soak --seconds $(SECONDS) --seed $(SEED) $(ARGS)
soak: SECONDS = 600

# RUNS inputs for each of TARGETS, or of all: guided by coverage where atheris installs.
TARGETS ?=
fuzz: .venv/ready build/fuzz/ready
	@$(BIN)/python -m tests.fuzz --runs $(RUNS) --seed $(SEED) $(TARGETS) $(ARGS)
fuzz: RUNS = 100000

build/fuzz/ready: locks/fuzz.lock
	@mkdir -p build/fuzz
	@$(PIP) --only-binary=:all: --require-hashes -r locks/fuzz.lock || \
	  echo "atheris does not install on this Python: fuzzing without coverage" >&2
	@touch $@

# The libraries we are measured beside live apart: they need an older numpy than ours.
build/peers/ready: locks/peers.lock
	@echo "Installing the peers into build/peers (once) ..." >&2
	@$(PYTHON) -m venv --clear build/peers
	@build/peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/peers.lock || \
	  { echo "the peers do not install on this Python: measuring without them" >&2; rm -rf build/peers/bin; }
	@touch $@

# Generated code is committed; `check-protos` proves that it is what the .proto files say.
GENERATE = $(BIN)/python -m grpc_tools.protoc -Iproto --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
    --python_out=$(1) --mypy_out=quiet:$(1) hubbub/wire/v1/report.proto hubbub/wire/v1/services.proto

protos: .venv/ready
	@$(call GENERATE,proto)

check-protos: .venv/ready
	@rm -rf build/protos && mkdir -p build/protos && $(call GENERATE,build/protos)
	@for file in $$(cd build/protos && find . -name '*.py*' -type f); do \
	  cmp -s build/protos/$$file proto/$$file || { echo "proto/$$file is not what its .proto says: run make protos" >&2; exit 1; }; done

# The SDK for JavaScript, built and looked through: needs Node and npm.
typescript: client/typescript/node_modules/ready
	@cd client/typescript && npm run --silent build && npm run --silent lint

client/typescript/node_modules/ready: client/typescript/package-lock.json client/typescript/package.json
	@cd client/typescript && npm ci --silent --no-audit --no-fund
	@touch $@

# Needs a package index; writes versions and hashes, never where they came from.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-header --no-annotate --no-emit-package hubbub-client
lock:
	@$(LOCK) pyproject.toml --extra all --group dev --output-file locks/dev.lock
	@$(LOCK) client/pyproject.toml --constraint locks/dev.lock --output-file locks/client.lock
	@$(LOCK) pyproject.toml --extra shuffler --extra tracing --constraint locks/dev.lock --output-file locks/shuffler.lock
	@$(LOCK) pyproject.toml --extra aggregator --extra oidc --extra tracing --constraint locks/dev.lock --output-file locks/aggregator.lock
	@$(LOCK) pyproject.toml --extra aggregator --extra oidc --extra releases --extra tables --extra tracing --constraint locks/dev.lock --output-file locks/aggregator-all.lock
	@$(LOCK) pyproject.toml --extra aggregator --extra plan --extra tables --constraint locks/dev.lock --output-file locks/tools.lock
	@$(LOCK) pyproject.toml --extra local --group demo --constraint locks/dev.lock --output-file locks/demo.lock
	@$(LOCK) --group build --constraint locks/dev.lock --output-file locks/build.lock
	@$(LOCK) benchmarks/peers.in client/pyproject.toml --output-file locks/peers.lock
	@$(LOCK) tests/fuzz/atheris.in --output-file locks/fuzz.lock
	@$(LOCK) tests/system/foreign.in --output-file locks/foreign.lock
	@$(LOCK) tests/system/warehouse.in --output-file locks/warehouse.lock

clean:
	rm -rf .venv build dist .hubbub .hubbub-demo .coverage* .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf client/typescript/node_modules client/typescript/dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
