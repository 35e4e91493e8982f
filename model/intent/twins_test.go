package intent

import (
	"reflect"
	"slices"
	"testing"
)

// Every field of a device and of a port is either of who it is, or tells twins apart: a new field has to be one of them.
func TestTwinsLookAtEveryField(t *testing.T) {
	whole := func() Device {
		d := Device{Name: "leaf1", Ports: []Port{{Name: "p1"}, {Name: "p2"}}}
		d.Intern(Policy{MTU: 9000})
		d.Intern(Policy{MTU: 1500})
		return d
	}
	for _, c := range []struct {
		what any
		of   func(*Device) reflect.Value
		who  []string // and where its values come from
	}{
		{
			"a device", func(d *Device) reflect.Value { return reflect.ValueOf(d).Elem() },
			[]string{"Name", "Pod", "Plane", "Group", "Serial", "Hostname", "Address", "Known", "Way", "Origins", "Profile"}, // the profile is that of the platform
		},
		{
			"a port", func(d *Device) reflect.Value { return reflect.ValueOf(&d.Ports[1]).Elem() },
			[]string{"Peer", "PeerPort", "IfaceAt", "RoleAt", "IPAt"},
		},
		{"a policy", func(d *Device) reflect.Value { return reflect.ValueOf(&d.Policies[1]).Elem() }, nil},
	} {
		d := whole()
		v := c.of(&d)
		for i := range v.NumField() {
			a, b := whole(), whole()
			name := v.Type().Field(i).Name
			change(t, c.of(&b).Field(i))
			if same := Twins(&a, &b); same != slices.Contains(c.who, name) {
				t.Errorf("%s of %s differs, twins: %v", name, c.what, same)
			}
		}
	}
	a, b := whole(), whole()
	b.Ports = b.Ports[:1]
	if Twins(&a, &b) || !Twins(&a, &a) {
		t.Error("devices with more ports and with less are twins, or one is not its own")
	}
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Struct:
		change(t, v.Field(0))
	case reflect.Array:
		change(t, v.Index(v.Len()-1))
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		t.Fatalf("a %s is not changed by this test", v.Kind())
	}
}
