# What a newcomer types. The work is done by CMake's presets and by the scripts in tools/.
.DEFAULT_GOAL := help
.PHONY: help build run deb test test-deep test-sdk lint format coverage schemathesis chaos bench clean
JOBS ?= $(shell nproc)
export JOBS
TARGET := delayq_programs

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

build:  ## build what users run, and what measures it, into build/release
	@tools/setup build
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target $(TARGET) -j $(JOBS)

run: TARGET := delayq
run: build  ## install what is missing, build, and serve on 127.0.0.1:9277 (HTTP) and 9278 (RESP), the jobs in ./data
	@exec build/release/delayq serve

deb: build  ## build the Debian packages, of the server and of the C++ library, into build
	@tools/setup deb
	@tools/deb --library build/release

test:  ## what must pass before a change lands; STAGE="name ..." runs a part (tools/check --list)
	@tools/setup test
	@tools/check $(STAGE)

test-deep:  ## the long checks: end to end under sanitizers, fuzzing, clang-tidy over everything, chaos, ...; goes on where it failed; STAGE=...
	@tools/setup test
	@tools/check --deep $(STAGE)

test-sdk: TARGET := delayq
test-sdk: build  ## install the toolchains of the client libraries, and check all five; SDK="go python" picks from go, python, node, php, cpp
	@tools/setup sdk
	@sdk/check $(SDK)

lint:  ## the checks that only read: house rules, format, clang-tidy
	@tools/setup test
	@tools/check tidy format
	@tools/check --deep clang-tidy

format:  ## write all sources in the project's format
	@tools/setup test
	@git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' | xargs -r clang-format-14 -i

coverage:  ## run the tests and print which share of src/ they reach
	@tools/setup test
	@tools/coverage

schemathesis: build  ## ask the server all that its OpenAPI description allows and more, at length; EXAMPLES=n of each call
	@tools/setup test
	@DELAYQ_SCHEMATHESIS_EXAMPLES=$(or $(EXAMPLES),1000) /usr/bin/python3 -B tests/e2e/schemathesis_test.py

chaos: build  ## kill servers, Redises and Kafka brokers for ten minutes and see that nothing is lost; SECONDS=n, TOPOLOGY=sentinel|cluster|one|journal|kafka|kafka-journal, SEED=n, SCHEDULES=n
	@tools/setup test
	@/usr/bin/python3 -B tests/chaos/chaos.py --topology $(or $(TOPOLOGY),sentinel) --seconds $(or $(SECONDS),600) --schedules $(or $(SCHEDULES),1000) $(if $(SEED),--seed $(SEED))

bench:  ## measure; BENCH="name ..." picks, `rivals` are the peers from Debian
	@tools/setup bench
	@tools/bench $(BENCH)

clean:  ## remove everything that was built
	@rm -rf build
