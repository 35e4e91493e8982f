package engine_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// recorded is one run of the reference simulator: what went in, and what its tables say of it.
type recorded struct {
	Name    string
	In      input
	Row     row   // of runs.csv; nil = only the input was kept
	Flows   []row // of flows.csv, and so on
	Queues  []row
	Paths   []row
	Rates   []row
	Pauses  []row
	Spreads []row
	Further bool // it is not one of ours
}

// input is a file of inputs.
type input struct {
	Run      string
	Topology struct {
		Nodes int
		SW    []int `json:"sw"`
		Links []link
	}
	Flows       flows
	FlowsFields []string `json:"flows_fields"`
	LinksFields []string `json:"links_fields"`
	Config      settings
}

// settings has every key that the reference's runs know, in its units.
type settings struct {
	ECN     int     // 0: no marks
	Hdrm    int64   // percent of rate times one-way delay
	Shift   int     // alpha of a port of the hosts' rate is 1/2^shift
	Static  int64   // threshold in bytes; 0 = alpha counts
	Half    float64 // s, when goodput is looked at besides at the end; 0 = never
	Every   float64 // us, between rows of rate_series.csv; 0 = none
	Seed    uint64
	Payload int32
	Stop    float64 // s
	TAlpha  float64 `json:"t_alpha"` // us
	TDec    float64 `json:"t_dec"`
	TInc    float64 `json:"t_inc"`
	Clamp   int
	FRT     int     // fast recovery steps
	AI, HAI float64 // Mb/s
	MinRate float64
	Kmin    float64 // kB, at R1; Kmin2 at R2, Kmin4 at R4
	Kmin2   float64
	Kmin4   float64
	Kmax    float64
	Kmax2   float64
	Kmax4   float64
	Pmax    float64
	Buf     float64 // MiB
	R1      int64   // bit/s
	R2      int64
	R4      int64
}

// begin is when traffic starts, in s of the reference's time.
const begin = 2.0

// link is [a, b, gbps, "delay"].
type link struct {
	A, B  int
	Rate  int64
	Delay engine.Time
}

func (l *link) UnmarshalJSON(b []byte) error {
	var gbps float64
	var delay string
	if err := json.Unmarshal(b, &[]any{&l.A, &l.B, &gbps, &delay}); err != nil {
		return err
	}
	d, err := time.ParseDuration(delay)
	l.Rate, l.Delay = int64(gbps*1e9), engine.Time(d)*engine.Nanosecond
	return err
}

// flows is [[src, dst, bytes, start_s], ...], or a sentence that sends to the reference's README.
type flows []struct {
	Src, Dst int
	Bytes    int64
	Start    engine.Time
}

func (f *flows) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		return nil
	}
	var all [][4]float64
	err := json.Unmarshal(b, &all)
	*f = make(flows, len(all))
	for i, x := range all {
		g := &(*f)[i]
		g.Src, g.Dst, g.Bytes, g.Start = int(x[0]), int(x[1]), int64(x[2]), since(x[3])
	}
	return err
}

// since is the time from the start of traffic to a time of the reference, in whole ns.
func since(s float64) engine.Time {
	return engine.Time(math.Round((s-begin)*1e9)) * engine.Nanosecond
}

// byRule makes the flows of runs whose input only names them.
func (in *input) byRule() error {
	hosts := in.Topology.Nodes - len(in.Topology.SW)
	add := func(src, dst int, bytes int64) {
		in.Flows = append(in.Flows, flows{{Src: src, Dst: dst % hosts, Bytes: bytes}}...)
	}
	switch {
	case strings.HasPrefix(in.Run, "p_a2a"):
		for k := 1; k < hosts; k++ {
			for i := range hosts {
				add(i, i+k, 20_000)
			}
		}
	case strings.HasPrefix(in.Run, "p_perm"):
		for i := range hosts {
			add(i, i+16, 4_000_000)
		}
	default:
		return fmt.Errorf("%s does not list its flows, and its name says nothing", in.Run)
	}
	return nil
}

// row is a line of a table, by column.
type row map[string]string

func (r row) num(t testing.TB, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		t.Fatalf("column %s of %v: %v", column, r, err)
	}
	return v
}

func (r row) int(t testing.TB, column string) int {
	t.Helper()
	return int(r.num(t, column))
}

// keptRuns is the recorded runs that are kept with the tests.
const keptRuns = "testdata/reference"

