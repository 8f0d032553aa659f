# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

.DEFAULT_GOAL := help
SHELL := /bin/sh

# Orphans, and consumers that only look like orphans.
DEMO_SCENARIOS ?= healthy deleted_server evacuated_source ended_migration extra_host \
	booting unconfirmed_resize foreign_consumer
PYTEST_ARGS ?=
BENCH_ARGS ?=
COMPARE_ARGS ?=
MATRIX_ARGS ?=
RELEASE_GATES ?= test-all importer docs
SIMULATE_ARGS ?=
FUZZ_ARGS ?=
MUTANTS_ARGS ?=
LOCK_ARGS ?=
NOVA ?= nova
NOVA_ARGS ?=
# Each worker has its own cloud, which waits more than it works.
PARALLEL := --numprocesses=3 --dist=loadfile --no-loadscope-reorder
# Random tests try a part of their examples in `make test`, and all in `make test-all`.
EXAMPLES ?= some
SANITY_ARGS ?=
QUICK_SANITY := --quick

LINT := ansible-lint ruff mypy imports docs-lint changelog reuse
CHECKS := sanity $(LINT) build
# What `make test` checks besides running the tests; `make test-all` adds the oldest versions.
TEST_CHECKS ?= $(CHECKS)

minicloud := tests/minicloud/minicloud
controller := .venv/controller/bin
lint := .venv/lint/bin
check := tests/tools/check
# Some of these tools need ansible-core's commands in PATH; other checks must find their own Python there.
lint-check := PATH=$(CURDIR)/$(lint):$$PATH ANSIBLE_COLLECTIONS_PATH=$(CURDIR)/collections $(check)
matrix := PYTHONPATH=collections:tools:tests/minicloud $(controller)/python -m matrix

.PHONY: help
help: ## show this help
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: demo
demo: ## start a small real OpenStack, make orphans in it, and show what would be removed; again and again
	@echo "The demo takes a minute. The first one takes three minutes more, because it installs a small OpenStack (1 GB)."
	@$(MAKE) --no-print-directory venv-controller
	@tests/tools/demo $(DEMO_SCENARIOS)

.PHONY: demo-down
demo-down: ## stop the OpenStack of the demo, and delete everything in it
	@$(minicloud) down --purge

.PHONY: test
test: ## run all checks, and all tests except the longest
	@$(MAKE) --no-print-directory --jobs=3 venv-controller venv-lint venv-automation venv-automation-2.18 venv-oldest venv-hypervisor
	@tests/tools/failed-checks --forget
	@status=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 SANITY_ARGS='$(QUICK_SANITY)' tests $(TEST_CHECKS) || status=$$?; \
	tests/tools/failed-checks; exit $$status

# One job of `make test` runs the tests, and the other one check after another.
.PHONY: tests
tests: minicloud
	@EXAMPLES=$(EXAMPLES) $(controller)/pytest $(PARALLEL) $(PYTEST_ARGS)

.PHONY: test-all
test-all: ## run the same with the longest tests
	@$(MAKE) --no-print-directory test EXAMPLES=all QUICK_SANITY= TEST_CHECKS='$(CHECKS) versions' PYTEST_ARGS='-m "long or not long" $(PYTEST_ARGS)'

.PHONY: unit
unit: venv-controller venv-oldest venv-hypervisor ## run the unit tests; PYTEST_ARGS='-k judge' selects some
	@$(controller)/pytest tests/unit $(PYTEST_ARGS)

.PHONY: integration
integration: venv-controller ## run the tests against the small OpenStack
	@$(controller)/pytest tests/integration $(PYTEST_ARGS)

.PHONY: browser
browser: venv-controller ## run the tests of the HTML report in a real Chromium
	@$(controller)/pytest tests/browser $(PYTEST_ARGS)

.PHONY: images
images: venv-controller ## redraw docs/images/ with Chromium
	@PYTHONPATH=collections $(controller)/python -m ansible_collections.osops.placement.tests.browser.images

