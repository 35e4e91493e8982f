package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// ObservationSchema names what "fabricctl-lab-load WORKLOAD SEED observation" prints.
const ObservationSchema = "fabricctl/lab-observation/v1"

// observed is an observation on the wire. Times are nanoseconds.
type observed struct {
	Schema   string             `json:"schema"`
	Goodput  *float64           `json:"goodput"` // bits per second
	Parts    map[string]float64 `json:"parts"`
	Fairness *float64           `json:"fairness"`
	P50      *time.Duration     `json:"p50"`
	P99      *time.Duration     `json:"p99"`
	P999     *time.Duration     `json:"p999"`
	Latency  [][2]uint64        `json:"latency"` // from, count
	Devices  map[string]reading `json:"devices"`
	Notes    []string           `json:"notes"`
}

// reading is the counters of a device before and after a run, and when that was.
type reading struct {
	Before time.Time `json:"before"`
	After  time.Time `json:"after"`
	Counts []count   `json:"counts"` // by interface, name
}

// count is one counter; a null is one that was not there.
type count struct {
	Iface  string       `json:"if"`
	Name   observe.Name `json:"name"`
	Before *uint64      `json:"before"`
	After  *uint64      `json:"after"`
}

// encodeObservation is o without its workload. The same observation gives the same bytes.
func encodeObservation(o *observe.Observation) ([]byte, error) {
	w := observed{
		Schema: ObservationSchema, Goodput: o.Goodput, Parts: o.Parts, Fairness: o.Fairness, P50: o.P50, P99: o.P99, P999: o.P999,
		Latency: [][2]uint64{}, Devices: map[string]reading{}, Notes: o.Notes,
	}
	for _, b := range o.Latency {
		w.Latency = append(w.Latency, [2]uint64{uint64(b.From), b.Count})
	}
	for name, after := range o.After {
		before := o.Before[name]
		r := reading{Before: before.At, After: after.At, Counts: []count{}}
		ports := make([]observe.Port, 0, len(after.Values))
		for p := range after.Values {
			ports = append(ports, p)
		}
		for p := range before.Values {
			if _, ok := after.Values[p]; !ok {
				ports = append(ports, p)
			}
		}
		slices.SortFunc(ports, observe.Port.Compare)
		for _, p := range ports {
			r.Counts = append(r.Counts, count{Iface: p.Iface, Name: p.Name, Before: get(before, p), After: get(after, p)})
		}
		w.Devices[name] = r
	}
	return json.Marshal(w)
}

func get(c observe.Counters, p observe.Port) *uint64 {
	if v, ok := c.Values[p]; ok {
		return &v
	}
	return nil
}

// DecodeObservation reads what an emulated host has printed of a run. The workload is not in it.
func DecodeObservation(b []byte) (observe.Observation, error) {
	var w observed
	d := json.NewDecoder(bytes.NewReader(b))
	err := d.Decode(&w)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = fmt.Errorf("there is more after it")
	}
	if err == nil && w.Schema != ObservationSchema {
		err = fmt.Errorf("its schema is %q, and not %q", w.Schema, ObservationSchema)
	}
	if err != nil {
		return observe.Observation{}, fmt.Errorf("lab observation: %w", err)
	}
	o := observe.Observation{
		Goodput: w.Goodput, Parts: w.Parts, Fairness: w.Fairness, P50: w.P50, P99: w.P99, P999: w.P999, Notes: w.Notes,
		Before: map[string]observe.Counters{}, After: map[string]observe.Counters{},
	}
	for _, b := range w.Latency {
		o.Latency = append(o.Latency, observe.Bucket{From: time.Duration(b[0]), Count: b[1]})
	}
	for name, r := range w.Devices {
		before, after := observe.Counters{At: r.Before, Values: map[observe.Port]uint64{}}, observe.Counters{At: r.After, Values: map[observe.Port]uint64{}}
		for _, c := range r.Counts {
			p := observe.Port{Iface: c.Iface, Name: c.Name}
			if c.Before != nil {
				before.Values[p] = *c.Before
			}
			if c.After != nil {
				after.Values[p] = *c.After
			}
		}
		o.Before[name], o.After[name] = before, after
	}
	return o, nil
}

// observeText is a run as a host of the lab is asked for it by who measures: a workload by its text, and what was seen in the
// window that was simulated.
func (l *Lab) observeText(ctx context.Context, text string, seed uint64) ([]byte, error) {
	w, err := observe.ParseWorkload(text)
	if err != nil {
		return nil, err
	}
	out, err := l.Run(ctx, Load{Workload: w, Seed: seed})
	if err != nil {
		return nil, err
	}
	o := out.Result.Observation()
	o.Notes = []string{} // not why it came to that: it is the same for each of hundreds of runs
	for _, port := range out.Down {
		o.Notes = append(o.Notes, port+" is down")
	}
	for _, f := range out.NotLifted {
		o.Notes = append(o.Notes, f.At+": not understood, and not simulated: "+f.Msg)
	}
	return encodeObservation(&o)
}
