package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
)

// example resolves an example of the repository.
func example(t testing.TB, name string) *intent.Net {
	t.Helper()
	return exampleFile(t, name, ".")
}

func exampleFile(t testing.TB, name, file string) *intent.Net {
	t.Helper()
	f, findings := model.Load(os.DirFS(filepath.Join("..", "..", "examples", name)), file)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	n, findings := intent.Resolve(f)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	return n
}

func workload(t testing.TB, text string) observe.Workload {
	t.Helper()
	w, err := observe.ParseWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run simulates, with everything counted anew often, and fails on what is refused.
func run(t testing.TB, n *intent.Net, text string, o Options, seed uint64) *Result {
	t.Helper()
	o.Audit = 20_000
	r, err := Run(context.Background(), n, workload(t, text), o, seed)
	var refused *Refused
	if errors.As(err, &refused) {
		t.Fatal(refused.Findings)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExamples runs the examples, which lint accepts: nothing is lost in a lossless class, and everything arrives.
func TestExamples(t *testing.T) {
	for _, x := range []struct{ name, load string }{
		{"small", "incast:16,bytes=2MB"},
		{"rail8", "alltoall,bytes=200KB"},
		{"three-tier", "ring,bytes=4MB"},
		{"storage-and-training", "incast:4,bytes=1MB + pairs,class=storage,bytes=1MB"},
		{"mixed", "permutation,bytes=1MB"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := run(t, example(t, x.name), x.load, Options{}, 1)
			if r.End.Why != "done" || r.Totals.Lossless > 0 || r.Totals.Unfinished > 0 || r.Totals.Completed != len(r.Flows) || r.Totals.Resent > 0 {
				t.Errorf("%s, %d of %d flows ended, %d drops, %d resent\n%s", r.End.Words, r.Totals.Completed, len(r.Flows), r.Totals.Drops, r.Totals.Resent, strings.Join(r.Why, "\n"))
			}
			for i := range r.Flows {
				if f := &r.Flows[i]; f.Received != f.Bytes || f.Completion < f.Ideal {
					t.Errorf("%s to %s: %s of %s in %s, and alone it would take %s", f.From, f.To, f.Received, f.Bytes, f.Completion, f.Ideal)
				}
			}
		})
	}
}
