package host

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The messages of fabricctl-host, protocol 3, written down here a second time on purpose.
type (
	message struct {
		ID        int               `json:"id"`
		Op        string            `json:"op"`
		Tx        string            `json:"tx"`
		Changes   []change          `json:"changes"`
		WithinMS  int               `json:"within_ms"`
		AllowJobs bool              `json:"allow_jobs"`
		Know      []json.RawMessage `json:"know"`
		Hold      hold              `json:"hold"`
		Names     []string          `json:"names"`
	}
	change struct {
		Key    [3]string `json:"key"`
		Before *string   `json:"before"`
		After  *string   `json:"after"`
	}
	wireError struct {
		Code     string `json:"code"`
		Message  string `json:"message"`
		Sent     string `json:"sent,omitempty"`
		Sentence string `json:"sentence,omitempty"`
		Reads    string `json:"reads,omitempty"`
	}
	wireSetting struct {
		Key   [3]string `json:"key"`
		Value string    `json:"value"`
	}
)

// agent is fabricctl-host serve.
func (h *Host) agent(ch ssh.Channel, gone <-chan struct{}) {
	out := json.NewEncoder(ch)
	uid, confirm := os.Geteuid(), ""
	if h.opt.Confirm {
		confirm = `,"confirm":true`
	}
	_, _ = fmt.Fprintf(ch, `{"hello":"fabricctl-host","protocol":3,"version":"emulated","host":%q,"os":"linux","arch":"amd64","uid":%d%s}`+"\n", h.opt.Hostname, uid, confirm)
	var known Known
	in := bufio.NewScanner(ch)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			_ = out.Encode(map[string]any{"id": 0, "error": wireError{Code: "protocol", Message: err.Error()}})
			return
		}
		if m.Op == "cancel" || m.Op == "ping" && m.ID == 0 {
			continue // what it could stop is over by now, and nobody is waited for
		}
		if text := h.currentFaults().Counters; m.Op == "sense" && text != "" {
			_, _ = fmt.Fprintf(ch, `{"id":%d,"at":"2026-01-01T00:00:00Z","counters":%s}`+"\n", m.ID, text)
			continue
		}
		answer := h.answer(m, &known, gone)
		if answer == nil || !h.pause(gone) {
			return
		}
		answer["id"] = m.ID
		if out.Encode(answer) != nil {
			return
		}
	}
}

// answer is the reply to one message, without its id; nil when the connection ended meanwhile.
func (h *Host) answer(m message, known *Known, gone <-chan struct{}) map[string]any {
	switch m.Op {
	case "ping":
		return map[string]any{}
	case "know":
		var err error
		if h.opt.Know != nil {
			*known, err = h.opt.Know(m.Know)
		}
		if err != nil {
			return map[string]any{"error": failed("know: %v", err)}
		}
		return map[string]any{}
	case "hold", "release", "holds":
		return map[string]any{"holds": h.holding(m.Op, m.Hold)}
	case "pending":
		return map[string]any{"txs": h.transactions()}
	case "confirm", "abort":
		if e := h.settle(m.Op, m.Tx); e != nil {
			return map[string]any{"error": e}
		}
		return map[string]any{}
	case "facts":
		return h.facts(*known)
	case "read":
		return map[string]any{"config": h.read()}
	case "sense":
		h.count(func(c *Counters) { c.Senses++ })
		return h.sense(m.Names)
	case "commit":
		e, ok := h.commit(m, gone)
		switch {
		case !ok:
			return nil
		case e != nil:
			return map[string]any{"error": e}
		}
		return map[string]any{}
	}
	return map[string]any{"error": wireError{Code: "protocol", Message: "operation " + m.Op + " is not known"}}
}

