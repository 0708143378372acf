# Targets: build man demo card test check fuzz pairs encode trust growth parity-long bench instructions gobench release reproducible publish lint readers image-readers wine slurm kubernetes kubernetes-run schedulers golden architectures evaluation quality configs interop mutate clean

# The toolchain with vector kernels. A plain `go build ./...` works with any Go
# that go.mod allows and gives the scalar build, whose bytes are the same.
SIMD       := GOTOOLCHAIN=go1.27.4 GOEXPERIMENT=simd
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS    := -s -w -X ggforge/cmd/internal/cli.Version=$(VERSION)
COMMANDS   := ggconv ggquant ggtool ggeval
PLATFORMS  := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   := 2s
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1
KUBECTLVALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
KUBERNETES := 36.3
ARGO := github.com/argoproj/argo-workflows/v4@v4.0.5
NFPM       := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

# The project's page, under which releases are.
HOME_PAGE  ?= https://github.com/$(or $(GITHUB_REPOSITORY),ggforge/ggforge)

# The reference's tools, for golden, architectures, evaluation, quality and interop only; ORACLE_SHARED
# may have published tokenizers (test/interop/oracle/README.md).
ORACLE_ROOT   ?= /opt/oracle
ORACLE_SHARED ?= ../shared
HAVE_ORACLE   := $(wildcard $(ORACLE_ROOT)/usr/bin/llama-quantize)
INTEROP        = ORACLE_ROOT=$(ORACLE_ROOT) ORACLE_SHARED=$(abspath $(ORACLE_SHARED)) GGFORGE_BIN=$(abspath bin)

.PHONY: build man demo test check gate fmt vet staticcheck tidy generate licences cross race fuzz trust growth parity-long faults soak mutate importer bench gobench golden architectures evaluation quality configs interop release reproducible publish lint readers wine slurm kubernetes kubernetes-run schedulers clean

# Where commands are built; a release has its own folder, so that commands in use stay as they are.
BIN := bin
build:
	$(SIMD) CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ $(COMMANDS:%=./cmd/%)

# The manual pages and the completions, in out/man and out/completions.
man: build
	mkdir -p out/man out/completions
	@for c in $(COMMANDS); do $(BIN)/$$c man > out/man/$$c.1 || exit 1; \
		$(BIN)/$$c completion bash > out/completions/$$c.bash && $(BIN)/$$c completion zsh > out/completions/_$$c && \
		$(BIN)/$$c completion fish > out/completions/$$c.fish && $(BIN)/$$c completion powershell > out/completions/$$c.ps1 || exit 1; done

demo: build
	mkdir -p out/demo
	bin/ggconv --force test/testdata/gollama out/demo/gollama-f16.gguf
	bin/ggquant --force out/demo/gollama-f16.gguf out/demo/gollama-Q4_K_M.gguf Q4_K_M
	bin/ggtool inspect out/demo/gollama-Q4_K_M.gguf
	cd out/demo && grep -E ' gollama-(f16|Q4_K_M).gguf$$' ../../test/testdata/gollama.sha256 | sha256sum -c

# The card of the example's release as a picture. It takes cmark-gfm and chromium (docs/examples/card.sh).
.PHONY: card
card: build
	bin/ggtool release docs/examples/card.yaml
	docs/examples/card.sh out/card/README.md docs/card.png out/card-narrow.png

# Tests write thousands of files: into memory, where there is a folder for that with 4 GB.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 { print "/dev/shm" }')
test race fuzz pairs encode: export TMPDIR := $(or $(TMPDIR),$(MEMORY),/tmp)

# Two builds. The one with vector kernels, which users run, has all tests; they also run the scalar code. The other has scalar
# code only, and may fuse multiply and add: it has the packages that compute what is written or reported (the rest has no
# arithmetic that could differ) and what commands tell of a build without vector kernels. A plain build has the same files as
# that, and the arithmetic of the scalar code in the first: make vet has its checks.
COMPUTE := checkpoint/(ggml|precision) convert eval imatrix internal/(kernel|text/nearest) publish/compare quantize quants rows
COMPUTING = $$(go list ./... | grep -E '^[a-z]+/($(subst $() ,|,$(strip $(COMPUTE))))(/|$$)')
test:
	$(SIMD) go test -vet=off ./...
	GOAMD64=v3 go test -vet=off $(COMPUTING)
	GOAMD64=v3 go test -vet=off -run Scalar ./cmd/...

