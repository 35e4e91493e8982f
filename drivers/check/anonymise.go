package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
)

// masks replaces names, addresses and serial numbers, the same one by the same everywhere. Stand-ins are numbered in
// the order in which their originals were met.
type masks struct {
	names map[string]mask   // learnt from places where names stand
	seen  map[string]string // addresses and MAC addresses
	kinds map[string]int
}

// mask is what stands for a name.
type mask struct{ kind, full string }

func newMasks() *masks {
	return &masks{names: map[string]mask{}, seen: map[string]string{}, kinds: map[string]int{}}
}

// learn makes a name one that is replaced. Short ones are not: they would be found in other words.
func (m *masks) learn(kind, name string) {
	name = strings.TrimSpace(name)
	if len(name) < 3 || m.names[name] != (mask{}) || strings.Contains(name, scrubbed) {
		return
	}
	m.kinds[kind]++
	m.names[name] = mask{kind, fmt.Sprintf("%s-%d", kind, m.kinds[kind])}
}

// learnAs learns a name of a kind that a configuration gives: "device", "domain", or another.
func (m *masks) learnAs(kind, name string) {
	switch kind {
	case "device":
		m.host(name)
	case "domain":
		m.domain(name)
	default:
		m.learn(kind, name)
	}
}

// host learns a host name, with and without its domain.
func (m *masks) host(name string) {
	if _, err := netip.ParseAddr(name); err == nil {
		return // replaced as an address
	}
	short, domain, _ := strings.Cut(name, ".")
	m.learn("device", short)
	m.domain(domain)
}

// domain learns a domain and those above it, but for the topmost.
func (m *masks) domain(name string) {
	for strings.Contains(name, ".") {
		m.learn("domain", name)
		_, name, _ = strings.Cut(name, ".")
	}
}

// neighbours learns what devices hear of each other.
func (m *masks) neighbours(ns []drivers.Neighbour) {
	for _, n := range ns {
		m.host(n.System)
		if _, err := netip.ParseAddr(n.Chassis); err != nil && !macRE.MatchString(n.Chassis) {
			m.learn("chassis", n.Chassis)
		}
		if n.PeerDescr != n.PeerPort && !interfaceRE.MatchString(n.PeerDescr) {
			m.learn("text", n.PeerDescr)
		}
	}
}

// config learns the names in a scrubbed configuration.
func (m *masks) config(os string, text []byte) {
	for _, x := range urlHostRE.FindAllSubmatch(text, -1) {
		m.host(string(x[1]))
	}
	walkNames(os, text, func(kind, s string) {
		if kind != words && kind != values {
			m.learnAs(kind, s)
		}
	})
}

var (
	urlHostRE = regexp.MustCompile(`://(?:[^/\s"@]*@)?([A-Za-z0-9][-.A-Za-z0-9]*)`)

	macRE  = regexp.MustCompile(`\b(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2})\b`)
	ipv4RE = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	ipv6RE = regexp.MustCompile(`[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*`)

	lettersRE   = regexp.MustCompile(`^[A-Za-z]+$`)
	interfaceRE = regexp.MustCompile(`(?i)^(?:[a-z]*ethernet|[a-z]*gige|eth|et|etp|swp|port-?channel|po|management|ma|vlan|loopback|lo|bond|rdma|ib|mlx\d_|en[opsx]|[xge]e-|et-)\d[0-9a-z/.:_-]*$`)
)

// phrases are the names that are replaced, as they stand in a text and inside JSON.
func (m *masks) phrases() *phrases {
	p := &phrases{}
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		p.add(name, m.names[name].full, name)
		if j, err := json.Marshal(name); err == nil {
			p.add(name, m.names[name].full, strings.Trim(string(j), `"`))
		}
	}
	return p
}

// text is s with stand-ins, names being the phrases.
func (m *masks) text(names *phrases, s string) string {
	s = names.replace(s)
	s = macRE.ReplaceAllStringFunc(s, func(a string) string {
		if strings.Trim(a, "0fF:.-") == "" { // none, or everybody
			return a
		}
		n := m.number("mac", strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(a)))
		hex := fmt.Sprintf("02000000%04x", n)
		switch {
		case strings.Contains(a, "."):
			return hex[:4] + "." + hex[4:8] + "." + hex[8:]
		case strings.Contains(a, "-"):
			return pairs(hex, "-")
		}
		return pairs(hex, ":")
	})
	s = ipv4RE.ReplaceAllStringFunc(s, m.address)
	return ipv6RE.ReplaceAllStringFunc(s, m.address)
}

func pairs(hex, between string) string {
	var p []string
	for i := 0; i < len(hex); i += 2 {
		p = append(p, hex[i:i+2])
	}
	return strings.Join(p, between)
}

// number counts originals of a kind.
func (m *masks) number(kind, original string) int {
	key := kind + " " + original
	if m.seen[key] == "" {
		m.kinds[kind]++
		m.seen[key] = fmt.Sprint(m.kinds[kind])
	}
	n := 0
	_, _ = fmt.Sscan(m.seen[key], &n)
	return n
}

// address is the stand-in of an IP address, from the ranges for benchmarks (RFC 2544) and documentation (RFC 3849).
// What is no address, is a mask, or means this machine or none, stays.
func (m *masks) address(a string) string {
	ip, err := netip.ParseAddr(a)
	if err != nil || ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip.Is4() && (ip.As4()[0] == 255 || ip.As4()[0] == 0) {
		return a
	}
	if ip.Is4() {
		n := m.number("ipv4", ip.String())
		return netip.AddrFrom4([4]byte{198, byte(18 + n>>16&1), byte(n >> 8), byte(n)}).String()
	}
	return fmt.Sprintf("2001:db8::%x", m.number("ipv6", ip.String()))
}

// keep forgets names that a configuration uses as words of its own: replacing them would change what it means. The name
// of a device counts as such a word only where it looks like one.
func (m *masks) keep(os string, text []byte) {
	names := m.phrases()
	var own []string
	walkNames(os, text, func(kind, s string) {
		if kind != words && kind != values {
			return
		}
		names.each(s, func(name string) {
			switch m.names[name].kind {
			case "text", "user":
				own = append(own, name)
			default:
				if kind == words && (lettersRE.MatchString(name) || interfaceRE.MatchString(name)) {
					own = append(own, name)
				}
			}
		})
	})
	for _, name := range own {
		delete(m.names, name)
	}
}
