package rollout

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/render"
)

var printPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// check is what must hold of every plan, whoever wrote it: a step can be undone by its own undo, and belongs where it
// stands.
func (p *Plan) check() error {
	if p.Fabric == "" || strings.ContainsAny(p.Fabric, "/\x00") {
		return fmt.Errorf("fabric %q is not a name", p.Fabric)
	}
	seen := map[string]bool{}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Name == "" || seen[d.Name] {
			return fmt.Errorf("device %q has no name or stands twice in the plan", d.Name)
		}
		seen[d.Name] = true
		if err := d.check(); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

// bound wants each device with steps to have its intent: that of the planner, of Check, or of the journal.
func (p *Plan) bound() error {
	for i := range p.Devices {
		if d := &p.Devices[i]; len(d.Steps) > 0 && (d.Intent == nil || d.Intent.Name != d.Name) {
			return fmt.Errorf("%s: has steps without its own intent", d.Name)
		}
	}
	return nil
}

func (d *DevicePlan) check() error {
	if len(d.Steps) == 0 {
		return nil
	}
	if d.Mode != Write || d.Blocked || d.Error != "" {
		return fmt.Errorf("has steps although nothing may be written")
	}
	at := d.Live
	seen := map[render.Key]bool{}
	for i, s := range d.Steps {
		switch {
		case s.Device != d.Name:
			return fmt.Errorf("step %d is about %q", i+1, s.Device)
		case s.Wave != d.Steps[0].Wave:
			return fmt.Errorf("step %d is in another wave than step 1", i+1)
		case len(s.Changes) == 0:
			return fmt.Errorf("step %d is empty", i+1)
		case s.Before != at || !printPattern.MatchString(s.Before) || !printPattern.MatchString(s.After):
			return fmt.Errorf("step %d does not start where the one before ends", i+1)
		case !equalChanges(s.Undo, render.Undo(s.Changes)):
			return fmt.Errorf("step %d has an undo that does not undo it", i+1)
		}
		at = s.After
		for _, c := range s.Changes {
			if !sound(c) {
				return fmt.Errorf("step %d: %s does not say what it changes", i+1, c.Key)
			}
			if seen[c.Key] {
				return fmt.Errorf("step %d: %s is changed twice", i+1, c.Key)
			}
			seen[c.Key] = true
		}
	}
	return nil
}

// sound reports whether the operation of c fits its values.
func sound(c render.Change) bool {
	switch c.Op {
	case render.Add:
		return c.Before == nil && c.After != nil
	case render.Modify:
		return c.Before != nil && c.After != nil
	case render.Remove:
		return c.Before != nil && c.After == nil
	}
	return false
}

func equalChanges(a, b []render.Change) bool {
	return slices.EqualFunc(a, b, func(x, y render.Change) bool {
		return x.Op == y.Op && x.Key == y.Key && equalValue(x.Before, y.Before) && equalValue(x.After, y.After)
	})
}

func equalValue(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