# What a change must pass: the tests, the rest of what CI runs, and builds for all
# platforms.
check: test gate cross

gate: fmt vet staticcheck tidy generate licences race fuzz pairs encode

fmt:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'not gofmt-clean'; exit 1; }

# All packages with vector kernels; of the other builds those that have other files.
LISTED := list -f '{{.ImportPath}} {{.GoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./...
OTHERS = grep -vxFf out/vectors.list | cut -d ' ' -f 1
out/vectors.list: FORCE
	@mkdir -p out; $(SIMD) go $(LISTED) > $@
.PHONY: FORCE
vet: out/vectors.list
	$(SIMD) go vet ./...
	go vet $$(go $(LISTED) | $(OTHERS))
	$(SIMD) CGO_ENABLED=0 GOARCH=arm64 go vet $$($(SIMD) GOARCH=arm64 go $(LISTED) | $(OTHERS))

staticcheck: out/vectors.list
	GOTOOLCHAIN=go1.27.4 go run $(STATICCHECK) $$(GOTOOLCHAIN=go1.27.4 go $(LISTED) | $(OTHERS))
	$(SIMD) go run $(STATICCHECK) ./...

# go.mod has no missing or unused requirements, and modules in the cache match go.sum.
tidy:
	go mod tidy -diff
	go mod verify

# What go generate writes is in the repository.
generate:
	@sum() { git ls-files -com --exclude-standard -z | sort -zu | xargs -0 sha256sum 2>/dev/null | sha256sum; }; \
		before=$$(sum); go generate ./... && test "$$before" = "$$(sum)" || { git status --short; echo 'go generate changed a file'; exit 1; }

# Every module that we link has a licence of the allow-list, and docs/THIRD_PARTY.md
# has its text.
licences:
	go run ./test/gen/licences -check

# With vector kernels, which take a tenth of the time.
race:
	$(SIMD) CGO_ENABLED=1 .ci/race

cross:
	@for p in $(PLATFORMS); do echo "cross-build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build ./... || exit 1; done
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go vet ./... # the tests compile there, too

# Every fuzz target for FUZZTIME, with vector kernels: those are compared with the
# scalar ones.
fuzz:
	$(SIMD) .ci/fuzz $(FUZZTIME)

# Measures everything that docs/reliability.md claims, in slices of a minute, and writes its tables: faults, kills, ten million
# executions of every reader's fuzz target, random sub-blocks, mutants, and the targets for Slurm, MinIO, Kubernetes, Wine and readers
# of others. It can be stopped at any time (the first Ctrl-C waits for the slices that have begun), and continues; what is done
# counts as long as the code that it ran is the same, and is kept in test/trust/state.jsonl, to be committed with the tables. TRUST has
# flags, such as TRUST="-for 30m -run ^fuzz.gguf", TRUST=-n for what is left and how long that takes, or TRUST="-times 10" for ten
# times the counts.
.PHONY: trust growth
trust: export TMPDIR := $(or $(TMPDIR),$(MEMORY),/tmp)
trust:
	mkdir -p out
	$(SIMD) go build -o out/trust.run ./test/trust
	$(SIMD) out/trust.run $(TRUST)

# Reads inputs of n and of 8n elements with every reader, and compares memory and time.
growth:
	$(SIMD) GROWTH=1 go test -count=1 -v -run TestGrowth ./test/defects

# Plans a model of a trillion weights, of which only the headers take room, simulates it on 256 machines, and writes the tables of
# docs/clusters.md.
.PHONY: scale
scale: build
	$(SIMD) go run ./test/scale

# Compares vector encoders that leave out what cannot win with the scalar ones on 100 million random sub-blocks of each type: most
# of an hour for each. PARITY has flags, such as PARITY="-parity.types IQ1_S,Q3_K -parity.seed 2"; GODEBUG=simd=256 another width.
parity-long:
	$(SIMD) go test -count=1 -timeout 0 -v -run '^TestRandomParity$$' ./quants -parity.subblocks 100000000 $(PARITY)

# Has every call to the system that is about files fail, in every way there is; TMPDIR, in memory where there is such
# a folder, holds the files.
faults:
	$(if $(wildcard /dev/shm/.),TMPDIR=$${TMPDIR:-/dev/shm}) $(SIMD) go test -count=1 -timeout 60m -v -run '^TestFaults$$' ./test/faulttest -faults.all $(FAULTS)

