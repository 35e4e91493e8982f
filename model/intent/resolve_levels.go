package intent

import (
	"strconv"

	"github.com/fabricctl/fabricctl/model"
)

// field is a name with a number: "lossless.3".
func field(name string, n uint8) Field { return Field(name + "." + strconv.Itoa(int(n))) }

func firstOrigin(a, b *model.Origin) *model.Origin {
	if a != nil {
		return a
	}
	return b
}

func manageOf(o *model.Override) *model.Manage {
	if o == nil {
		return nil
	}
	return &o.Manage
}

// manageOver is below with what m says on top: a word for all areas first, then the areas named.
func manageOver(below Manage, m *model.Manage) Manage {
	if m == nil {
		return below
	}
	if m.All.Set {
		for a := range below {
			below[a] = parseMode(m.All.V)
		}
	}
	for name, v := range m.Areas {
		if a, ok := ParseArea(name); ok {
			below[a] = parseMode(v.V)
		}
	}
	return below
}

func parseMode(s string) Mode {
	for _, m := range []Mode{Own, Ignore} {
		if m.String() == s {
			return m
		}
	}
	return Observe
}

// stateOver is the override's state, or the one below.
func stateOver(below State, o *model.Override) State {
	if o == nil || !o.State.Set {
		return below
	}
	for s := Active; s <= Absent; s++ {
		if s.String() == o.State.V {
			return s
		}
	}
	return below
}
