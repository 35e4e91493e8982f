package render

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every field counts, for Equal and on the wire.
func TestHostNICEqual(t *testing.T) {
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int:
			v.SetInt(v.Int() + 7)
		case reflect.Uint64, reflect.Int64:
			if v.CanInt() {
				v.SetInt(v.Int() + 1e9)
			} else {
				v.SetUint(v.Uint() + 1e9)
			}
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		default:
			t.Fatalf("a field of kind %s", v.Kind())
		}
	}
	var full HostNIC
	fill(reflect.ValueOf(&full).Elem())
	if !full.Equal(full) {
		t.Error("not equal to itself")
	}
	for i := range reflect.TypeFor[HostNIC]().NumField() {
		n := full
		fill(reflect.ValueOf(&n).Elem().Field(i))
		if full.Equal(n) {
			t.Errorf("%s does not count", reflect.TypeFor[HostNIC]().Field(i).Name)
		}
	}
	b, err := json.Marshal(Facts{NICs: []HostNIC{full, {NUMA: -1, GID: -1, QPs: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	var back Facts
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]HostNIC{full, {NUMA: -1, GID: -1, QPs: -1}}, back.NICs); d != "" {
		t.Error("over JSON (-want +got):", d)
	}
}
