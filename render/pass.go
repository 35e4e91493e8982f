package render

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Pass is what one look at a device comes to: what of it the model owns, and what would move. plan, doctor and import
// all make it here, so that they cannot come to different answers.
type Pass struct {
	Own        func(Key) bool // what the model owns, what an earlier model of the fabric left among it
	Owned      Config         // the part of the live configuration that is owned
	Stays      diag.List      // what may be an earlier model's and cannot be told from somebody else's
	Findings   diag.List      // what the target cannot express
	Changes    []Change       // what would be written, in no order yet
	Used       []Key          // objects that the model does not ask for any more and that stay, since something still uses them
	Risks      []Risk         // what the changes do to traffic
	Collisions []string       // objects of our name that somebody else uses: with any, the device is refused
}

// Look makes the pass over a device whose interface names are bound. Adopted names stand in f.Names.
func Look(dialect *Dialect, d intent.Device, f Facts, live Config) Pass {
	var p Pass
	p.Own, p.Stays = Owned(dialect, d, f, live)
	want, finds := dialect.Render(d, f)
	p.Findings = finds
	p.Owned = live.Filter(p.Own)
	p.Changes, p.Used = KeepUsed(dialect, live, Diff(dialect, f, p.Owned, want.Filter(p.Own)))
	if len(p.Changes) > 0 {
		p.Risks = dialect.Risk(live, p.Changes, f)
		p.Collisions = Collisions(dialect, &d, p.Own, live, p.Changes)
	}
	return p
}

// Spare leaves out changes, and says how many: those that also is true for, unless it is nil, and, where only what is
// harmless is to be done, those that would do worse than nothing to traffic, each by itself. Of what is left the risks are
// found anew: a worse one that only several changes have together leaves out all.
func (p *Pass) Spare(dialect *Dialect, f Facts, live Config, harmless bool, also func(Change) bool) (kept int) {
	worse := func(cs []Change) bool {
		return harmless && slices.ContainsFunc(dialect.Risk(live, cs, f), func(r Risk) bool { return r.Class != Hitless })
	}
	all := len(p.Changes)
	p.Changes = slices.DeleteFunc(slices.Clone(p.Changes), func(c Change) bool { return also != nil && also(c) || worse([]Change{c}) })
	if len(p.Changes) > 0 && worse(p.Changes) {
		p.Changes = nil
	}
	p.Risks = nil
	if len(p.Changes) > 0 {
		p.Risks = dialect.Risk(live, p.Changes, f)
	}
	return all - len(p.Changes)
}

// Refused says why a device of the pass would not be written; "" when it would. What stands against it is the first of:
// what the target cannot express, a name that somebody else uses, and what the device itself refuses.
func (p *Pass) Refused() string {
	for i := range p.Findings {
		if p.Findings[i].Severity == diag.Error {
			return p.Findings[i].Msg
		}
	}
	if len(p.Collisions) > 0 {
		return p.Collisions[0]
	}
	for i := range p.Risks {
		if p.Risks[i].Class == Refused {
			return p.Risks[i].Why
		}
	}
	return ""
}
