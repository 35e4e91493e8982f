package intent

import (
	"reflect"
	"testing"
)

// Each value that people are shown belongs to the area whose knowledge it needs: without that area it is not shown.
// The policy has everything that a policy can have, so that a new value without an area is noticed.
func TestFieldArea(t *testing.T) {
	var p Policy
	fill(reflect.ValueOf(&p).Elem())
	p.Known = SwitchAreas | HostAreas
	p.Queues[5].Buffer.Device = false
	p.Queues[6] = Queue{Used: true, Strict: true}
	seen := map[Area]bool{}
	for _, v := range Values(&p) {
		a, ok := v.Field.Area()
		if !ok {
			t.Errorf("%s has no area", v.Field)
			continue
		}
		seen[a] = true
		less := p.Only(p.Known &^ AreaSet(a))
		for _, w := range Values(&less) {
			if w.Field == v.Field && w.Text == v.Text {
				t.Errorf("%s is of area %s, but is known without it", v.Field, a)
			}
		}
	}
	for a := range NumAreas {
		if p.Known.Has(a) && !seen[a] {
			t.Errorf("no value is of area %s", a)
		}
	}
	if _, ok := Field("nonsense").Area(); ok {
		t.Error("nonsense has an area")
	}
}

// fill makes every field of v something, 1 or true.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else {
			v.SetUint(1)
		}
	}
}
