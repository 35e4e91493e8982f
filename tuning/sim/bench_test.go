package sim

import (
	"context"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
)

// The load that tuning runs hundreds of times.
const tuned = "incast:8,to=host17 + incast:16,to=host17,bytes=64KiB,spread=2us,every=500us,jitter=10% + victim:1 + probe,to=host17,bytes=1024B,every=2us,for=5ms,warmup=1ms"

// BenchmarkBuild is what a run costs before its first packet.
func BenchmarkBuild(b *testing.B) {
	n, w := example(b, "small"), workload(b, tuned)
	for b.Loop() {
		if _, err := Build(n, w, Options{}, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is a whole run, with its result.
func BenchmarkRun(b *testing.B) {
	n, w := example(b, "small"), workload(b, tuned)
	for b.Loop() {
		if _, err := Run(context.Background(), n, w, Options{Duration: 5 * units.Millisecond}, 1); err != nil {
			b.Fatal(err)
		}
	}
}
