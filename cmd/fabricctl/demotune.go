package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fabricctl/fabricctl/examples"
)

// timid are marks that begin far too early for the fabric on which the demo tunes.
const timid = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: bench-ap}
classes:
  - {name: training, ecn: {kmin: 5KB, kmax: 10KB, pmax: 100%}}
`

// tune looks for better settings of another fabric, by a short experiment on the simulator.
func (d *demo) tune(ctx context.Context) error {
	for _, f := range []struct{ from, to string }{{"bench-ap/bench-box.yaml", "box.yaml"}, {"bench-ap/fabric.yaml", "bench.yaml"}} {
		text, err := examples.FS.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.dir, f.to), text, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(d.dir, "timid.yaml"), []byte(timid), 0o600); err != nil {
		return err
	}
	d.say("And which settings are best? On a switch with 16 senders and one receiver, somebody has its queues mark from 5 KB on. A short experiment on the simulator moves kmax alone; " +
		"without these options it moves alpha, kmin and pmax too, in some 500 runs.")
	if err := d.run(ctx, exitOK, "tune", "run", "-f", "box.yaml", "-f", "bench.yaml", "-f", "timid.yaml", "--workload", "ap",
		"--variables", "kmax", "--looks", "4,2,6", "--confirm", "8", "--max-runs", "80", "--duration", "2ms"); err != nil {
		return err
	}
	d.say("Every run is in a journal: from it alone, the same decisions are made again.")
	there := &app{sys: d.app.sys, stateDir: filepath.Join(d.dir, "state")}
	all, err := there.allTuned()
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := d.run(ctx, exitOK, "tune", "replay", r.ID); err != nil {
			return err
		}
	}
	return nil
}
