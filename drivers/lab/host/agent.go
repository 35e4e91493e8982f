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

// The messages of fabricctl-host, protocol 2, written down here a second time on purpose.
type (
	message struct {
		ID        int      `json:"id"`
		Op        string   `json:"op"`
		Changes   []change `json:"changes"`
		WithinMS  int      `json:"within_ms"`
		AllowJobs bool     `json:"allow_jobs"`
		Hold      hold     `json:"hold"`
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
	}
	wireSetting struct {
		Key   [3]string `json:"key"`
		Value string    `json:"value"`
	}
)

// agent is fabricctl-host serve.
func (h *Host) agent(ch ssh.Channel, gone <-chan struct{}) {
	out := json.NewEncoder(ch)
	uid := os.Geteuid()
	_, _ = fmt.Fprintf(ch, `{"hello":"fabricctl-host","protocol":2,"version":"emulated","host":%q,"os":"linux","arch":"amd64","uid":%d}`+"\n", h.opt.Hostname, uid)
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
		answer := h.answer(m, gone)
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
func (h *Host) answer(m message, gone <-chan struct{}) map[string]any {
	switch m.Op {
	case "ping", "know": // there is no NIC that it does not know
		return map[string]any{}
	case "hold", "release", "holds":
		return map[string]any{"holds": h.holding(m.Op, m.Hold)}
	case "facts":
		return h.facts()
	case "read":
		return map[string]any{"config": h.read()}
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

func (h *Host) facts() map[string]any {
	aliases := map[string]string{}
	for _, l := range h.Links() {
		if l.PCI != "" {
			aliases[l.PCI] = l.Name
		}
	}
	facts := map[string]any{
		"hostname": h.opt.Hostname, "serial": h.opt.Serial, "version": h.opt.Kernel, "aliases": aliases,
		"notes": []string{"this host is emulated"},
	}
	if nics := h.wireNICs(); len(nics) > 0 {
		facts["nics"] = nics
	}
	return map[string]any{
		"facts": facts,
		"caps":  map[string]any{"confirm": false, "atomic": false, "persists_on_commit": true, "counters": false},
	}
}

// wireNIC is a NIC in the facts.
type wireNIC struct {
	Name          string   `json:"name"`
	PCI           string   `json:"pci,omitempty"`
	Model         string   `json:"model,omitempty"`
	Port          int      `json:"port,omitempty"`
	Driver        string   `json:"driver,omitempty"`
	DriverVersion string   `json:"driver_version,omitempty"`
	OutOfTree     bool     `json:"out_of_tree,omitempty"`
	Personality   string   `json:"personality,omitempty"`
	RDMA          string   `json:"rdma,omitempty"`
	RDMAPort      int      `json:"rdma_port,omitempty"`
	Bond          string   `json:"bond,omitempty"`
	NUMA          int      `json:"numa"`
	Addresses     []string `json:"addresses,omitempty"`
	GID           int      `json:"gid"`
	GIDWhy        string   `json:"gid_why,omitempty"`
	QPs           int      `json:"qps"`
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
			Name: l.Name, PCI: l.PCI, Model: k.models[n.name], Port: 1, Driver: k.driver, DriverVersion: cmp.Or(k.version, h.opt.Kernel), OutOfTree: k.version != "",
			Personality: k.personality, RDMA: n.device(), Bond: l.Master, Addresses: l.Addresses, GID: -1, QPs: -1, Knobs: n.knobs(),
			Link: map[string]any{"up": true},
		}
		switch {
		case w.RDMA == "":
			w.GIDWhy = "it has no RDMA device"
		case !slices.ContainsFunc(l.Addresses, func(a string) bool { return strings.Contains(a, ".") }):
			w.GIDWhy, w.RDMAPort, w.QPs = "it has no IPv4 address", 1, n.jobs
		default:
			w.GID, w.RDMAPort, w.QPs = k.gid, 1, n.jobs
		}
		out = append(out, w)
	}
	return out
}

// commit checks all changes against what is there and carries out those that are not yet there, NIC by NIC, in the
// order in which a NIC can take them, and then the files. ok is false when the connection ended meanwhile.
func (h *Host) commit(m message, gone <-chan struct{}) (_ *wireError, ok bool) {
	if m.WithinMS > 0 {
		return &wireError{Code: "no-confirm", Message: "commit: no confirm timer"}, true
	}
	if why := h.heldBack(m.Changes); why != "" {
		return &wireError{Code: "held", Message: "commit: it is held: on the host, " + why}, true
	}
	text, _ := h.NCCL()
	todo := map[[2]string][]change{} // scope and object to changes
	var links []string
	for _, c := range m.Changes {
		now := h.value(c.Key, text)
		switch {
		case same(now, c.After):
		case same(now, c.Before):
			o := [2]string{c.Key[0], c.Key[1]}
			todo[o] = append(todo[o], c)
			if c.Key[0] != "nccl" && c.Key[0] != "limit" && !slices.Contains(links, c.Key[1]) {
				links = append(links, c.Key[1])
			}
		default:
			return &wireError{Code: "moved", Message: fmt.Sprintf("commit: %v is %s, expected %s", c.Key, show(now), show(c.Before))}, true
		}
	}
	for _, link := range links {
		for _, scope := range order() {
			if e, ok := h.commitKnobs(todo[[2]string{scope, link}], gone, m.AllowJobs); !ok || e != nil {
				return e, ok
			}
		}
	}
	file := [2]string{"nccl", "/etc/nccl.conf"}
	for o, cs := range todo {
		if o != file && !slices.Contains(order(), o[0]) {
			if e, ok := h.write(strings.Join(cs[0].Key[1:], " "), gone, cs[0], h.commitLimit); !ok || e != nil {
				return e, ok
			}
		}
	}
	for _, c := range todo[file] {
		if e, ok := h.write("/etc/nccl.conf", gone, c, h.commitVariable); !ok || e != nil {
			return e, ok
		}
	}
	return nil, true
}

// commitKnobs is what one scope of a NIC is to become: as one write where the kernel takes it as one.
func (h *Host) commitKnobs(cs []change, gone <-chan struct{}, allowed bool) (_ *wireError, ok bool) {
	if len(cs) == 0 {
		return nil, true
	}
	scope, link := cs[0].Key[0], cs[0].Key[1]
	if scope == "link" {
		for _, c := range cs {
			if e, ok := h.write(strings.Join(c.Key[1:], " ")+" "+show(c.After), gone, c, h.commitMTU); !ok || e != nil {
				return e, ok
			}
		}
		return nil, true
	}
	h.mu.Lock()
	n := h.nics[link]
	h.mu.Unlock()
	if n != nil && n.jobs > 0 && !allowed && slices.Contains(n.kind.settles, scope) {
		return &wireError{Code: "jobs", Message: fmt.Sprintf("commit: %s has %d queue pairs of running programs, and setting %s takes its link down", link, n.jobs, scope)}, true
	}
	together := [][]change{cs}
	if scope == "app" {
		together = together[:0]
		for _, c := range cs {
			together = append(together, []change{c})
		}
	}
	for _, cs := range together {
		fields := map[string]*string{}
		for _, c := range cs {
			fields[c.Key[2]] = c.After
		}
		last := cs[len(cs)-1]
		what := fmt.Sprintf("%s %s %s %s", link, scope, last.Key[2], show(last.After))
		if e, ok := h.write(what, gone, last, func(change) error { return h.put(link, scope, fields) }); !ok || e != nil {
			return e, ok
		}
	}
	return nil, true
}

// write is one write with the faults around it.
func (h *Host) write(what string, gone <-chan struct{}, c change, do func(change) error) (_ *wireError, ok bool) {
	h.count(func(n *Counters) {
		switch c.Key[0] {
		case "nccl", "limit":
			n.FileWrites++
		case "link":
			n.MTUSets++
		default:
			n.KnobSets++
		}
	})
	refuse := ""
	if f := h.currentFaults().OnWrite; f != nil {
		refuse = f(what)
	}
	f := h.spendStall() // after OnWrite, which may have changed them
	if refuse == "" && c.Key[0] == "link" {
		refuse = f.RejectMTU
	}
	if f.Stall {
		<-gone
		return nil, false
	}
	if refuse == "" && !f.Ignore {
		if err := do(c); err != nil {
			refuse = err.Error()
		}
	}
	if refuse != "" {
		return &wireError{Code: "rejected", Message: refuse, Sent: strings.Join(c.Key[:], "|") + " " + show(c.After), Sentence: refuse}, true
	}
	return nil, true
}

func (h *Host) commitMTU(c change) error {
	if c.Key[2] != "mtu" || c.After == nil {
		return errSupported
	}
	mtu, err := strconv.Atoi(*c.After)
	if err != nil {
		return errRange
	}
	return h.SetMTU(c.Key[1], mtu)
}

// limitPath is the file that lets every login lock memory, which verbs need.
const limitPath = "/etc/security/limits.d/90-fabricctl.conf"

var limitKey = [3]string{"limit", limitPath, "memlock"}

func (h *Host) commitLimit(c change) error {
	switch {
	case c.Key != limitKey:
		return errSupported
	case c.After == nil:
		return h.fs.Remove(rel(limitPath))
	case *c.After != "unlimited":
		return errInvalid
	}
	return h.fs.WriteFile(rel(limitPath), []byte("* soft memlock unlimited\n* hard memlock unlimited\n"), 0o644)
}

func (h *Host) commitVariable(c change) error {
	text, _ := h.NCCL()
	return h.SetNCCL(setVariable(text, c.Key[2], c.After))
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

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func show(v *string) string {
	if v == nil {
		return "absent"
	}
	return *v
}
