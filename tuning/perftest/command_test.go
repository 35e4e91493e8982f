package perftest

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

func TestCommand(t *testing.T) {
	var b strings.Builder
	for _, x := range []Test{
		hundred,
		{Op: Write, Device: "mlx5_0", IBPort: 2, GID: 3, Port: 18520, Size: units.MiB, QPs: 4, Depth: 64, Duration: 10 * time.Second, Margin: 2 * time.Second, MTU: 4096, Bidirectional: true, ToS: 104, AnyClock: true, CPU: true, File: "/tmp/fabricctl run's.json"},
		{Op: Send, Device: "rxe0", GID: 1, Port: 18600, Size: 16384, Iterations: 5000, AckTimeout: 18, ToS: 0, Counters: []string{"hw_counters/out_of_buffer", "counters/port_xmit_data"}},
		{Op: Read, Latency: true, Device: "rocep4s0f0", GID: 0, Port: 18515, Size: 2, Iterations: 1000, Samples: true, ToS: 192},
		{Op: Write, Latency: true, Device: "bnxt_re-bond0", GID: 5, Port: 18515, Size: 64, Duration: 4 * time.Second, RDMACM: true, ToS: 104},
	} {
		server, err := x.Serve()
		if err != nil {
			t.Fatal(err)
		}
		client, err := x.Connect("fe80::1%eth0")
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(server.String() + "\n" + client.String() + "\n")
		if d := cmp.Diff([]string(server), []string(client[:len(server)])); d != "" {
			t.Errorf("both sides are given the same first (-server +client):\n%s", d)
		}
	}
	golden(t, "testdata/commands.golden", b.String())
}

// TestRefused holds what makes no sense, and what is said of it.
func TestRefused(t *testing.T) {
	var b strings.Builder
	for _, change := range []func(*Test){
		func(t *Test) { *t = Test{} },
		func(t *Test) { t.Op = Atomic },
		func(t *Test) { t.ToS = 106 },
		func(t *Test) { t.ToS = 105 },
		func(t *Test) { t.Device = "-d" },
		func(t *Test) { t.Device = "mlx5_0; reboot" },
		func(t *Test) { t.Device = strings.Repeat("x", 64) },
		func(t *Test) { t.IBPort = -1 },
		func(t *Test) { t.GID = -1 },
		func(t *Test) { t.GID = 5000 },
		func(t *Test) { t.Port = 65536 },
		func(t *Test) { t.Size = 2 * units.GiB },
		func(t *Test) { t.QPs = 20000 },
		func(t *Test) { t.Depth = -1 },
		func(t *Test) { t.MTU = 3000 },
		func(t *Test) { t.MTU = 9000 },
		func(t *Test) { t.AckTimeout = 32 },
		func(t *Test) { t.Iterations = 1000 },
		func(t *Test) { t.Duration = 0 },
		func(t *Test) { t.Duration = 1500 * time.Millisecond },
		func(t *Test) { t.Duration = -time.Second },
		func(t *Test) { t.Duration = 48 * time.Hour },
		func(t *Test) { t.Margin = time.Millisecond },
		func(t *Test) { t.Duration, t.Iterations, t.Margin = 0, 1000, time.Second },
		func(t *Test) { t.Duration, t.Iterations, t.CPU = 0, 1000, true },
		func(t *Test) { t.Duration, t.Iterations = 0, 4 },
		func(t *Test) { t.Duration, t.Iterations, t.Depth = 0, 100, 128 },
		func(t *Test) { t.Samples = true },
		func(t *Test) { t.Latency, t.Bidirectional, t.QPs, t.Depth = true, true, 2, 8 },
		func(t *Test) { t.Counters = []string{"hw_counters/x,y"} },
		func(t *Test) { t.File = "r.json" },
		func(t *Test) { t.File = "/tmp/r\n.json" },
	} {
		x := hundred
		change(&x)
		_, err := x.Serve()
		if err == nil {
			t.Errorf("%+v is not refused", x)
			continue
		}
		b.WriteString(err.Error() + "\n\n")
	}
	for _, server := range []string{"", "-h", "a b", "$(reboot)", "host\n", strings.Repeat("x", 300)} {
		if _, err := hundred.Connect(server); err == nil {
			t.Errorf("server %q is not refused", server)
		}
	}
	golden(t, "testdata/refused.golden", b.String())
}

func TestCheckToS(t *testing.T) {
	for tos, want := range map[int]string{
		0: "", 104: "", 252: "",
		106: "ToS 106 sets the bits of ECN: DSCP 26 alone is 104",
		255: "ToS 255 sets the bits of ECN: DSCP 63 alone is 252",
		256: "ToS 256 is not a byte", -1: "ToS -1 is not a byte",
	} {
		got := ""
		if err := CheckToS(tos); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %q, want %q", tos, got, want)
		}
	}
}

// TestQuoteInShell: a shell hands on what it was given.
func TestQuoteInShell(t *testing.T) {
	sh := witness.Tool(t, "sh")
	words := Argv{"", "plain", "it's", `a"b\c`, "$(reboot)`x`", "a b\tc\nd", "*?[x]{y}~!#&|;<>", "-n", "ü\u202e", "\x01\x1b[2J"}
	out, err := exec.CommandContext(t.Context(), sh, "-c", `for w in `+words.String()+`; do printf '%s\000' "$w"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Join(words, "\x00")+"\x00", string(out)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// FuzzQuote: a shell would read the command line back as the same words.
func FuzzQuote(f *testing.F) {
	f.Add("plain", "it's")
	f.Add("", "''")
	f.Add(`'\''`, "a b")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, ok := shellWords(Argv{a, b}.String()); !ok || len(got) != 2 || got[0] != a || got[1] != b {
			t.Errorf("%q %q is quoted as %s", a, b, Argv{a, b})
		}
	})
}

// shellWords splits a line as a POSIX shell does that knows no expansion; what could be one outside of quotes is not ok.
func shellWords(s string) (words []string, ok bool) {
	word, in := "", false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ':
			if in {
				words = append(words, word)
			}
			word, in = "", false
		case c == '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word, in, i = word+s[i+1:i+1+end], true, i+1+end
		case c == '\\' && i+1 < len(s):
			i++
			word, in = word+s[i:i+1], true
		case strings.IndexByte("\t\n\"$`*?[]{}~!#&|;<>()=\\", c) >= 0 && c != '=' || c >= 0x7f || c < ' ':
			return nil, false
		default:
			word, in = word+string(c), true
		}
	}
	if in {
		words = append(words, word)
	}
	return words, true
}