// records reads all runs in a folder like keptRuns.
func records(t testing.TB, dir string) []*recorded {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(dir, "inputs", "*.json"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("%s has no inputs: %v", dir, err)
	}
	byName := map[string]*recorded{}
	var all []*recorded
	for _, path := range inputs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		r := &recorded{In: input{Config: settings{Payload: 1000, Seed: 1}}}
		if err := d.Decode(&r.In); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if r.In.Flows == nil {
			if err := r.In.byRule(); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		r.Name = r.In.Run
		byName[r.Name] = r
		all = append(all, r)
	}
	for file, add := range map[string]func(*recorded, row){
		"runs.csv":        func(r *recorded, x row) { r.Row = x },
		"flows.csv":       func(r *recorded, x row) { r.Flows = append(r.Flows, x) },
		"queues.csv":      func(r *recorded, x row) { r.Queues = append(r.Queues, x) },
		"ecmp_paths.csv":  func(r *recorded, x row) { r.Paths = append(r.Paths, x) },
		"rate_series.csv": func(r *recorded, x row) { r.Rates = append(r.Rates, x) },
		"pfc_events.csv":  func(r *recorded, x row) { r.Pauses = append(r.Pauses, x) },
		"seed_spread.csv": func(r *recorded, x row) { r.Spreads = append(r.Spreads, x) },
	} {
		for _, x := range rows(t, filepath.Join(dir, file)) {
			r := byName[x["run"]]
			if r == nil {
				t.Errorf("%s/%s is of a run %q that has no input", dir, file, x["run"])
				continue
			}
			add(r, x)
		}
	}
	return all
}

// rows reads a table; one that is not there has none.
func rows(t testing.TB, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var all []row
	for _, l := range lines[1:] {
		x := row{}
		for i, column := range lines[0] {
			x[column] = l[i]
		}
		all = append(all, x)
	}
	return all
}

// everyRun is our recorded runs, and those below FABRICCTL_REFERENCE that we do not have or have otherwise.
func everyRun(t testing.TB) []*recorded {
	t.Helper()
	all := records(t, keptRuns)
	root := os.Getenv("FABRICCTL_REFERENCE")
	if root == "" {
		return all
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("../../..", root)
	}
	dir := filepath.Join(root, "reference", "simulator")
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("FABRICCTL_REFERENCE is set, but %v", err)
	}
	for _, r := range records(t, dir) {
		if !slices.ContainsFunc(all, func(o *recorded) bool { return reflect.DeepEqual(o, r) }) {
			r.Further = true
			all = append(all, r)
		}
	}
	return all
}

// laid is a recorded run as a Config, and which node and interface of the reference each port is.
type laid struct {
	*engine.Config
	node, iface []int // by port
	hosts       []int // node, by NIC
	ports       map[[2]int]int
}

// The class of everything in the reference's runs.
const dataPriority = 3

// lay makes the Config of a recorded run, computed as the reference does.
func (in *input) lay(seed uint64) (*laid, error) {
	s := &in.Config
	l := &laid{Config: &engine.Config{
		Compat: true, Seed: seed,
		// The reference cuts its stop to whole ns: 2.01 s is 9,999,999 ns after the start.
		Stop: engine.Time(s.Stop*1e9)*engine.Nanosecond - begin*engine.Second,
		Transport: engine.Transport{
			AckSize: 60, CNPSize: 60, PauseSize: 43, Header: 48, AckEvery: 1,
			NackGap: 500 * engine.Microsecond,
		},
	}, ports: map[[2]int]int{}}
	switchOf, nicOf := map[int]int{}, map[int]int{}
	for _, n := range in.Topology.SW {
		switchOf[n] = len(l.Switches)
		l.Switches = append(l.Switches, engine.Switch{HashSeed: uint32(n)})
	}
	for n := range in.Topology.Nodes {
		if _, ok := switchOf[n]; !ok {
			nicOf[n] = len(l.NICs)
			l.hosts = append(l.hosts, n)
			l.NICs = append(l.NICs, engine.NIC{
				Port: engine.None, CNPMark: 0, Address: 0x0b000001 + uint32(n/256)<<16 + uint32(n%256)<<8, React: s.reaction(),
			})
		}
	}
	l.cables(in, switchOf, nicOf)
	hostRate := l.Ports[l.NICs[0].Port].Rate
	used := make([]int64, len(l.Switches)) // by headroom and reserves
	for p := range l.Ports {
		if sw := l.Ports[p].Switch; sw != engine.None {
			held, err := s.provision(&l.Ports[p], hostRate)
			if err != nil {
				return nil, fmt.Errorf("node %d interface %d: %w", l.node[p], l.iface[p], err)
			}
			used[sw] += held
		}
	}
	for i := range l.Switches {
		l.Switches[i].Pools = []engine.Pool{{Size: int64(s.Buf*(1<<20)) - used[i]}}
	}
	l.Next = l.ways(in, switchOf)
	pairs := map[[2]int]uint16{}
	for _, f := range in.Flows {
		k := [2]int{f.Src, f.Dst}
		l.Flows = append(l.Flows, engine.Flow{
			Src: nicOf[f.Src], Dst: nicOf[f.Dst], Bytes: f.Bytes, Start: f.Start, After: engine.None,
			Class: dataPriority, Payload: s.Payload, SourcePort: 10_000 + pairs[k],
		})
		pairs[k]++
	}
	l.Sample = engine.Time(s.Every * 1e6)
	if s.Half > 0 { // there is a sample of it as well
		for half := since(s.Half); half != 0; {
			l.Sample, half = half, l.Sample%half
		}
	}
	return l, nil
}

