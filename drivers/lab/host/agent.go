package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The messages of fabricctl-host, protocol 1, written down here a second time on purpose.
type (
	message struct {
		ID       int      `json:"id"`
		Op       string   `json:"op"`
		Changes  []change `json:"changes"`
		WithinMS int      `json:"within_ms"`
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
	_, _ = fmt.Fprintf(ch, `{"hello":"fabricctl-host","protocol":1,"version":"emulated","host":%q,"os":"linux","arch":"amd64","uid":%d}`+"\n", h.opt.Hostname, uid)
	in := bufio.NewScanner(ch)
	in.Buffer(nil, 8<<20)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			_ = out.Encode(map[string]any{"id": 0, "error": wireError{Code: "protocol", Message: err.Error()}})
			return
		}
		if m.Op == "cancel" {
			continue // what it could stop is over by now
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
	case "ping":
		return map[string]any{}
	case "facts":
		return h.facts()
	case "read":
		var cfg []wireSetting
		for _, l := range h.Links() {
			cfg = append(cfg, wireSetting{[3]string{"link", l.Name, "mtu"}, strconv.Itoa(l.MTU)})
		}
		text, _ := h.NCCL()
		for _, v := range variables(text) {
			cfg = append(cfg, wireSetting{[3]string{"nccl", "/etc/nccl.conf", v[0]}, v[1]})
		}
		return map[string]any{"config": cfg}
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

func (h *Host) facts() map[string]any {
	aliases := map[string]string{}
	for _, l := range h.Links() {
		if l.PCI != "" {
			aliases[l.PCI] = l.Name
		}
	}
	return map[string]any{
		"facts": map[string]any{
			"hostname": h.opt.Hostname, "serial": h.opt.Serial, "version": h.opt.Kernel, "aliases": aliases,
			"notes": []string{"this host is emulated"},
		},
		"caps": map[string]any{"confirm": false, "atomic": false, "persists_on_commit": true, "counters": false},
	}
}

// commit checks all changes against what is there and carries out those that are not yet there. ok is false when the
// connection ended meanwhile.
func (h *Host) commit(m message, gone <-chan struct{}) (_ *wireError, ok bool) {
	if m.WithinMS > 0 {
		return &wireError{Code: "no-confirm", Message: "commit: no confirm timer"}, true
	}
	text, _ := h.NCCL()
	var todo []change
	for _, c := range m.Changes {
		now := h.value(c.Key, text)
		switch {
		case same(now, c.After):
		case same(now, c.Before):
			todo = append(todo, c)
		default:
			return &wireError{Code: "moved", Message: fmt.Sprintf("commit: %v is %s, expected %s", c.Key, show(now), show(c.Before))}, true
		}
	}
	for _, c := range todo {
		if c.Key[0] != "nccl" {
			if e, ok := h.write(strings.Join(c.Key[1:], " ")+" "+show(c.After), gone, c, h.commitMTU); !ok || e != nil {
				return e, ok
			}
		}
	}
	for _, c := range todo {
		if c.Key[0] == "nccl" {
			if e, ok := h.write("/etc/nccl.conf", gone, c, h.commitVariable); !ok || e != nil {
				return e, ok
			}
		}
	}
	return nil, true
}

// write is one write with the faults around it.
func (h *Host) write(what string, gone <-chan struct{}, c change, do func(change) error) (_ *wireError, ok bool) {
	h.count(func(n *Counters) {
		if c.Key[0] == "nccl" {
			n.FileWrites++
		} else {
			n.MTUSets++
		}
	})
	refuse := ""
	if f := h.currentFaults().OnWrite; f != nil {
		refuse = f(what)
	}
	f := h.spendStall() // after OnWrite, which may have changed them
	if refuse == "" && c.Key[0] != "nccl" {
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
	if c.Key[0] != "link" || c.Key[2] != "mtu" || c.After == nil {
		return errors.New("operation not supported")
	}
	mtu, err := strconv.Atoi(*c.After)
	if err != nil {
		return errors.New("numerical result out of range")
	}
	return h.SetMTU(c.Key[1], mtu)
}

func (h *Host) commitVariable(c change) error {
	if c.Key[1] != "/etc/nccl.conf" {
		return errors.New("permission denied")
	}
	text, _ := h.NCCL()
	return h.SetNCCL(setVariable(text, c.Key[2], c.After))
}

// value is what is there now, nil = nothing.
func (h *Host) value(key [3]string, text string) *string {
	if key[0] == "nccl" {
		for _, v := range variables(text) {
			if v[0] == key[2] {
				return &v[1]
			}
		}
		return nil
	}
	for _, l := range h.Links() {
		if key == [3]string{"link", l.Name, "mtu"} {
			return new(strconv.Itoa(l.MTU))
		}
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
