package lint_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/lint"
)

// inWords are the rules whose hints name no value of the model to write, with the reason.
var inWords = map[string]string{
	"bond-same":            onDevice,
	"border":               onDevice,
	"cc-algorithm":         onDevice,
	"cc-on-lossless":       onDevice,
	"chain-consistent":     onDevice,
	"dscp-total":           onDevice,
	"ecn-on-lossless":      onDevice, // TestHintsHold and TestHintsTogether have it in models
	"headroom-effect":      onDevice,
	"host-mapping":         onDevice,
	"incast-first":         "is to expect pauses, since no setting prevents them",
	"lossless-protected":   onDevice,
	"nccl-gid":             onDevice,
	"nic-buffer":           onDevice,
	"nic-subnet":           "is about addresses and what Linux makes of them",
	"rail-subnet":          "is about cables and addresses",
	"roce-marking":         onDevice,
	"nccl-model":           onDevice, // TestHintsTogether has it in a model
	"pfc-not-global-pause": onDevice,
	"pfc-symmetry":         onDevice,
	"shared-port":          "is about NICs and cables",
	"shared-priority":      "is a class more, with code points and a priority that somebody has to choose",
	"trust-dscp":           onDevice,
	"uneven-uplinks":       "is about cables",
	"watchdog-set":         onDevice,
	"wred-on-lossless":     onDevice,
}

const onDevice = "is about what a device holds, and its way is to own the area (Advise)"

// TestHintOfEveryRule does what the hint of each rule's failing example says. A rule whose hint cannot be done by writing a
// value stands in inWords with the reason, and no other rule may stand there.
func TestHintOfEveryRule(t *testing.T) {
	for _, r := range lint.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			fails, _ := examples(t, r.ID)
			why := inWords[r.ID]
			if fails.live != nil {
				if why == "" {
					t.Error("it is the device that has to change in the example, and inWords does not say so")
				}
				return
			}
			for _, f := range fails.check(t) {
				if f.Rule != r.ID {
					continue
				}
				can := false
				for alternative := range strings.SplitSeq(f.Hint, ", or ") {
					done := doable(alternative)
					can = can || done
					if !done && !plain.MatchString(alternative) {
						t.Errorf("nobody tries %q of the hint of %s", alternative, f)
					}
				}
				switch {
				case can && why != "":
					t.Errorf("inWords says that the hint %s, but it can be done: %s", why, f)
				case can:
					hintsHold(t, r.ID, fails.model)
				case why == "":
					t.Errorf("the hint cannot be done by writing a value, and inWords does not say why: %s", f)
				}
			}
		})
	}
	for id := range inWords {
		if _, ok := lint.Page(id); !ok {
			t.Errorf("inWords has %s, which is no rule", id)
		}
	}
}

// plain are the alternatives of hints that are about something else than a value of the model.
var plain = regexp.MustCompile(`^acknowledge |^connect at most |^take a switch |^keep \d of \d classes |^have the NICs send |^expect pauses |^spread them: ` +
	`|^give (each|storage|leaf3) `)

// doable reports whether hinted can do an alternative of a hint.
func doable(alternative string) bool {
	return advice.MatchString(alternative) || whole.MatchString(alternative) ||
		slices.ContainsFunc(others, func(o struct {
			hint *regexp.Regexp
			edit func(doc string, m []string) string
		},
		) bool {
			return o.hint.MatchString(alternative)
		})
}

// TestHintsTogether does what each hint says in a fabric where everything else is broken too: that one finding is gone, all
// others are as they were or gone with it, and none is added.
func TestHintsTogether(t *testing.T) {
	var doc string
	for _, name := range []string{"fabric", "paper-box"} {
		text, err := os.ReadFile("../../examples/broken/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		doc += string(text) + "---\n"
	}
	doc = strings.TrimSuffix(doc, "---\n")
	lines := strings.Split(doc, "\n")
	for i, l := range lines { // edits know nothing of comments
		if before, _, ok := strings.Cut(l, "   # "); ok {
			lines[i] = before
		}
	}
	doc = strings.Join(lines, "\n")
	tried := 0
	all := example{rule: "arp-complete", model: doc}.check(t)
	before := map[string]bool{}
	for _, f := range all {
		before[f.Rule] = true
	}
	for _, f := range all {
		if slices.Contains([]string{"oversubscription", "ecn-scale"}, f.Rule) || !slices.ContainsFunc(strings.Split(f.Hint, ", or "), doable) {
			continue // those add links and overrides, which is done in the examples of their pages
		}
		for _, next := range hinted(t, doc, f) {
			tried++
			after := example{rule: "arp-complete", model: next}.check(t)
			if slices.ContainsFunc(after, func(g diag.Finding) bool { return g.Rule == f.Rule }) {
				t.Errorf("%s\nafter doing it, it is still there", f)
			}
			for _, g := range after {
				if !before[g.Rule] && g.Severity >= f.Severity {
					t.Errorf("%s\nafter doing it: %s", f, g)
				}
			}
		}
	}
	t.Logf("%d alternatives of the hints of %d findings", tried, len(all))
}

// TestHintsOnRampsOnly: where a chip takes no kmin that is kmax, no hint asks for one.
func TestHintsOnRampsOnly(t *testing.T) {
	fails, _ := examples(t, "ecn-granularity")
	for name, c := range map[string]struct{ ecn, alpha string }{
		"ecn-order":          {"{kmin: 901120B, kmax: 800KB, pmax: 20%}", "1/8"},
		"ecn-order, small":   {"{kmin: 901120B, kmax: 6KB, pmax: 20%}", "1/8"},
		"ecn-order, no kmax": {"{kmin: 40MB, kmax: 0B, pmax: 20%}", "128"},
		"ecn-dctcp":          {"{kmin: 6144B, kmax: 12288B, pmax: 20%}", "1/8"},
		"ecn-never-marks":    {"{kmin: 61440KB, kmax: 122880KB, pmax: 20%}", "1/8"},
		"ecn-before-pfc":     {"{kmin: 9216KB, kmax: 9830400B, pmax: 20%}", "1/8"},
		"ecn-kmax-below-pfc": {"{kmin: 614400B, kmax: 24576KB, pmax: 20%}", "1/8"},
		"kmin close to it":   {"{kmin: 6144KB, kmax: 24576KB, pmax: 20%}", "1/16"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := strings.NewReplacer("{kmin: 800KB, kmax: 3200KB, pmax: 20%}", c.ecn+"\n    pfc: {xoff: {alpha: "+c.alpha+"}}",
				"max_mtu:", "lossless_pool: 64MB, max_mtu:", "ecn_step: 6144B", "ecn_step: 1024B").Replace(fails.model)
			hintsHold(t, name, doc)
		})
	}
}