.PHONY: bench
bench: venv-controller ## measure whole playbooks on clouds of up to 2 000 hosts, and write docs/benchmark.md; BENCH_ARGS=--help
	@PYTHONPATH=collections:tools:tests/minicloud $(controller)/python -m benchmark $(BENCH_ARGS)

.PHONY: compare
compare: venv-controller ## run other tools beside the collection on one small cloud, and write the tables of docs/comparison.md; COMPARE_ARGS=--help
	@PYTHONPATH=collections:tools:tests/minicloud $(controller)/python -m compare $(COMPARE_ARGS)

.PHONY: simulate
simulate: venv-controller ## measure whole playbooks on a simulated cloud of 50 000 hosts, and write the table in docs/large-clouds.md
	@PYTHONPATH=collections:tools $(controller)/python -m simulation $(SIMULATE_ARGS)

.PHONY: attacks
attacks: venv-controller ## run all tests that try to make a run change something live, for half an hour
	@$(controller)/pytest $(PARALLEL) -m "long or not long" tests/attacks $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: venv-controller ## damage the answers of the small OpenStack at random, and check every allocation; FUZZ_ARGS='--minutes 60 --seed 7'
	@PYTHONPATH=collections:tests/minicloud $(controller)/python -m ansible_collections.osops.placement.tests.attacks.fuzzer $(FUZZ_ARGS)

.PHONY: test-nova
test-nova: venv-$(NOVA) venv-controller ## run a hundred of Nova's own tests with a cleanup between all steps; NOVA=nova-oldest, NOVA_ARGS=--help
	@status=0; \
	PYTHONPATH=collections .venv/$(NOVA)/bin/python -m ansible_collections.osops.placement.tests.judges.nova $(NOVA_ARGS) || status=$$?; \
	PYTHONPATH=collections $(controller)/python -m ansible_collections.osops.placement.tools.pages; exit $$status

.PHONY: test-nova-all
test-nova-all: ## run all of Nova's own tests that boot, move or delete servers in the same way
	@$(MAKE) --no-print-directory test-nova NOVA_ARGS='--all $(NOVA_ARGS)'

.PHONY: mutants
mutants: venv-controller venv-mutants ## change the code in 400 small ways, and count how many the unit tests find; MUTANTS_ARGS=--help
	@PYTHONPATH=collections nice .venv/mutants/bin/python -m ansible_collections.osops.placement.tests.judges.mutants $(MUTANTS_ARGS)

.PHONY: test-stack
test-stack: venv-controller ## run the collection on a real stack (Galera, RabbitMQ, HAProxy, libvirt), as root, for half an hour
	@$(controller)/pytest -n0 -m "long or not long" tests/judges/stack $(PYTEST_ARGS)

.PHONY: stack-down
stack-down: ## end and delete a real stack that was kept
	@PYTHONPATH=collections:tests/minicloud $(controller)/python -m ansible_collections.osops.placement.tests.judges.stack.bed

.PHONY: matrix
matrix: venv-controller ## run the acceptance tests with many versions, and write docs/tested-versions.md; MATRIX_ARGS=--help
	@$(matrix) $(MATRIX_ARGS)

.PHONY: minicloud
minicloud: venv-controller ## install the small OpenStack, without starting it
	@$(check) $@ $(minicloud) install

.PHONY: versions
versions: venv-controller ## run the short form of the matrix: the oldest controller, the newest OpenStack, few tests
	@$(check) $@ sh -c '$(minicloud) install && $(matrix) --short'

.PHONY: console
console: venv-controller ## run the commands in the console blocks of README and docs/, and write their outputs there
	@WRITE_CONSOLE_BLOCKS=1 $(controller)/pytest -n0 -m "long or not long" tests/integration/test_documentation.py

.PHONY: goldens
goldens: venv-controller ## write anew which requests a run sends and what it finds, after a change that is meant to change them
	@WRITE_GOLDENS=1 $(controller)/pytest -n0 -m "long or not long" tests/integration/test_goldens.py

.PHONY: cast
cast: venv-controller ## record two commands on the small OpenStack, and draw them as the animation of the README
	@PYTHONPATH=collections:tests/minicloud $(controller)/python -m ansible_collections.osops.placement.tools.cast

