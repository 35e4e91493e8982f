package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/report"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// incastModel is one leaf with nine hosts at 100 Gbps, and marking as a widely used simulator has it for that speed.
const incastModel = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: rack}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: sonic/sn5600}
  hosts: {per_leaf: 9, netdevs: [rdma0], nic: connectx-7}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf: {speed: 100Gbps, cable: 5m}
mtu: {fabric: 9214B, host: 4200B, roce: 1024B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 400KB, kmax: 1600KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
`

// simulated runs a workload on a model with rows of a series.
func simulated(t *testing.T, layers []string, workload string, o sim.Options) *sim.Result {
	t.Helper()
	m, err := (&app{sys: quiet()}).load(t.Context(), layers)
	if err != nil || m.net == nil {
		t.Fatalf("%v %v", err, m.findings)
	}
	w, err := readWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(t.Context(), m.net, w, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSimPictures: the pictures of docs/simulator.md are what the simulator gives, byte for byte.
func TestSimPictures(t *testing.T) {
	rack := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(rack, []byte(incastModel), 0o600); err != nil {
		t.Fatal(err)
	}
	o := sim.Options{Duration: 6 * units.Millisecond, Warmup: units.Millisecond, Sample: 5 * units.Microsecond}
	for file, workload := range map[string]string{"sim-2to1.svg": "incast:2,to=host9", "sim-8to1.svg": "incast:8,to=host9"} {
		drawn(t, file, simChart(simulated(t, []string{rack}, workload, o), nil))
	}
	const load = "incast:8 + victim"
	small := []string{"../../examples/small"}
	with, without := simulated(t, small, load, o), o
	without.NoMarks = true
	drawn(t, "sim-victim.svg", victims(with, simulated(t, small, load, without)))
}

// victims is what the victim of an incast gets, and the queue and the pauses that decide it, with ECN and without.
func victims(with, without *sim.Result) report.Chart {
	c := report.Chart{
		Title: with.Fabric + ": " + with.Workload, X: report.Axis{Label: "time", Of: report.Time}, Spans: []report.Span{{Name: "warm-up", To: seconds(with.Warmup)}},
		Caption: "Simulated with seed 1: " + modelsAnswer + ". The victim shares its sender with the incast and its receiver with nobody.",
		Panels: []report.Panel{
			{Y: report.Axis{Label: "goodput of the victim", Of: report.Rate}},
			{Y: report.Axis{Label: "fullest queue", Of: report.Bytes}},
			{Y: report.Axis{Label: "ports that stand still", Of: report.Count}},
		},
	}
	for _, x := range []struct {
		name string
		r    *sim.Result
	}{{"with ECN", with}, {"PFC alone", without}} {
		xs := make([]float64, len(x.r.Series.Rows))
		for i, row := range x.r.Series.Rows {
			xs[i] = seconds(row.At)
		}
		for _, l := range goodputPanel(x.r).Lines {
			if l.Name == "victim" {
				c.Panels[0].Lines = append(c.Panels[0].Lines, report.Line{Name: x.name, X: l.X, Y: l.Y})
			}
		}
		queue := column(x.r, func(row *sim.Row) float64 {
			most := units.Bytes(0)
			for _, q := range row.Queues {
				most = max(most, q)
			}
			return float64(most)
		})
		c.Panels[1].Lines = append(c.Panels[1].Lines, report.Line{Name: x.name, X: xs, Y: queue})
		c.Panels[2].Lines = append(c.Panels[2].Lines, report.Line{Name: x.name, X: xs, Y: pausePanel(x.r, xs).Lines[0].Y})
	}
	return c
}

// drawn compares a chart with the one in the documentation.
func drawn(t *testing.T, file string, c report.Chart) {
	t.Helper()
	path := filepath.Join("../../docs", file)
	got := report.SVG(c)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("docs/%s is not what the simulator gives; -update draws it anew, and then it wants to be looked at", file)
	}
}
