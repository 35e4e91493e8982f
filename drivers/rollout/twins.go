package rollout

import (
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/render"
)

// twins lets devices to which the same is done share the changes: of a thousand hosts most are alike, and their changes are
// most of a plan's memory. Nobody writes to the changes of a step. It may be used by several goroutines.
type twins struct {
	mu    sync.Mutex
	steps map[[2]string]Step // by the fingerprints before and after
}

// share gives steps the changes of earlier ones that are the same to the last value and model line.
func (t *twins) share(steps []Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steps == nil {
		t.steps = map[[2]string]Step{}
	}
	for i := range steps {
		s := &steps[i]
		key := [2]string{s.Before, s.After}
		if twin, ok := t.steps[key]; !ok {
			t.steps[key] = *s
		} else if sameChanges(twin.Changes, s.Changes) && sameChanges(twin.Undo, s.Undo) {
			s.Before, s.After, s.Changes, s.Undo = twin.Before, twin.After, twin.Changes, twin.Undo
		}
	}
}

// sameChanges is equalChanges with the lines of the model that ask for them.
func sameChanges(a, b []render.Change) bool {
	return equalChanges(a, b) && slices.EqualFunc(a, b, func(x, y render.Change) bool { return x.From == y.From })
}
