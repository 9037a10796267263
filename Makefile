# Every module is built and tested with its own go.mod, as users get it; go.work is for editors.
export GOWORK := off
export GOFLAGS := -buildvcs=false

MODULES := . sandbox integration integration/adopters integration/browser bench controllerruntime examples metrics packaging/crdcached packaging/monitoring server storage/disk
BIN := $(CURDIR)/bin
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
VALE := github.com/vale-cli/vale/v3/cmd/vale@v3.22.0
# The files and folders whose English vale checks, and the files of them that it skips.
PROSE := $(wildcard *.md) .github bench cmd compat controllerruntime discovery docs dynamicinformer examples indexers/*.go indexers/bind indexers/query \
  indexers/references indexers/reload integration internal metrics packaging readapi sandbox server shard snapshot storage testdata web
NOT_PROSE := {*_test.go,*/testdata/*}
FUZZTIME ?= 20s
# What is tested in 32 bits as well.
ENGINE := ./internal/codec/... ./internal/informer ./internal/jsontext ./internal/packed ./internal/store
# What is also tested with the newest version of Kubernetes' modules. The other tests of the root run with the oldest one.
NEWEST_KUBERNETES := $(addprefix github.com/crdcache/crdcache/,dynamicinformer/... internal/informer internal/newer internal/requests)
# Where the library and the command have to compile. All other modules have to on darwin/arm64, and those that are published
# on Windows as well; the sandbox, and what needs it, do not.
PLATFORMS := linux/386 linux/arm64 windows/amd64
PUBLISHED := controllerruntime metrics storage/disk
# The version of Kubernetes that the tests run against in make skew, what of them, and where its binaries are kept.
VERSION ?= 1.30.14
SKEW_PACKAGES ?= ./...
SKEW_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/crdcache/kubernetes
# The tests for which it can make a difference that a server has no watch-list.
WITHOUT_WATCH_LIST := ./conformance ./discovery ./lifecycle ./shardview
HISTORY_DURATION ?= 10m
HISTORY_SEED ?= 0
# How many objects replicas share in make sharding.
OBJECTS ?= 100000
# How long the sample operator is run by make soak-operator.
DURATION ?= 30m
# How long informers are soaked by make soak, with how much of everything (integration/soak has the flags), and from which
# seed on (0: any).
SOAK_DURATION ?= 60m
SOAK_SEED ?= 0
SOAK_SCALE ?= -types 200 -coming 20 -objects 50000 -updates 500 -handlers 50 -stock 20 -round 90s -longest 60
# How many packages of integration are tested at a time. They wait for servers four fifths of their time.
AT_ONCE ?= 3
# Builds tests in which the clock on the wall can jump: see integration/internal/wallclock.
CLOCK_JUMPS := -tags clockjumps -ldflags=-checklinkname=0
# What make fuzz runs, of that the tests whose package and name match FUZZ_RUN, how many executions it goes on for (0: each test
# once), and in how many processes (0: all processors).
FUZZ_MODULES ?= . controllerruntime sandbox server
FUZZ_RUN ?=
FUZZ_EXECUTIONS ?= 0
FUZZ_PARALLEL ?= 0
# The sandbox is several minutes of building: once, unless its sources or the versions it is made of change.
SANDBOX_SOURCES := $(shell find sandbox -name '*.go' -not -name '*_test.go') sandbox/go.mod sandbox/build.sh

.PHONY: help build crdcached install man test unit integration adopters browser skew skew-short versions history load attack image soak soak-operator sharding sandbox-test lint race fuzz sandbox demo demo-cluster demo-web bench bench-ci apidiff dist publish release microbench generate verify

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# crdcache version tells the commit, where git knows it.
build: ## Build bin/crdcache (about a minute the first time)
	go build -buildvcs=$(shell git status >/dev/null 2>&1 && echo true || echo false) -o $(BIN)/crdcache ./cmd/crdcache

crdcached: ## Build bin/crdcached, the cache for a whole team (5 minutes the first time)
	cd server && go build -buildvcs=$(shell git status >/dev/null 2>&1 && echo true || echo false) -o $(BIN)/crdcached ./cmd/crdcached

PREFIX ?= $(HOME)/.local
DESTDIR ?=

install: build man ## Install crdcache, kubectl-crdcache, completions and man pages below PREFIX (~/.local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 755 $(BIN)/crdcache $(DESTDIR)$(PREFIX)/bin/crdcache
	ln -sf crdcache $(DESTDIR)$(PREFIX)/bin/kubectl-crdcache
	install -m 755 packaging/kubectl_complete-crdcache $(DESTDIR)$(PREFIX)/bin/kubectl_complete-crdcache
	install -m 644 $(BIN)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(BIN)/completions/crdcache.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/crdcache
	install -m 644 $(BIN)/completions/_crdcache $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_crdcache
	install -m 644 $(BIN)/completions/crdcache.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/crdcache.fish

man: ## Write the reference of all commands: man pages to bin/man, Markdown to bin/reference, completions to bin/completions
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null)} \
	  go run ./cmd/crdcache/internal/reference -man $(BIN)/man -markdown $(BIN)/reference
	@mkdir -p $(BIN)/completions
	go run ./cmd/crdcache completion bash > $(BIN)/completions/crdcache.bash
	go run ./cmd/crdcache completion zsh > $(BIN)/completions/_crdcache
	go run ./cmd/crdcache completion fish > $(BIN)/completions/crdcache.fish

# The tests against servers wait most of the time, so they share the processors with the tests that only compute.
test: ## Run all tests, two suites at a time; builds the sandbox first (5 to 8 minutes once)
	@$(MAKE) --no-print-directory $(TWO_LANES) unit integration sandbox-test

# Runs two targets at a time, all of them even if one fails, and prints the output of each command as a whole.
TWO_LANES := --jobs=2 --keep-going --output-sync=line

unit: ## Run the tests that need nothing but Go, those of the engine also in 32 bits
	go test -timeout 10m ./...
	@# The root module requires the oldest supported version of Kubernetes' modules, integration the newest.
	cd integration && go test -timeout 10m $(NEWEST_KUBERNETES)
	cd bench && go test -timeout 10m ./...
	cd controllerruntime && go test -timeout 10m ./...
	cd examples && go test -timeout 10m ./...
	cd metrics && go test -timeout 10m ./...
	cd server && go test -timeout 10m ./...
	cd storage/disk && go test -timeout 10m ./...
	cd packaging/crdcached && go test -timeout 10m ./...
	cd packaging/monitoring && go test -timeout 20m ./... # builds promtool once, in 3 to 6 minutes
	@if [ "$$(go env GOOS GOARCH | paste -sd/)" = linux/amd64 ]; then \
	  echo "GOARCH=386 go test $(ENGINE)"; GOARCH=386 CGO_ENABLED=0 go test -timeout 10m $(ENGINE); fi

integration: sandbox crdcached ## Run the tests against a real API server, with watch-list and without; Python is installed where missing
	@command -v python3 >/dev/null || { apt-get -o Acquire::Retries=3 update && apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3; }
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -p $(AT_ONCE) -timeout 20m $$(go list ./... | grep -Ev '/(cli|crdcached|operators|history|soak)$$')
	@# The first three run a command that go's cache of test results can't see; the others are another history each time.
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 CRDCACHE_CRDCACHED_BIN=$(BIN)/crdcached go test $(CLOCK_JUMPS) -p $(AT_ONCE) -count=1 -timeout 20m \
	  ./cli ./crdcached ./operators ./history ./soak ./internal/wallclock
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 CRDCACHE_APISERVER_ARGS=feature-gates=WatchList=false \
	  go test -p $(AT_ONCE) -timeout 20m $(WITHOUT_WATCH_LIST)
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 CRDCACHE_APISERVER_ARGS=feature-gates=WatchList=false \
	  go test -count=1 -timeout 20m ./cli -run TestFollow

# The page is looked at by a real browser; Debian's is installed where there is none.
browser: sandbox crdcached ## Test the page with headless Chromium, which is installed where missing
	@command -v chromium >/dev/null || { apt-get -o Acquire::Retries=3 update && apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends chromium; }
	cd integration/browser && CRDCACHE_REQUIRE_SANDBOX=1 CRDCACHE_CRDCACHED_BIN=$(BIN)/crdcached go test -count=1 -timeout 10m ./...

# The results are events, which project compatibility turns into a summary.
SKEW_TEST = cd integration && go build -o $(BIN)/project ./project && \
	KUBEBUILDER_ASSETS=$(SKEW_CACHE)/$(VERSION) CRDCACHE_KUBECTL_BIN=$(SKEW_CACHE)/$(VERSION)/kubectl \
	CRDCACHE_REQUIRE_SANDBOX=1 go test -p $(AT_ONCE) -json -count=1 -timeout 30m

skew: sandbox ## Run the integration tests against Kubernetes VERSION (1.30.14), and write docs/compatibility.md; builds it first (10 minutes once)
	./sandbox/build-version.sh $(VERSION) $(SKEW_CACHE)/$(VERSION)
	$(SKEW_TEST) $(SKEW_PACKAGES) | $(BIN)/project compatibility -server "Kubernetes $(VERSION)" -document ../docs/compatibility.md

versions: sandbox ## Test the modules with three versions of Kubernetes' modules and controller-runtime, and write docs/compatibility.md (an hour)
	cd integration && go build -o $(BIN)/project ./project && \
	  CRDCACHE_REQUIRE_SANDBOX=1 $(BIN)/project versions -root .. -document ../docs/compatibility.md

skew-short: ## Run some of them, if VERSION has been built
	@if [ -x $(SKEW_CACHE)/$(VERSION)/kube-apiserver ]; then \
	  $(SKEW_TEST) ./cli ./discovery ./indexers ./lifecycle | $(BIN)/project compatibility -server "Kubernetes $(VERSION)"; \
	else echo "Kubernetes $(VERSION) has not been built: make skew VERSION=$(VERSION) does"; fi

history: sandbox ## Play random histories for HISTORY_DURATION (10m), from HISTORY_SEED on (0: any), with the race detector
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -race -count=1 -timeout 0 -v ./history \
	  -args -duration=$(HISTORY_DURATION) -seed=$(HISTORY_SEED)

load: sandbox ## Have 1,000 watches and lists of 50,000 objects served by crdcached and by the API server, and write what that costs into docs/crdcached.md (5 minutes)
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 20m -v ./crdcached -run TestLoad \
	  -args -load-objects=50000 -load-watchers=1000 -load-updates=2000 -load-lists=5 -load-document=$(CURDIR)/docs/crdcached.md

attack: sandbox ## Do to crdcached what somebody might who is up to no good, with 10,000 watches of which half read nothing
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 20m -v ./crdcached -run TestAttacks -args -attack-watches=10000 -attack-memory=1024

image: ## Build the image of crdcached without a registry, and check that it fits the manifests; buildah is installed where missing
	@command -v buildah >/dev/null || { apt-get -o Acquire::Retries=3 update && apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends buildah; }
	packaging/crdcached/check-image.sh

soak: sandbox ## Follow many types in bad weather for SOAK_DURATION (60m), and write docs/reliability.md
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test $(CLOCK_JUMPS) -count=1 -timeout 0 -v ./soak -run TestSoak \
	  -args -duration=$(SOAK_DURATION) -seed=$(SOAK_SEED) $(SOAK_SCALE) -document=$(CURDIR)/docs/reliability.md

soak-operator: sandbox ## Run the sample operator for DURATION (30m) while types come and go and API servers restart
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 0 -v ./operator -run TestSoak \
	  -args -duration=$(DURATION)

adopters: ## Change kro and Kyverno to use crdcache, and run their tests before and after (needs the module proxy)
	cd integration/adopters && go test -count=1 -timeout 90m -v ./...

sharding: sandbox ## Share OBJECTS (100000) among replicas that come, go and are killed, and tell how long hand-overs take
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -count=1 -timeout 0 -v ./sharding -run TestScale \
	  -args -objects=$(OBJECTS) -updates=200 -shards=64

sandbox-test: sandbox ## Run the sandbox's own tests
	cd sandbox && CRDCACHE_SANDBOX_BIN=$(BIN)/sandbox go test -timeout 10m ./...

race: sandbox ## Run unit and integration tests with the race detector
	go test -race -timeout 20m ./...
	cd metrics && go test -race -timeout 10m ./...
	cd server && go test -race -timeout 10m ./...
	cd storage/disk && go test -race -timeout 10m ./...
	cd integration && CRDCACHE_REQUIRE_SANDBOX=1 go test -race -timeout 30m ./...

fuzz: ## Run every fuzz test for FUZZTIME (20s), and add what they executed to docs/reliability.md
	cd integration && go build -o $(BIN)/project ./project
	$(BIN)/project fuzz -time $(FUZZTIME) -run '$(FUZZ_RUN)' -executions $(FUZZ_EXECUTIONS) -parallel $(FUZZ_PARALLEL) \
	  -results docs/fuzz.json -document docs/reliability.md $(FUZZ_MODULES)

sandbox: $(BIN)/sandbox ## Build bin/sandbox, and the etcd, kube-apiserver and kubectl beside it

$(BIN)/sandbox: $(SANDBOX_SOURCES)
	./sandbox/build.sh $(BIN)

demo: build ## Query custom resources by index, from the manifests in testdata
	./testdata/demo.sh $(BIN)/crdcache --from crds --from objects

demo-cluster: build sandbox ## The same on a real API server, started for it and stopped again
	$(BIN)/sandbox exec --load testdata/crds --load testdata/objects -- ./testdata/demo.sh $(BIN)/crdcache

demo-web: build sandbox ## Look at a real API server on a page in the browser, while objects change; ends with an interrupt
	$(BIN)/sandbox exec --load testdata/crds --load testdata/objects -- ./testdata/demo-web.sh $(BIN)/crdcache $(BIN)/kubectl

bench: build sandbox $(BIN)/bench ## Compare with client-go and others, and write docs/benchmarks.md (BENCH_FLAGS=-help for choices)
	cd bench && $(BIN)/bench -report ../docs/benchmarks.md -results $(BIN)/benchmarks.json $(BENCH_FLAGS)

bench-ci: build sandbox $(BIN)/bench ## A short comparison, which fails where a promise is broken by a wide margin
	cd bench && $(BIN)/bench -ci $(BENCH_FLAGS)

# Always built: the go command knows better than make what has changed.
.PHONY: $(BIN)/bench
$(BIN)/bench:
	cd bench && go build -o $(BIN)/bench .

apidiff: ## Compare the exported API with the last release, or BASE=tag; fails where programs would not compile any more
	./packaging/apidiff.sh $(BASE)

dist: ## Build the files of a release for all platforms into bin/dist: archives, packages, bills of materials, checksums
	go run $(GORELEASER) check
	go run $(GORELEASER) release --snapshot --clean --skip=docker,sign

publish: ## Build, sign and publish a release with the text of the file NOTES; the release workflow runs it
	go run $(GORELEASER) release --clean --release-notes=$(NOTES)

release: ## Commit and tag VERSION=v0.9.0 of all modules; pushes nothing
	./packaging/release.sh $(if $(filter command line,$(origin VERSION)),$(VERSION),'')

microbench: ## Run the Go benchmarks of every package
	go test -run '^$$' -bench . -benchmem ./...

generate: ## Write generated files, format all Go code and tidy every module
	go test ./indexers -run TestSchemaFile -rewrite
	gofmt -w $$(git ls-files '*.go')
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

lint: ## Run gofmt, go vet, staticcheck and the go mod tidy check in every module, type-check for other platforms, check the prose, and look for vulnerabilities
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	  [ -z "$$unformatted" ] || { echo "gofmt wants to change (make generate): $$unformatted"; exit 1; }
	@for m in $(MODULES); do echo "lint $$m"; \
	  (cd $$m && go vet ./... && go run $(STATICCHECK) ./... && go mod tidy -diff) || exit 1; done
	@echo "platforms: $(PLATFORMS) darwin/arm64"; (cd integration && go build -o $(BIN)/project ./project) && $(BIN)/project platforms $(PLATFORMS)
	@for m in $(PUBLISHED); do (cd $$m && $(BIN)/project platforms windows/amd64) || exit 1; done
	@for m in $(MODULES); do (cd $$m && $(BIN)/project platforms darwin/arm64) || exit 1; done
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	@go vet ./testdata && go run $(STATICCHECK) ./testdata # ./... passes over folders of this name
	@$(MAKE) --no-print-directory prose
	./packaging/vulncheck.sh $(MODULES)

.PHONY: prose
prose: ## Check the English of documents, comments and messages with the rules in .vale; gcc is installed where missing
	@command -v gcc >/dev/null || { apt-get -o Acquire::Retries=3 update && apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends gcc libc6-dev; }
	go run $(VALE) --glob='!$(NOT_PROSE)' --output=line $(PROSE)

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities that the modules can reach; says so where there is no database to ask
	./packaging/vulncheck.sh $(MODULES)

verify: test ## Everything that CI runs
	@$(MAKE) --no-print-directory $(TWO_LANES) browser lint
	@$(MAKE) --no-print-directory skew-short bench-ci
