package hostlocal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/render"
)

// The text format of Prometheus, version 0.0.4
// (https://github.com/prometheus/docs, content/docs/instrumenting/exposition_formats.md), as much of it as the agent needs: its client library is
// larger than the rest of the program.

// metric is one family of samples.
type metric struct {
	name, help string
	counter    bool // else it is a gauge
	samples    []sample
}

type sample struct {
	labels [][2]string
	value  float64
}

// add adds a sample. Labels are names and values in turn.
func (m *metric) add(value float64, labels ...string) {
	s := sample{value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		s.labels = append(s.labels, [2]string{labels[i], labels[i+1]})
	}
	m.samples = append(m.samples, s)
}

// truth is 1 for true.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// exposition writes metrics. One without samples is left out. The same metrics give the same bytes.
func exposition(ms []*metric) string {
	var b strings.Builder
	for _, m := range ms {
		if len(m.samples) == 0 {
			continue
		}
		kind := "gauge"
		if m.counter {
			kind = "counter"
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", m.name, helpEscape.Replace(m.help), m.name, kind)
		for _, s := range m.samples {
			b.WriteString(m.name)
			for i, l := range s.labels {
				b.WriteString([]string{"{", ","}[min(i, 1)] + l[0] + `="` + labelEscape.Replace(strings.ToValidUTF8(l[1], "?")) + `"`)
			}
			if len(s.labels) > 0 {
				b.WriteString("}")
			}
			b.WriteString(" " + strconv.FormatFloat(s.value, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
}

// What devices and files say is hostile: nothing in it ends a label or a line.
var (
	labelEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscape  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// families are the agent's metrics with their meaning, in the order in which they are written.
type families struct {
	info, looks, events, lastLook, readable, fileBad, drift, differs, held, owners, refused, givenUp, repairs, failed metric
	nic, up, gid, pairs                                                                                               metric
}

func newFamilies() *families {
	gauge := func(name, help string) metric { return metric{name: name, help: help} }
	counter := func(name, help string) metric { return metric{name: name, help: help, counter: true} }
	return &families{
		info:     gauge("fabricctl_agent_info", "The agent, and the model that its host file is of; always 1."),
		looks:    counter("fabricctl_agent_looks_total", "Looks at the machine since the agent was started."),
		events:   counter("fabricctl_agent_events_total", "Events of the kernel since the agent was started, by kind."),
		lastLook: gauge("fabricctl_agent_last_look_timestamp_seconds", "When the agent looked last."),
		fileBad:  gauge("fabricctl_agent_host_file_rejected", "1 when the host file on disk could not be taken over, and the one before is in force."),
		readable: gauge("fabricctl_host_readable", "1 when the machine could be read."),
		drift:    gauge("fabricctl_host_drift_settings", "Settings that differ from the host file and were not repaired, by what their repair would do to traffic."),
		differs:  gauge("fabricctl_host_setting_differs", "1 for each setting that differs from the host file and was not repaired."),
		held:     gauge("fabricctl_host_held_settings", "Settings that differ and are left alone because of holds."),
		owners:   gauge("fabricctl_host_competing_owners", "Who else configures what the host file asks for; repairs are stopped while there is one."),
		refused:  gauge("fabricctl_host_repairs_stopped", "1 while nothing may be written: somebody else configures the host, or it is not the one of the host file."),
		givenUp:  gauge("fabricctl_host_given_up_settings", "Settings that did not stay repaired and are left alone for a while."),
		repairs:  counter("fabricctl_host_repaired_settings_total", "Settings repaired since the agent was started."),
		failed:   counter("fabricctl_host_repair_failures_total", "Repairs that failed since the agent was started."),
		nic:      gauge("fabricctl_nic_info", "A NIC, its driver, firmware and RDMA device; always 1."),
		up:       gauge("fabricctl_nic_up", "1 when the NIC has a carrier."),
		gid:      gauge("fabricctl_nic_gid_index", "Index of the RoCE v2 GID of the NIC's IPv4 address; -1 when there is none."),
		pairs:    gauge("fabricctl_nic_live_queue_pairs", "Queue pairs of running programs; absent when they cannot be counted."),
	}
}

// list is the families in their order.
func (f *families) list() []*metric {
	return []*metric{
		&f.info, &f.looks, &f.events, &f.lastLook, &f.fileBad, &f.readable, &f.drift, &f.differs, &f.held, &f.owners, &f.refused,
		&f.givenUp, &f.repairs, &f.failed, &f.nic, &f.up, &f.gid, &f.pairs,
	}
}

// metrics are those of the last look.
func (k *keeper) metrics() []*metric {
	f, l, d := newFamilies(), k.last, &k.file.Device
	f.info.add(1, "version", k.Machine.Version, "fabric", d.Fabric, "device", d.Name, "model", fmt.Sprintf("%.12s", k.file.Model))
	f.looks.add(float64(k.counts.looks))
	for _, kind := range EventKinds() {
		f.events.add(float64(k.counts.events[kind]), "kind", kind)
	}
	f.lastLook.add(float64(l.at.UnixMilli()) / 1000)
	f.fileBad.add(truth(k.loadErr != nil))
	f.readable.add(truth(l.readable))
	f.repairs.add(float64(k.counts.repairs))
	f.failed.add(float64(k.counts.failed))
	f.givenUp.add(float64(k.grudges.borne(l.at)))
	if !l.readable { // what is not known is absent
		return f.list()
	}
	by := map[render.RiskClass]int{}
	for _, c := range l.drift {
		by[l.class[c.Key]]++
		f.differs.add(1, "object", c.Key.Object, "setting", strings.TrimSpace(c.Key.Scope+" "+c.Key.Field))
	}
	for class := render.Hitless; class < render.Refused && l.refused == ""; class++ { // nobody compares what may not be written
		f.drift.add(float64(by[class]), "risk", class.String())
	}
	f.held.add(float64(l.held))
	f.owners.add(float64(l.owners))
	f.refused.add(truth(l.refused != ""))
	for _, n := range l.facts.NICs {
		f.nic.add(1, "nic", n.Name, "pci", n.PCI, "driver", n.Driver, "driver_version", n.DriverVersion, "firmware", n.Firmware,
			"personality", n.Personality, "rdma", n.RDMA)
		f.up.add(truth(n.Link.Up), "nic", n.Name)
		if n.RDMA != "" {
			f.gid.add(float64(n.GID), "nic", n.Name)
		}
		if n.RDMA != "" && n.QPs >= 0 {
			f.pairs.add(float64(n.QPs), "nic", n.Name)
		}
	}
	return f.list()
}
