package tuning

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// histogram makes a run's latency as a simulator counts it: 2,500 probes.
func histogram(o *observe.Observation, t Trial) {
	left := uint64(2500)
	at := 5_000.0
	for i := range 120 {
		n := left/20 + (t.Seed+uint64(i))%5
		n = min(n, left)
		o.Latency = append(o.Latency, observe.Bucket{From: time.Duration(at), Count: n})
		left -= n
		at *= 1.03
	}
	p := time.Duration(at)
	o.P50, o.P99, o.P999 = &p, &p, &p
}

// large is an experiment of 10,000 runs: 25 times 25 settings.
func large() (Experiment, *surface) {
	s := plane(0.1, 0.01, "x", "y")
	for i := range s.Vars {
		s.Vars[i].Ladder = nil
		for k := range 25 {
			s.Vars[i].Ladder = append(s.Vars[i].Ladder, float64(k)/12-1)
		}
	}
	e := experiment(s)
	e.Method, e.Parallel = FullGrid, 1
	e.Looks = Looks{First: 16, Most: 16}
	return e, &surface{noise: 0.02, f: func(s Setting) float64 { return -0.001 * (sq(s[0]) + sq(s[1])) }, each: histogram}
}

// BenchmarkDecide is what an experiment takes for each run beside the run: at most a millisecond.
func BenchmarkDecide(b *testing.B) {
	s := hilly()
	total := 0
	for b.Loop() {
		e := experiment(s)
		e.Parallel = 1
		w := rig()
		w.tail, w.each = nil, histogram
		o, err := Run(context.Background(), e, Lab{Runner: w}, silent{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		total += o.Runs
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(total), "ns/run")
}

// BenchmarkReplay is a journal of 10,000 runs read, understood and decided anew, against decoding its JSON and nothing else: at most 5 times.
func BenchmarkReplay(b *testing.B) {
	e, w := large()
	log := &memory{}
	if o, err := Run(context.Background(), e, Lab{Runner: w}, log, nil); err != nil || o.Runs < 10_000 {
		b.Fatal(o.Runs, err)
	}
	var bare, whole time.Duration
	for b.Loop() {
		began := time.Now()
		for i := range log.recs {
			var v any
			if err := json.Unmarshal(log.recs[i].Data, &v); err != nil {
				b.Fatal(err)
			}
		}
		bare += time.Since(began)
		began = time.Now()
		h, err := Read(log.recs)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, done, err := Replay(h); err != nil || !done {
			b.Fatal(done, err)
		}
		whole += time.Since(began)
	}
	b.ReportMetric(float64(whole)/float64(bare), "times-bare")
	b.ReportMetric(math.Round(float64(len(log.recs))), "records")
}