// cables adds both ports of each link; interfaces count from 1 in the order of the links.
func (l *laid) cables(in *input, switchOf, nicOf map[int]int) {
	count := map[int]int{}
	for _, k := range in.Topology.Links {
		for _, end := range [2][2]int{{k.A, k.B}, {k.B, k.A}} {
			n, i := end[0], len(l.Ports)
			p := engine.Port{Switch: engine.None, Peer: i ^ 1, Rate: k.Rate, Delay: k.Delay}
			if sw, ok := switchOf[n]; ok {
				p.Switch = sw
			} else {
				l.NICs[nicOf[n]].Port = i
			}
			for q := range p.Queues {
				p.Queues[q].Weight = 4096
				p.Obeys[q] = 1 << q
			}
			for m := range p.Classify {
				p.Classify[m] = engine.Class{Group: dataPriority, Queue: dataPriority}
			}
			count[n]++
			l.Ports = append(l.Ports, p)
			l.node, l.iface = append(l.node, n), append(l.iface, count[n])
			l.ports[[2]int{n, count[n]}] = i
		}
	}
}

// provision gives a switch's port the buffer and the marking of the reference, and says what it takes from the pool.
func (s *settings) provision(p *engine.Port, hostRate int64) (held int64, err error) {
	const reserve = 4096
	shift := s.Shift
	for rate := p.Rate; rate > hostRate && shift > 0; rate /= 2 {
		shift--
	}
	headroom := p.Rate * int64(p.Delay/engine.Nanosecond) / 8 / 1e9 * s.Hdrm / 100
	p.Groups[dataPriority] = engine.Group{
		Lossless: true, Reserved: reserve, Static: s.Static, Alpha: 1 << 16 >> shift, Headroom: headroom, XonOffset: 3072,
	}
	if s.ECN != 0 {
		q := &p.Queues[dataPriority]
		q.Marks, q.Pmax = true, s.Pmax
		switch p.Rate {
		case s.R1:
			q.Kmin, q.Kmax = int64(s.Kmin*1000), int64(s.Kmax*1000)
		case s.R2:
			q.Kmin, q.Kmax = int64(s.Kmin2*1000), int64(s.Kmax2*1000)
		case s.R4:
			q.Kmin, q.Kmax = int64(s.Kmin4*1000), int64(s.Kmax4*1000)
		default:
			return 0, fmt.Errorf("no marking thresholds are given for %d bit/s", p.Rate)
		}
	}
	return headroom + reserve, nil
}

func (s *settings) reaction() engine.Reaction {
	us := func(v float64) engine.Time { return engine.Time(v * 1e6) }
	mbps := func(v float64) int64 { return int64(v * 1e6) }
	return engine.Reaction{
		On: s.ECN != 0, AlphaTimer: us(s.TAlpha), CutTimer: us(s.TDec), RateTimer: us(s.TInc), FastRecovery: s.FRT, G: 1.0 / 256,
		AI: mbps(s.AI), HAI: mbps(s.HAI), MinRate: mbps(s.MinRate), ClampTarget: s.Clamp != 0,
	}
}

// ways is the reference's next hops: nodes of the fewest hops in the order in which a search from the receiver meets them, of neighbours the
// highest number first (the recorded paths and queues say so); of parallel links the last one counts.
func (l *laid) ways(in *input, switchOf map[int]int) func(sw, nic int) []int32 {
	to := make([]map[int]int32, in.Topology.Nodes) // by node and neighbour, the port
	for n := range to {
		to[n] = map[int]int32{}
	}
	for p := range l.Ports {
		to[l.node[p]][l.node[l.Ports[p].Peer]] = int32(p)
	}
	next := make([]map[int][]int32, len(l.NICs)) // by NIC and switch
	search := func(host int) map[int][]int32 {
		hops, found := map[int]int{host: 0}, map[int][]int32{}
		for queue := []int{host}; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			for m := len(to) - 1; m >= 0; m-- {
				back, linked := to[m][n]
				sw, isSwitch := switchOf[m]
				if !linked || !isSwitch {
					continue
				}
				if _, seen := hops[m]; !seen {
					hops[m] = hops[n] + 1
					queue = append(queue, m)
				}
				if hops[m] == hops[n]+1 {
					found[sw] = append(found[sw], back)
				}
			}
		}
		return found
	}
	return func(sw, nic int) []int32 {
		if next[nic] == nil {
			next[nic] = search(l.hosts[nic])
		}
		return next[nic][sw]
	}
}
