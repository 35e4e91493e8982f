package hostlocal

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// resolved is an example as it stands.
func resolved(t testing.TB, name string) *intent.Net {
	t.Helper()
	f, l := model.Load(os.DirFS("../../examples/"+name), layersOf(name)...)
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatal(l)
	}
	return n
}

// What a host is to hold comes out of its file as it was in the model, lines and all.
func TestFile(t *testing.T) {
	for _, example := range []string{"rail8", "storage-and-training", "small"} {
		for _, d := range resolved(t, example).Devices {
			if !d.Host {
				continue
			}
			b, err := FileOf(d, "digest", "v1", true).Encode()
			if err != nil {
				t.Fatal(err)
			}
			f, err := Decode(b)
			if err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			n, err := f.Net()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d, n.Devices[0], cmpopts.IgnoreFields(intent.Port{}, "IfaceAt", "RoleAt", "IPAt"), cmpopts.IgnoreFields(intent.Device{}, "Known", "Catalog", "Origins"), cmpopts.IgnoreUnexported(intent.Device{}, profiles.Platform{})); diff != "" {
				t.Fatalf("%s (-model +file):\n%s", d.Name, diff)
			}
			t.Log(len(b))
			break
		}
	}
}

// layersOf are the files of an example.
func layersOf(name string) []string {
	if _, err := os.Stat("../../examples/" + name + "/inventory.yaml"); err != nil {
		return []string{"fabric.yaml"}
	}
	return []string{"fabric.yaml", "inventory.yaml"}
}

// What is not understood whole is not applied.
func TestFileRefuses(t *testing.T) {
	d := *resolved(t, "rail8").Device("host1")
	whole, err := FileOf(d, "digest", "v1", true).Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	for _, x := range []struct{ name, text, says string }{
		{"nothing", "", "not JSON"},
		{"half of it", text[:len(text)/2], "not JSON"},
		{"a plan file", `{"schema": "fabricctl/plan-file/v2"}`, "this version reads"},
		{"a key of later", strings.Replace(text, `"model":`, `"sooner": 1, "model":`, 1), "what this version does not know"},
		{"more after it", text + "{}", "not JSON"},
		{"no name", strings.Replace(text, `"Name": "host1"`, `"Name": ""`, 1), "no device"},
		{"a switch", strings.Replace(text, `"Host": true`, `"Host": false`, 1), "no Linux host"},
		{"a policy that is not there", strings.Replace(text, `"Policy": 0`, `"Policy": 99`, 1), "has no policy"},
		{"negative", strings.Replace(text, `"Policy": 0`, `"Policy": -1`, 1), "has no policy"},
	} {
		if _, err := Decode([]byte(x.text)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := FileOf(*resolved(f, "small").Device("host1"), "digest", "v1", true).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Decode(b)
		if err != nil {
			return
		}
		if _, err := Units(file, UnitOptions{}); err != nil {
			t.Error(err)
		}
		_, _ = file.Net()
	})
}
