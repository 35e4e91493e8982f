package hostlocal

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// parse reads the text format of Prometheus as its specification has it: samples by name and labels.
func parse(t testing.TB, text string) map[string]float64 {
	t.Helper()
	out, types := map[string]float64{}, map[string]string{}
	comment := regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$`)
	line := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	label := regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)`)
	if text != "" && !strings.HasSuffix(text, "\n") {
		t.Fatal("the last line has no end")
	}
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if m := comment.FindStringSubmatch(l); m != nil {
			if m[1] == "TYPE" && types[m[2]] != "" {
				t.Fatalf("%s has two types", m[2])
			}
			if m[1] == "TYPE" {
				types[m[2]] = m[3]
			}
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no sample: %q", l)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil || types[m[1]] == "" {
			t.Fatalf("%q: %v, type %q", l, err, types[m[1]])
		}
		key := m[1]
		for rest := m[2]; rest != ""; {
			x := label.FindStringSubmatch(rest)
			if x == nil {
				t.Fatalf("no label: %q in %q", rest, l)
			}
			rest = rest[len(x[0]):]
			key += fmt.Sprintf("|%s=%s", x[1], strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(x[2]))
		}
		if _, twice := out[key]; twice {
			t.Fatalf("%q stands twice", key)
		}
		out[key] = v
	}
	return out
}

// What labels hold comes back as it was, whatever it is.
func TestExpositionLabels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v := rapid.String().Draw(r, "value")
		m := metric{name: "m_info", help: rapid.String().Draw(r, "help")}
		m.help = strings.Map(func(c rune) rune { // of ours: no end of line but what is escaped
			if c == '\r' || c == 0x85 {
				return ' '
			}
			return c
		}, m.help)
		m.add(1.5, "a", v, "b", "x")
		got := parse(t, exposition([]*metric{&m}))
		if got["m_info|a="+strings.ToValidUTF8(v, "?")+"|b=x"] != 1.5 {
			r.Fatalf("%q: %v", v, got)
		}
	})
}

// looked is an agent that has looked at a hostile machine.
func looked() *keeper {
	evil := "x\"} 1\n# TYPE evil gauge\nevil 1\\"
	f := &File{Model: "0123456789abcdef"}
	f.Device.Name, f.Device.Fabric = "host1", "pod1"
	l := &look{at: time.Unix(1700000000, 0), readable: true, class: map[render.Key]render.RiskClass{}, owners: 1, held: 2}
	l.facts.NICs = []render.HostNIC{{Name: "rdma0", Firmware: evil, RDMA: "mlx5_0", GID: -1, QPs: 7}, {Name: "eth0"}}
	l.drift = []render.Change{{Key: render.Key{Scope: "pfc", Object: "rdma0", Field: "priorities"}}, {Key: render.Key{Scope: "app", Object: evil, Field: "dscp 26"}}}
	l.class[l.drift[0].Key] = render.Flap
	return &keeper{file: f, last: l, counts: counts{looks: 3, events: map[string]int{"dcb": 2}}, Agent: Agent{Machine: Machine{Version: "v1"}}}
}

func TestExposition(t *testing.T) {
	got := parse(t, exposition(looked().metrics()))
	for key, want := range map[string]float64{
		"fabricctl_agent_info|version=v1|fabric=pod1|device=host1|model=0123456789ab": 1,
		"fabricctl_agent_last_look_timestamp_seconds":                                 1700000000,
		"fabricctl_host_drift_settings|risk=flap":                                     1,
		"fabricctl_host_drift_settings|risk=hitless":                                  1,
		"fabricctl_host_setting_differs|object=rdma0|setting=pfc priorities":          1,
		"fabricctl_nic_gid_index|nic=rdma0":                                           -1,
		"fabricctl_nic_live_queue_pairs|nic=rdma0":                                    7,
		"fabricctl_agent_events_total|kind=dcb":                                       2,
		"fabricctl_agent_events_total|kind=lost":                                      0,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", key, v, ok, want)
		}
	}
	if _, ok := got["evil"]; ok {
		t.Error("a label became a sample")
	}
	if _, ok := got["fabricctl_nic_gid_index|nic=eth0"]; ok {
		t.Error("a NIC without RDMA has a GID")
	}
}

// Prometheus' own checker has nothing against the metrics.
func TestPromtool(t *testing.T) {
	c := exec.Command(witness.Tool(t, "promtool"), "check", "metrics")
	c.Stdin = strings.NewReader(exposition(looked().metrics()))
	if out, err := c.CombinedOutput(); err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
