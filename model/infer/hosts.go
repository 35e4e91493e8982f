package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// nicWords is what hosts: says of a NIC. The zero value of a field is that nothing is said of it.
type nicWords struct {
	v1              bool                   // RoCE version 1
	class           string                 // of connections that choose none
	forced          bool                   // the driver forces that class
	algorithm       intent.Algorithm       //
	params          [profiles.NumCC]uint32 // as a policy holds them
	system          intent.System
	lossless, lossy units.Bytes // receive buffers
}

// wordsOf is what hosts: would have to say for a NIC to do what it does, as far as it can be said. What a class has by
// itself, such as the priorities with congestion control, is not among it.
func (d *draft) wordsOf(v vote) (t nicWords, ok bool) {
	p := v.pol
	if r := p.RoCE; p.Known.Has(intent.AreaRoCE) && r.On {
		ok = true
		t.v1 = r.Mode == 1
		for _, c := range d.classes {
			if !c.rest && len(c.dscp) > 0 && c.dscp[0] == int(r.ToS>>2) {
				if t.class = c.name; t.class == d.dataClass() {
					t.class = "" // which need not be said
				}
				t.forced = r.TrafficClass == int16(r.ToS)
			}
		}
	}
	if c := p.CC; p.Known.Has(intent.AreaCC) && c.On {
		ok = true
		t.algorithm, t.params = c.Algorithm, c.Params
	}
	if p.Known.Has(intent.AreaSystem) {
		ok = true
		t.system = p.System
		if t.system.IRQ == intent.IRQOther { // of which no model speaks
			t.system.IRQ = intent.IRQNotSaid
		}
	}
	if p.Known.Has(intent.AreaBuffer) {
		for _, c := range d.classes {
			switch b := p.Queues[c.priority].Buffer; {
			case !b.On:
			case c.lossless:
				t.lossless, ok = b.Reserved, true
			default:
				t.lossy, ok = b.Reserved, true
			}
		}
	}
	return t, ok
}

// dataClass is the class of connections that choose none where the model says nothing: that of NCCL, or the only lossless
// one; "" where that is not clear.
func (d *draft) dataClass() string {
	if d.nccl.On {
		return d.byPoint(d.nccl.TrafficClass >> 2)
	}
	name := ""
	for _, c := range d.classes {
		if c.lossless && !c.rest {
			if name != "" {
				return ""
			}
			name = c.name
		}
	}
	return name
}

// canTell: an override says another value, but only of some things that nothing is to be said.
func canTell(from, to nicWords) bool {
	kept := func(from, to bool) bool { return !from || to }
	params := true
	for i := range from.params {
		params = params && kept(from.params[i] > 0, to.params[i] > 0)
	}
	return params && kept(from.class != "", to.class != "") && kept(from.algorithm > 0, to.algorithm > 0) &&
		kept(from.system.ReadRequest > 0, to.system.ReadRequest > 0) && kept(from.system.RingRX > 0, to.system.RingRX > 0) &&
		kept(from.system.RingTX > 0, to.system.RingTX > 0) && kept(from.lossless > 0, to.lossless > 0) && kept(from.lossy > 0, to.lossy > 0)
}

// section is a key of hosts: with its value.
type section struct{ key, value string }

// sections are the keys of hosts: in which t differs from what is above.
func (t nicWords) sections(above nicWords) []section {
	var all []section
	group := func(key string, fields []string) {
		if len(fields) > 0 {
			all = append(all, section{key, "{" + strings.Join(fields, ", ") + "}"})
		}
	}
	pick := func(differs bool, text string) []string {
		if differs {
			return []string{text}
		}
		return nil
	}
	word := func(key string, differs, said bool, text string) {
		if !said {
			text = "leave"
		}
		if differs {
			all = append(all, section{key, text})
		}
	}
	mode, forced := "v2", "clear"
	if t.v1 {
		mode = "v1"
	}
	if t.forced {
		forced = "class"
	}
	group("roce", slices.Concat(
		pick(t.v1 != above.v1, "mode: "+mode), pick(t.class != above.class, "class: "+t.class), pick(t.forced != above.forced, "traffic_class: "+forced),
	))
	var params []string
	for i, p := range profiles.CCParams() {
		params = append(params, pick(t.params[i] != above.params[i], p.Name+": "+p.Text(t.params[i]-1))...)
	}
	var parameters []string
	if len(params) > 0 {
		parameters = []string{"parameters: {" + strings.Join(params, ", ") + "}"}
	}
	group("congestion", slices.Concat(pick(t.algorithm != above.algorithm, "algorithm: "+t.algorithm.String()), parameters))
	s, o := t.system, above.system
	group("pcie", pick(s.ReadRequest != o.ReadRequest, "max_read_request: "+s.ReadRequest.Exact()))
	word("irq", s.IRQ != o.IRQ, true, s.IRQ.String())
	group("rings", slices.Concat(pick(s.RingRX != o.RingRX, fmt.Sprintf("rx: %d", s.RingRX)), pick(s.RingTX != o.RingTX, fmt.Sprintf("tx: %d", s.RingTX))))
	word("fec", s.FEC != o.FEC, s.FEC != intent.FECNotSaid, s.FEC.String())
	group("receive_buffer", slices.Concat(
		pick(t.lossless != above.lossless, "lossless: "+t.lossless.Exact()), pick(t.lossy != above.lossy, "lossy: "+t.lossy.Exact()),
	))
	word("memlock", s.Memlock != o.Memlock, s.Memlock, "unlimited")
	return all
}

// writeHosts writes what most NICs are told, a key on a line.
func (d *draft) writeHosts(w *writer) {
	keys := d.words[place{}].sections(nicWords{})
	if len(keys) == 0 {
		return
	}
	w.line(0, "hosts:")
	for _, k := range keys {
		w.line(1, "%s: %s", k.key, k.value)
	}
}

// hostsLine is an override's section.
func hostsLine(above, t nicWords) string {
	var fields []string
	for _, k := range t.sections(above) {
		fields = append(fields, k.key+": "+k.value)
	}
	return "hosts: {" + strings.Join(fields, ", ") + "}"
}

// writeNCCL writes what most hosts tell NCCL.
func (d *draft) writeNCCL(w *writer) {
	n := d.nccl
	if !n.On {
		return
	}
	fields := []string{"class: " + d.byPoint(n.TrafficClass>>2)}
	add := func(said bool, format string, a ...any) {
		if said {
			fields = append(fields, fmt.Sprintf(format, a...))
		}
	}
	add(n.Timeout > 0, "timeout: %d", n.Timeout)
	add(n.RetryCount > 0, "retry_count: %d", n.RetryCount)
	add(n.QPs > 0, "qps_per_connection: %d", n.QPs)
	add(n.CrossNIC > 0, "cross_nic: %d", max(n.CrossNIC, 1)-1)
	note := ""
	if d.ncclWhole {
		add(!n.HCA, "hca: off")
		add(n.Family == 6, "address_family: ipv6")
		if n.GID != 0 {
			add(true, "version: 2.20")
			note = "   # a guess: a GID index is pinned, which NCCL from 2.21 on needs not"
		}
	}
	w.line(0, "nccl: {%s}%s", strings.Join(fields, ", "), note)
}
