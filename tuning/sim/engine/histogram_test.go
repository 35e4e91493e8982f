package engine

import (
	"math/rand/v2"
	"testing"
)

func TestBuckets(t *testing.T) {
	for range 100_000 {
		v := rand.Int64() >> rand.IntN(63)
		b := BucketOf(v)
		lo := LowerEdge(b)
		if lo > v || v-lo > lo/64 || BucketOf(lo) != b {
			t.Fatalf("%d is in bucket %d, which starts at %d", v, b, lo)
		}
		if b > 0 && (LowerEdge(b-1) >= lo || BucketOf(lo-1) != b-1) {
			t.Fatalf("bucket %d starts at %d, and the one before does not end there", b, lo)
		}
	}
}

func TestQuantile(t *testing.T) {
	var a, b Histogram
	for v := range int64(1000) {
		h := &a
		if v%3 == 0 {
			h = &b
		}
		h.Add(v, 1)
	}
	a.Merge(&b)
	for q, want := range map[float64]int64{0: 0, 0.05: 49, 0.5: 496, 0.99: 984, 1: 992} {
		if got := a.Quantile(q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
	if a.Max != 999 || a.Total != 1000 || (&Histogram{}).Quantile(0.5) != 0 {
		t.Errorf("max %d, total %d", a.Max, a.Total)
	}
}
