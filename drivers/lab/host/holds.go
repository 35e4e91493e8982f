package host

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// hold is what somebody asked the host to leave alone.
type hold struct {
	Fabric  string `json:"fabric"`
	Device  string `json:"device"`
	Serial  string `json:"serial,omitempty"`
	Address string `json:"address,omitempty"`
	Port    string `json:"port,omitempty"`
	Iface   string `json:"iface,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Host    string `json:"host,omitempty"`
	Since   string `json:"since,omitempty"`
	Until   string `json:"until,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (h hold) String() string {
	what := h.Device
	if h.Port != "" {
		what += ":" + h.Port
	}
	return fmt.Sprintf("%s of fabric %s is held until %s by %s: %s", what, h.Fabric, h.Until, h.Owner, h.Reason)
}

func (h hold) inForce(now time.Time) bool {
	until, err := time.Parse(time.RFC3339, h.Until)
	return err != nil || now.Before(until)
}

// Holds are what the host leaves alone, in words.
func (h *Host) Holds() []string {
	var out []string
	for _, x := range h.holding("holds", hold{}) {
		out = append(out, x.String())
	}
	return out
}

// holding adds or takes away a hold and returns the one that was there by its name, or lists those in force.
func (h *Host) holding(op string, x hold) []hold {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = slices.DeleteFunc(h.holds, func(o hold) bool { return !o.inForce(now) })
	if op == "holds" {
		return slices.Clone(h.holds)
	}
	var was, rest []hold
	for _, o := range h.holds {
		if o.Fabric == x.Fabric && o.Device == x.Device && o.Port == x.Port {
			was = append(was, o)
		} else {
			rest = append(rest, o)
		}
	}
	if h.holds = rest; op == "hold" {
		h.holds = append(h.holds, x)
	}
	return was
}

// heldBack says which hold is in the way of changes; "" = none.
func (h *Host) heldBack(cs []change) string {
	for _, x := range h.holding("holds", hold{}) {
		if x.Port == "" || x.Iface == "" || slices.ContainsFunc(cs, func(c change) bool { return slices.Contains(strings.Fields(c.Key[1]), x.Iface) }) {
			return x.String()
		}
	}
	return ""
}