# Kills commands while they write, at random moments, on a small file system; SOAK has flags, such as SOAK="-kills 5000 -seed 1".
soak: build
	$(SIMD) CGO_ENABLED=0 go build -trimpath -o bin/soak ./test/soak
	bin/soak -bin bin $(SOAK)

# Changes config.json and metadata of every made-up model, and converts, evaluates, quantizes and checks them; MUTATE has flags, such as
# MUTATE="-mutants 200 -seed 7 -limit 2h". A crash leaves the mutant in TMPDIR/last-mutant.
MUTATE = -mutants 50 -limit 30m
mutate:
	$(SIMD) go test -count=1 -timeout 0 -v -run TestMutants ./test/mutate -args $(MUTATE)

# A program of another module that uses the library.
importer:
	go test -count=1 -run TestImporter ./test/layers

# Every two features that write into one folder or read each other's output, in both orders; the tests run a tenth of them.
.PHONY: pairs
pairs:
	$(SIMD) go test -count=1 -run '^TestPairs$$' ./test/pairs -pairs.all

# A million characters by every made-up tokenizer; the tests take a quarter of the text for each, not the same one.
.PHONY: encode
encode:
	$(SIMD) go test -vet=off -count=1 -run '^TestEncodeGolden$$' ./tokenizer -encode.all

# What counts instructions: QEMU's user mode and a plugin. QEMU_PLUGIN is the version of the interface of plugins, which is 1 up
# to QEMU 8.1.
QEMU_PLUGIN ?= 1
COUNTER     := -arm64 bin/bench-arm64 -plugin bin/count.so
HAVE_COUNTS := $(and $(shell command -v qemu-aarch64),$(shell command -v cc))

# Writes docs/BENCHMARKS.md, in comparison with the reference where it is installed.
# BENCH takes flags of test/bench, such as BENCH="-short -types Q4_K", or
# BENCH="-only speed,memory" for some parts: the others stay in the report.
bench: build $(if $(HAVE_COUNTS),counter)
	$(SIMD) CGO_ENABLED=0 go build -trimpath -o bin/bench ./test/bench
	ORACLE_ROOT=$(if $(HAVE_ORACLE),$(ORACLE_ROOT)) bin/bench -o docs/BENCHMARKS.md $(if $(HAVE_COUNTS),$(COUNTER)) $(BENCH)

# Counts the instructions for a weight on arm64, and of encoders on amd64 next to time, into sections of docs/BENCHMARKS.md.
.PHONY: instructions counter
counter:
	$(SIMD) CGO_ENABLED=0 GOARCH=arm64 go build -trimpath -o bin/bench-arm64 ./test/bench
	cc -O2 -Wall -shared -fPIC -DVERSION=$(QEMU_PLUGIN) -o bin/count.so test/bench/plugin/count.c
ifeq ($(HAVE_COUNTS),)
instructions:
	@echo 'instructions: qemu-aarch64 or a C compiler is not installed (apt-get install qemu-user gcc): nothing counted'
else
instructions: build counter
	$(SIMD) CGO_ENABLED=0 go build -trimpath -o bin/bench ./test/bench
	ORACLE_ROOT=$(if $(HAVE_ORACLE),$(ORACLE_ROOT)) bin/bench -o docs/BENCHMARKS.md $(COUNTER) -only instructions $(BENCH)
endif

# The benchmarks of the Go tests, for benchstat.
gobench:
	$(SIMD) go test -run xxx -bench . -count 5 ./quants

ifeq ($(HAVE_ORACLE),)
golden architectures evaluation quality configs interop interop-all:
	@echo '$@: the reference is not installed in ORACLE_ROOT=$(ORACLE_ROOT): nothing compared'
else
# Compares with the reference's tools, file by file.
interop: build
	$(INTEROP) go test -count=1 -timeout 60m -v ./test/interop

# Runs all of interop, two tests at a time, and writes docs/interop.md: under an hour on two quiet cores. ALL='-run REGEXP' runs some.
.PHONY: interop-all
ALL ?=
interop-all: build
	@mkdir -p out
	$(SIMD) go test -vet=off -c -o out/interop.test ./test/interop
	$(SIMD) $(INTEROP) go run ./test/interop/all $(ALL)

# Compares what both converters make of published configurations: CONFIGS is a folder
# with a folder for each model, which has its config.json, and what else of its small
# JSON files is at hand. RUN takes those whose names match. The weights are small.
RUN ?=
configs: build
	$(INTEROP) CONFIGS='$(if $(CONFIGS),$(abspath $(CONFIGS)))' go test -count=1 -timeout 60m -v ./test/interop -run 'TestPublishedConfigs$(if $(RUN),/$(RUN))'

