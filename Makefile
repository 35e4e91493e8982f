# Everything a developer runs. CI is .ci/run, which installs what it needs and stops at the first thing that fails.
GO ?= go

.PHONY: build release test race lint fuzz bench sim-evidence tune-matrix vm vm-verbs full

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/fabricctl ./cmd/fabricctl-host

# Releases hold fabricctl-host for the hosts, so that one file is all that an operator copies. bin/release has one for each
# kind of machine, and fabricctl-host beside them for who installs it on hosts in another way.
HOSTBIN = cmd/fabricctl/hostbin

# A thousand hosts get it over SSH, and none of them waits for it: no inlining, no assembly of crypto that it calls once, no gaps between functions.
HOSTFLAGS = -trimpath -tags purego -gcflags all=-l -ldflags '-s -w -funcalign=1'
release:
	rm -rf bin/release $(HOSTBIN)
	mkdir -p bin/release $(HOSTBIN)
	for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build $(HOSTFLAGS) -o bin/release/fabricctl-host-linux-$$arch ./cmd/fabricctl-host && \
		gzip -9n <bin/release/fabricctl-host-linux-$$arch >$(HOSTBIN)/fabricctl-host-linux-$$arch.gz || exit 1; done
	for on in linux-amd64 linux-arm64 darwin-arm64; do \
		CGO_ENABLED=0 GOOS=$${on%-*} GOARCH=$${on#*-} $(GO) build -trimpath -tags release -ldflags '-s -w' -o bin/release/fabricctl-$$on ./cmd/fabricctl || exit 1; done

test:
	$(GO) test -timeout 30m ./...

race:
	$(GO) test -race ./drivers/... ./model/journal/...
	$(GO) test -race -run 'RunMany|Screen' ./tuning/sim ./tuning/sim/fluid
	$(GO) test -race -short ./tuning

lint: bin/gofumpt
	$(GO) vet ./...
	test -z "$$(bin/gofumpt -l .)"
	bin/staticcheck ./...
	test -z "$$(bin/deadcode -test ./...)"

bin/gofumpt: tools/go.mod
	cd tools && $(GO) build -o ../bin/ mvdan.cc/gofumpt honnef.co/go/tools/cmd/staticcheck golang.org/x/tools/cmd/deadcode

fuzz:
	tools/fuzz.sh 5

# What must be fast, against programs that do the least of the same: writes the table of docs/evidence/speed.md.
bench:
	FABRICCTL_SPEED=$(CURDIR)/docs/evidence/speed.md $(GO) test -count 1 -timeout 30m -run '^TestSpeed$$' ./cmd/fabricctl
	FABRICCTL_SCALE=$(CURDIR)/docs/evidence/scale.md $(GO) test -count 1 -timeout 30m -run '^TestHostScale$$' ./cmd/fabricctl
	FABRICCTL_SIMSPEED=$(CURDIR)/docs/evidence/simulator.md $(GO) test -count 1 -timeout 60m -run '^TestSpeed$$' ./tuning/sim/engine

# The simulator against recorded runs and theory: writes the tables of docs/evidence/simulator.md, whose speed comes from make bench.
sim-evidence:
	FABRICCTL_SIM_EVIDENCE=$(CURDIR)/docs/evidence/simulator.md $(GO) test -count 1 -timeout 60m -run 'Evidence$$' ./tuning/sim/...

# Tuning from bad starts against a grid, in the simulator and on emulated fabrics: writes the tables of docs/evidence/tuning.md. Hours on one
# core. The grid itself is made anew by REFERENCE=1, which takes half an hour more.
tune-matrix:
	$(if $(REFERENCE),FABRICCTL_TUNE_REFERENCE=$$(git describe --always --dirty --abbrev=12) $(GO) test -count 1 -timeout 4h -run '^TestTuneReference$$' ./cmd/fabricctl)
	FABRICCTL_TUNE_MATRIX="ap a b c" $(GO) test -count 1 -timeout 12h -run '^TestTuneMatrix$$' ./cmd/fabricctl
	FABRICCTL_TUNE_MATRIX="ap a b c" FABRICCTL_TUNE_EMULATED=780 $(GO) test -count 1 -timeout 24h -run '^TestTuneEmulated$$' ./cmd/fabricctl
	$(GO) test -count 1 -run '^TestTuneMatrixPage$$' ./cmd/fabricctl -update

# Tests inside a real kernel that boots under QEMU: tools/vm/README.md. UPDATE=-update takes the tables of the run over
# into docs/evidence/hosts.md; without it they must be the same. Without qemu it fails, or is skipped with
# FABRICCTL_REQUIRE_WITNESSES=0.
vm: vm-nic vm-roce vm-verbs

vm-%:
	FABRICCTL_REQUIRE_WITNESSES=$${FABRICCTL_REQUIRE_WITNESSES-1} tools/vm/run $*
	FABRICCTL_VM_OUT=$(CURDIR)/bin/vm/$*/out $(GO) test -count 1 -run '^TestHostsPage$$' ./drivers/netlink ./drivers/netlink/dcb $(UPDATE)

# Real verbs tests between virtual hosts: tools/vm/README.md. UPDATE=-update writes docs/evidence/tuning-verbs.md anew.
vm-verbs:
	UPDATE=$(UPDATE) FABRICCTL_REQUIRE_WITNESSES=$${FABRICCTL_REQUIRE_WITNESSES-1} tools/vm/verbs

# The long matrices: ten minutes of each fuzz target, every kill point, and the virtual machines.
full: test race vm
	tools/fuzz.sh 600
	FABRICCTL_FULL=1 $(GO) test -timeout 60m ./cmd/fabricctl -run Kill
