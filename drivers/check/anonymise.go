package check

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
)

// masks replaces names, addresses and serial numbers, the same one by the same everywhere. Stand-ins are numbered in
// the order in which their originals were met.
type masks struct {
	names map[string]string // learnt from places where names stand
	seen  map[string]string // addresses and MAC addresses
	kinds map[string]int
}

func newMasks() *masks {
	return &masks{names: map[string]string{}, seen: map[string]string{}, kinds: map[string]int{}}
}

// learn makes a name one that is replaced. Short ones are not: they would be found in other words.
func (m *masks) learn(kind, name string) {
	name = strings.TrimSpace(name)
	if len(name) < 3 || m.names[name] != "" || strings.Contains(name, scrubbed) {
		return
	}
	m.kinds[kind]++
	m.names[name] = fmt.Sprintf("%s-%d", kind, m.kinds[kind])
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
		if n.PeerDescr != n.PeerPort {
			m.learn("text", n.PeerDescr)
		}
	}
}

// config learns the names in a scrubbed configuration.
func (m *masks) config(os string, text []byte) {
	for _, x := range urlHostRE.FindAllSubmatch(text, -1) {
		m.host(string(x[1]))
	}
	switch os {
	case "sonic":
		var db map[string]map[string]map[string]any
		if json.Unmarshal(text, &db) == nil {
			m.sonic(db)
		}
	case "eos":
		for l := range strings.Lines(string(text)) {
			m.eosLine(strings.Fields(l))
		}
	}
}

func (m *masks) sonic(db map[string]map[string]map[string]any) {
	for _, table := range sortedKeys(db) {
		for _, row := range sortedKeys(db[table]) {
			switch table {
			case "DEVICE_NEIGHBOR_METADATA", "SYSLOG_SERVER", "NTP_SERVER", "TACPLUS_SERVER", "RADIUS_SERVER":
				m.host(row)
			case "GNMI_CLIENT_CERT":
				m.learn("user", row)
			}
			for _, field := range sortedKeys(db[table][row]) {
				v, _ := db[table][row][field].(string)
				switch {
				case field == "hostname" || table == "DEVICE_NEIGHBOR" && field == "name":
					m.host(v)
				case field == "description" || field == "remark" || field == "location" || field == "contact":
					m.learn("text", v)
				case strings.Contains(field, "serial"):
					m.learn("serial", v)
				case field == "user" || field == "username":
					m.learn("user", v)
				}
			}
		}
	}
}

func (m *masks) eosLine(w []string) {
	if len(w) < 2 {
		return
	}
	rest := func(n int) string { return strings.Join(w[min(n, len(w)):], " ") }
	switch {
	case w[0] == "hostname":
		m.host(w[1])
	case w[0] == "description":
		m.learn("text", rest(1))
	case w[0] == "username":
		m.learn("user", w[1])
	case w[0] == "dns" && w[1] == "domain", w[0] == "ip" && w[1] == "domain-name":
		m.domain(rest(2))
	case w[0] == "snmp-server" && (w[1] == "location" || w[1] == "contact"):
		m.learn("text", rest(2))
	}
}

var (
	urlHostRE = regexp.MustCompile(`://(?:[^/\s"@]*@)?([A-Za-z0-9][-.A-Za-z0-9]*)`)

	macRE  = regexp.MustCompile(`\b(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2})\b`)
	ipv4RE = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	ipv6RE = regexp.MustCompile(`[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*`)
)

// text is s with stand-ins. Names are replaced where they stand as words of their own.
func (m *masks) text(s string) string {
	for _, name := range longestFirst(m.names) {
		s = replaceWord(s, name, m.names[name])
		if j, err := json.Marshal(name); err == nil && string(j) != `"`+name+`"` {
			s = replaceWord(s, strings.Trim(string(j), `"`), m.names[name])
		}
	}
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

// replaceWord replaces old where no letter, digit, "_" or "-" stands beside it.
func replaceWord(s, old, with string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, old)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := i + len(old)
		b.WriteString(s[:i])
		if (i > 0 && isWord(s[i-1])) || (end < len(s) && isWord(s[end])) {
			b.WriteString(old)
		} else {
			b.WriteString(with)
		}
		s = s[end:]
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// keep forgets names that a configuration uses as words of its own: replacing them would change what it means.
func (m *masks) keep(os string, text []byte) {
	var own []string
	switch os {
	case "sonic":
		var db map[string]map[string]map[string]any
		if json.Unmarshal(text, &db) != nil {
			return
		}
		for table, rows := range db {
			own = append(own, table)
			for _, fields := range rows {
				own = append(own, sortedKeys(fields)...)
			}
		}
	case "eos":
		for l := range strings.Lines(string(text)) {
			w := strings.Fields(l)
			own = append(own, w[:min(1, len(w))]...)
		}
	}
	for name := range m.names {
		if slices.Contains(own, name) {
			delete(m.names, name)
		}
	}
}