# Writes docs/architectures.md: all of it, or the rows of which all checkpoints are
# among those whose names RUN matches.
architectures: build
	$(INTEROP) go test -count=1 -timeout 60m ./test/interop -run '^(TestArchitectures|TestTowers)$$$(if $(RUN),/$(RUN))' -docs

# Writes docs/evaluation.md: all of it, or the architectures of which all models are
# among those whose names RUN matches.
evaluation: build
	$(INTEROP) go test -count=1 -timeout 120m ./test/interop -run '^(TestEvaluate|TestEvaluateBits|TestImatrix|TestEmbed)$$$(if $(RUN),/$(RUN))' -docs

# Writes docs/quality.md: what quantizing loses. RUN measures the rows MODEL/TYPE/METHOD that it
# matches, and fails if one is worse than in test/quality/testdata/figures.tsv; what was measured before is kept in QUALITY_WORK, a folder inside ORACLE_ROOT. With
# TEXT=development another text judges, and the tables are written to that folder. QUALITY has
# other flags, such as QUALITY=-short for a look.
QUALITY_WORK ?= /srv/quality
TEXT ?= heldout
QUALITY ?=
quality: build
	$(SIMD) CGO_ENABLED=0 go build -trimpath -o bin/quality ./test/quality
	$(SIMD) $(INTEROP) bin/quality -work $(QUALITY_WORK) -text $(TEXT) -run '$(RUN)' $(QUALITY) \
		-o $(if $(filter heldout,$(TEXT)),docs/quality.md,$(ORACLE_ROOT)$(QUALITY_WORK)/$(TEXT).md); \
		status=$$?; go generate ./cmd/ggquant && exit $$status

# Writes the golden files anew; STEP="NAME ..." those of some steps of
# test/interop/golden.sh, SPEC=PATTERN the files of architectures that match.
SPEC ?=
STEP ?= $(if $(SPEC),arch)
golden: build
	$(INTEROP) SPEC='$(SPEC)' test/interop/golden.sh . $(STEP)
endif

# Reads and runs our files with programs of others, which are installed in READERS: two packages of
# npm (test/interop/readers/package.json) and two modules of Go.
READERS ?= out/readers
ifeq ($(and $(shell command -v node),$(shell command -v npm)),)
readers:
	@echo 'readers: node or npm is not installed (apt-get install nodejs npm): nothing read'
