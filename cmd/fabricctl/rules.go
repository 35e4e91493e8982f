package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

type rulesJSON struct {
	Schema string     `json:"schema"`
	Rules  []ruleJSON `json:"rules"`
}

type ruleJSON struct {
	ID    string `json:"id"`
	Stage string `json:"stage"` // "lint": the agreement; "load": the document; "render", "plan", "check", "import": see stages
	Title string `json:"title"`
	Page  string `json:"page,omitempty"`

	do string // what to do about it
}

// stages are what a stage is about, for people, by its name.
func stages() map[string]string {
	return map[string]string{
		"load":   "Said of the documents of a model, by validate and by every verb that reads one. The finding stands at the value to change, and its hint says what to write.",
		"render": "Said of what a target can express and what stays on it, by validate, render and plan.",
		"plan":   "Said of a device when it is read and planned, by plan, apply and drift.",
		"check":  "Said of the fabric as it is live, by check and doctor, and by plan, which is never refused for it.",
		"import": "Said of devices that a model is made from, by import.",
	}
}

// otherRules are the rules that neither the linter nor the loader has, by stage and id.
func otherRules() []ruleJSON {
	of := func(stage string, rows ...[3]string) []ruleJSON {
		rs := make([]ruleJSON, len(rows))
		for i, r := range rows {
			rs[i] = ruleJSON{ID: r[0], Stage: stage, Title: r[1], do: r[2]}
		}
		return rs
	}
	return slices.Concat(
		of(
			"render",
			[3]string{"adopt", "an object of another name is edited in place, or cannot be", "look at the name: what it says is taken over keeps its name; what cannot be is made anew under ours"},
			[3]string{"asymmetric-pfc", "a port of a switch obeys pause of every priority", "set pfc_asym of the port to off by hand"},
			[3]string{"bound-on-host", "only the host knows which interface has a PCI address", "plan the host: what is rendered here leaves it out"},
			[3]string{render.NeedsAdoption, "objects on the device have to be taken over before this can be written", "allow it with --adopt or manage.adopt, or observe the area"},
			[3]string{"not-expressible", "the target cannot say what the model asks for", "change the value as the hint says, or do not own the area there"},
			[3]string{"one-value", "a device has one value where the model asks for two", "give both places the same value, or move the override to where each has its own"},
			[3]string{"stays-bound", "one row of a switch gives several priority groups a buffer, some of them of no class of the model", "split the row by hand, or name classes with all of these priorities"},
			[3]string{"stays-lossless", "a priority that no class of the model has is lossless on a device, and stays so", "remove it by hand if nobody needs it, or name a class with it"},
			[3]string{"watchdog-polling", "the device polls more slowly than the watchdog needs", "lower poll as the hint says"},
			[3]string{"watchdog-timers-stay", "watchdog timers stay on a device although no port of the model has a watchdog", "remove them by hand if nobody needs them"},
		),
		of(
			"plan",
			[3]string{"held", "a hold leaves out all of a device, because it is shared with what is held", "release the hold when the work is done: fabricctl hold lists them"},
			[3]string{"identity", "another device answers than the inventory expects", "correct the address, or the expected serial or host name; nothing is written until they agree"},
			[3]string{"lift", "what is configured has no meaning that fabricctl knows for sure", "look at the setting on the device; it is left as it is unless the model owns it"},
			[3]string{"name-collision", "an object of the name that is needed exists and is not ours", "rename it on the device, or take it over with --adopt"},
			[3]string{"no-such-port", "the device has no interface of the name that the model binds", "correct the name in the inventory, or the breakout on the device"},
			[3]string{"not-read", "a device was not reached or not understood", "see the reason in the finding; fabricctl doctor looks at each step on the way"},
			[3]string{"open-transaction", "a transaction that looks like ours is open and stands in no journal here", "let whoever began it end it, or abort it on the device"},
			[3]string{"owner", "somebody else configures the device", "stop the other tool for the areas that the model owns, or observe them"},
			[3]string{"parse", "part of a configuration was not understood", "look at the lines named; what was not understood is never written"},
			[3]string{"pending-timer", "a commit timer runs on the device and will take its configuration back", "end it with fabricctl runs resume or rollback, or wait for it"},
			[3]string{"refused-by-device", "the device is known to refuse a change", "the reason says what would do it; do that by hand, or observe its area under manage, or change the model"},
			[3]string{"still-used", "an object that nothing of the model needs is used by something else, and stays", "nothing; remove the other use if it is stale"},
			[3]string{"unsaved", "the running configuration is not what the device would start with", "save it on the device, or let apply do it"},
		),
		of(
			"check",
			[3]string{"compatibility", "a NIC runs a driver, firmware or kernel that is known not to go with it, or is in no row of a site's own list", "update what the finding names; fabricctl profiles ROW shows where it is from, and a Profile document with a compat section adds or corrects a row"},
			[3]string{"fleet-versions", "NICs of one kind run different firmware or drivers, or their hosts different kernels", "bring the few to what the others have and measure again: a slow host hides in such a mixture"},
		),
		of(
			"import",
			[3]string{"class-guess", "the names and roles of classes are guesses", "give them names that mean something, and say which one carries notifications"},
			[3]string{"differs", "a device differs from what the others have", "bring it to the others, or write an override for it on purpose"},
			[3]string{"host-not-read", "hosts are known by LLDP alone", "add their addresses to the inventory and import again, or keep them planned"},
			[3]string{"lldp", "what LLDP says of a port cannot be", "look at the cable, and at what both devices show"},
			[3]string{"lldp-contradiction", "two ports name each other in ways that do not fit", "one of them is stale, or a device is between them: clear it and import again, or list the link"},
			[3]string{"lldp-one-sided", "one end of a link hears the other, and the other hears nothing", "see whether LLDP is sent at one end and received at the other"},
			[3]string{"mtu-guess", "an MTU is a guess because nobody was read who has it", "write what it is to be"},
			[3]string{"no-lldp", "links are not known, because nothing is heard over LLDP", "switch LLDP on, or write the links under topology.links.list"},
			[3]string{"no-maps", "no port maps code points to classes", "write the code points of the classes"},
			[3]string{"port-name", "an interface has a name that a model cannot hold", "rename it on the device; until then it is left out"},
			[3]string{"priority-without-traffic", "a priority has a behaviour, and no code point leads to it", "give it a class with its code points if traffic comes there another way"},
			[3]string{"role-guess", "the role of a device is a guess", "say otherwise with --role"},
			[3]string{"role-unknown", "the role of a device is not known", "say it with --role"},
			[3]string{"same-name", "two devices or ports have one name", "give each its own"},
			[3]string{"same-serial", "two addresses answer with one serial number", "they are one box, or a clone: correct the address, or the number on the device"},
			[3]string{"switch-not-read", "a switch is known by LLDP alone", "add its address to the inventory and import it too"},
		),
		of(
			"load",
			[3]string{"schema", "a document does not fit the JSON Schema (schema --check)", "write what the schema takes at that place"},
			[3]string{"schema-outdated", "the schema file beside a model is not that of this fabricctl", "write it anew with fabricctl schema"},
		),
	)
}

