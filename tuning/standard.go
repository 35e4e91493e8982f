package tuning

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// standard is a workload that tuning has been tried on. In its text, {senders}, {receiver} and {other} stand for hosts.
type standard struct {
	name, doc, text string
	hosts           int // that it needs
}

// The load of most: endless flows and bursts from senders to one receiver, a victim that shares a sender with them, which gives
// goodput its signal, and probes to the receiver, whose latency is the tail.
const (
	endlessFlows = "incast:8,name=bulk,hosts={senders},to={receiver},spread=20us"
	burstsOf     = "incast:16,name=burst,hosts={senders},to={receiver},spread=2us"
	victimFlow   = "single,name=victim,hosts={first}/{other},spread=20us"
	probesTo     = "probe,hosts={senders},to={receiver},bytes=1024B,start=2ms,every=2us,for=5ms,warmup=2ms"
)

// standards are the workloads of examples/workloads, on the fabrics of examples/bench-*.
func standards() []standard {
	star := func(name, doc, bursts string) standard {
		return standard{name, doc, strings.Join([]string{endlessFlows, burstsOf + "," + bursts, victimFlow, probesTo}, " + "), 18}
	}
	return []standard{
		star("ap", "16 to 1: bursts of 64KiB each every 500us over 8 endless flows, and a victim", "bytes=64KiB,start=500us,every=500us,jitter=10%"),
		star("a", "as ap, with bursts every 250us that keep no time", "bytes=64KiB,start=250us,every=250us,jitter=50%"),
		star("b", "as ap, with bursts of 1MiB each every 1ms, for 400Gbps", "bytes=1MiB,start=1ms,every=1ms,jitter=10%"),
		{
			"c", "a permutation between leaves, bursts of 8 to 1 that hit one host after the other, and 4 victims within leaves",
			"permutation,name=bulk,across,spread=20us + incast:8,name=burst,across,random,bytes=64KiB,spread=2us,start=200us,every=200us,jitter=50%" +
				" + victim:4,spread=20us + probe,bytes=1024B,start=1500us,every=2us,for=2500us,warmup=1500us", 3,
		},
	}
}

// Standards are the names of the standard workloads, each with what it is.
func Standards() (names, docs []string) {
	for _, s := range standards() {
		names, docs = append(names, s.name), append(docs, s.doc)
	}
	return names, docs
}

// Standard is a standard workload between the first of these hosts; nil stands for host1 to host18. ok is false where no
// workload has that name. The error says how many hosts are missing.
func Standard(name string, hosts []string) (w observe.Workload, ok bool, err error) {
	if hosts == nil {
		for i := range 18 {
			hosts = append(hosts, "host"+strconv.Itoa(i+1))
		}
	}
	for _, s := range standards() {
		if s.name != name {
			continue
		}
		if len(hosts) < s.hosts {
			return w, true, fmt.Errorf("workload %s needs %d hosts, and there are %d", name, s.hosts, len(hosts))
		}
		w, err = s.between(hosts)
		return w, true, err
	}
	return w, false, nil
}

// between puts hosts in: senders first, then who receives, and who receives from the victim.
func (s *standard) between(hosts []string) (observe.Workload, error) {
	text := s.text
	if n := s.hosts; n > 3 {
		text = strings.NewReplacer(
			"{senders}", list(hosts[:n-2]), "{first}", hosts[0], "{receiver}", hosts[n-2], "{other}", hosts[n-1],
		).Replace(text)
	}
	w, err := observe.ParseWorkload(text)
	w.Name = s.name
	return w, err
}

// Usual is what is run when nobody asks for anything: as the workload ap, with as many hosts as there are, up to 18, and with
// bursts as large as suits links of that speed. It needs four hosts.
func Usual(hosts []string, speed units.BitRate) (observe.Workload, error) {
	burst := units.Bytes(cmp.Or(int64(speed)/int64(25*units.Gbps), 1)) * 16 * units.KiB // 64KiB at 100Gbps
	return among(hosts, func(senders int) string {
		return strings.NewReplacer("incast:8", fmt.Sprintf("incast:%d", max(senders/2, 1)), "incast:16", fmt.Sprintf("incast:%d", senders), "64KiB", burst.String()).Replace(standards()[0].text)
	})
}

// Steady is the same for verbs tests, which send without a pause from when they begin: all senders at once in place of bursts.
func Steady(hosts []string) (observe.Workload, error) {
	return among(hosts, func(senders int) string {
		return fmt.Sprintf("incast:%d,name=bulk,hosts={senders},to={receiver} + single,name=victim,hosts={first}/{other} + probe,hosts={senders},to={receiver},for=5s", senders)
	})
}

// among is a workload without a name between as many of these hosts as there are, up to 18: text is that of so many senders.
func among(hosts []string, text func(senders int) string) (observe.Workload, error) {
	const needed, most = 4, 18
	if len(hosts) < needed {
		return observe.Workload{}, fmt.Errorf("tuning needs %d hosts: two that send, one that receives and one that receives from a victim; there are %d", needed, len(hosts))
	}
	n := min(len(hosts), most)
	s := standard{text: text(n - 2), hosts: n}
	return s.between(hosts)
}

// list is the names of hosts as a workload lists them: numbered ones in short.
func list(hosts []string) string {
	stem := strings.TrimRight(hosts[0], "0123456789")
	first, err := strconv.Atoi(hosts[0][len(stem):])
	for i, h := range hosts {
		if err != nil || h != stem+strconv.Itoa(first+i) {
			return strings.Join(hosts, "/")
		}
	}
	return hosts[0] + ".." + hosts[len(hosts)-1]
}
