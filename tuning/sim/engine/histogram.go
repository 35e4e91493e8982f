package engine

import "math/bits"

// Histogram counts values in buckets that are at most 1/64 of their lower edge wide, so that a percentile is known to 1.6 %.
// The zero Histogram is empty. Histograms of several runs are added, never averaged.
type Histogram struct {
	Counts []uint64 // by bucket; BucketOf says which
	Total  uint64
	Max    int64
}

// BucketOf is the bucket of a value that is not negative.
func BucketOf(v int64) int {
	if v < 128 {
		return int(v)
	}
	e := bits.Len64(uint64(v)) - 7
	return e<<6 + int(v>>e)
}

// LowerEdge is the smallest value of a bucket.
func LowerEdge(bucket int) int64 {
	if bucket < 128 {
		return int64(bucket)
	}
	e := bucket>>6 - 1
	return int64(bucket&63+64) << e
}

// Add counts n values of v.
func (h *Histogram) Add(v int64, n uint64) {
	b := BucketOf(v)
	for len(h.Counts) <= b {
		h.Counts = append(h.Counts, 0)
	}
	h.Counts[b] += n
	h.Total += n
	h.Max = max(h.Max, v)
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for len(h.Counts) < len(o.Counts) {
		h.Counts = append(h.Counts, 0)
	}
	for b, n := range o.Counts {
		h.Counts[b] += n
	}
	h.Total += o.Total
	h.Max = max(h.Max, o.Max)
}

// Quantile is the lower edge of the bucket that holds the value with a part q (0 to 1) of all others at or below it; 0 when
// nothing was counted.
func (h *Histogram) Quantile(q float64) int64 {
	need, seen := q*float64(h.Total), 0.0
	for b, n := range h.Counts {
		if seen += float64(n); n > 0 && seen >= need {
			return LowerEdge(b)
		}
	}
	return 0
}