// read is everything that the host can tell of its settings.
func (h *Host) read() []wireSetting {
	var cfg []wireSetting
	for _, l := range h.Links() {
		cfg = append(cfg, wireSetting{[3]string{"link", l.Name, "mtu"}, strconv.Itoa(l.MTU)})
		knobs := h.Knobs(l.Name)
		for _, k := range slices.Sorted(maps.Keys(knobs)) {
			scope, field, _ := strings.Cut(k, " ")
			cfg = append(cfg, wireSetting{[3]string{scope, l.Name, field}, knobs[k]})
		}
	}
	if _, err := h.fs.Stat(rel(limitPath)); err == nil {
		cfg = append(cfg, wireSetting{limitKey, "unlimited"})
	}
	text, _ := h.NCCL()
	for _, v := range variables(text) {
		cfg = append(cfg, wireSetting{[3]string{"nccl", "/etc/nccl.conf", v[0]}, v[1]})
	}
	return cfg
}

func (h *Host) facts(known Known) map[string]any {
	aliases := map[string]string{}
	for _, l := range h.Links() {
		if l.PCI != "" {
			aliases[l.PCI] = l.Name
		}
	}
	facts := map[string]any{
		"hostname": h.opt.Hostname, "serial": h.opt.Serial, "version": h.opt.Kernel, "aliases": aliases,
	}
	owners, notes := h.owners()
	facts["notes"] = append([]string{"this host is emulated"}, notes...)
	if len(owners) > 0 {
		facts["owners"] = owners
	}
	nics := h.wireNICs()
	var own []json.RawMessage
	for i := range nics {
		if known.Personality == nil {
			break
		}
		name, said := known.Personality(nics[i].Driver, nics[i].Model)
		if nics[i].Personality = name; said != nil && !slices.ContainsFunc(nics[:i], func(n wireNIC) bool { return n.Personality == name }) {
			own = append(own, said)
		}
	}
	if len(nics) > 0 {
		facts["nics"] = nics
	}
	answer := map[string]any{
		"facts": facts,
		"caps":  map[string]any{"confirm": h.opt.Confirm, "atomic": false, "persists_on_commit": true, "counters": true},
	}
	if own != nil {
		answer["personalities"] = own
	}
	return answer
}

// Look is what the agent answers when it is asked for facts and for all settings, as JSON on the wire, of which it knows the
// built-in NICs alone.
func (h *Host) Look() (facts, settings json.RawMessage, err error) {
	if facts, err = json.Marshal(h.facts(Known{})["facts"]); err == nil {
		settings, err = json.Marshal(h.read())
	}
	return facts, settings, err
}

// Known is what a laptop told a host of NICs.
type Known struct {
	// Personality is the name of how NICs of a driver behave, and all of that as JSON where a user described it, else nil.
	Personality func(driver, model string) (name string, said json.RawMessage)
}

// wireNIC is a NIC in the facts.
type wireNIC struct {
	Name          string   `json:"name"`
	PCI           string   `json:"pci,omitempty"`
	Model         string   `json:"model,omitempty"`
	Port          int      `json:"port,omitempty"`
	Driver        string   `json:"driver,omitempty"`
	DriverVersion string   `json:"driver_version,omitempty"`
	Firmware      string   `json:"firmware,omitempty"`
	OutOfTree     bool     `json:"out_of_tree,omitempty"`
	Personality   string   `json:"personality,omitempty"`
	RDMA          string   `json:"rdma,omitempty"`
	RDMAPort      int      `json:"rdma_port,omitempty"`
	Bond          string   `json:"bond,omitempty"`
	VFOf          string   `json:"vf_of,omitempty"`
	DPU           string   `json:"dpu,omitempty"`
	NUMA          int      `json:"numa"`
	Addresses     []string `json:"addresses,omitempty"`
	GID           int      `json:"gid"`
	GIDWhy        string   `json:"gid_why,omitempty"`
	QPs           int      `json:"qps"`
	Management    bool     `json:"management,omitempty"`
	Knobs         []string `json:"knobs,omitempty"`
	Link          any      `json:"link,omitempty"`
}

