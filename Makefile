# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

.DEFAULT_GOAL := help
SHELL := /bin/sh

# Orphans, and what must not be taken for one.
DEMO_SCENARIOS ?= healthy deleted_server evacuated_source ended_migration extra_host \
	booting unconfirmed_resize foreign_consumer
PYTEST_ARGS ?=
BENCH_ARGS ?=
MATRIX_ARGS ?=
# Each worker has a cloud of its own, which waits more than it works.
PARALLEL := --numprocesses=3 --dist=loadfile --no-loadscope-reorder

GATES := sanity ansible-lint ruff mypy docs-lint changelog reuse build
LINT := ansible-lint ruff mypy docs-lint changelog reuse

minicloud := tests/minicloud/minicloud
controller := .venv/controller/bin
lint := .venv/lint/bin
gate := tests/tools/gate
# Some of these tools look for ansible-core's commands. No other gate may find this Python before its own.
lint-gate := PATH=$(CURDIR)/$(lint):$$PATH $(gate)
matrix := PYTHONPATH=collections:tools:tests/minicloud $(controller)/python -m matrix

.PHONY: help
help: ## show this help
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: demo
demo: venv-controller ## start a small real OpenStack, make orphans in it, and show what would be removed
	$(minicloud) up
	$(minicloud) scenario $(DEMO_SCENARIOS)
	@tests/tools/demo

.PHONY: demo-down
demo-down: ## stop the OpenStack of the demo
	$(minicloud) down

.PHONY: test
test: ## the gates, then all tests but the longest
	@$(MAKE) --no-print-directory --jobs=3 venv-controller venv-lint venv-automation
	@status=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 versions $(GATES) || status=$$?; \
	$(controller)/pytest $(PARALLEL) $(PYTEST_ARGS) || status=$$?; \
	exit $$status

.PHONY: test-all
test-all: ## the same with the longest tests
	@$(MAKE) --no-print-directory test PYTEST_ARGS='-m "long or not long" $(PYTEST_ARGS)'

.PHONY: unit
unit: venv-controller ## the unit tests; PYTEST_ARGS='-k judge' chooses
	@$(controller)/pytest tests/unit $(PYTEST_ARGS)

.PHONY: integration
integration: venv-controller ## the tests against the small OpenStack
	@$(controller)/pytest tests/integration $(PYTEST_ARGS)

.PHONY: browser
browser: venv-controller ## the tests of the HTML report in a real Chromium
	@$(controller)/pytest tests/browser $(PYTEST_ARGS)

.PHONY: images
images: venv-controller ## draw docs/images/ anew, with Chromium
	@PYTHONPATH=collections $(controller)/python tests/browser/images.py

.PHONY: bench
bench: venv-controller ## measure detection and remediation on a cloud of 1 000 hosts, write docs/benchmark.md; BENCH_ARGS=--help
	@PYTHONPATH=collections:tools:tests/minicloud $(controller)/python -m benchmark $(BENCH_ARGS)

.PHONY: matrix
matrix: venv-controller ## run the acceptance tests with many versions, write docs/tested-versions.md; MATRIX_ARGS=--help
	@$(matrix) $(MATRIX_ARGS)

.PHONY: versions
versions: venv-controller ## the short form of the matrix: the oldest controller, the newest OpenStack, few tests
	@$(gate) $@ sh -c '$(minicloud) install && $(matrix) --short'

.PHONY: docs
docs: ## build the documentation as a site, .docs/html, without the network
	@tests/tools/docs-site

.PHONY: figures
figures: ## print how airy the code is: comprehensions, conditional expressions, comments, verbs
	@python3 tools/figures.py

.PHONY: pages
pages: venv-controller ## write the parts of docs/ that come from the code
	@PYTHONPATH=collections $(controller)/python -m ansible_collections.osops.placement.tools.pages

.PHONY: gates
gates: venv-controller venv-lint ## all checks that are not tests, each of them also by its own name
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(GATES)

.PHONY: lint
lint: $(LINT) ## ansible-lint, ruff, mypy, documentation, changelog, licences

.PHONY: sanity
sanity: venv-controller ## ansible-test sanity
	@$(gate) $@ tests/tools/sanity

.PHONY: build
build: venv-controller ## build the tarball, check its list of files, install it
	@$(gate) $@ tests/tools/check-build

.PHONY: ansible-lint
ansible-lint: venv-lint
	@$(lint-gate) $@ ansible-lint

.PHONY: ruff
ruff: venv-lint
	@$(lint-gate) $@ sh -c 'ruff check && ruff format --check'

.PHONY: mypy
mypy: venv-lint
	@$(lint-gate) $@ mypy

.PHONY: docs-lint
docs-lint: venv-lint
	@$(lint-gate) $@ antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs=all .

.PHONY: changelog
changelog: venv-lint
	@$(lint-gate) $@ antsibull-changelog lint

# By name: the one that reuse prefers needs a library of the system.
.PHONY: reuse
reuse: venv-lint
	@REUSE_ENCODING_MODULE=charset_normalizer $(lint-gate) $@ reuse lint --lines

.PHONY: importer
importer: venv-importer ## have Galaxy's own importer look at the tarball
	@$(gate) $@ tests/tools/importer

.PHONY: format
format: venv-lint ## let ruff put the Python code in order
	@$(lint)/ruff check --fix --quiet; $(lint)/ruff format

.PHONY: clean
clean: ## stop the OpenStack and remove whatever these commands made
	if [ -d .minicloud ]; then $(minicloud) down; fi
	rm -rf .venv .minicloud .cache .docs .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache tests/output orphan-cleanup *.tar.gz

.PHONY: venv-controller venv-lint venv-automation venv-importer
venv-controller venv-lint venv-automation venv-importer: venv-%:
	@tests/tools/venv $*
