package engine_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// TestConserved counts every byte anew: after each event on small runs, each thousand on large ones. A run with a byte too few or too
// many ends with an error.
func TestConserved(t *testing.T) {
	for _, r := range records(t, keptRuns) {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			p := r.play(t, 1, func(c *engine.Config) {
				c.Audit = 1000
				if len(c.Ports) < 30 {
					c.Stop, c.Audit = min(c.Stop, 100*engine.Microsecond), 1
				}
			})
			if p.Events == 0 {
				t.Error("nothing happened")
			}
		})
	}
}

// TestRandomFabrics: whatever can be configured runs to an end, loses no byte on the way, does the same again, and does not drop in a lossless group
// that has the headroom it needs and whose pauses are heard.
func TestRandomFabrics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := randomFabric(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		audited := *r.Config
		audited.Audit, audited.Stop, audited.Measure = 1, min(r.Stop, 30*engine.Microsecond), min(r.Measure, 10*engine.Microsecond)
		if _, err := engine.Run(t.Context(), &audited); err != nil {
			t.Fatal(err)
		}
		r.Audit = 1000
		one, err := engine.Run(t.Context(), r.Config)
		if err != nil {
			t.Fatal(err)
		}
		r.Audit = 0
		two, err := engine.Run(t.Context(), r.Config)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(one, two) {
			t.Errorf("the same again is something else: %x and %x", one.Hash, two.Hash)
		}
		if one.At > r.Stop {
			t.Errorf("stopped at %d instead of %d", one.At, r.Stop)
		}
		for _, what := range r.unsound(one) {
			t.Error(what)
		}
		for i := range one.Flows {
			f, want := &one.Flows[i], &r.Flows[i]
			if r.Measure > 0 {
				continue // what is counted may have arrived before, and be acknowledged after
			}
			if f.Acked > f.Received || want.Bytes > 0 && f.Received > want.Bytes || f.Done && f.Acked != want.Bytes {
				t.Errorf("flow %d of %d bytes: %d received, %d acknowledged, done %v", i, want.Bytes, f.Received, f.Acked, f.Done)
			}
		}
	})
}

// TestSoundFabrics: what TestRandomFabrics says of headroom holds for fabrics in which it was once found not to: in the one of seed 2073, a NIC
// answers by a queue that the pauses of its switch do not stop.
func TestSoundFabrics(t *testing.T) {
	deaf := uint64(0)
	for seed := uint64(2050); seed < 2100; seed++ {
		r := randomFabric(seeded(seed))
		res, err := engine.Run(t.Context(), r.Config)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range r.unsound(res) {
			t.Errorf("seed %d: %s", seed, what)
		}
		for i := range res.Ports {
			if r.Sound {
				deaf += res.Ports[i].Drops[engine.DropHeadroom]
			}
		}
	}
	if deaf == 0 {
		t.Error("nothing was dropped where no headroom is enough")
	}
}

// FuzzRun: a configuration that makes no sense is refused, and any other runs to an end. The first bytes draw a fabric that makes sense; each
// six that follow set one number in it to something else.
func FuzzRun(f *testing.F) {
	for seed := range uint64(20) {
		d := seeded(seed)
		b := make([]byte, 600)
		for i := range b {
			b[i] = byte(d(256))
		}
		f.Add(b[:300+15*seed], b[:6*(seed%4)])
	}
	f.Fuzz(func(t *testing.T, fabric, changes []byte) {
		c := fuzzed(fabric, changes)
		res, err := engine.Run(t.Context(), c)
		if (res == nil) == (err == nil) {
			t.Fatalf("result %v with error %v", res, err)
		}
	})
}

// fuzzed makes a configuration of what a fuzzer comes up with.
func fuzzed(fabric, changes []byte) *engine.Config {
	r := randomFabric(func(n int) int {
		if len(fabric) < 2 {
			return 0
		}
		v := int(fabric[0])<<8 | int(fabric[1])
		fabric = fabric[2:]
		return v % n
	})
	var numbers []number
	collect("", reflect.ValueOf(r.Config).Elem(), &numbers)
	for ; len(changes) >= 6 && len(changes) <= 60; changes = changes[6:] {
		n := numbers[(int(changes[0])<<16|int(changes[1])<<8|int(changes[2]))%len(numbers)]
		n.set(changes[3], int64(int16(uint16(changes[4])<<8|uint16(changes[5]))))
	}
	r.Stop = min(r.Stop, 200*engine.Microsecond)
	r.Audit = 1000
	return r.Config
}

// number is one in a configuration, and the way to it.
type number struct {
	path string
	reflect.Value
}

// collect finds every number in a configuration.
func collect(path string, v reflect.Value, all *[]number) {
	switch {
	case v.CanInt() || v.CanUint() || v.CanFloat() || v.Kind() == reflect.Bool:
		*all = append(*all, number{path, v})
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			collect(path+"."+v.Type().Field(i).Name, v.Field(i), all)
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			collect(fmt.Sprintf("%s[%d]", path, i), v.Index(i), all)
		}
	}
}

// set makes v a number of a kind.
func (v number) set(kind byte, n int64) {
	x := []int64{n, 0, 1, -1, n << 16, n << 32, math.MaxInt64, math.MinInt64}[kind%8]
	switch {
	case v.CanInt():
		v.SetInt(x)
	case v.CanUint():
		v.SetUint(uint64(x))
	case v.CanFloat():
		v.SetFloat([]float64{float64(x), math.NaN(), math.Inf(1), float64(n) / 32768}[kind/8%4])
	default:
		v.SetBool(x&1 == 1)
	}
}
