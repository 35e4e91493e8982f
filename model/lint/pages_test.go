package lint_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
)

// example is one example of a page: a model, and what devices hold instead of what it asks for.
type example struct {
	rule  string // whose page it stands on
	model string
	live  map[string]held
}

// routed makes f a fabric in which nothing is flooded. The pages of other rules leave that out.
func routed(f *model.Fabric) *model.Fabric {
	for i := range f.Classes {
		f.Classes[i].DropNoARP.V = true
	}
	return f
}

// held is what a device holds on all its ports.
type held struct {
	Lossless *[]int         `yaml:"lossless"`
	DSCP     map[int]string `yaml:"dscp"` // code point to priority, or none
	Trust    string         `yaml:"trust"`
	Group    map[int]uint8  `yaml:"group"`     // traffic class to priority group
	Pause    bool           `yaml:"pause"`     // 802.3x, both ways
	Drop     []int          `yaml:"drop"`      // queues that drop early
	Knows    []string       `yaml:"knows"`     // areas that it speaks about besides, as the sample's switches have them
	NCCL     *uint8         `yaml:"nccl"`      // NCCL_IB_TC
	Skips    []int          `yaml:"skips"`     // priorities that the watchdog does not watch
	Unmarked []int          `yaml:"unmarked"`  // queues that do not mark
	NoBuffer bool           `yaml:"no_buffer"` // for lossless traffic

	// Of hosts: what their NICs hold, and otherwise what the sample asks for.
	ToS       *uint8      `yaml:"tos"`           // of connections of rdma_cm
	Mode      uint8       `yaml:"mode"`          // RoCE version
	Forced    *int16      `yaml:"forced"`        // traffic class that the driver forces
	CC        *[]int      `yaml:"cc"`            // priorities with congestion control
	Algorithm string      `yaml:"algorithm"`     // of congestion control
	CNP       *[2]uint8   `yaml:"cnp"`           // code point and priority of notifications
	Buffer    units.Bytes `yaml:"lossless_size"` // receive buffer of each lossless class
	GID       *int16      `yaml:"gid"`           // NCCL_IB_GID_INDEX
	Timeout   uint8       `yaml:"timeout"`       // NCCL_IB_TIMEOUT
}

var trusts = map[string]intent.Trust{"dscp": intent.TrustDSCP, "pcp": intent.TrustPCP, "none": intent.TrustNone}

var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// examples are the ones under "## Fails" and "## Passes".
func examples(t testing.TB, id string) (fails, passes example) {
	t.Helper()
	page, ok := lint.Page(id)
	if !ok {
		t.Fatalf("rule %s has no page", id)
	}
	_, rest, ok1 := strings.Cut(page, "\n## Fails\n")
	before, after, ok2 := strings.Cut(rest, "\n## Passes\n")
	if !ok1 || !ok2 {
		t.Fatalf("the page of %s has no sections Fails and Passes, in this order", id)
	}
	parse := func(text string) (e example) {
		e.rule = id
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(b[1], "live:") {
				e.model += b[1]
				continue
			}
			var doc struct {
				Live map[string]held `yaml:"live"`
			}
			dec := yaml.NewDecoder(strings.NewReader(b[1]))
			dec.KnownFields(true)
			if err := dec.Decode(&doc); err != nil {
				t.Fatal(err)
			}
			e.live = doc.Live
		}
		return e
	}
	return parse(before), parse(after)
}

// check loads, resolves and lints an example. Findings of loading other than info fail the test.
func (e example) check(t *testing.T) diag.List {
	t.Helper()
	f, l := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(e.model)}}, "fabric.yaml")
	sound(t, l)
	n, l := intent.Resolve(f)
	sound(t, l)
	for _, roles := range []bool{true, false} { // a device is more special than its role
		for name, h := range e.live {
			device, port, _ := strings.Cut(name, ":")
			one := n.Device(device) != nil
			for i := range n.Devices {
				if d := &n.Devices[i]; one != roles && (d.Name == device || d.Role == device) {
					edit(n, d.Name, port, func(p *intent.Policy) { h.apply(t, p) })
				}
			}
		}
	}
	if e.rule != "arp-complete" {
		f = routed(f)
	}
	return lint.Check(n, f)
}

