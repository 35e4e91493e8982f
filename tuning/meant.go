package tuning

import (
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
)

// modelled are the variables of an experiment that a model holds, by name, and their values in a setting, which has all of them.
func (b *Begin) modelled(s Setting) (names []string, at Setting) {
	for i := range b.Vars {
		if v := &b.Vars[i]; v.External == nil && !strings.HasPrefix(v.Name, loadPrefix) {
			names, at = append(names, v.Name), append(at, s[i])
		}
	}
	return names, at
}

// Modelled reports whether anything that the model holds stands otherwise in a setting than in the model of the experiment.
func (b *Begin) Modelled(s Setting) bool {
	_, at := b.modelled(s)
	_, base := b.modelled(b.Base)
	return at.Key() != base.Key()
}

// Meant is what a setting of the experiment changes in f, which is its model, or was. It is worked out from f: a journal names the variables,
// and is not asked what they stand for. Errors say that f has no such variables, that they
// stand otherwise there than where the experiment began or ended, or that the setting breaks a rule of it.
func (b *Begin) Meant(f *model.Fabric, s Setting) (model.Patch, diag.List) {
	names, at := b.modelled(s)
	if len(names) == 0 {
		return nil, nil
	}
	space, found := NewSpace(f, SpaceOptions{Class: b.Context.Class, Variables: names})
	if found.HasErrors() {
		return nil, found
	}
	patch := space.Change(at).Patch
	if len(patch) == 0 {
		return nil, nil
	}
	_, base := b.modelled(b.Base)
	for i := range base {
		if v := &space.Vars[i]; base[i] != space.Base[i] {
			found.Errorf(spaceRule, f.Pos, "", "%s is %s in the model, and the experiment began with %s", v.Name, v.Text(space.Base[i]), v.Text(base[i]))
		}
	}
	if found.HasErrors() {
		return nil, found
	}
	return patch, space.Check(at)
}
