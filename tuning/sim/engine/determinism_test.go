package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// hashed is the runs whose hashes are kept: recorded ones, and random fabrics, which have every feature between them.
func hashed(t testing.TB) (names []string, configs map[string]func() *engine.Config) {
	configs = map[string]func() *engine.Config{}
	kept := strings.Fields("b_incast8_hpccrepo c_parking_paper c_victim_hpccrepo d_perm16x4_paper e_victim_pfconly f_hdrm_200pct")
	for _, r := range records(t, keptRuns) {
		if !slices.Contains(kept, r.Name) {
			continue
		}
		names = append(names, r.Name)
		configs[r.Name] = func() *engine.Config {
			l, err := r.In.lay(7)
			if err != nil {
				t.Fatal(err)
			}
			l.Stop = min(l.Stop, 2*engine.Millisecond)
			return l.Config
		}
	}
	for seed := range uint64(40) {
		name := fmt.Sprintf("random_%d", seed)
		names = append(names, name)
		configs[name] = func() *engine.Config { return randomFabric(seeded(seed)).Config }
	}
	return names, configs
}

func hashOf(t testing.TB, c *engine.Config) string {
	r, err := engine.Run(t.Context(), c)
	if err != nil {
		t.Error(err)
		return ""
	}
	return fmt.Sprintf("%016x %d packets", r.Hash, r.Packets)
}

const hashes = "testdata/hashes.txt"

// TestHashes compares with hashes that were written on another machine, maybe of another kind. FABRICCTL_UPDATE_HASHES=1 writes them anew, for a
// change that means to change what happens in a run.
func TestHashes(t *testing.T) {
	names, configs := hashed(t)
	var got strings.Builder
	for _, n := range names {
		fmt.Fprintf(&got, "%s %s\n", n, hashOf(t, configs[n]()))
	}
	if os.Getenv("FABRICCTL_UPDATE_HASHES") == "1" {
		if err := os.WriteFile(hashes, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(hashes)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("a run went another way than it did when %s was written:\n%s", hashes, got.String())
	}
}

// TestHashesSideBySide: it makes no difference how many runs there are beside each other, nor on how many processors.
func TestHashesSideBySide(t *testing.T) {
	names, configs := hashed(t)
	names = names[len(names)-20:]
	want := map[string]string{}
	for _, n := range names {
		want[n] = hashOf(t, configs[n]())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		var all sync.WaitGroup
		for _, n := range names {
			all.Go(func() {
				if got := hashOf(t, configs[n]()); got != want[n] {
					t.Errorf("%s with %d processors: %s, alone it was %s", n, procs, got, want[n])
				}
			})
		}
		all.Wait()
	}
}

// fused is the instructions that multiply and add with one rounding, of all machines that Go fuses on.
var fused = regexp.MustCompile(`\bV?FN?M(ADD|SUB)[0-9SDFP]*\b`)

// TestNoFusedMultiplyAdd: Go fuses x*y + z where the machine can, and the result differs in the last bit. Every product that is added to something is
// therefore converted, which forbids it; the compiler's output for each kind of machine is the witness.
func TestNoFusedMultiplyAdd(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package for other machines, which takes a while when the standard library is not compiled for them yet")
	}
	blind := t.TempDir() // a package that fuses, to see that it is seen
	if err := errors.Join(
		os.WriteFile(filepath.Join(blind, "go.mod"), []byte("module blind\n\ngo 1.26\n"), 0o600),
		os.WriteFile(filepath.Join(blind, "x.go"), []byte("package blind\n\nfunc F(x, y, z float64) float64 { return x*y + z }\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, arch := range machines() {
		if found := fusedIn(t, arch, blind); len(found) == 0 {
			t.Errorf("%s: x*y + z is not seen to be fused", arch)
		}
		for _, line := range fusedIn(t, arch, ".") {
			t.Errorf("%s: %s", arch, line)
		}
	}
}

// fusedIn compiles a package for a machine, which is said in the go command's own settings, and returns what is fused.
func fusedIn(t *testing.T, arch, dir string) (lines []string) {
	t.Helper()
	c := exec.Command("go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
	c.Dir, c.Env = dir, append(os.Environ(), append(strings.Fields(arch), "GOOS=linux", "CGO_ENABLED=0")...)
	out, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("TEXT")) {
		t.Fatalf("%s: the compiler does not show what it wrote: %v\n%.1000s", arch, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if fused.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// machines is the kinds that are looked at: the one that fuses and is used for releases, or with FABRICCTL_FULL=1 all that fuse.
func machines() []string {
	if os.Getenv("FABRICCTL_FULL") == "1" {
		return []string{"GOARCH=arm64", "GOARCH=amd64 GOAMD64=v3", "GOARCH=ppc64le", "GOARCH=s390x", "GOARCH=riscv64", "GOARCH=loong64"}
	}
	return []string{"GOARCH=arm64"}
}
