package perftest

import (
	"bytes"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// reader goes through an output line by line.
type reader struct {
	r       *Report
	facts   []fact
	phrases []phrase
	known   bool     // something was of a verbs test
	columns []column // of the table that is open
	rows    bool     // it has rows
	side    Side
	samples bool  // they follow
	pairs   *[]QP // those that a GID belongs to
}

// text reads one stream. Only standard output has tables.
func (p *reader) text(b []byte, stdout bool) {
	var first string
	lines := 0
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		s := printable(line)
		if strings.TrimSpace(s) == "" {
			continue
		}
		if lines++; lines == 1 {
			first = strings.TrimSpace(s)
		}
		if stdout && p.line(s, !whole) {
			p.known = true
			continue
		}
		p.note(s)
	}
	if c, ok := readCell(first); ok && lines == 1 && stdout && !c.nan {
		p.known, p.r.Bare = true, Value[float64]{c.v, c.step, true}
	}
}

const longLine = 400

// printable is a line as one line of UTF-8 without anything that moves a cursor, and not too long.
func printable(line []byte) string {
	s := strings.Map(func(r rune) rune {
		if r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, string(line[:min(len(line), longLine)])) // and what is no UTF-8 becomes U+FFFD
	return strings.TrimRight(s, " \t")
}

// line reads a line of standard output, and reports whether it was one of a test's. A line that was cut is the last, and has no end.
func (p *reader) line(s string, cut bool) bool {
	t := strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(t, "#bytes"):
		p.columns, p.rows, p.samples = readColumns(t), false, false
	case strings.HasPrefix(t, "-----"):
		p.samples, p.pairs = false, nil
		if p.rows {
			p.columns = nil
		}
	case strings.HasPrefix(t, "#, "):
		p.samples = true
		p.r.Cycles = p.r.Cycles || t == "#, cycles"
	case t == "Local results:":
		p.side = Local
	case t == "Remote results:":
		p.side = Remote
	case strings.Contains(t, "Waiting for client"):
		p.r.Server = true
	case strings.HasPrefix(t, "Version: "):
		p.r.Version = t[len("Version: "):]
	case strings.HasSuffix(t, " Test"):
		return p.title(t)
	case strings.HasPrefix(t, "local address: "):
		p.pair(&p.r.Local, t)
	case strings.HasPrefix(t, "remote address: "):
		p.pair(&p.r.Remote, t)
	case strings.HasPrefix(t, "GID: ") && p.pairs != nil && len(*p.pairs) > 0:
		(*p.pairs)[len(*p.pairs)-1].GID = readGID(t[len("GID: "):])
	default:
		return p.samples && p.sample(t) || p.row(t, cut) || p.count(t) || p.fact(s)
	}
	return true
}

// title reads what test it is.
func (p *reader) title(t string) bool {
	ops := map[string]Op{"RDMA_Write": Write, "RDMA_Read": Read, "Send": Send, "Atomic": Atomic}
	first, _, _ := strings.Cut(t, " ")
	op, ok := ops[first]
	if !ok {
		return false
	}
	p.r.Title, p.r.Op = t, op
	p.r.Latency = strings.Contains(t, "Latency")
	p.r.Bidirectional = strings.Contains(t, "Bidirectional")
	return true
}

// pair reads the line of a queue pair; that of its GID follows.
func (p *reader) pair(to *[]QP, t string) {
	var q QP
	words := strings.Fields(t)
	for i, w := range words[:len(words)-1] {
		n, err := strconv.ParseUint(strings.TrimPrefix(words[i+1], "0x"), 16, 32)
		switch {
		case err != nil:
		case w == "QPN":
			q.Number = uint32(n)
		case w == "PSN":
			q.PSN = uint32(n)
		}
	}
	*to = append(*to, q)
	p.pairs = to
}

// readGID reads a GID as it is printed: sixteen decimal numbers. One that is an IPv4 address is returned as that.
func readGID(s string) netip.Addr {
	var a [16]byte
	words := strings.Split(s, ":")
	if len(words) != len(a) {
		return netip.Addr{}
	}
	for i, w := range words {
		n, err := strconv.ParseUint(w, 10, 8)
		if err != nil {
			return netip.Addr{}
		}
		a[i] = byte(n)
	}
	return netip.AddrFrom16(a).Unmap()
}

