# Two commands on a fresh machine: `make demo` and `make test`. Both set themselves up.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

ENGINES_STAMP := $(VENV)/.installed-engines

# Two workers on two cores: a second thread in each would only wait for the others.
ALONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# A few fast tests of every room, chosen by `pytest --durations` so that two cores need less
# than a minute; of the frozen commands, those that are not simulated.
QUICK := tests/test_architecture.py tests/test_layers.py tests/test_public_api.py \
  tests/test_additions.py tests/golden/test_golden_commands.py \
  tests/unit/test_numeric.py tests/unit/test_validate.py \
  $(patsubst %,tests/unit/privacy/test_%.py,loss conversion gaussian) \
  $(patsubst %,tests/unit/spaces/test_%.py,names metric granularity_table view_table) \
  $(patsubst %,tests/unit/mechanisms/test_%.py,laplace discrete randomized_response local_protocols) \
  $(patsubst %,tests/unit/composition/test_%.py,plan common document ledger) \
  $(patsubst %,tests/unit/correlation/test_%.py,leak calibrate markov_closed gaussian_methods) \
  $(patsubst %,tests/unit/risk/test_%.py,threat exact success bounds_variation) \
  $(patsubst %,tests/unit/audit/test_%.py,claim certify result outputs) \
  $(patsubst %,tests/unit/ledger/test_%.py,budget_ledger tally) \
  $(patsubst %,tests/unit/release/test_%.py,document expression plan measure) \
  $(patsubst %,tests/unit/report/test_%.py,page release_words) \
  $(patsubst %,tests/unit/plotting/test_%.py,composition) \
  $(patsubst %,tests/unit/cli/test_%.py,schema output)

.PHONY: demo quick test slow check docs doctest engines bench lock plain oldest clean help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements/dev.txt pyproject.toml studies/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Undertow needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e . -e studies
	touch $@

$(DOCS_STAMP): requirements/docs.txt $(STAMP)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/docs.txt
	touch $@

$(ENGINES_STAMP): requirements/engines.txt $(STAMP)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/engines.txt
	touch $@

demo: $(STAMP) ## release a synthetic city in private, attack it, write a report
	$(BIN)/undertow demo --output demo

quick: $(STAMP) ## run a few fast tests of every room, in a minute
	$(ALONE) $(BIN)/python -m pytest -q -n 2 -m "not slow" -k "not (frozen and (audit or reproduce))" $(QUICK)

test: $(STAMP) ## run the tests
	$(ALONE) $(BIN)/python -m pytest -n 2 -m "not slow and not spark and not browser"

slow: $(STAMP) ## run the tests that take long
	$(ALONE) $(BIN)/python -m pytest -q -n 2 -m "slow and not spark and not browser"

engines: $(ENGINES_STAMP) ## run the tests that need Spark (Java 17) or Chromium
	$(BIN)/python -m pytest -q -m "spark or browser"

check: $(STAMP) ## format, lint, types
	$(BIN)/ruff format --check src studies tests benchmarks
	$(BIN)/ruff check src studies tests benchmarks
	$(BIN)/mypy

doctest: $(STAMP) ## run the examples in the docstrings
	$(BIN)/python -m pytest -q --doctest-modules src/undertow studies/src

docs: $(DOCS_STAMP) ## build the documentation; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench: $(STAMP) ## measure speed, as ratios to peers in the same run
	$(BIN)/python -m benchmarks

plain: ## check that a plain install (no extras) imports and composes
	$(PYTHON) -m venv --clear .venv-plain
	.venv-plain/bin/python -m pip install --quiet .
	.venv-plain/bin/undertow --version
	.venv-plain/bin/undertow compose src/undertow/cli/plans/hourly.toml --json > /dev/null
	.venv-plain/bin/undertow release plan src/undertow/cli/releases/city.toml; test $$? -eq 2
	.venv-plain/bin/undertow reproduce list; test $$? -eq 2

oldest: ## run the unit tests with the oldest supported numpy and scipy
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet "numpy==1.26.*" "scipy==1.11.*" \
	  "typer==0.12.*" "rich==13.*" "click<8.2" matplotlib dp-accounting opendp riskcal scikit-learn \
	  pytest pytest-xdist hypothesis mpmath jsonschema
	.venv-oldest/bin/python -m pip install --quiet --no-deps . ./studies
	$(ALONE) .venv-oldest/bin/python -m pytest -q -n 2 -m "not slow and not data" \
	  tests/unit tests/published

lock: $(STAMP) ## compile the locked requirements anew
	$(BIN)/pip-compile --quiet --upgrade $(LOCK) -o requirements/dev.txt requirements/dev.in
	$(BIN)/pip-compile --quiet --upgrade $(LOCK) -o requirements/docs.txt requirements/docs.in
	$(BIN)/pip-compile --quiet --upgrade $(LOCK) -o requirements/engines.txt requirements/engines.in
LOCK := --generate-hashes --no-strip-extras --allow-unsafe --no-config --no-emit-index-url \
  --no-emit-find-links --no-emit-trusted-host

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-plain .venv-oldest build dist docs/_build docs/reference/generated demo