else
readers: build
	mkdir -p $(READERS)/parser $(READERS)/ollama
	cp test/interop/readers/package.json test/interop/readers/*.mjs $(READERS)
	cp test/interop/readers/parser/* $(READERS)/parser
	cp test/interop/readers/modelfile/* $(READERS)/ollama
	cd $(READERS) && npm install --no-audit --no-fund --no-package-lock --ignore-scripts
	cd $(READERS)/parser && go build -o ../parse .
	cd $(READERS)/ollama && go build -o ../modelfile .
	$(SIMD) READERS=$(abspath $(READERS)) GGFORGE_BIN=$(abspath bin) go test -count=1 -v ./test/interop -run '^TestReaders'
endif

# Files of image models and text encoders, read by the code of the programs that run them, with PyTorch and gguf-py in
# ORACLE_ROOT: ComfyUI-GGUF and diffusers, fetched at fixed commits into IMAGE_READERS, a folder inside ORACLE_ROOT.
COMFYUI_GGUF     ?= https://github.com/city96/ComfyUI-GGUF
COMFYUI_COMMIT   := 795e451
DIFFUSERS        ?= https://github.com/huggingface/diffusers
DIFFUSERS_COMMIT := 58eb52c
IMAGE_READERS    ?= /srv/image-readers
READ_BY          := ^TestReaders(Encoders|Diffusion|Layouts)$$
.PHONY: image-readers
image-readers: build
	@mkdir -p $(ORACLE_ROOT)$(IMAGE_READERS)
	test -d out/ComfyUI-GGUF || git clone -q --filter=blob:none $(COMFYUI_GGUF) out/ComfyUI-GGUF
	test -d out/diffusers || git clone -q --filter=blob:none $(DIFFUSERS) out/diffusers
	@mkdir -p $(ORACLE_ROOT)$(IMAGE_READERS)/ComfyUI_GGUF $(ORACLE_ROOT)$(IMAGE_READERS)/diffusers
	git -C out/ComfyUI-GGUF archive $(COMFYUI_COMMIT) | tar -x -C $(ORACLE_ROOT)$(IMAGE_READERS)/ComfyUI_GGUF
	git -C out/diffusers archive $(DIFFUSERS_COMMIT) src scripts | tar -x -C $(ORACLE_ROOT)$(IMAGE_READERS)/diffusers
	$(SIMD) $(INTEROP) IMAGE_READERS=$(IMAGE_READERS) go test -count=1 -v ./test/interop -run '$(READ_BY)'

# Reads from and writes to a real server of objects, MinIO, which is built in S3_TOOLS and killed in the middle, as our own
# processes are; S3_BYTES is the size of the checkpoint. Its licence is the AGPL: it is run, and not part of anything.
MINIO    := github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
S3_TOOLS ?= out/s3
S3_BYTES ?= 400000000
.PHONY: s3
s3: build
	@test -x $(S3_TOOLS)/minio || { mkdir -p $(S3_TOOLS) && GOTOOLCHAIN=go1.27.4 GOBIN=$(abspath $(S3_TOOLS)) go install $(MINIO); }
	$(SIMD) S3_SERVER=$(abspath $(S3_TOOLS)/minio) S3_BYTES=$(S3_BYTES) GGFORGE_BIN=$(abspath bin) go test -count=1 -timeout 60m -v ./test/interop -run '^(TestObjects|TestObjectParts|TestObjectEvaluations|TestPushObjects)$$'

# Runs the commands for Windows under Wine, of this system or in ORACLE_ROOT: the files have to be
# those of the commands for this system; and tests of packages that deal with files.
WINE_ROOT := $(patsubst %/usr/bin/wine,%/,$(firstword $(wildcard /usr/bin/wine $(ORACLE_ROOT)/usr/bin/wine)))
ifeq ($(WINE_ROOT),)
wine:
	@echo 'wine: is neither installed here nor in ORACLE_ROOT=$(ORACLE_ROOT) (apt-get install wine64): nothing run'
else
wine: build
	$(SIMD) CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/windows/ $(COMMANDS:%=./cmd/%)
	$(SIMD) WINE_ROOT=$(WINE_ROOT) GGFORGE_BIN=$(abspath bin) go test -count=1 -timeout 60m -v ./test/interop -run '^TestWine'
endif

# Runs jobs of ggtool submit on a real Slurm, which is started on this machine and stopped again, and compares.
slurm: build
	$(SIMD) go test -c -o out/slurm.test ./test/interop
	cd test/interop && GGFORGE_BIN=$(abspath bin) slurm/with-cluster $(abspath out/slurm.test) -test.v -test.run '^TestSlurm$$$(if $(RUN),/$(RUN))' -test.timeout 60m; \
		code=$$?; test $$code = 0 || test $$code = 77

# Compares manifests of ggtool submit with the schemas of Kubernetes, which the validator has in it, and of Argo, and with
# the rules of Argo's controller; both programs are large.
kubernetes: build
	mkdir -p out/validator/argo
	GOBIN=$(abspath out/validator) GOTOOLCHAIN=go1.27.4 go install $(KUBECTLVALIDATE)
	cp test/interop/schedulers/_argo/main.go out/validator/argo
	cd out/validator/argo && export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod && rm -f go.mod go.sum && go mod init argovalidate && \
		go get $(ARGO) && go mod tidy && CGO_ENABLED=0 go build -o argovalidate . && mkdir -p crds && \
		cp -f "$$(go list -m -f '{{.Dir}}' $(firstword $(subst @, ,$(ARGO))))/manifests/base/crds/full/argoproj.io_workflows.yaml" crds
	$(SIMD) KUBERNETES_VALIDATOR='$(abspath out/validator)/kubectl-validate --version 1.30' ARGO_VALIDATOR='$(abspath out/validator/argo)' GGFORGE_BIN=$(abspath bin) go test -count=1 -v ./test/interop -run '^TestKubernetes$$'

# Runs Jobs of ggtool submit on a real API server with the real controller of Jobs, which are built first (ten minutes on two
# cores) and stopped again; the test stands in for the nodes.
kubernetes-run: build
	mkdir -p out/kubernetes
	cd out/kubernetes && export GOTOOLCHAIN=go1.27.4 GOEXPERIMENT= GOFLAGS=-mod=mod && rm -f go.mod go.sum && go mod init servers && \
		go mod edit -require=k8s.io/kubernetes@v1.$(KUBERNETES) && \
		for m in $$(sed -n 's#^\t*\(k8s.io/[a-z0-9-]*\) => ./staging.*#\1#p' "$$(go mod download -json k8s.io/kubernetes@v1.$(KUBERNETES) | sed -n 's/.*"Dir": "\(.*\)",/\1/p')/go.mod"); do \
			go mod edit -replace=$$m=$$m@v0.$(KUBERNETES); done && \
		go build -o . k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager
	$(SIMD) go test -c -o out/kubernetes.test ./test/interop
	cd test/interop && SERVERS=$(abspath out/kubernetes) GGFORGE_BIN=$(abspath bin) kubernetes/with-cluster $(abspath out/kubernetes.test) -test.v -test.run '^TestKubernetesRun$$'; \
		code=$$?; test $$code = 0 || test $$code = 77

# Passes jobs of ggtool submit to the real CLIs of AWS and of the hub and to SkyPilot's schemas, where they can be had, and
# runs them as the schedulers do, with killed processes. SKYPILOT is a checkout of SkyPilot.
schedulers: build
	$(SIMD) GGFORGE_BIN=$(abspath bin) ORACLE_ROOT=$(ORACLE_ROOT) SKYPILOT='$(SKYPILOT)' go test -count=1 -v ./test/interop -run '^Test(AWSBatch|HFJobs|SkyPilot|Simulated|Parallel|SchedulersQuote)$$'

# Everything that is published of a version, in dist: test/release lists it. The version is the
# one of the commit's tag and of CHANGELOG.md, else one marked as no release. The settings of the
# machine do not count: building the same commit again gives the same bytes.
RELEASE = $(shell $(SIMD) go run ./test/release -version)
release:
	rm -rf dist
	rm -rf out/man out/completions
	@version='$(RELEASE)'; test -n "$$version" || exit 1; \
	$(MAKE) --no-print-directory man VERSION="$$version" BIN=out/release && mkdir -p dist/share && cp -R out/man out/completions dist/share && \
	for p in $(PLATFORMS); do echo "build $$p $$version"; \
		env GOFLAGS= GOAMD64=v1 GOARM64=v8.0 GOFIPS140=off $(SIMD) CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -buildvcs=false \
			-ldflags "-s -w -X ggforge/cmd/internal/cli.Version=$$version" -o dist/bin/$${p%/*}-$${p#*/}/ $(COMMANDS:%=./cmd/%) || exit 1; done
	$(SIMD) go run ./test/release -home '$(HOME_PAGE)' -nfpm '$(NFPM)'

