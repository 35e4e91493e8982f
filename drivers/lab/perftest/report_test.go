package perftest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is one test of real perftest on two hosts with soft-RoCE.
type recorded struct {
	Description string
	Processes   []struct {
		Role, Cmd, Stdout, Stderr string
		ExitCode                  int `json:"exit_code"`
	}
}

var (
	address = regexp.MustCompile(` (local|remote) address: LID 0000 QPN 0x([0-9a-f]+) PSN 0x([0-9a-f]+)(?: OUT 0x80)?(?: RKey 0x([0-9a-f]+) VAddr 0x([0-9a-f]+))?`)
	gid     = regexp.MustCompile(` GID: ([0-9:]+)`)
	index   = regexp.MustCompile(` GID index       : (\d+)`)
	active  = regexp.MustCompile(` Mtu             : (\d+)`)
)

func hex(s string) uint64 { n, _ := strconv.ParseUint(s, 16, 64); return n }

// sides are what a recording says of both sides of its test.
func sides(o Options, out string) (local, remote Side) {
	local = Side{Options: o, Card: Card{Name: "rxe0", Reads: 128, Unknown: true}}
	if m := index.FindStringSubmatch(out); m != nil {
		local.Index, _ = strconv.Atoi(m[1])
	}
	gids := gid.FindAllStringSubmatch(out, -1)
	for i, m := range address.FindAllStringSubmatch(out, -1) {
		x := &local
		if m[1] == "remote" {
			x = &remote
		}
		x.Pairs = append(x.Pairs, QP{uint32(hex(m[2])), uint32(hex(m[3])), uint32(hex(m[4])), hex(m[5])})
		for j, b := range strings.Split(gids[i][1], ":") {
			n, _ := strconv.Atoi(b)
			x.GID[j] = byte(n)
		}
	}
	return local, remote
}

// numbers are those of the table of a recording.
func numbers(o Options, out string) (n Numbers) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if o.Output != "" {
		v, _ := strconv.ParseFloat(lines[0], 64)
		if o.Output == "latency" {
			return Numbers{Average: v}
		}
		return Numbers{Bits: v * 1e9}
	}
	var f []float64
	for _, w := range strings.Fields(lines[len(lines)-2]) {
		v, _ := strconv.ParseFloat(w, 64)
		f = append(f, v)
	}
	switch {
	case len(f) < 4:
		return n
	case o.Latency && o.fixedDuration:
		return Numbers{Iterations: int64(f[1]), Average: f[2], Rate: f[3]}
	case o.Latency && len(f) >= 9:
		return Numbers{Iterations: int64(f[1]), Min: f[2], Max: f[3], Typical: f[4], Average: f[5], Stdev: f[6], P99: f[7], P999: f[8]}
	case len(f) < 5:
		return n
	}
	bits := f[3] * 1e9
	if !o.Gbits {
		bits = f[3] * 8 * (1 << 20)
	}
	n = Numbers{Iterations: int64(f[1]), Bits: bits, Rate: f[4] * 1e6}
	if len(f) > 5 {
		n.CPU = f[5]
	}
	return n
}

// printed is what the emulation prints, on standard output.
func printed(o Options, local, remote Side, mtu int, n Numbers, note string) string {
	start, _ := local.Start()
	return start + note + local.Head(mtu) + local.Peers(&remote) + local.Row(n)
}

// The whole of what real runs have printed is printed again from its numbers. Peaks are not, and neither are notes of devices that
// only soft-RoCE has.
func TestPrintsWhatPerftestPrinted(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.json")
	ran := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".r.json") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var r recorded
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Processes {
				args := strings.Fields(p.Cmd)
				tool, ok := Find(args[0])
				if !ok {
					continue
				}
				o, ended := Parse(tool, args[1:])
				if ended != nil && strings.Contains(ended.Stderr, "Invalid Command") {
					if !strings.Contains(p.Cmd, "--nonsense") && !strings.Contains(p.Cmd, "rate_limit") {
						t.Errorf("%s: %s", p.Cmd, ended.Stderr)
					}
					if strings.Contains(p.Cmd, "--nonsense") && p.Stderr != ended.Stderr {
						t.Errorf("%s (-want +got)\n%s", p.Cmd, cmp.Diff(p.Stderr, ended.Stderr))
					}
					continue
				}
				ran++
				if ended != nil {
					if ended.Stdout != p.Stdout || ended.Stderr != p.Stderr || ended.Status != p.ExitCode {
						t.Errorf("%s: %+v, and perftest said %q, %q", p.Cmd, *ended, p.Stdout, p.Stderr)
					}
					continue
				}
				if p.ExitCode != 0 {
					continue
				}
				local, remote := sides(o, p.Stdout)
				port := 4096
				if strings.Contains(p.Stdout, "Changing to active mtu - 3") {
					port = 1024
				}
				mtu, note, warn := o.PathMTU(port)
				if m := active.FindStringSubmatch(p.Stdout); m != nil { // of both sides, the smaller one
					mtu, _ = strconv.Atoi(m[1])
				}
				if warn != "" && !strings.Contains(p.Stderr, warn) {
					t.Errorf("%s: %q is not in %q", p.Cmd, warn, p.Stderr)
				}
				want := zeroPeak(p.Stdout)
				if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(printed(o, local, remote, mtu, numbers(o, p.Stdout), note), "\n")); d != "" {
					t.Errorf("%s (-want +got)\n%s", p.Cmd, d)
				}
				if wrote, err := os.ReadFile(strings.TrimSuffix(f, "json") + p.Role + ".r.json"); err == nil {
					if d := cmp.Diff(string(wrote), local.Report(mtu, numbers(o, p.Stdout))); d != "" {
						t.Errorf("the report of %s (-want +got)\n%s", p.Cmd, d)
					}
				}
			}
		})
	}
	if ran < 50 {
		t.Errorf("only %d recordings were compared", ran)
	}
}

var peak = regexp.MustCompile(`(?m)^( \d+ +\d+ +)(\d+\.\d+)( +\d+\.\d+ +[\t ]*\d+\.\d+)$`)

// zeroPeak has 0 for each peak: the emulation measures none. What was not a number is 0 too.
func zeroPeak(s string) string {
	s = strings.ReplaceAll(s, "-nan   ", "0.00   ")
	return peak.ReplaceAllStringFunc(s, func(row string) string {
		m := peak.FindStringSubmatch(row)
		_, digits, _ := strings.Cut(m[2], ".")
		zero := fmt.Sprintf("%-7.*f", len(digits), 0.0)
		return m[1] + zero + strings.Repeat(" ", len(m[3])-len(strings.TrimLeft(m[3], " "))-max(0, 7-len(m[2]))) + strings.TrimLeft(m[3], " ")
	})
}
