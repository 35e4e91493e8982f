package tuning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// The standard workloads are those of the files that users find.
func TestStandardsAreTheExamples(t *testing.T) {
	names, docs := Standards()
	if len(names) != 4 || len(docs) != 4 {
		t.Fatalf("%d workloads", len(names))
	}
	for i, name := range names {
		b, err := examples.FS.ReadFile("workloads/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		want, err := observe.ReadWorkload(b)
		if err != nil {
			t.Fatal(err)
		}
		want.Name = name
		got, ok, err := Standard(name, nil)
		if d := cmp.Diff(want, got); d != "" || !ok || err != nil || docs[i] == "" {
			t.Errorf("%s: %v, %v (-file +built in)\n%s", name, ok, err, d)
		}
	}
	if _, ok, err := Standard("ape", nil); ok || err != nil {
		t.Errorf("ape: %v, %v", ok, err)
	}
}

// Hosts of any name take part, and too few are counted.
func TestStandardOfOtherHosts(t *testing.T) {
	pod := []string{"pod1-host1", "pod1-host2", "pod1-host4"}
	_, ok, err := Standard("ap", pod)
	if !ok || err == nil || !strings.Contains(err.Error(), "needs 18 hosts, and there are 3") {
		t.Errorf("%v, %v", ok, err)
	}
	if w, _, err := Standard("c", pod); err != nil || len(w.Parts[0].Hosts) > 0 {
		t.Errorf("%+v, %v", w, err)
	}
	burst := "name=burst,hosts=%s,to=%s,bytes=262144B,start=500us,spread=2us,every=500us,jitter=10%%"
	for _, c := range []struct {
		hosts []string
		want  string // "" = refused
	}{
		{[]string{"h1", "h2", "h3"}, ""},
		{[]string{"db", "h2", "h3", "h4", "web"}, fmt.Sprintf("incast:3,"+burst, "db/h2/h3", "h4")},
		{[]string{"pod1-host3", "pod1-host4", "pod1-host5", "pod1-host6"}, fmt.Sprintf("incast:2,"+burst, "pod1-host3..pod1-host4", "pod1-host5")},
	} {
		w, err := Usual(c.hosts, 400*units.Gbps)
		if (err == nil) != (c.want != "") || err == nil && (w.Parts[1].String() != c.want || w.Check() != nil) {
			t.Errorf("%v: %v, %v, want %s", c.hosts, w, err, c.want)
		}
	}
	const steady = "incast:3,name=bulk,hosts=db/h2/h3,to=h4,for=5s + single,name=victim,hosts=db/web + probe,hosts=db/h2/h3,to=h4"
	if w, err := Steady([]string{"db", "h2", "h3", "h4", "web"}); err != nil || w.String() != steady || w.Check() != nil {
		t.Errorf("%v, %v, want %s", w, err, steady)
	}
	if w, err := Steady([]string{"h1", "h2", "h3"}); err == nil {
		t.Errorf("three hosts: %v", w)
	}
}