# Builds a clone of the commit in another folder, without what is built already, and compares.
reproducible: release
	rm -rf out/again
	git clone -q . out/again/tree
	GOCACHE='$(abspath out/again/cache)' $(MAKE) -C out/again/tree release PLATFORMS='$(PLATFORMS)' HOME_PAGE='$(HOME_PAGE)'
	diff dist/SHA256SUMS out/again/tree/dist/SHA256SUMS
	diff dist/ggforge.rb out/again/tree/dist/ggforge.rb
	rm -rf out/again
	@echo 'the same bytes twice'

# Puts the files of dist on the page of the tag's release (.goreleaser.yaml); GITHUB_TOKEN permits it.
publish:
	GOTOOLCHAIN=go1.27.4 go run $(GORELEASER) release --clean --release-notes dist/NOTES.md

# Known vulnerabilities of the modules and of Go, as far as our code reaches them. The data come from VULNDB, which
# may be a copy, file:///FOLDER. Not a part of the gate: the data change from day to day.
.PHONY: vuln
VULNDB ?= https://vuln.go.dev
vuln:
	GOTOOLCHAIN=go1.27.4 GOBIN='$(abspath out/tools)' go install $(GOVULNCHECK)
	@code=0; GOTOOLCHAIN=go1.27.4 out/tools/govulncheck -db '$(VULNDB)' ./... || code=$$?; \
		case $$code in 0) ;; 3) exit 1;; \
		*) echo 'vuln: no result, so that nothing is known: if $(VULNDB) cannot be reached, set VULNDB=file:///FOLDER to a copy of it'; exit 1;; esac

# What describes workflows and releases. Both tools are large, so that the gate goes without them.
lint:
	GOTOOLCHAIN=go1.27.4 go run $(ACTIONLINT) .github/workflows/*.yml
	GOTOOLCHAIN=go1.27.4 go run $(GORELEASER) check

clean:
	rm -rf bin out dist
