package hostlocal

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/witness"
)

var update = flag.Bool("update", false, "write the goldens anew")

func unitsOf(t *testing.T, o UnitOptions) []Unit {
	t.Helper()
	d := resolved(t, "rail8").Device("host1")
	p := d.Policies[d.Ports[0].Policy]
	p.System.Memlock, p.RoCE.On = true, true
	d.Ports[0].Policy = d.Intern(p)
	us, err := Units(FileOf(*d, "digest", "v1", true), o)
	if err != nil {
		t.Fatal(err)
	}
	return us
}

// The units of a host of an example, whole.
func TestUnits(t *testing.T) {
	var b strings.Builder
	for _, u := range unitsOf(t, UnitOptions{Services: []string{"slurmd", "containerd.service"}}) {
		if u.Path == DefaultFile {
			if _, err := Decode([]byte(u.Text)); err != nil {
				t.Error(err)
			}
			continue
		}
		b.WriteString("-- " + u.Path + " --\n" + u.Text)
	}
	const golden = "testdata/units.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("(-golden +got):\n%s", d)
	}
}

// systemd and udev read the units without a complaint.
func TestUnitsVerify(t *testing.T) {
	dir := t.TempDir()
	for _, u := range unitsOf(t, UnitOptions{}) {
		text := strings.ReplaceAll(u.Text, ProgramPath, "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(u.Path)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("systemd", func(t *testing.T) {
		tool := witness.Tool(t, "systemd-analyze")
		for _, unit := range []string{"fabricctl-host.service", "fabricctl-host-agent.service"} {
			out, err := exec.Command(tool, "verify", "--man=no", filepath.Join(dir, unit)).CombinedOutput()
			if err != nil || strings.Contains(string(out), unit) {
				t.Errorf("%s: %v\n%s", unit, err, out)
			}
		}
	})
	t.Run("udev", func(t *testing.T) {
		out, err := exec.Command(witness.Tool(t, "udevadm"), "verify", filepath.Join(dir, "90-fabricctl-host.rules")).CombinedOutput()
		if strings.Contains(string(out), "Unknown command verb") {
			t.Skip("this udevadm is older than its verb verify, of systemd 254")
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func TestUnitsRefuse(t *testing.T) {
	d := resolved(t, "rail8").Device("host1")
	if _, err := Units(FileOf(*d, "", "", true), UnitOptions{Services: []string{"slurmd"}}); err == nil || !strings.Contains(err.Error(), "hosts: {memlock: unlimited}") {
		t.Errorf("no limit is lifted: %v", err)
	}
	d.Policies = append(d.Policies[:0:0], d.Policies...)
	for i := range d.Policies {
		d.Policies[i].System.Memlock = true
	}
	for _, s := range []string{"", "../x", "a b", "a\nb", "-x"} {
		if _, err := Units(FileOf(*d, "", "", true), UnitOptions{Services: []string{s}}); err == nil {
			t.Errorf("%q is a service", s)
		}
	}
}

// A unit's name is written as systemd-escape writes it.
func TestEscapeUnit(t *testing.T) {
	for in, want := range map[string]string{"rdma0": "rdma0", "enp1s0f0-x": `enp1s0f0\x2dx`, "a.100": "a.100", ".a": `\x2ea`, "a/b": "a-b", "ä": `\xc3\xa4`} {
		if got := escapeUnit(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if tool, err := exec.LookPath("systemd-escape"); err == nil {
			out, err := exec.Command(tool, "--", in).Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s: systemd-escape says %s, %v", in, got, err)
			}
		}
	}
}
