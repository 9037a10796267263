# Modules are built with their own go.mod, as users get them. Tests run in the workspace, which compiles Kubernetes once.
export GOWORK := off
export GOFLAGS := -buildvcs=false

MODULES := . cmd/crdcache adapters/cel adapters/controllerruntime adapters/metrics serving/server examples test/integration \
  test/sandbox
BIN := $(CURDIR)/bin
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
KUBE_STATE_METRICS := k8s.io/kube-state-metrics/v2@v2.19.1
PROMTOOL := github.com/prometheus/prometheus/cmd/promtool@v0.315.0
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
VALE := github.com/vale-cli/vale/v3/cmd/vale@v3.22.0
# The files and folders whose English vale checks, and the files of them that it skips.
PROSE := $(wildcard *.md) .github adapters cmd discovery docs dynamicinformer examples indexers/*.go indexers/bind indexers/query \
  indexers/references indexers/reload internal serving test testdata
NOT_PROSE := {*_test.go,*/testdata/*}
FUZZTIME ?= 20s
# Packages that are also tested in 32 bits.
ENGINE := ./internal/codec/... ./internal/informer ./internal/jsontext ./internal/packed ./internal/store
# Packages that are also tested with the oldest supported version of Kubernetes' modules, which the root module requires.
# All other tests run with the newest version.
FLOOR := ./dynamicinformer ./internal/informer/... ./internal/requests
# Platforms for which the library and the command must compile. All other modules must compile for darwin/arm64,
# and the published ones for Windows.
PLATFORMS := linux/386 linux/arm64 windows/amd64
PUBLISHED := cmd/crdcache adapters/cel adapters/controllerruntime adapters/metrics
# make skew: the version of Kubernetes, the tested packages, and the folder of its binaries.
VERSION ?= 1.30.14
SKEW_PACKAGES ?= ./...
SKEW_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/crdcache/kubernetes
# Packages that are also tested against a server without watch-lists.
WITHOUT_WATCH_LIST := $(addprefix ./test/integration/,conformance discovery lifecycle shardview)
HISTORY_DURATION ?= 10m
HISTORY_SEED ?= 0
# make sharding: the number of objects that the replicas share.
OBJECTS ?= 100000
# The objects of the comparison of memory with kube-state-metrics.
METRIC_OBJECTS ?= 5000
CLUSTERS_DURATION ?= 10m
# make soak: the time, the seed (0: random), and the numbers of types, objects and changes (flags of test/integration/soak).
SOAK_DURATION ?= 60m
SOAK_SEED ?= 0
SOAK_SCALE ?= -types 200 -coming 20 -objects 50000 -updates 500 -handlers 50 -stock 20 -round 90s -longest 60
# The number of packages that are tested at a time in check and against servers. They wait most of the time.
AT_ONCE ?= 3
# Flags for tests that change the wall clock: see test/integration/internal/wallclock.
CLOCK_JUMPS := -tags clockjumps -ldflags=-checklinkname=0
# make fuzz: the modules, and a pattern for the names of the tests.
FUZZ_MODULES ?= . cmd/crdcache adapters/cel adapters/controllerruntime serving/server
FUZZ_RUN ?=
# Building the sandbox takes several minutes. It is built again only if its sources or its go.mod change.
SANDBOX_SOURCES := $(shell find test/sandbox -name '*.go' -not -name '*_test.go') test/sandbox/go.mod test/sandbox/build.sh

.PHONY: help build crdcached install man check test nightly unit integration adopters assistants files browser skew versions history load attack image soak soak-clusters sharding lint race fuzz sandbox demo demo-cluster demo-web bench bench-ci apidiff dist publish release microbench generate verify size at-rest

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# If git knows the commit, crdcache version prints it.
build: ## Build bin/crdcache (about a minute the first time)
	cd cmd/crdcache && go build -buildvcs=$(shell git status >/dev/null 2>&1 && echo true || echo false) -o $(BIN)/crdcache .

crdcached: ## Build bin/crdcached, the cache for a whole team (5 minutes the first time)
	cd serving/server && go build -buildvcs=$(shell git status >/dev/null 2>&1 && echo true || echo false) -o $(BIN)/crdcached ./cmd/crdcached

PREFIX ?= $(HOME)/.local
DESTDIR ?=

install: build man ## Install crdcache, kubectl-crdcache, completions and man pages below PREFIX (~/.local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 755 $(BIN)/crdcache $(DESTDIR)$(PREFIX)/bin/crdcache
	ln -sf crdcache $(DESTDIR)$(PREFIX)/bin/kubectl-crdcache
	install -m 755 cmd/crdcache/kubectl_complete-crdcache $(DESTDIR)$(PREFIX)/bin/kubectl_complete-crdcache
	install -m 644 $(BIN)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(BIN)/completions/crdcache.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/crdcache
	install -m 644 $(BIN)/completions/_crdcache $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_crdcache
	install -m 644 $(BIN)/completions/crdcache.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/crdcache.fish

man: ## Write the reference of all commands: man pages to bin/man, Markdown to bin/reference, completions to bin/completions
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)} \
	  go test -C cmd/crdcache -count=1 -run TestReference ./internal/cli -man $(BIN)/man -markdown $(BIN)/reference
	@mkdir -p $(BIN)/completions
	go run -C cmd/crdcache . completion bash > $(BIN)/completions/crdcache.bash
	go run -C cmd/crdcache . completion zsh > $(BIN)/completions/_crdcache
	go run -C cmd/crdcache . completion fish > $(BIN)/completions/crdcache.fish

# Tests run in the workspace. The linters vet, and no test reads debug information. Parallel tests wait for servers.
LINKED := -s -w
WORK := $(CURDIR)/test/integration/go.work
TEST = env GOWORK=$(WORK) go test -vet=off -parallel 8 -ldflags='$(LINKED)'
# A lane shows a line for each group of packages.
LANE := $(CURDIR)/.ci/lane
# The packages of integration that need a server, and those that only depend on many modules.
SERVERLESS := ./test/integration/packaging
WITH_SERVER = $$(GOWORK=off go list -C test/integration ./... | sed 's,^github.com/crdcache/crdcache,.,' | \
  grep -Ev '/(assistants|bench.*|adopters|browser|cli|crdcached|files|history|operators|packaging|sharding|soak)$$')
# crdcached and the command of the tests.
PROGRAMS := CRDCACHE_REQUIRE_SANDBOX=1 CRDCACHE_BIN=$(BIN)/tests/crdcache CRDCACHE_CRDCACHED_BIN=$(BIN)/tests/crdcached

# make test has the adapters and what serves. The packages that take longest start first.
CHECKED := ./cmd/crdcache/internal/cli ./dynamicinformer ./internal/informer ./discovery/... ./dynamicinformer/... ./indexers/... ./internal/... ./cmd/crdcache/... ./testdata

check: ## Before each commit: formatting and the tests of the library and the command, without a server
	@$(LANE) --start
	@$(MAKE) --no-print-directory formatted
	@$(LANE) check $(TEST) -short -p $(AT_ONCE) -timeout 45m $(CHECKED)
	@$(LANE) --slowest

# Tests against servers mostly wait, so they run at the same time as the tests that compute. What both need is compiled first.
test: ## Run all tests that prove what README and docs promise, some with a real API server (10 minutes with warm caches)
	@$(LANE) --start
	@$(LANE) libraries env GOWORK=$(WORK) go build ./... ./cmd/crdcache/... k8s.io/client-go/kubernetes k8s.io/client-go/informers
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=line programs-lane unit servers lists floor
	@$(LANE) --slowest

nightly: ## Run what takes hours: race detector, histories, soak, skew, versions, adopters, fuzz tests, promtool, 32 bits
	@$(MAKE) --no-print-directory --keep-going race history soak soak-clusters sharding attack load floor-all bits32 promtool stranger statemetrics \
	  follow-lists assistants files skew versions adopters fuzz

# Run two targets at a time and all of them, even if one fails. Do not mix the output of commands.
TWO_LANES := --jobs=2 --keep-going --output-sync=line

# The packages that take longest, which start first.
LONGEST := ./cmd/crdcache/internal/cli ./dynamicinformer ./adapters/compat/dynamicinformer ./serving/readapi/live ./adapters/cel

unit: ## Run the tests of all modules that need only Go
	@$(LANE) unit $(TEST) -p $(AT_ONCE) -timeout 45m $(LONGEST) ./... ./testdata ./cmd/crdcache/... ./adapters/cel/... ./adapters/controllerruntime/... \
	  ./adapters/metrics/... ./serving/server/... ./examples/... ./test/integration/bench/... $(SERVERLESS)

.PHONY: floor
floor:
	@$(LANE) floor go test -short -vet=off -ldflags='$(LINKED)' -timeout 45m $(FLOOR)

.PHONY: floor-all bits32 promtool stranger statemetrics
floor-all: $(BIN)/staticcheck ## Lint and test every module with the versions of its own go.mod, and with all random histories
	for m in $(PUBLISHED) . serving/server; do (cd $$m && $(BIN)/staticcheck ./... && \
	  CRDCACHE_NIGHTLY=1 go test -timeout 40m ./...) || exit 1; done

statemetrics: sandbox programs ## Build kube-state-metrics and compare its metrics with those of converted configs
	dir=$$(go mod download -json $(KUBE_STATE_METRICS) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	go build -C "$$dir" -o $(BIN)/tests/kube-state-metrics . && \
	$(PROGRAMS) $(TEST) -count=1 -timeout 30m -v ./test/integration/statemetrics -args -objects=$(METRIC_OBJECTS) \
	  -kube-state-metrics=$(BIN)/tests/kube-state-metrics -kube-state-metrics-sources="$$dir"

bits32: ## Test the engine in 32 bits
	GOARCH=386 CGO_ENABLED=0 go test -timeout 10m $(ENGINE)

stranger: ## Compile programs and commands with the released modules, as users do (15 minutes)
	cd test/integration && go test -count=1 -timeout 60m ./internal/project -run TestReleasedModules -args -compile

promtool: ## Test the alerts with promtool, which is built first (5 minutes once)
	go run -tags=remove_all_sd $(PROMTOOL) check rules --lint=all --lint-fatal serving/packaging/monitoring/alerts.yaml
	go run -tags=remove_all_sd $(PROMTOOL) test rules test/integration/packaging/alerts_test.yaml

# Installs Debian packages.
INSTALL := apt-get -qq -o Acquire::Retries=3 update && apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends

.PHONY: programs
programs:
	@mkdir -p $(BIN)/tests
	@GOWORK=$(WORK) go build -ldflags='$(LINKED)' -o $(BIN)/tests/ ./cmd/crdcache ./serving/server/cmd/crdcached

.PHONY: languages programs-lane servers lists
languages:
	@/usr/bin/python3 -c 'import kubernetes' 2>/dev/null || { $(INSTALL) python3 python3-kubernetes; }
	@command -v npm >/dev/null || { $(INSTALL) nodejs npm; }
	@cd examples/javascript && npm install --no-package-lock --no-audit --no-fund --loglevel=error

integration: programs-lane servers lists ## Run the tests against a real API server, with watch-list and without; Python and Node.js are installed if missing

# These run a binary that go's cache of test results does not know.
programs-lane: sandbox programs languages
	@$(LANE) programs env $(PROGRAMS) $(TEST) -p $(AT_ONCE) -count=1 -timeout 45m ./test/integration/cli ./test/integration/crdcached ./test/integration/operators

servers: sandbox programs
	@$(LANE) servers env $(PROGRAMS) CRDCACHE_SANDBOX_BIN=$(BIN)/sandbox $(TEST) -p $(AT_ONCE) -timeout 45m $(WITH_SERVER)

lists: sandbox programs
	@$(LANE) lists env $(PROGRAMS) CRDCACHE_APISERVER_ARGS=feature-gates=WatchList=false \
	  $(TEST) -p $(AT_ONCE) -timeout 45m $(WITHOUT_WATCH_LIST)

.PHONY: follow-lists
follow-lists: sandbox programs ## Compare dump --watch with kubectl on an API server without watch-lists
	@$(LANE) follow-lists env $(PROGRAMS) CRDCACHE_APISERVER_ARGS=feature-gates=WatchList=false \
	  $(TEST) -count=1 -timeout 45m ./test/integration/cli -run TestFollow

browser: sandbox programs ## Test the page with headless Chromium, which is installed if missing
	@command -v chromium >/dev/null || { $(INSTALL) chromium; }
	@command -v npm >/dev/null || { $(INSTALL) nodejs npm; }
	@cd test/integration/browser && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@$(LANE) browser env $(PROGRAMS) $(TEST) -count=1 -timeout 45m ./test/integration/browser

assistants: sandbox programs ## Compare crdcache mcp with kubernetes-mcp-server, and write docs/assistants.md (npm installs 230 MB)
	@command -v npm >/dev/null || { $(INSTALL) nodejs npm; }
	@cd test/integration/assistants && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	CRDCACHE_NIGHTLY=1 $(PROGRAMS) $(TEST) -count=1 -timeout 45m -v ./test/integration/assistants -args -document=$(CURDIR)/docs/assistants.md

files: sandbox programs ## Compare questions about files with jq and a live server, and bundles of tools, which are built first (40 minutes once)
	@command -v jq >/dev/null || { $(INSTALL) jq; }
	CRDCACHE_NIGHTLY=1 $(PROGRAMS) $(TEST) -count=1 -timeout 120m -v ./test/integration/files

skew: sandbox ## Run the integration tests against Kubernetes VERSION (1.30.14), which is built first (10 minutes once)
	./test/sandbox/build-version.sh $(VERSION) $(SKEW_CACHE)/$(VERSION)
	cd test/integration && KUBEBUILDER_ASSETS=$(SKEW_CACHE)/$(VERSION) CRDCACHE_KUBECTL_BIN=$(SKEW_CACHE)/$(VERSION)/kubectl \
	  CRDCACHE_REQUIRE_SANDBOX=1 go test -p $(AT_ONCE) -count=1 -timeout 30m $(SKEW_PACKAGES)

versions: sandbox ## Test the modules with three versions of Kubernetes' modules, or with KUBERNETES=latest (an hour)
	CRDCACHE_REQUIRE_SANDBOX=1 .ci/versions $(KUBERNETES)

history: sandbox ## Play random histories for HISTORY_DURATION (10m) from HISTORY_SEED (0: random) with the race detector
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -race -count=1 -timeout 0 -v ./history \
	  -args -duration=$(HISTORY_DURATION) -seed=$(HISTORY_SEED)

load: sandbox ## Compare 1,000 watches and lists of 50,000 objects of crdcached and of the API server, and write docs/crdcached.md (5 minutes)
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 45m -v ./crdcached -run TestLoad \
	  -args -load-objects=50000 -load-watchers=1000 -load-updates=2000 -load-lists=5 -load-document=$(CURDIR)/docs/crdcached.md

attack: sandbox ## Attack crdcached, also with 10,000 watches of which half read nothing
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 45m -v ./crdcached -run TestAttacks -args -attack-watches=10000 -attack-memory=1024

image: ## Build the image of crdcached without a registry, and compare it with the manifests; buildah is installed if missing
	@command -v buildah >/dev/null || { $(INSTALL) buildah; }
	serving/packaging/crdcached/check-image.sh

soak: sandbox ## Follow many types with injected faults for SOAK_DURATION (60m), and write docs/reliability.md
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test $(CLOCK_JUMPS) -count=1 -timeout 0 -v ./soak -run TestSoak \
	  -args -duration=$(SOAK_DURATION) -seed=$(SOAK_SEED) $(SOAK_SCALE) -document=$(CURDIR)/docs/reliability.md

soak-clusters: ## Let 200 clusters join and leave one process for CLUSTERS_DURATION (10m)
	go test -count=1 -timeout 0 -v ./dynamicinformer -run TestClustersJoinAndLeave -soak-clusters $(CLUSTERS_DURATION)

adopters: sandbox ## Change kro, Kyverno and Gatekeeper to use crdcache, and run their tests before and after (needs the module proxy)
	cd test/integration && go test -count=1 -timeout 90m -v ./adopters

sharding: sandbox ## Share OBJECTS (100000) among replicas that start, stop and are killed, and measure hand-overs
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 0 -v ./sharding -run TestScale \
	  -args -objects=$(OBJECTS) -updates=200 -shards=64

race: sandbox ## Run unit and integration tests with the race detector
	go test -race -timeout 45m ./...
	for m in $(filter-out adapters/controllerruntime,$(PUBLISHED)) serving/server; do go test -C $$m -race -timeout 45m ./... || exit 1; done
	cd test/integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -race -timeout 30m $$(go list ./... | grep -Ev '/(adopters|assistants|browser|files)$$')

fuzz: ## Run every fuzz test for FUZZTIME (20s)
	.ci/fuzz $(FUZZTIME) '$(FUZZ_RUN)' $(FUZZ_MODULES)

sandbox: $(BIN)/sandbox ## Build bin/sandbox, etcd, kube-apiserver and kubectl

$(BIN)/sandbox: $(SANDBOX_SOURCES)
	./test/sandbox/build.sh $(BIN)

demo: build ## Query custom resources by index, from the manifests in testdata
	./testdata/demo.sh $(BIN)/crdcache --from crds --from objects

demo-cluster: build sandbox ## Run the demo on a real API server, which is started and stopped
	$(BIN)/sandbox exec --load testdata/crds --load testdata/objects -- ./testdata/demo.sh $(BIN)/crdcache

demo-web: build sandbox ## Serve the page for a real API server with changing objects, until an interrupt
	$(BIN)/sandbox exec --load testdata/crds --load testdata/objects -- ./testdata/demo-web.sh $(BIN)/crdcache $(BIN)/kubectl

bench: build sandbox $(BIN)/bench $(BIN)/bench-next ## Compare with client-go and others, and write docs/benchmarks.md (BENCH_FLAGS=-help lists flags)
	cd test/integration/bench && $(BIN)/bench -report ../../../docs/benchmarks.md -results $(BIN)/benchmarks.json $(BENCH_FLAGS)

bench-ci: build sandbox $(BIN)/bench ## Run a short comparison, which fails if a promise is missed by a wide margin
	cd test/integration/bench && $(BIN)/bench -ci $(BENCH_FLAGS)

# The go command decides whether to build again.
.PHONY: $(BIN)/bench $(BIN)/bench-next
$(BIN)/bench:
	cd test/integration/bench && go build -o $(BIN)/bench .

$(BIN)/bench-next: # the measured processes with the next version of client-go
	.ci/versions bench $(BIN)/bench-next

apidiff: ## Compare the exported API with the last release or BASE=tag; fails on a breaking change
	.ci/apidiff $(BASE)

dist: ## Build the files of a release for all platforms into bin/dist: archives, packages, bills of materials, checksums
	go run $(GORELEASER) check
	go run $(GORELEASER) release --snapshot --clean --skip=docker,sign

publish: ## Build, sign and publish a release with the text of the file NOTES; the release workflow runs it
	go run $(GORELEASER) release --clean --release-notes=$(NOTES)

release: ## Commit and tag VERSION=v0.9.0 of all modules; pushes nothing
	.ci/release $(if $(filter command line,$(origin VERSION)),$(VERSION),'')

size: ## Show the sizes of the project's rings and their limits
	@go test -count=1 ./internal/guard -run '^TestRings$$' -v | sed -n 's/^ *[a-z_]*_test.go:[0-9]*: //p'

AT_REST = internal/block internal/persist internal/snapshot dynamicinformer/persistence adapters/storage/disk \
  dynamicinformer/persistence.go internal/packed/changes.go
at-rest: ## Measure what objects at rest cost: lines, modules, bytes of crdcached, unnoticed damage, lives
	@echo "lines: $$(git ls-files $(AT_REST) | grep '\.go$$' | grep -v _test.go | xargs cat | wc -l)"
	@echo "modules of a program with persistence: $$(GOWORK=off go list -m all | wc -l)"
	@cd serving/server && go build -ldflags='-s -w' -o $(BIN)/crdcached.stripped ./cmd/crdcached
	@echo "bytes of crdcached, stripped: $$(wc -c < $(BIN)/crdcached.stripped)"
	CRDCACHE_NIGHTLY=1 go test -count=1 -timeout 30m -v -run 'TestNoDamageGoesUnnoticed|TestEveryFlippedBitIsFound|TestTruncatedFile|TestLives' \
	  ./internal/block ./internal/snapshot ./adapters/storage/disk

microbench: ## Run the Go benchmarks of every package of the root module
	go test -run '^$$' -bench . -benchmem ./...

generate: ## Write generated files, format all Go code and tidy every module
	go test ./indexers -run TestSchemaFile -rewrite
	gofmt -w $$(git ls-files '*.go')
	@for m in $(MODULES); do (cd $$m && go mod tidy -e) || exit 1; done

.PHONY: formatted
formatted:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  [ -z "$$unformatted" ] || { echo "gofmt wants to change (make generate): $$unformatted"; exit 1; }

# The packages that the linters check in the workspace, as the tests do. ./... skips folders named testdata.
EVERYWHERE := ./... ./testdata $(patsubst %,./%/...,$(filter-out .,$(MODULES)))

# -e accepts the import of a package that only a newer client-go has, with which .ci/versions tests.
lint: formatted ## Run gofmt, go mod tidy, go vet, staticcheck, other platforms, actionlint, the prose rules and govulncheck
	@for m in $(MODULES); do echo "tidy $$m"; (cd $$m && go mod tidy -e -diff) || exit 1; done
	@$(MAKE) --no-print-directory linters GOWORK=$(WORK)
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	@$(MAKE) --no-print-directory prose
	.ci/vulncheck $(MODULES)

.PHONY: lint-short
lint-short: formatted $(BIN)/staticcheck ## Run go vet and staticcheck on the library and the command, and actionlint
	GOWORK=$(WORK) go vet ./... ./cmd/crdcache/...
	GOWORK=$(WORK) $(BIN)/staticcheck -checks inherit,-SA1019 ./... ./cmd/crdcache/...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: linters
linters: $(BIN)/staticcheck
	go vet $(EVERYWHERE)
	$(BIN)/staticcheck -checks inherit,-SA1019 $(EVERYWHERE) # what only newer versions deprecate: floor-all finds the others
	go build -o $(BIN)/project ./test/integration/internal/project
	$(BIN)/project platforms -packages './... ./cmd/crdcache/...' $(PLATFORMS)
	$(BIN)/project platforms -packages '$(patsubst %,./%/...,$(PUBLISHED))' windows/amd64
	$(BIN)/project platforms -packages '$(EVERYWHERE)' darwin/arm64

$(BIN)/staticcheck: Makefile
	GOBIN=$(BIN) GOWORK=off go install $(STATICCHECK)

.PHONY: prose
prose: ## Check the English of documents, comments and messages with the rules in .vale; gcc is installed if missing
	@command -v gcc >/dev/null || { $(INSTALL) gcc libc6-dev; }
	go run $(VALE) --glob='!$(NOT_PROSE)' --output=line $(PROSE)

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in reachable code; reports if the database cannot be reached
	.ci/vulncheck $(MODULES)

verify: test ## Run everything that CI runs
	@$(MAKE) --no-print-directory $(TWO_LANES) browser lint
	@$(MAKE) --no-print-directory bench-ci
