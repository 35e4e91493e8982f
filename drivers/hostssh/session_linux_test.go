package hostssh

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/witness"
)

var update = flag.Bool("update", false, "write the transcript of a remote session into docs/evidence/hosts.md")

const (
	sessionBegin = "<!-- session (written by go test ./drivers/hostssh -run RemoteSession -update) -->\n"
	sessionEnd   = "<!-- end -->"
)

// What the page leaves out, or writes in one way: what differs from machine to machine and from run to run.
var (
	elided   = regexp.MustCompile(`"(version|host|arch|facts|deadline|since|until|owner|at)":("[^"]*"|\{.*?\}(,"caps"))`)
	atTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	uidOnIt  = regexp.MustCompile(`"uid":\d+`)
	stateDir = regexp.MustCompile(`/[^ "]*/state/`)
)

func plain(line string) string {
	line = elided.ReplaceAllStringFunc(line, func(s string) string {
		name, _, _ := strings.Cut(s, ":")
		if strings.HasSuffix(s, `,"caps"`) {
			return name + `:{…},"caps"`
		}
		return name + `:"…"`
	})
	return stateDir.ReplaceAllString(uidOnIt.ReplaceAllString(atTime.ReplaceAllString(line, "…"), `"uid":…`), "…/state/")
}

// ours drops from a configuration all settings that are not of the two links of the test.
func ours(line string) string {
	var r map[string]json.RawMessage
	var c []struct {
		Key [3]string `json:"key"`
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(line), &r) != nil || json.Unmarshal(r["config"], &c) != nil || json.Unmarshal(r["config"], &raw) != nil {
		return line
	}
	kept := slices.Clone(raw[:0])
	for i, s := range c {
		if s.Key[0] == "link" && strings.HasPrefix(s.Key[1], "rail") {
			kept = append(kept, raw[i])
		}
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return line
	}
	return strings.Replace(line, string(r["config"]), string(b), 1)
}

// TestRemoteSession: the transcript in docs/evidence/hosts.md is what the system's sshd, our binary and the kernel say. It
// changes the MTU of a pair of links in a network namespace of its own.
func TestRemoteSession(t *testing.T) {
	ip := witness.Tool(t, "ip")
	const page = "../../docs/evidence/hosts.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(text, []byte(sessionBegin))
	block, tail, closed := bytes.Cut(rest, []byte(sessionEnd))
	if !ok || !closed {
		t.Fatalf("%s has no place for the session", page)
	}
	cfg := thisHost(t, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network namespace: %w", err)
		}
		if out, err := exec.Command(ip, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1").CombinedOutput(); err != nil {
			return fmt.Errorf("ip link add: %w: %s", err, out)
		}
		return nil
	})
	dial(t, cfg) // the binary is there
	say := speak(t, cfg)
	var b strings.Builder
	b.WriteString("\n```\n")
	for line := range strings.Lines(string(block)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "# "):
			fmt.Fprintln(&b, line)
		case strings.HasPrefix(line, "→ "):
			fmt.Fprintln(&b, line)
			if answer := say(strings.TrimPrefix(line, "→ ")); answer != "" {
				fmt.Fprintln(&b, "← "+plain(ours(answer)))
			}
		case line == "← hello":
			fmt.Fprintln(&b, "← "+plain(say("")))
		case strings.HasPrefix(line, `← {"hello"`):
			fmt.Fprintln(&b, "← "+plain(say("")))
		}
	}
	b.WriteString("```\n\n")
	got := b.String()
	if strings.Count(got, "→ ") < 8 {
		t.Errorf("only %d requests in\n%s", strings.Count(got, "→ "), got)
	}
	if *update {
		if err := os.WriteFile(page, slices.Concat(head, []byte(sessionBegin+got+sessionEnd), tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(block) {
		t.Errorf("%s is not what is said: %s\n%s", page, witness.FirstDifference(strings.Split(string(block), "\n"), strings.Split(got, "\n")), got)
	}
}

// speak starts the pushed binary over a connection of its own. What is returned sends a line and reads one; of an
// empty line only the answer, and of one without an id nothing.
func speak(t *testing.T, cfg Config) func(string) string {
	t.Helper()
	client, err := ssh.Dial(t.Context(), cfg.SSH)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	bin, err := cfg.Binary("linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	st, err := client.Open(t.Context(), ssh.Spec{Command: "exec " + quote(filepath.Join(cfg.Dir, namePrefix+bin.digest)) + " serve --state-dir " + quote(cfg.State)})
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(st.Out)
	return func(line string) string {
		if line != "" {
			if _, err := io.WriteString(st.In, line+"\n"); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(line, `"id"`) {
				return ""
			}
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.TrimSuffix(answer, "\n")
	}
}
