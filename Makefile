# viewkeeper: what a person types. Every target installs what it needs where it may, or names it.

GO      ?= go
DIR     ?= viewkeeper-dev
ONCE    ?=
FUZZ    ?= 2s
MINUTES ?= 20
SEED    ?= 0
QUICK   ?=
ONLY    ?=
export CGO_ENABLED = 1

# The tag, or what is on the way to one; and the commit, which a checkout without git does not have.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo 0.3.0-dev)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)$(shell git diff --quiet HEAD 2>/dev/null || echo +changes)
LDFLAGS  = -X main.stampedVersion=$(VERSION) -X main.stampedCommit=$(COMMIT)

.PHONY: build run test lint unit fuzz e2e torture bench clean

build: ## the binary, bin/viewkeeper
	@scripts/need $(GO) cc
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/viewkeeper ./cmd/viewkeeper

run: build ## dev with two nodes on the sample lake, and a story; ONCE=1 ends after the story
	$(GO) run ./examples/nycflights13 -viewkeeper bin/viewkeeper -dir $(DIR) $(if $(ONCE),-once)

test: lint unit fuzz e2e ## everything: lint, unit tests with the race detector, a short fuzz, end to end on real Apache Kafka
	@echo "make test: all passed"

lint: ## vet, gofmt, staticcheck, the house rules, the alerting rules
	@scripts/need $(GO) cc
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./internal/lint
	cd docs/alerts/check && $(GO) vet . && $(GO) test -count=1 . # its files are outside of that module, where test results are kept too long

unit: ## unit tests with the race detector, and without it the model of the protocol (one goroutine, many states) and LevelDB's failed writes
	@scripts/need $(GO) cc
	$(GO) test -race -timeout 40m $$($(GO) list ./... | grep -v -e /e2e -e /internal/lint -e /modelcheck) ./e2e/torture/history ./e2e/bench
	$(GO) test ./internal/fold/modelcheck ./internal/tablecopy

fuzz: ## every fuzz target for FUZZ each, 2s by default; FUZZ=10m looks further
	@scripts/need $(GO) cc
	GO='$(GO)' scripts/fuzz $(FUZZ)

e2e: build ## end-to-end tests on real Apache Kafka: on one broker, and e2e/cluster and e2e/torture on three
	@scripts/need java python3 kcat
	scripts/with-kafka 1 sh -c '$(GO) test -count=1 -p 1 -timeout 40m $$($(GO) list ./e2e/... | grep -v -e /e2e/cluster -e /e2e/torture -e /e2e/bench) && $(GO) test -count=1 -timeout 15m -run OnApacheKafka ./view'
	scripts/with-kafka 3 $(GO) test -count=1 -p 1 -timeout 40m ./e2e/cluster ./e2e/torture

torture: build ## a long run of e2e/torture: MINUTES=20 of clients under a nemesis, then the check of the history; SEED=n repeats its choices
	@scripts/need java python3
	scripts/with-kafka 3 $(GO) test -count=1 -timeout 24h -v -run TestTorture ./e2e/torture -minutes $(MINUTES) -seed $(SEED)

bench: build ## what docs/performance.md speaks of, measured here: QUICK=1 in below 3 minutes, ONLY=P1,P3 some of it
	@scripts/need java
	$(GO) build -tags duckdb_arrow -o bin/bench ./e2e/bench
	scripts/with-kafka 1 bin/bench $(if $(QUICK),-quick) $(if $(ONLY),-only $(ONLY))

clean:
	rm -rf bin $(DIR)
	scripts/kafka down
