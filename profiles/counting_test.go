package profiles

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCounting(t *testing.T) {
	for text, want := range map[string]Counting{
		"pfc.rx.{priority}=ethtool:rx_prio{priority}_pause":                      {"pfc.rx.{priority}", ByEthtool, "rx_prio{priority}_pause", 0},
		"pfc.paused_ns.{priority}=ethtool:rx_prio{priority}_pause_duration*1000": {"pfc.paused_ns.{priority}", ByEthtool, "rx_prio{priority}_pause_duration", 1000},
		"cnp.sent=rdma:np_cnp_sent":                                              {"cnp.sent", ByRDMA, "np_cnp_sent", 0},
		"pfc.tx.{priority}=dcb:requests":                                         {"pfc.tx.{priority}", ByDCB, "requests", 0},
		"port.drop.in=ethtool:rx_dropped.nic":                                    {"port.drop.in", ByEthtool, "rx_dropped.nic", 0},
	} {
		got, err := ParseCounting(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, d)
		}
	}
	for text, say := range map[string]string{
		"":                                      "is not a counter such as",
		"cnp.sent":                              "is not a counter such as",
		"cnp.sent=rdma:":                        "is not a counter such as",
		"cnp.sent=rdma:a/../b":                  "is not a counter such as",
		"cnp.sent=rdma:a*0":                     "is not a counter such as",
		"cnp.sent=rdma:a*01":                    "is not a counter such as",
		"cnp.sent=rdma:a*1e3":                   "is not a counter such as",
		"cnp.sent=rdma:{priority}{priority}":    "is not a counter such as",
		"cnp.send=rdma:a":                       `"cnp.send" is not the name of a counter of a NIC`,
		"cnp.sent=sysfs:a":                      `"sysfs" is not where counters are shown`,
		"pfc.rx.{priority}=dcb:pauses":          `no "pauses"`,
		"pfc.rx.{priority}=ethtool:rx_pause":    "on one side alone",
		"cnp.sent=ethtool:rx_prio{priority}_cn": "on one side alone",
		"cnp.sent=dcb:requests":                 "on one side alone",
	} {
		if _, err := ParseCounting(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: no %q in %v", text, say, err)
		}
	}
}

// Count asks for what is wanted and no more, takes the first that is there, and drops what does not fit.
func TestCount(t *testing.T) {
	p := Personality{}
	for _, text := range []string{
		"pfc.paused_ns.{priority}=ethtool:pause{priority}*1000", "pfc.rx.{priority}=ethtool:rx{priority}", "pfc.rx.{priority}=dcb:indications", "cnp.sent=rdma:cnp", "cnp.handled=rdma:handled",
	} {
		c, err := ParseCounting(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Counters = append(p.Counters, c)
	}
	var asked []string
	got := p.Count(func(name string) bool { return name != "cnp.handled" && !strings.HasSuffix(name, ".7") }, func(where, as string, priority int) (uint64, bool) {
		at := where + ":" + as + "@" + strconv.Itoa(priority)
		asked = append(asked, at)
		v, ok := map[string]uint64{
			"ethtool:pause3@3": 5, "ethtool:pause4@4": math.MaxUint64, "ethtool:rx3@3": 7, "dcb:indications@3": 8, "dcb:indications@4": 9, "rdma:cnp@-1": 1, "rdma:handled@-1": 2,
		}[at]
		return v, ok
	})
	want := map[string]uint64{"pfc.paused_ns.3": 5000, "pfc.rx.3": 7, "pfc.rx.4": 9, "cnp.sent": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(asked) != 7+7+6+1 {
		t.Errorf("%d questions: %v", len(asked), asked)
	}
}

// Every personality has the counters of generic after its own, and each text is canonical.
func TestCountersOfAll(t *testing.T) {
	c, err := OfHosts()
	if err != nil {
		t.Fatal(err)
	}
	g, _ := c.PersonalityNamed(Generic)
	for _, name := range c.NamesOf(KindPersonality) {
		p, _ := c.PersonalityNamed(name)
		if n := len(p.Counters) - len(g.Counters); n < 0 || cmp.Diff(g.Counters, p.Counters[n:]) != "" {
			t.Errorf("%s lacks the counters of generic", name)
		}
		if name == "mlx5" && len(p.Counters) < 30 {
			t.Errorf("%s has %d counters", name, len(p.Counters))
		}
	}
}