// row reads a row of the table that is open: as many numbers as it has columns.
func (p *reader) row(t string, cut bool) bool {
	words := strings.Fields(t)
	if len(p.columns) == 0 || len(words) != len(p.columns) {
		return false
	}
	w := Row{Side: p.side, Line: t, Cut: cut}
	for i, c := range p.columns {
		v, ok := readCell(words[i])
		if !ok || !c.set(&w, v, words[i]) {
			return false
		}
	}
	p.r.Rows = append(p.r.Rows, w)
	p.rows = true
	return true
}

// sample reads one of the samples that -U and -H print: its number and its microseconds.
func (p *reader) sample(t string) bool {
	n, v, ok := strings.Cut(t, ", ")
	if _, err := strconv.ParseUint(n, 10, 63); !ok || err != nil {
		return false
	}
	us, ok := readCell(v)
	if !ok || us.nan || us.v < 0 || us.v > 1e12 {
		return false
	}
	if !p.r.Cycles {
		p.r.Samples = append(p.r.Samples, time.Duration(math.Round(us.v*usec)))
	}
	return true
}

// count reads a line of -W.
func (p *reader) count(t string) bool {
	name, v, ok := strings.Cut(t, "=")
	n, err := strconv.ParseInt(v, 10, 64)
	if !ok || err != nil || !strings.Contains(name, "counters/") || strings.Contains(name, " ") {
		return false
	}
	p.r.Counts = append(p.r.Counts, Count{name, n})
	return true
}

// fact reads the "name : value" of a line of the head; there may be two in it.
func (p *reader) fact(line string) (found bool) {
	if !strings.Contains(line, ":") {
		return false
	}
	for _, f := range p.facts {
		_, after, ok := strings.Cut(" "+line, " "+f.name)
		if !ok {
			_, after, ok = strings.Cut(line, "\t"+f.name)
		}
		if after = strings.TrimLeft(after, " \t"); !ok || !strings.HasPrefix(after, ":") {
			continue
		}
		v := strings.TrimLeft(after[1:], " ")
		v, _, _ = strings.Cut(v, "\t")
		v, _, _ = strings.Cut(v, "  ")
		found = true
		f.set(&p.r.Head, strings.TrimSpace(v))
	}
	return found
}

// fact is a line of the head, and what the file of --out_json_file calls it.
type fact struct {
	name, key string
	set       func(*Head, string)
}

// facts are those that are read.
func facts() []fact {
	return []fact{
		{"Device", "Device", func(h *Head, v string) { h.Device = v }},
		{"Transport type", "Transport_type", func(h *Head, v string) { h.Transport = v }},
		{"Connection type", "Connection_type", func(h *Head, v string) { h.Connection = v }},
		{"Link type", "Link_type", func(h *Head, v string) { h.Link = v }},
		{"Data ex. method", "Data_ex_method", func(h *Head, v string) { h.Exchange = v }},
		{"Number of qps", "Number_of_qps", func(h *Head, v string) { h.QPs = max(small(v), 0) }},
		{"TX depth", "TX_depth", func(h *Head, v string) { h.TXDepth = max(small(v), 0) }},
		{"RX depth", "RX_depth", func(h *Head, v string) { h.RXDepth = max(small(v), 0) }},
		{"Mtu", "Mtu", func(h *Head, v string) { h.MTU = units.Bytes(max(small(strings.TrimSuffix(v, "[B]")), 0)) }},
		{"GID index", "GID_index", func(h *Head, v string) { h.GID = small(v) }},
		{"TOS", "TOS", func(h *Head, v string) { h.ToS = small(v) }},
		{"rdma_cm QPs", "rdma_cm_QPs", func(h *Head, v string) { h.RDMACM = v == "ON" }},
	}
}

// small is a number of a head; -1 where it is none.
func small(v string) int {
	n, err := strconv.ParseUint(v, 10, 30)
	if err != nil {
		return -1
	}
	return int(n)
}
