package derive

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

// line is one row of a reference table, by column.
type line map[string]string

// table reads a reference table; lines that begin with # are comments.
func table(t *testing.T, file string, rows int) []line {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	for _, fields := range all[1:] {
		l := line{}
		for i, name := range all[0] {
			l[name] = fields[i]
		}
		lines = append(lines, l)
	}
	if len(lines) != rows {
		t.Fatalf("%s has %d rows, want %d", file, len(lines), rows)
	}
	witness.Agree(t, file, rows)
	return lines
}

func ours(t *testing.T, name string, rows int) []line {
	return table(t, filepath.Join("testdata", name), rows)
}

func (l line) num(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(l[name], 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func (l line) int(t *testing.T, name string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(strings.TrimSuffix(l[name], "m"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func (l line) bytes(t *testing.T, name string) units.Bytes { return units.Bytes(l.int(t, name)) }

func (l line) rate(t *testing.T, name string, unit units.BitRate) units.BitRate {
	return units.BitRate(l.int(t, name)) * unit
}

func (l line) micro(t *testing.T, name string) units.Duration {
	return units.Duration(l.int(t, name)) * units.Microsecond
}

// near reports whether got is want within a share of it.
func near(got, want, within float64) bool { return math.Abs(got-want) <= within*math.Abs(want) }

// addUp checks that the terms of h come to its xoff.
func addUp(t *testing.T, h Headroom) {
	t.Helper()
	var sum Amount
	for _, term := range h.Terms {
		sum += term.Bytes
	}
	if !near(float64(sum), float64(h.Xoff), 1e-12) {
		t.Errorf("%s: the terms %v come to %s, xoff is %s", h.Model, h.Terms, sum, h.Xoff)
	}
}

// oneTwo is the ratio a/b.
func oneTwo(a, b int32) units.Ratio { return units.Ratio{Num: a, Den: b} }

func TestHeadroomFormula(t *testing.T) {
	for _, l := range ours(t, "headroom_formula.csv", 50) {
		link := Link{
			Speed: l.rate(t, "speed_gbps", units.Gbps), Cable: units.Length(l.int(t, "cable_m")) * units.Metre, Frame: l.bytes(t, "frame_or_mtu_bytes"),
		}
		var h Headroom
		var size string
		switch Model(l["model"]) {
		case ModelPhysicsMin:
			h = PhysicsMin(link)
		case ModelStdMax:
			h = StdMax(link, Delays{Quanta: l.int(t, "pause_quanta"), Interface: units.Bytes(l.num(t, "local_if_delay_bytes"))})
		case ModelMLX5NIC:
			h = MLX5NIC(link.Speed, link.Cable, link.Frame)
		case ModelSonicMlnx:
			lanes := 4
			if strings.HasSuffix(l["case"], "-8lane") {
				lanes = 8
			}
			h = SonicMlnx(Sonic{
				Form: SonicDesign(), Speed: link.Speed, Cable: link.Cable, MTU: link.Frame, Lanes: lanes, LosslessMTU: 1500, SmallPercent: 100,
				Cell: l.bytes(t, "cell_bytes"), Pipeline: 18 * units.KiB, MacPhy: oneTwo(4096, 5), Quanta: l.int(t, "pause_quanta"),
			})
			size, _, _ = strings.Cut(strings.TrimPrefix(l["formula_note"], "size="), ";")
			if h.Xon != l.bytes(t, "aux_bytes_or_xon") {
				t.Errorf("%s: xon %d, want %s", l["case"], h.Xon, l["aux_bytes_or_xon"])
			}
		default:
			t.Fatalf("model %q", l["model"])
		}
		addUp(t, h)
		if want := l.bytes(t, "expected_headroom_bytes"); h.Xoff != want {
			t.Errorf("%s: %d, want %d", l["case"], h.Xoff, want)
		}
		if size != "" && fmt.Sprint(int64(h.Size)) != size {
			t.Errorf("%s: size %d, want %s", l["case"], h.Size, size)
		}
	}
}

// TestPublishedSpectrum1 is the rows of MSN2700, the one published table that follows from a formula. The others are
// data of profiles.
func TestPublishedSpectrum1(t *testing.T) {
	compared := 0
	for _, l := range ours(t, "headroom_published.csv", 16) {
		cell := l.bytes(t, "cell_bytes")
		if !strings.Contains(l["platform"], "Spectrum-1") {
			if flat := l.bytes(t, "xoff"); RoundUp(flat, cell) != flat { // whole cells
				t.Errorf("%s: %d is not in cells of %d", l["platform"], flat, cell)
			}
			continue
		}
		compared++
		h := SonicMlnx(Sonic{
			Form: SonicStatic(), Speed: l.rate(t, "speed_gbps", units.Gbps), Cable: units.Length(l.int(t, "cable_m")) * units.Metre, MTU: 9216,
			Lanes: 4, LosslessMTU: 1024, SmallPercent: 100, Cell: cell, Pipeline: 19 * units.KiB, MacPhy: oneTwo(4096, 5), PeerResponse: oneTwo(19456, 5), UseResponse: true,
		})
		addUp(t, h)
		want := [3]units.Bytes{l.bytes(t, "pg_size"), l.bytes(t, "xon"), l.bytes(t, "xoff")}
		if diff := cmp.Diff(want, [3]units.Bytes{h.Size, h.Xon, h.Xoff}); diff != "" {
			t.Errorf("%s at %s, %s: size, xon, xoff (-want +got):\n%s", l["platform"], l["speed_gbps"], l["cable_m"], diff)
		}
	}
	if compared != 10 {
		t.Errorf("compared %d rows, want 10", compared)
	}
}

// kibs reads a decimal number of KiB, in bytes.
func kibs(t *testing.T, s string) units.Ratio {
	t.Helper()
	whole, tenths, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole+tenths, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	den := int32(1)
	for range tenths {
		den *= 10
	}
	return units.Ratio{Num: int32(n) * 1024, Den: den}
}

// TestSonicScript compares with what the script itself answered, over six generations of chips.
func TestSonicScript(t *testing.T) {
	file := witness.Reference(t, "reference/sonic-pg/dynamic-headroom-vectors.csv")
	for i, l := range table(t, file, 1920) {
		in := Sonic{
			Form: SonicScript(), Speed: l.rate(t, "port_speed", units.Mbps), Cable: units.Length(l.int(t, "cable")) * units.Metre,
			MTU: l.bytes(t, "port_mtu"), Lanes: int(l.int(t, "lanes")), LosslessMTU: l.bytes(t, "lossless_mtu"),
			SmallPercent: int(l.int(t, "small_packet_percentage")), Shared: l["over_subscribe_ratio"] != "0", Cell: l.bytes(t, "cell_size"),
			Pipeline: l.bytes(t, "pipeline_latency_kb") * units.KiB, MacPhy: kibs(t, l["mac_phy_delay_kb"]), PeerResponse: kibs(t, l["peer_response_time_kb"]),
		}
		switch l["asic"] {
		case "SPECTRUM-4", "SPECTRUM-5":
			in.Tile = 120 * units.Nanosecond
		case "SPECTRUM-6":
			in.Extra = 18 * units.KiB
		}
		h := SonicMlnx(in)
		addUp(t, h)
		want := [3]units.Bytes{l.bytes(t, "xon"), l.bytes(t, "xoff"), l.bytes(t, "size")}
		if diff := cmp.Diff(want, [3]units.Bytes{h.Xon, h.Xoff, h.Size}); diff != "" {
			t.Errorf("row %d, %v: xon, xoff, size (-want +got):\n%s", i+1, l, diff)
		}
	}
}

func TestDynamicThreshold(t *testing.T) {
	for _, l := range ours(t, "dt_threshold.csv", 48) {
		alpha, ok := Alpha(int(l.int(t, "dynamic_th")))
		if e, back := Exponent(alpha); !ok || !back || int64(e) != l.int(t, "dynamic_th") || float64(alpha.Num)/float64(alpha.Den) != l.num(t, "alpha") {
			t.Errorf("exponent %s is alpha %s", l["dynamic_th"], alpha)
		}
		pool, n := l.bytes(t, "pool_bytes"), int(l.int(t, "n_congested_pgs"))
		s := DynamicThreshold(pool, alpha, n)
		for _, x := range []struct {
			name string
			got  float64
		}{
			{"threshold_each_bytes", float64(s.Each)}, {"used_total_bytes", float64(s.Used)}, {"free_bytes", float64(s.Free)},
		} {
			if want := l.num(t, x.name); !near(x.got, want, 1e-6) {
				t.Errorf("%v: %s %f, want %f", l, x.name, x.got, want)
			}
		}
		if got := FirstPause(pool, alpha, n); got != s.Used.Down() {
			t.Errorf("%v: first pause %d, want %s", l, got, s.Used)
		}
	}
}

func TestECNBeforePFC(t *testing.T) {
	for _, l := range ours(t, "ecn_before_pfc.csv", 6) {
		b := ECNBeforePFC(l.bytes(t, "buffer_bytes"), int(l.int(t, "lossless_prios_k")), int(l.int(t, "ports_n")), l.bytes(t, "t_flight_bytes"),
			oneTwo(int32(l.int(t, "beta")), 1))
		for _, x := range []struct {
			name string
			got  Amount
		}{
			{"free_after_headroom", b.Free}, {"static_tPFC_upper", b.PFC}, {"static_tECN_upper", b.ECNStatic}, {"dynamic_tECN_upper", b.ECNDynamic},
		} {
			if want := l.num(t, x.name); math.Abs(float64(x.got)-want) > 0.01 {
				t.Errorf("%s: %s %s, want %f", l["case"], x.name, x.got, want)
			}
		}
		if b.Feasible != (l["status"] == "ok") {
			t.Errorf("%s: feasible %v, status %s", l["case"], b.Feasible, l["status"])
		}
	}
	// 64 ports of 800G and 10 km with two priorities want more headroom than any buffer.
	if b := ECNBeforePFC(165660324, 2, 64, 22349824, oneTwo(1, 1)); b.Feasible || b.PFC != 0 || b.ECNDynamic != 0 || b.Free >= 0 {
		t.Errorf("headroom above the buffer: %+v", b)
	}
}

func TestDCTCPMin(t *testing.T) {
	for _, l := range ours(t, "dctcp_k.csv", 24) {
		got := DCTCPMin(l.rate(t, "C_gbps", units.Gbps), l.micro(t, "rtt_us"))
		if s := strconv.FormatFloat(float64(got), 'f', 2, 64); s != l["K_min_bytes"] {
			t.Errorf("%s Gbps, %s us: %s, want %s", l["C_gbps"], l["rtt_us"], s, l["K_min_bytes"])
		}
	}
}

func TestFirstReaction(t *testing.T) {
	for _, l := range ours(t, "incast_first_reaction.csv", 8) {
		r := FirstReaction(Incast{
			Speed: l.rate(t, "C_gbps", units.Gbps), Senders: int(l.int(t, "N_senders")), Kmin: l.bytes(t, "Kmin_bytes"),
			Xoff: l.bytes(t, "xoff_per_ingress_bytes"), Feedback: l.micro(t, "feedback_rtt_us"),
		})
		got := line{
			"queue_growth_gbps": strconv.FormatFloat(float64(r.Growth)/1e9, 'f', 1, 64),
			"t_reach_Kmin_us":   fourDigits(r.ToKmin), "t_reach_xoff_us": fourDigits(r.ToXoff), "t_first_rate_cut_us": fourDigits(r.FirstCut),
			"which_first": string(r.First), "egress_queue_at_first_cut_bytes": strconv.FormatFloat(float64(r.AtCut), 'f', 1, 64),
		}
		want := line{}
		for name := range got {
			want[name] = l[name]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s senders at %s Gbps (-want +got):\n%s", l["N_senders"], l["C_gbps"], diff)
		}
	}
}

func fourDigits(sec float64) string {
	s := strconv.FormatFloat(sec*1e6, 'f', 4, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func TestFixedPoint(t *testing.T) {
	for _, l := range ours(t, "dcqcn_fixed_point.csv", 26) {
		d := DCQCN{
			CNPInterval: l.micro(t, "tau_us"), AlphaTimer: l.micro(t, "tau_prime_us"), RateTimer: l.micro(t, "T_us"), ByteCounter: l.bytes(t, "B_bytes"),
			Recovery: int(l.int(t, "F")), Increase: l.rate(t, "R_AI_mbps", units.Mbps), Packet: l.bytes(t, "packet_bytes"),
		}
		x, ok := FixedPointOf(d, l.rate(t, "C_gbps", units.Gbps), int(l.int(t, "N")))
		pmax := units.Percent(math.Round(l.num(t, "Pmax") * 1e6))
		q, saturated := x.Queue(Ramp{l.bytes(t, "Kmin"), l.bytes(t, "Kmax"), pmax})
		for _, c := range []struct {
			name string
			got  float64
		}{
			{"p_exact", x.P},
			{"p_approx", x.Approx},
			{"q_exact_bytes", float64(q)},
			{"alpha_star", x.Alpha},
			{"RC_gbps", float64(x.Rate) / 1e9},
			{"RT_gbps", float64(x.Target) / 1e9},
		} {
			if want := l.num(t, c.name); !near(c.got, want, 5e-6) { // alpha and the rates are printed with six digits
				t.Errorf("%s Gbps, %s flows: %s %g, want %g", l["C_gbps"], l["N"], c.name, c.got, want)
			}
		}
		if want := l.num(t, "p_exact"); !near(x.P, want, 1e-6) {
			t.Errorf("%s Gbps, %s flows: p %g, want %g", l["C_gbps"], l["N"], x.P, want)
		}
		if !ok || saturated != (l["regime"] == "saturated") || saturated != (x.PmaxNeeded() > pmax) {
			t.Errorf("%s Gbps, %s flows: saturated %v, pmax %s needed; want %s", l["C_gbps"], l["N"], saturated, x.PmaxNeeded(), l["regime"])
		}
	}
}
