# Everything a developer runs. CI is .ci/run, which installs what it needs and stops at the first thing that fails.
GO ?= go

.PHONY: build test race lint fuzz bench vm full

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/fabricctl ./cmd/fabricctl-host

test:
	$(GO) test ./...

race:
	$(GO) test -race ./drivers/... ./model/journal/...

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

# Tests inside a real kernel that boots under QEMU: tools/vm/README.md. UPDATE=-update takes the tables of the run over
# into docs/evidence/hosts.md; without it they must be the same.
vm: vm-nic vm-roce

vm-%:
	FABRICCTL_REQUIRE_WITNESSES=1 tools/vm/run $*
	FABRICCTL_VM_OUT=$(CURDIR)/bin/vm/$*/out $(GO) test -count 1 -run '^TestHostsPage$$' ./drivers/netlink ./drivers/netlink/dcb $(UPDATE)

# The long matrices: ten minutes of each fuzz target, and every kill point.
full: test race
	tools/fuzz.sh 600
	FABRICCTL_FULL=1 $(GO) test -timeout 60m ./cmd/fabricctl -run Kill
