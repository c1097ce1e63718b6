# The commands of the project; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
OUT ?= .
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo-installed
RELEASE_VENV ?= .venv-release
RELEASE_STAMP := $(RELEASE_VENV)/.installed
EXPORTS_VENV ?= .venv-exports
EXPORTS_STAMP := $(EXPORTS_VENV)/.installed
UV ?= uv
SPACES ?=
SEEDS ?= 20
COMPILE := $(UV) pip compile --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate --quiet
LOCK := $(COMPILE) pyproject.toml
# The GPU image and the offline node have a CUDA toolkit.
OWN_TOOLKIT := $(addprefix --no-emit-package nvidia-cuda-,cccl crt nvrtc runtime)

# The environment uses the tree as it stands, and $(BIN)/warpsmith calls it.
define CALLABLE
printf '%s\n' "$(CURDIR)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/warpsmith-dev.pth"
printf '#!/bin/sh\nexec "$(CURDIR)/$(BIN)/python" -m warpsmith "$$@"\n' > $(BIN)/warpsmith
chmod +x $(BIN)/warpsmith
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo browser clang test test-changed test-full test-nightly test-gpu check lock release wheelhouse bench-search clean

help: ## List the commands
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make the environment from the lock

$(STAMP): requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(CALLABLE)
	touch $@

$(DEMO_STAMP): requirements/demo.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/demo.txt
	$(CALLABLE)
	touch $@

demo: $(if $(wildcard $(STAMP)),$(STAMP),$(DEMO_STAMP)) ## Tune a kernel on this machine; leaves report.html and result.json in OUT
	$(BIN)/python -m warpsmith demo --out $(OUT)

# Elsewhere than in CI tests are skipped that lack a browser, clang, or the 1.5 GB of the exports' tools.
define SUITE
$(BIN)/python scripts/browser.py $(if $(CI),,--or-skip)
$(BIN)/python scripts/clang.py $(if $(CI),,--or-skip)
$(BIN)/python -m scripts.suite
endef
NEEDED := $(STAMP) $(if $(CI),$(EXPORTS_STAMP))

test: $(NEEDED) ## Run the gate: every cheap test and a list of dear ones, or what PYTEST_ARGS selects of them
	$(SUITE) gate $(if $(RECORD),--record $(RECORD)) $(PYTEST_ARGS)

test-changed: $(NEEDED) ## Run what the gate leaves out of the rooms that changed
	$(SUITE) changed $(PYTEST_ARGS)

test-full: $(NEEDED) ## Run the whole suite with a share of what repeats; RECORD=folder keeps its costs
	$(SUITE) full $(if $(RECORD),--record $(RECORD)) $(PYTEST_ARGS)

test-nightly: ## The same with every case of the corpora and every generated example
	WARPSMITH_NIGHTLY=1 $(MAKE) test-full

browser: $(STAMP) ## Find the Chromium of tests/browser; root on Debian gets one from there
	$(BIN)/python scripts/browser.py

clang: $(STAMP) ## Find the clang of the tests of HIP for AMD; root on Debian gets one from there
	$(BIN)/python scripts/clang.py

test-browser: browser

test-exports: $(EXPORTS_STAMP)

$(EXPORTS_STAMP): tests/exports/requirements.txt tests/exports/without-dependencies.txt
	$(PYTHON) -m venv $(EXPORTS_VENV)
	$(EXPORTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/exports/requirements.txt
	$(EXPORTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/exports/without-dependencies.txt
	touch $@

test-%: $(STAMP) ## Run one folder of tests: test-unit, test-contract, test-db, test-api, test-service, test-sandbox, test-e2e
	@test -d tests/$* || { echo "tests/$* is no folder; there are: $(patsubst tests/%,%,$(sort $(patsubst %/,%,$(dir $(wildcard tests/*/test_*.py))) tests/unit))"; exit 2; }
	$(BIN)/python -m scripts.suite full tests/$* $(PYTEST_ARGS)

test-gpu: ## Run the contract suites and the adversarial corpus on this machine's GPU: [PYTHON=python3 with the packages] [ALL=1]
	WARPSMITH_TEST_GPU=1 PYTHONPATH=".$${PYTHONPATH:+:$$PYTHONPATH}" \
	  $(if $(wildcard $(STAMP)),$(BIN)/python,$(PYTHON)) -m pytest -q tests/gpu $(if $(ALL),,-m "not slow") $(PYTEST_ARGS)

check: $(STAMP) ## Lint, types, import contracts, layout; warns of long files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit/repository/test_layout.py
	@$(BIN)/python scripts/house.py

lock: ## Pin every dependency anew (needs uv)
	$(LOCK) --extra opencl --extra cuda --extra triton --extra otel --extra dev -o requirements/dev.txt
	$(LOCK) --extra opencl -o requirements/demo.txt
	$(LOCK) --extra serve --extra mcp --extra otel -o requirements/api.txt
	$(LOCK) --extra worker --extra opencl --extra models --extra otel -o requirements/worker-cpu.txt
	$(LOCK) $(OWN_TOOLKIT) --extra worker --extra pycuda --extra cupy --extra triton --extra models --extra otel -o requirements/worker-gpu.txt
	$(LOCK) $(OWN_TOOLKIT) --extra serve --extra cuda -o requirements/node.txt
	$(COMPILE) benchmarks/search/requirements.in -o requirements/bench.txt
	$(COMPILE) requirements/release.in -o requirements/release.txt
	$(UV) run --no-project --quiet --with 'pip>=25.1' --with packaging python scripts/licences.py

$(RELEASE_STAMP): requirements/release.txt
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

release: $(RELEASE_STAMP) ## Build wheel, sdist and image context of a clean tree, and check them: [OUT=dist] [TRIAL=1]
	$(RELEASE_VENV)/bin/python -m scripts.release --out $(if $(filter file,$(origin OUT)),dist,$(OUT)) $(if $(TRIAL),--trial)

wheelhouse: $(STAMP) ## Collect the wheels of an offline GPU node: PYTHON=3.12 [EXTRA=folder of built wheels]
	$(BIN)/python scripts/wheelhouse.py --python $(if $(filter 3.%,$(PYTHON)),$(PYTHON),3.12) $(if $(EXTRA),--extra $(EXTRA))

bench-search: $(STAMP) ## Our search against its peers: SPACES=folder of recordings [SEEDS=20] [KEEP=folder of runs]
	@ls $(SPACES)/*.json.gz > /dev/null 2>&1 || { \
	  echo "SPACES must name a folder of NAME-DEVICE.json.gz recordings; benchmarks/results/search/figures.md says which and where from"; exit 2; }
	PYTHON=$(PYTHON) sh benchmarks/search/environment.sh
	$(BIN)/python -m benchmarks.search --spaces $(SPACES) --seeds $(SEEDS) $(if $(KEEP),--keep $(KEEP))

clean: ## Remove the environment, caches and the embedded mode's data
	rm -rf $(VENV) .venv-bench .venv-exports .venv-release .wheelhouse .warpsmith .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