func (h *Host) wireNICs() []wireNIC {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []wireNIC
	for _, l := range h.links {
		n := h.nics[l.Name]
		if n == nil {
			continue
		}
		k := n.kind
		w := wireNIC{
			Name: l.Name, PCI: l.PCI, Model: k.models[n.name], Port: 1, Driver: k.driver, DriverVersion: cmp.Or(k.version, h.opt.Kernel), Firmware: l.Firmware, OutOfTree: k.version != "",
			Personality: k.personality, RDMA: n.device(), Bond: l.Master, VFOf: l.VFOf, DPU: l.DPU, Addresses: h.addresses(l), GID: -1, QPs: -1,
			Management: l.Management, Knobs: h.knobs(n), Link: map[string]any{"up": !n.down},
		}
		switch {
		case w.RDMA == "":
			w.GIDWhy = "it has no RDMA device"
		case !slices.ContainsFunc(w.Addresses, func(a string) bool { return strings.Contains(a, ".") }):
			w.GIDWhy, w.RDMAPort, w.QPs = "it has no IPv4 address", 1, n.jobs
		case n.gid < 0:
			w.GIDWhy, w.RDMAPort, w.QPs = "the IPv4 address has a GID of RoCE v1 only", 1, n.jobs
		default:
			w.GID, w.RDMAPort, w.QPs = n.gid, 1, n.jobs
		}
		out = append(out, w)
	}
	return out
}

// addresses are those of a link and of its bond.
func (h *Host) addresses(l Link) []string {
	out := slices.Clone(l.Addresses)
	for _, m := range h.links {
		if m.Name == l.Master {
			out = append(out, m.Addresses...)
		}
	}
	return out
}

// value is what is there now, nil = nothing.
func (h *Host) value(key [3]string, text string) *string {
	switch key[0] {
	case "nccl":
		for _, v := range variables(text) {
			if v[0] == key[2] {
				return &v[1]
			}
		}
		return nil
	case "limit":
		if _, err := h.fs.Stat(rel(limitPath)); err == nil && key == limitKey {
			return new("unlimited")
		}
		return nil
	case "link":
		for _, l := range h.Links() {
			if key == [3]string{"link", l.Name, "mtu"} {
				return new(strconv.Itoa(l.MTU))
			}
		}
		return nil
	}
	if v, ok := h.Knobs(key[1])[key[0]+" "+key[2]]; ok {
		return &v
	}
	return nil
}

// variables are name and value of the lines that NCCL would use, in the order of the file.
func variables(text string) [][2]string {
	var vs [][2]string
	seen := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), "=")
		if !ok || name == "" || name[0] == '#' || strings.ContainsAny(name, " \t") || seen[name] {
			continue
		}
		seen[name] = true
		vs = append(vs, [2]string{name, value})
	}
	return vs
}

// setVariable changes one variable and no other line; nil takes it out.
func setVariable(text, name string, value *string) string {
	var out []string
	done := value == nil
	for line := range strings.Lines(text) {
		switch {
		case !strings.HasPrefix(line, name+"="):
			out = append(out, line)
		case value == nil:
		case !done:
			out = append(out, name+"="+*value+"\n")
			done = true
		default:
			out = append(out, line)
		}
	}
	if !done {
		if n := len(out); n > 0 && !strings.HasSuffix(out[n-1], "\n") {
			out[n-1] += "\n"
		}
		out = append(out, name+"="+*value+"\n")
	}
	return strings.Join(out, "")
}

// holds reports whether the value of a key is the one expected. Link pause that cannot be read is off.
func holds(key [3]string, now, want *string) bool {
	if key[0] == "pause" && (now == nil || want == nil) {
		return (now == nil || *now == off) && (want == nil || *want == off)
	}
	return same(now, want)
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func show(v *string) string {
	if v == nil {
		return "absent"
	}
	return *v
}