// allRules are the linter's rules, then the loader's, then the others, each by id.
func allRules() []ruleJSON {
	var rs []ruleJSON
	for _, r := range lint.Rules() {
		rs = append(rs, ruleJSON{ID: r.ID, Stage: "lint", Title: r.Title})
	}
	for _, r := range model.Rules() {
		if _, too := lint.Page(r.ID); !too { // a rule that both look after is listed once
			rs = append(rs, ruleJSON{ID: r.ID, Stage: "load", Title: r.What})
		}
	}
	rs = append(rs, otherRules()...)
	order := map[string]int{"lint": 0, "load": 1, "render": 2, "plan": 3, "check": 4, "import": 5}
	slices.SortStableFunc(rs, func(a, b ruleJSON) int { return cmp.Or(order[a.Stage]-order[b.Stage], cmp.Compare(a.ID, b.ID)) })
	return rs
}

func ruleIDs() []string {
	var ids []string
	for _, r := range allRules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// page is what rules ID shows.
func (r ruleJSON) page() string {
	if p, ok := lint.Page(r.ID); ok {
		return p
	}
	text := fmt.Sprintf("# %s\n\n%s.\n\n%s\n", r.ID, strings.ToUpper(r.Title[:1])+r.Title[1:], stages()[r.Stage])
	if r.do != "" {
		text += fmt.Sprintf("\nWhat to do: %s.\n", r.do)
	}
	return text
}

// strangers is l with an error for each acknowledgement of a rule that does not exist, in place of what was said of it.
func strangers(f *model.Fabric, l diag.List) diag.List {
	const hints = 20 // looking for what was meant takes time
	ids, at := ruleIDs(), map[diag.Pos]bool{}
	var unknown diag.List
	for _, a := range f.Acks {
		if !a.Rule.Set || slices.Contains(ids, a.Rule.V) {
			continue
		}
		hint := "fabricctl rules lists them"
		if len(unknown) < hints {
			hint = meant(a.Rule.V, ids, hint)
		}
		at[a.Rule.Pos()] = true
		unknown.Errorf("unknown-name", a.Rule.Pos(), hint, "acknowledge: there is no rule %q", a.Rule.V)
	}
	l = slices.DeleteFunc(l, func(x diag.Finding) bool { return x.Rule == "acknowledge" && at[x.Pos] })
	return append(l, unknown...).Sort()
}

// meant is the hint for a word that is not in list: the one that is most like it, or else where to see them all.
func meant(word string, list []string, other string) string {
	if w := model.Closest(word, list); w != "" {
		return "did you mean " + w + "?"
	}
	return other
}

func (a *app) newRules() *cobra.Command {
	return &cobra.Command{
		Use:   "rules [ID]",
		Short: "List the rules, or show one: why, source, a failing and a passing example",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("rules wants at most one rule id")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ruleIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			res := rulesJSON{Schema: "fabricctl/rules/v1"}
			wide := 0
			for _, r := range allRules() {
				if len(args) == 1 {
					r.Page = r.page()
				}
				if len(args) == 0 || args[0] == r.ID {
					res.Rules = append(res.Rules, r)
				}
				wide = max(wide, len(r.ID))
			}
			if len(res.Rules) == 0 {
				return fail(exitError, meant(args[0], ruleIDs(), "fabricctl rules lists them"), "there is no rule %q", args[0])
			}
			if json {
				return a.printJSON(res)
			}
			for _, r := range res.Rules {
				if r.Page != "" {
					fmt.Fprint(a.sys.out, r.Page)
					continue
				}
				fmt.Fprintf(a.sys.out, "%s  %-6s  %s\n", show.Pad(r.ID, wide), r.Stage, r.Title)
			}
			return nil
		},
	}
}