.PHONY: docs
docs: venv-docs ## build the documentation as a site in .docs/html, without the network
	@tests/tools/docs-site

.PHONY: pages
pages: venv-controller ## write the sections of docs/ that come from the code, and the other forms of the set-up of AWX
	@PYTHONPATH=collections $(controller)/python -m ansible_collections.osops.placement.tools.pages
	@PYTHONPATH=collections $(controller)/python -m ansible_collections.osops.placement.tools.awx_data

.PHONY: checks
checks: venv-controller venv-lint ## run all checks that are not tests, two at a time; each is a target too
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(CHECKS)

.PHONY: lint
lint: $(LINT) ## check YAML, Python, documentation, changelog and licences

.PHONY: sanity
sanity: venv-controller ## run ansible-test sanity
	@$(check) $@ tests/tools/sanity $(SANITY_ARGS)

.PHONY: build
build: venv-controller ## build the tarball into dist/, the same bytes for the same commit, and check its list of files
	@$(check) $@ tests/tools/build

.PHONY: sbom
sbom: venv-runtime venv-sbom ## write the software bill of materials of the tarball in dist/
	@tests/tools/sbom

.PHONY: release
release: ## run all checks and tests, and write the tarball, its bill of materials and the checksums into dist/
	@tests/tools/release $(RELEASE_GATES)

.PHONY: ansible-lint
ansible-lint: venv-lint
	@$(lint-check) $@ ansible-lint

.PHONY: ruff
ruff: venv-lint
	@$(lint-check) $@ sh -c 'ruff check && ruff format --check'

.PHONY: mypy
mypy: venv-lint
	@$(lint-check) $@ mypy

# Which room may import which is in .importlinter. A narrow screen would break the names of modules.
.PHONY: imports
imports: venv-lint
	@COLUMNS=250 PYTHONPATH=collections $(lint-check) $@ lint-imports --no-cache --no-logo

.PHONY: docs-lint
docs-lint: venv-lint
	@$(lint-check) $@ antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=all .

.PHONY: changelog
changelog: venv-lint
	@$(lint-check) $@ antsibull-changelog lint

# The module that reuse prefers needs a library of the system.
.PHONY: reuse
reuse: venv-lint
	@REUSE_ENCODING_MODULE=charset_normalizer $(lint-check) $@ reuse lint --lines

.PHONY: importer
importer: venv-importer ## run Galaxy's own importer on the tarball
	@$(check) $@ tests/tools/importer

.PHONY: format
format: venv-lint ## format the Python code with ruff
	@$(lint)/ruff check --fix --quiet; $(lint)/ruff format

.PHONY: lock
lock: ## pin the requirements of all environments, with uv; LOCK_ARGS=--upgrade updates all of them
	@tests/tools/lock $(LOCK_ARGS)

.PHONY: clean
clean: ## stop the OpenStack and remove everything that these commands created
	if [ -d .minicloud ]; then $(minicloud) down; fi
	rm -rf .venv .minicloud .cache .docs .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache dist tests/output orphan-cleanup *.tar.gz

venvs := venv-controller venv-lint venv-automation venv-docs venv-importer venv-mutants venv-runtime venv-sbom venv-nova
.PHONY: $(venvs)
$(venvs): venv-%:
	@tests/tools/venv $*

# The Python of an execution environment of AWX, if there is one.
.PHONY: venv-automation-2.18
venv-automation-2.18:
	@tests/tools/venv automation-2.18 3.11 3.12 3.13

# The same as the controller, with the oldest Python of controllers. Without it, its tests are skipped and say so.
.PHONY: venv-oldest
venv-oldest:
	@REQUIREMENTS=controller tests/tools/venv oldest 3.11 || true

# The oldest Nova whose tests run on a Python of controllers.
.PHONY: venv-nova-oldest
venv-nova-oldest:
	@tests/tools/venv nova-oldest 3.11

# Without Python 3.9, the tests that need this environment are skipped and say so.
.PHONY: venv-hypervisor
venv-hypervisor:
	@tests/tools/venv hypervisor 3.9 || true
