# make app     environment, install, demo collection, opens the app
# make test    lint and all tests but the longest; THOROUGH=1 adds these, and repeats the numeric tests for each processor
#              that this machine can run (tests/processors.py); PROCESSORS=Nehalem repeats them for one
# make test-all  the longest tests, too, for each processor, and without each of the extensions in turn
# make bench   the claims about speed, against their rivals; KEEP=1: docs/results and the table of README made of them, too
# make reproduce  every experiment, and which claims hold; KEEP=1: docs/results and the tables made of them, too; FULL=1: the papers' protocols
# make docs    the documentation as a site, in site/; warnings are errors
# make newest  every test, with the newest versions of all libraries instead of the locked ones
# make lock    the newest versions become the locked ones, and docs/licences.md lists them
# make torture kills, full disks, damaged files: 20 minutes of it, or 3 hours: make torture LONG=1
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.12 python3.13 python3.11; do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
# On two cores: tests with processes and with disks wait for a third of their time. Those with a browser have processes of their own, for playwright leaves an
# loop of events running in which no other test could start one.
JOBS ?= 3
BROWSERS ?= 2
BIN := $(VENV)/bin
# The app's own workers give way to everything else: beside tests that do not, they would starve. Tests start hundreds of
# processes, each of which would compile all modules again where bytecode is not written.
RUN = env -u PYTHONDONTWRITEBYTECODE nice -n 19 $(BIN)/python -m pytest
CHOSEN := $(if $(THOROUGH),,and not thorough)
BROWSE = $(RUN) -m "browser $(CHOSEN)" -o cache_dir=$(VENV)/browser_cache
OTHERS = $(RUN) -m "not browser $(CHOSEN)" -o cache_dir=$(VENV)/other_cache
AGAIN = --last-failed --last-failed-no-failures none
# Tests whose results depend on rounding, and the processors to repeat them for (tests/processors.py).
NUMERIC = $(addprefix tests/,audio codebook gaussians kernels mixtures relevance metric order hashing search playlist evaluation experiments explorer test_blas.py)
PROCESSORS ?= $(if $(THOROUGH),$(shell $(PYTHON) -m tests.processors list))
# Extensions that `make test` removes from a copy, one at a time, before it tests the rest; empty for all of them.
WITHOUT ?= mpd lyrics
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Versions and hashes of all that is installed; `make newest` leaves them out.
APP_PACKAGES = --require-hashes -r requirements.txt
TEST_PACKAGES = --require-hashes -r requirements/test.txt
# uv takes a fraction of pip's time; where it cannot be had, or does not find a package, pip installs.
NEW_VENV = $(PYTHON) -m venv $(VENV) && { $(PIP) --require-hashes -r requirements/uv.txt || true; }
install = { $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1) || $(PIP) $(1); }

.PHONY: app install test test-all lint format bench reproduce docs torture rivals citation newest lock clean

install: $(VENV)/installed
app: $(VENV)/installed
	@echo "Starting musicsim…"
	@$(BIN)/musicsim app --demo

test: lint $(VENV)/browser
ifdef PYTEST_ARGS
	$(RUN) $(PYTEST_ARGS)
else
	@status=0; others=0; \
	{ $(BROWSE) -n $(BROWSERS) --dist loadfile --no-loadscope-reorder > $(VENV)/browser.log 2>&1; echo $$? > $(VENV)/browser.status; \
	  nice -n 19 $(BIN)/python -m torture --minutes 1 > $(VENV)/torture.log 2>&1; echo $$? > $(VENV)/torture.status; \
	  nice -n 19 $(BIN)/python -m tests.without $(WITHOUT) > $(VENV)/without.log 2>&1; echo $$? > $(VENV)/without.status; } & beside=$$!; \
	$(OTHERS) -n $(JOBS) --dist loadfile --no-loadscope-reorder || others=1; \
	for processor in $(PROCESSORS); do \
	    echo "The numeric tests with the code for the processor $$processor"; \
	    $(BIN)/python -m tests.processors $$processor $(RUN) -m "not browser $(CHOSEN)" -n $(JOBS) --dist loadfile --no-loadscope-reorder $(NUMERIC) || status=1; \
	done; \
	wait $$beside; \
	echo "The tests with a browser, which ran beside them"; cat $(VENV)/browser.log; \
	echo "A minute of torture, which came after these"; cat $(VENV)/torture.log; \
	[ "$$(cat $(VENV)/torture.status)" = 0 ] || status=1; \
	echo "The core without some of the extensions"; cat $(VENV)/without.log; \
	[ "$$(cat $(VENV)/without.status)" = 0 ] || status=1; \
	if [ "$$others$$(cat $(VENV)/browser.status)" != 00 ]; then \
	    echo "What failed beside all the others, once more by itself"; \
	    [ $$others = 0 ] || $(OTHERS) $(AGAIN) || status=1; \
	    [ "$$(cat $(VENV)/browser.status)" = 0 ] || $(BROWSE) $(AGAIN) || status=1; \
	fi; \
	exit $$status
endif

# Everything: the longest tests, all processors, and the core without each of the extensions.
test-all:
	$(MAKE) test THOROUGH=1 WITHOUT=

lint: $(VENV)/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(VENV)/tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

BENCHMARKS ?= codebook extraction ingest cluster mlr training relevance playlist search milvus order lgmml hamming start
# All are run before any is kept: results name the commit, which what is kept changes.
bench: $(VENV)/tested rivals
	@$(call install,-e '.[bench,milvus]')
	{ for name in $(BENCHMARKS); do \
	    $(BIN)/python -m benchmarks.$$name $(if $(KEEP),--json,|| exit 1); \
	done; } $(if $(KEEP),| $(BIN)/python -m experiments keep)

# Rivals that are absent (make rivals; lightgbm and snowballstemmer, of the extra bench) leave their rows out, and are named.
reproduce: $(VENV)/tested
	nice -n 19 $(BIN)/python -m experiments reproduce $(if $(FULL),--full) $(if $(KEEP),--keep) $(EXPERIMENTS)

docs: $(VENV)/tested
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

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
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(FITS)' || { echo "musicsim needs Python 3.11, 3.12 or 3.13: install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Creating a Python environment in $(VENV)…"
	@$(NEW_VENV)

$(VENV)/installed: pyproject.toml requirements.txt | $(BIN)/python
	@echo "Installing musicsim into $(VENV), once; about a minute…"
	@$(call install,$(APP_PACKAGES))
	@$(call install,--no-deps --no-build-isolation -e .)
	@touch $@

$(VENV)/tested: requirements/test.txt $(VENV)/installed
	@$(call install,$(TEST_PACKAGES))
	@touch $@

$(VENV)/browser: $(VENV)/tested
	$(BIN)/python tests/browser/chromium.py
	@touch $@

newest:
	rm -rf .venv-newest
	$(MAKE) test THOROUGH=1 VENV=.venv-newest APP_PACKAGES='setuptools -e .' TEST_PACKAGES="--upgrade -e '.[docs,test]'"

# For every system and for Python 3.11 to 3.13 at once. setuptools builds what is installed from the checkout.
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes
lock: $(VENV)/tested
	sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml | $(COMPILE) -o requirements.txt pyproject.toml -
	$(COMPILE) --constraint requirements.txt --extra docs --extra test -o requirements/test.txt pyproject.toml
	echo uv | $(COMPILE) -o requirements/uv.txt -
	$(MAKE) $(VENV)/tested
	$(BIN)/python docs/licences.py

clean:
	rm -rf $(VENV) build site *.egg-info