// unmet is what check finds and the example does not acknowledge.
func (e example) unmet(t *testing.T) diag.List {
	t.Helper()
	f, _ := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(e.model)}}, "fabric.yaml")
	return slices.DeleteFunc(f.Acknowledge(e.check(t)), func(x diag.Finding) bool { return x.Ack != "" })
}

func (h held) apply(t *testing.T, p *intent.Policy) {
	t.Helper()
	if h.Lossless != nil {
		var buffer intent.Buffer
		for _, i := range p.Lossless() {
			buffer = p.Queues[i].Buffer
		}
		for i := range p.Queues {
			p.Queues[i].Lossless = false
		}
		for _, i := range *h.Lossless {
			p.Queues[i].Lossless, p.Queues[i].Buffer = true, buffer
		}
	}
	if h.Trust != "" {
		p.Trust = trusts[h.Trust]
	}
	p.Pause = intent.Pause{Send: h.Pause, Receive: h.Pause}
	for i := range p.Queues {
		if h.NoBuffer {
			p.Queues[i].Buffer = intent.Buffer{}
		}
	}
	for _, i := range h.Drop {
		p.Queues[i].Drop, p.Queues[i].ECN = true, intent.ECN{}
	}
	for _, i := range h.Unmarked {
		p.Queues[i].ECN = intent.ECN{}
	}
	for _, name := range h.Knows {
		a, ok := intent.ParseArea(name)
		if !ok || a != intent.AreaMaps {
			t.Fatalf("knows %s", name)
		}
		p.Known |= intent.AreaSet(a)
		p.DSCP = switchPolicy().DSCP
	}
	for _, i := range h.Skips {
		p.Watchdog.Skips |= 1 << i
	}
	if h.NCCL != nil {
		p.NCCL.TrafficClass = *h.NCCL
	}
	h.applyHost(p)
	for tc, pg := range h.Group {
		p.TCPG[tc] = pg
	}
	for d, to := range h.DSCP {
		p.DSCP[d] = intent.Unmapped
		if to != "none" {
			if _, err := fmt.Sscan(to, &p.DSCP[d]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// applyHost is apply for what only hosts have.
func (h held) applyHost(p *intent.Policy) {
	if h.ToS != nil || h.Mode != 0 || h.Forced != nil {
		p.Known |= intent.AreaSet(intent.AreaRoCE)
		p.RoCE = intent.RoCE{On: true, Mode: cmp.Or(h.Mode, 2), ToS: 104, TrafficClass: -1}
		if h.ToS != nil {
			p.RoCE.ToS = *h.ToS
		}
		if h.Forced != nil {
			p.RoCE.TrafficClass = *h.Forced
		}
	}
	if h.CC != nil || h.Algorithm != "" || h.CNP != nil {
		p.Known |= intent.AreaSet(intent.AreaCC)
		p.CC = intent.Congestion{On: true, Priorities: 1 << 3, HasCNP: true, CNPDSCP: 48, CNPPriority: 6}
		p.CC.Algorithm, _ = intent.ParseAlgorithm(h.Algorithm)
		if h.CC != nil {
			p.CC.Priorities = 0
			for _, i := range *h.CC {
				p.CC.Priorities |= 1 << i
			}
		}
		if h.CNP != nil {
			p.CC.CNPDSCP, p.CC.CNPPriority = h.CNP[0], h.CNP[1]
		}
	}
	if h.Buffer > 0 {
		p.Known |= intent.AreaSet(intent.AreaBuffer)
		p.Queues[3].Lossless = true
		p.Queues[3].Buffer = intent.Buffer{On: true, Reserved: h.Buffer}
	}
	if h.GID != nil {
		p.NCCL.GID = *h.GID + 1
	}
	if h.Timeout > 0 {
		p.NCCL.Timeout = h.Timeout
	}
}

func sound(t *testing.T, l diag.List) {
	t.Helper()
	for _, f := range l {
		if f.Severity != diag.Info {
			t.Fatalf("the example does not load: %s", f)
		}
	}
}

// Each page fails and passes as it says, and names what the rule's row says.
func TestPages(t *testing.T) {
	for _, r := range lint.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			fails, passes := examples(t, r.ID)
			got := slices.DeleteFunc(fails.check(t), func(f diag.Finding) bool { return f.Rule != r.ID && f.Severity == diag.Info })
			if len(got) != 1 || got[0].Rule != r.ID || got[0].Severity != r.Severity {
				t.Errorf("the failing example gives %q, want one %s of %s", texts(got), r.Severity, r.ID)
			}
			got = slices.DeleteFunc(passes.unmet(t), func(f diag.Finding) bool { return f.Rule != r.ID && f.Severity == diag.Info })
			if len(got) > 0 {
				t.Errorf("the passing example gives %q", texts(got))
			}
			page, _ := lint.Page(r.ID)
			if want := "# " + r.ID + ": " + r.Title + "\n"; !strings.HasPrefix(page, want) {
				t.Errorf("the page does not start with %q", want)
			}
			for _, section := range []string{"\n## Why\n", "\n## Source\n"} {
				if !strings.Contains(page, section) {
					t.Errorf("the page has no section %q", section)
				}
			}
		})
	}
}

func TestPageOfNothing(t *testing.T) {
	for _, id := range []string{"", "ecn", "../lint", "no-such-rule"} {
		if p, ok := lint.Page(id); ok || p != "" {
			t.Errorf("Page(%q) = %q, %v", id, p, ok)
		}
	}
	files, err := os.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(lint.Rules()) {
		t.Errorf("%d pages for %d rules", len(files), len(lint.Rules()))
	}
}

// advice is one alternative of a hint: "raise kmax to at least 400KB".
var advice = regexp.MustCompile(`(?:raise|lower|set|and) ([a-z.]+) to (?:at least |at most )?([^\s,]+)`)

// whole is the other kind: "add ecn: {…} to class training".
var whole = regexp.MustCompile(`add (ecn: \{.*\}|ecn: off|scheduling: strict) to class (\S+)`)

// others are the kinds of hints that name something to add elsewhere, as a change of the text.
var others = []struct {
	hint *regexp.Regexp
	edit func(doc string, m []string) string
}{
	{regexp.MustCompile(`^add (pfc_watchdog: \{.*\})`), func(doc string, m []string) string { return doc + m[1] + "\n" }},
	{regexp.MustCompile(`^add dscp (\d+) to class cnp`), func(doc string, m []string) string {
		return regexp.MustCompile(`(role: cnp\n +dscp: \[\d+)`).ReplaceAllString(doc, "$1, "+m[1])
	}},
	{regexp.MustCompile(`^move dscp (\d+) from class \S+ to class cnp`), func(doc string, m []string) string {
		doc = strings.Replace(doc, ", "+m[1], "", 1)
		return regexp.MustCompile(`(role: cnp\n +dscp: \[\d+)`).ReplaceAllString(doc, "$1, "+m[1])
	}},
	{regexp.MustCompile(`write (ecn: \{.*\}) in place of off`), func(doc string, m []string) string { return strings.Replace(doc, "ecn: off", m[1], 1) }},
	{regexp.MustCompile(`(take away ecn: off)`), func(doc string, _ []string) string { return strings.Replace(doc, "    ecn: \"off\"\n", "", 1) }},
	{regexp.MustCompile(`^add (drop_incomplete_arp: true) to class (\w+)`), func(doc string, m []string) string {
		return strings.Replace(doc, "name: "+m[2]+"\n", "name: "+m[2]+"\n    "+m[1]+"\n", 1)
	}},
	{regexp.MustCompile(`^make (1) class of them lossy`), func(doc string, _ []string) string { // the last one
		i := strings.LastIndex(doc, "    lossless: true\n")
		return doc[:i] + doc[i+len("    lossless: true\n"):]
	}},
	{regexp.MustCompile(`^change or remove the route at fabric.yaml:(\d+)`), func(doc string, m []string) string {
		lines := strings.Split(doc, "\n")
		n, _ := strconv.Atoi(m[1])
		return strings.Join(slices.Delete(lines, n-1, n), "\n")
	}},
	{regexp.MustCompile(`such as (cable: \S+)`), func(doc string, m []string) string { // of all links without one
		return regexp.MustCompile(`((?:_\w+: \{|", )speed: \w+)\}`).ReplaceAllString(doc, "$1, "+m[1]+"}")
	}},
	{regexp.MustCompile(`put (\S+) into class (\S+)`), func(doc string, m []string) string {
		return regexp.MustCompile(`(name: `+m[1]+`, .*class: )\w+`).ReplaceAllString(doc, "${1}"+m[2])
	}},
	{regexp.MustCompile(`give the platform a (headroom_pool) of at least (\w+(?:\.\w+)?)`), func(doc string, m []string) string {
		return regexp.MustCompile(m[1]+`: \S+`).ReplaceAllString(doc, m[1]+": "+m[2])
	}},
	{regexp.MustCompile(`^give the ports of (\S+) thresholds of their own under overrides, such as kmin (\w+) and kmax (\w+)`), func(doc string, m []string) string {
		doc += "overrides:\n  leaf:\n    devices:\n"
		for i := range 4 { // the example has four leaves, with two such ports each
			ramp := fmt.Sprintf("classes: [{name: training, ecn: {kmin: %s, kmax: %s}}]", m[2], m[3])
			doc += fmt.Sprintf("      leaf%d: {ports: {downlink-1: {%s}, downlink-2: {%s}}}\n", i+1, ramp, ramp)
		}
		return doc
	}},
	{regexp.MustCompile(`^add (\d) uplinks? of`), func(doc string, m []string) string { // the example has two spines
		return strings.Replace(doc, "spines: {count: 2", fmt.Sprintf("spines: {count: %d", 2+m[1][0]-'0'), 1)
	}},
}

// apply edits the model as one alternative of f's hint says, at the positions that f names.
func apply(t *testing.T, doc string, f diag.Finding, field, value string) string {
	t.Helper()
	key := field[strings.LastIndex(field, ".")+1:]
	lines := strings.Split(doc, "\n")
	places := []diag.Pos{f.Pos}
	for _, r := range f.Related {
		places = append(places, r.Pos)
	}
	for _, p := range places {
		if p.IsZero() {
			continue
		}
		l := lines[p.Line-1]
		if head := l[:p.Col-1]; strings.HasSuffix(strings.TrimRight(head, " "), key+":") {
			end := strings.IndexAny(l[p.Col-1:], ",}\n")
			if end < 0 {
				end = len(l) - (p.Col - 1)
			}
			lines[p.Line-1] = head + value + l[p.Col-1+end:]
			return strings.Join(lines, "\n")
		}
	}
	t.Fatalf("no position of the finding is a value of %s:\n%s", key, f)
	return ""
}

// hinted yields the models that each alternative of each finding's hint makes.
func hinted(t *testing.T, doc string, f diag.Finding) (docs []string) {
	t.Helper()
	for alternative := range strings.SplitSeq(f.Hint, ", or ") {
		next := doc
		for _, a := range slices.Backward(advice.FindAllStringSubmatch(alternative, -1)) { // backward: columns move
			next = apply(t, next, f, a[1], a[2])
		}
		if next != doc {
			docs = append(docs, next)
		}
	}
	for _, o := range others {
		m := o.hint.FindStringSubmatch(f.Hint)
		if m == nil {
			continue
		}
		if next := o.edit(doc, m); next != doc {
			docs = append(docs, next)
		}
	}
	if strings.HasSuffix(f.Hint, " in place of its bandwidth") {
		doc = regexp.MustCompile(`(role: cnp(\n.*){2}\n) +bandwidth: .*\n`).ReplaceAllString(doc, "$1")
	}
	for _, a := range whole.FindAllStringSubmatch(f.Hint, -1) {
		docs = append(docs, strings.Replace(doc, "name: "+a[2]+"\n", "name: "+a[2]+"\n    "+a[1]+"\n", 1))
	}
	if len(docs) == 0 {
		t.Errorf("the hint cannot be applied: %s", f)
	}
	return docs
}

// What a hint says, when done, removes the finding and adds none.
func TestHintsHold(t *testing.T) {
	ecn, _ := examples(t, "ecn-order")
	mtu, _ := examples(t, "mtu-path")
	lossless, _ := examples(t, "ecn-on-lossless")
	_, good := examples(t, "ecn-order")
	ramp := func(s string) string {
		return strings.Replace(good.model, "{kmin: 350KB, kmax: 400KB, pmax: 20%}", s, 1)
	}
	over := func(s string) string { return good.model + "overrides:\n" + s }
	fails := func(id string) string {
		e, _ := examples(t, id)
		return e.model
	}
	sized := func(mtu, watchdog string) string {
		return strings.NewReplacer("{fabric: 9216B, host: 9000B}", mtu, "{detect: 200ms, restore: 400ms, poll: 100ms", watchdog).Replace(good.model)
	}
	const times, sizes = "{detect: 200ms, restore: 400ms, poll: 100ms", "{fabric: 9216B, host: 9000B}"
	for name, doc := range map[string]string{
		"cnp-class":            fails("cnp-class"),
		"cnp-dscp-nic":         fails("cnp-dscp-nic"),
		"cnp of another":       strings.Replace(fails("cnp-dscp-nic"), "dscp: [26]", "dscp: [26, 48]", 1),
		"ecn-same":             fails("ecn-same"),
		"ecn-before-pfc":       fails("ecn-before-pfc"),
		"ecn-never-marks":      fails("ecn-never-marks"),
		"ecn-kmax-below-pfc":   fails("ecn-kmax-below-pfc"),
		"ecn-before-pfc-worst": fails("ecn-before-pfc-worst"),
		"ecn-dctcp":            fails("ecn-dctcp"),
		"ecn-dctcp, tiny":      ramp("{kmin: 1KB, kmax: 2KB, pmax: 20%}"),
		"ecn-expressible":      fails("ecn-expressible"),
		"below a step":         strings.Replace(fails("ecn-expressible"), "{kmin: 800KB, kmax: 800KB", "{kmin: 6000B, kmax: 7000B", 1),
		"ecn-granularity":      fails("ecn-granularity"),
		"few steps":            strings.Replace(fails("ecn-granularity"), "{kmin: 800KB, kmax: 3200KB", "{kmin: 798720B, kmax: 811008B", 1),
		"pmax-sufficient":      fails("pmax-sufficient"),
		"marking":              fails("marking"),
		"mtu-roce":             fails("mtu-roce"),
		"small everywhere":     sized("{fabric: 2100B, host: 2078B, roce: 4096B}", times),
		"smallest roce":        sized("{fabric: 9216B, host: 300B, roce: 256B}", times),
		"roce between":         sized("{fabric: 4200B, host: 4192B, roce: 4096B}", times),
		"oversubscription":     fails("oversubscription"),
		"thin":                 strings.Replace(fails("oversubscription"), "leaf_spine: {speed: 800", "leaf_spine: {speed: 400", 1),
		"watchdog-on":          fails("watchdog-on"),
		"watchdog-gt-pause":    fails("watchdog-gt-pause"),
		"hasty watchdog":       sized(sizes, "{detect: 10ms, restore: 400ms, poll: 5ms"),
		"slow poll":            sized(sizes, "{detect: 200ms, restore: 400ms, poll: 300ms"),
		"slower poll":          sized(sizes, "{detect: 200ms, restore: 400ms, poll: 900ms"),
		"slowest poll":         sized(sizes, "{detect: 400ms, restore: 400ms, poll: 2000ms"),
		"slow in all":          sized(sizes, "{detect: 3000ms, restore: 3000ms, poll: 2000ms"),
		"late restore":         sized(sizes, "{detect: 400ms, restore: 100ms, poll: 300ms"),
		"ecn-order":            ecn.model,
		"ecn-on-lossless":      strings.Replace(lossless.model, "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}", "ecn: off", 1),
		"mtu-path":             mtu.model,
		"no kmin":              ramp("{kmin: 0B, kmax: 400KB, pmax: 20%}"),
		"small kmax":           ramp("{kmin: 0B, kmax: 4KB, pmax: 20%}"),
		"no kmax":              ramp("{kmin: 8MB, kmax: 0B, pmax: 20%}"),
		"neither":              ramp("{kmin: 0B, kmax: 0B, pmax: 20%}"),
		"no pmax":              ramp("{kmin: 350KB, kmax: 400KB, pmax: 0%}"),
		"override of a role":   over("  leaf: {classes: [{name: training, ecn: {kmin: 500KB}}]}\n"),
		"override of a port":   over("  leaf: {devices: {leaf2: {ports: {uplink-1: {classes: [{name: training, ecn: {kmax: 1KB}}]}}}}}\n"),
		"mtu of a device":      over("  leaf: {devices: {leaf2: {mtu: {fabric: 1500B}}}}\n"),
		"mtu of a host":        over("  host: {devices: {host2: {mtu: {host: 9200B}}}}\n"),
		"mtu of all spines":    over("  spine: {mtu: {fabric: 9100B}}\n"),
	} {
		t.Run(name, func(t *testing.T) { hintsHold(t, name, doc) })
	}
}

// No switch takes a fraction of a percent, so no hint names one: the 1.95% that are needed here are 2%.
func TestPmaxHintIsWhole(t *testing.T) {
	e, _ := examples(t, "pmax-sufficient")
	for _, f := range e.check(t) {
		if f.Rule == "pmax-sufficient" && (!strings.Contains(f.Msg, "where 1.95% is marked") || !strings.HasPrefix(f.Hint, "raise pmax to at least 2%,")) {
			t.Error(f)
		}
	}
}

// hintsHold does what each hint of each finding says: the finding is gone, and none is added. Infos of other rules than
// name are not at issue.
func hintsHold(t *testing.T, name, doc string) {
	t.Helper()
	all := example{rule: name, model: doc}.check(t)
	before := map[string]bool{}
	for _, f := range all {
		before[f.Rule+f.Pos.String()] = true
	}
	aside := func(f diag.Finding) bool { return f.Severity == diag.Info && f.Rule != name }
	found := slices.DeleteFunc(slices.Clone(all), aside)
	if len(found) == 0 {
		found = all
	}
	if len(found) == 0 {
		t.Fatal("no finding")
	}
	for _, f := range found {
		for _, next := range hinted(t, doc, f) {
			after := example{rule: name, model: next}.check(t)
			for _, g := range after {
				if !before[g.Rule+g.Pos.String()] && g.Severity >= f.Severity {
					t.Errorf("%s\nafter doing it: %s", f, g)
				}
			}
			if after = slices.DeleteFunc(after, aside); len(after) >= len(found) {
				t.Errorf("%s\nafter doing it, nothing is better: %q", f, texts(after))
			}
		}
	}
}

// A finding through layers says which line lost.
func TestLayers(t *testing.T) {
	_, good := examples(t, "ecn-order")
	fsys := fstest.MapFS{
		"fabric.yaml": {Data: []byte(good.model)},
		"site.yaml": {Data: []byte(`apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
classes:
  - name: training
    ecn: {kmax: 123KB}
`)},
	}
	f, l := model.Load(fsys, "fabric.yaml", "site.yaml")
	sound(t, l)
	n, _ := intent.Resolve(f)
	var b bytes.Buffer
	for _, f := range lint.Check(n, routed(f)) {
		b.WriteString(f.String() + "\n")
		if f.At != "" {
			t.Errorf("At is %q, although a line is known", f.At)
		}
	}
	want := `fabric.yaml:17:17: error: ecn-order: kmin 350KB of class training is above its kmax 123KB on leaf1 and 5 more
    site.yaml:6:17: kmax set here, over fabric.yaml:17:30
    hint: raise kmax to at least 350KB, or lower kmin to at most 123KB
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

// PFC alone, said to be meant, is a warning that can be acknowledged; once acknowledged it no longer counts.
func TestPFCAlone(t *testing.T) {
	fails, _ := examples(t, "ecn-on-lossless")
	const ramp = "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}"
	off := strings.Replace(fails.model, ramp, "ecn: off", 1)
	got := example{model: off}.check(t)
	want := `fabric.yaml:17:10: warning: ecn-on-lossless: class training is lossless, but its queue 3 has no ecn on leaf1 and 5 more: pause is the only control
    hint: if PFC alone is meant, acknowledge ecn-on-lossless with the reason; if not, write ecn: {kmin: 800KB, kmax: 3.2MB, pmax: 20%} in place of off (a starting point for 400Gbps, extrapolated)`
	if len(got) != 1 || got[0].String() != want {
		t.Fatalf("got %q, want %q", texts(got), want)
	}
	acknowledged := off + "acknowledge: [{rule: ecn-on-lossless, reason: admission control above}]\n"
	f, l := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(acknowledged)}}, "fabric.yaml")
	sound(t, l)
	got = f.Acknowledge(example{model: acknowledged}.check(t))
	if len(got) != 1 || got[0].Ack != "admission control above" || got.Count(diag.Warning) != 0 {
		t.Errorf("acknowledged: got %q", texts(got))
	}
	// An error is not acknowledged away, and the unused acknowledgement is said.
	hard := fails
	hard.model += "acknowledge: [{rule: ecn-on-lossless, reason: no}]\n"
	f, l = model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(hard.model)}}, "fabric.yaml")
	sound(t, l)
	got = f.Acknowledge(hard.check(t))
	if !got.HasErrors() || got.Count(diag.Info) != 1 {
		t.Errorf("acknowledged error: got %q", texts(got))
	}
	// The ramp of a later layer takes the place of off, and the other way round.
	with := strings.Replace(fails.model, ramp, "ecn: {kmin: 200KB, kmax: 200KB, pmax: 1%}", 1)
	layer := "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: pod1}\nclasses: [{name: training, ecn: %s}]\n"
	for _, c := range []struct {
		base, over string
		want       int
	}{{off, "{kmin: 200KB, kmax: 200KB, pmax: 1%}", 0}, {with, "off", 1}} {
		f, l := model.Load(fstest.MapFS{"a.yaml": {Data: []byte(c.base)}, "b.yaml": {Data: []byte(fmt.Sprintf(layer, c.over))}}, "a.yaml", "b.yaml")
		sound(t, l)
		n, l := intent.Resolve(f)
		sound(t, l)
		if got := lint.Check(n, routed(f)); got.Count(diag.Warning) != c.want || len(got) != c.want {
			t.Errorf("layer %s: got %q, want %d warnings", c.over, texts(got), c.want)
		}
	}
}
