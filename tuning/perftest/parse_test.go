package perftest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
)

const (
	line    = "---------------------------------------------------------------------------------------\n"
	gbHead  = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
	gbRow   = " 65536      352136           0.00               92.31  \t\t   0.176068\n"
	latHead = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	latRow  = " 2       100000        1.84           12.20        1.90     \t       1.97     \t\t0.11   \t\t2.20    \t\t3.95   \n"
)

// hundred is a test at 100 Gbit/s, and nic what it prints.
var hundred = Test{Op: Write, Device: "mlx5_0", GID: 3, Port: 18515, Size: 64 * units.KiB, Duration: 2 * time.Second, ToS: 104}

const nic = line + "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 1\t\tTransport type : IB\n" +
	" Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\t\tLock-free      : OFF\n TX depth        : 128\n Mtu             : 4096[B]\n Link type       : Ethernet\n" +
	" GID index       : 3\n rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n" + line

func parse(t *testing.T, stdout, stderr, file string) *Report {
	t.Helper()
	r, err := Parse([]byte(stdout), []byte(stderr), []byte(file), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestColumns are the column sets of all versions: what a row says of what its head names.
func TestColumns(t *testing.T) {
	perPort := strings.TrimSuffix(gbHead, "\n") + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"
	for _, x := range []struct{ name, table, want string }{
		{"bandwidth", gbHead + gbRow, "65536 bytes x 352136, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"peak", gbHead + " 65536 5000 92.41 92.31 0.176068\n", "65536 bytes x 5000, peak 92410000000±10000000, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"CPU", strings.TrimSuffix(gbHead, "\n") + "    CPU_Util[%]\n 65536 5000 0.00 92.31 0.176068\t    3.21\n", "65536 bytes x 5000, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288, cpu 3.21±0.01"},
		{"service level", " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536    3           5000           92.41            92.31                  0.176068\n", "65536 bytes x 5000, peak 92410000000±10000000, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"ports", perPort + " 65536 5000 0.00 92.31 0.176068 46.1 0.088 46.2 0.088\n", "65536 bytes x 5000, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"latency", latHead + latRow, "2 bytes x 100000, min 1.84µs±10ns, max 12.2µs±10ns, typical 1.9µs±10ns, mean 1.97µs±10ns, stdev 110ns±10ns, p99 2.2µs±10ns, p99.9 3.95µs±10ns"},
		{"latency, 2013", " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n 2       1000          1.84        12.20      1.90\n", "2 bytes x 1000, min 1.84µs±10ns, max 12.2µs±10ns, typical 1.9µs±10ns"},
		{"latency, duration", " #bytes        #iterations       t_avg[usec]    tps average\n 2             45            33499.20        14.93  \n", "2 bytes x 45, mean 33.4992ms±10ns, turns 14.93±0.01"},
		{"latency, duration, 2014", " #bytes        #iterations       t_avg[usec]  \t\n 2 45 33499.20\n", "2 bytes x 45, mean 33.4992ms±10ns"},
		{"a column nobody knows", strings.TrimSuffix(gbHead, "\n") + "   Colour[nm]\n 65536 5000 92.41 92.31 0.176068 532\n", "65536 bytes x 5000, peak 92410000000±10000000, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"a unit nobody knows", " #bytes #iterations BW peak[Tb/sec] BW average[Tb/sec] MsgRate[Mpps]\n 65536 5000 0.09 0.09 0.176068\n", "65536 bytes x 5000, rate 176068±1, goodput 92310339584±524288"},
		{"no numbers", latHead + " 2 200 1.00 2.00 1.50 -nan nan inf 2.00\n", "2 bytes x 200, min 1µs±10ns, max 2µs±10ns, typical 1.5µs±10ns, p99.9 2µs±10ns"},
		{"more than there is", gbHead + " 65536 5000 1e30 99999999999 0.176068\n", "65536 bytes x 5000, rate 176068±1, goodput 92310339584±524288"},
		{"a note in between", gbHead + "Conflicting CPU frequency values detected: 800.000000 != 2000.000000. CPU Frequency is not max.\n" + gbRow, "65536 bytes x 352136, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
		{"carriage returns", strings.ReplaceAll(gbHead+gbRow, "\n", "\r\n"), "65536 bytes x 352136, average 92310000000±10000000, rate 176068±1, goodput 92310339584±524288"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := parse(t, line+x.table+line, "", "")
			if len(r.Rows) != 1 {
				t.Fatalf("%d rows", len(r.Rows))
			}
			if d := cmp.Diff(x.want, words(&r.Rows[0])); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestNoRow: what is not a row of its table is none.
func TestNoRow(t *testing.T) {
	for _, table := range []string{
		gbHead + " 65536      352136           0.00               92.31\n",       // cut
		gbHead + " 65536      352136           0.00               92,31   0.1\n", // another locale
		gbHead + " 65536      352136           0.00               92.31   0.176068   1.0\n",
		gbHead + " -1      352136           0.00               92.31  0.1\n",
		gbHead + " 65536      12345678901234567890123           0.00               92.31  0.1\n",
		gbHead + line + gbHead + " 0x10 5000 0.00 92.31 0.1\n",
		gbRow,
		gbHead + gbRow[:20],
	} {
		if r := parse(t, nic+table, "", ""); len(r.Rows) != 0 {
			t.Errorf("%q has a row: %+v", table, r.Rows)
		}
	}
	if r := parse(t, gbHead+gbRow+line+gbRow, "", ""); len(r.Rows) != 1 {
		t.Errorf("after the table's end: %d rows", len(r.Rows))
	}
}

// TestReportBoth: with --report-both a bidirectional test says what each side has done, after the sum.
func TestReportBoth(t *testing.T) {
	r := parse(t, line+gbHead+gbRow+line+"\n Local results: \n"+line+gbHead+gbRow+line+"\n Remote results: \n"+line+gbHead+gbRow+line, "", "")
	var got []Side
	for _, w := range r.Rows {
		got = append(got, w.Side)
	}
	if d := cmp.Diff([]Side{Both, Local, Remote}, got); d != "" {
		t.Error(d)
	}
}

func TestVersionIsRead(t *testing.T) {
	if r := parse(t, "Version: 6.06\n", "", ""); r.Version != "6.06" {
		t.Errorf("%q", r.Version)
	}
}

// TestFile: the file of --out_json_file, as versions write it, is a second witness and adds digits.
func TestFile(t *testing.T) {
	old := "{\ntest_info: {\ntest: RDMA_Write_BW_Test,\nDevice: \"mlx5_0\",\nNumber_of_qps: 1,\nTX_depth : 128,\nMtu: 4096,\nLink_type: Ethernet,\nGID_index: 3,\nrdma_cm_QPs: OFF,\n},\nresults: {\nMsgSize: 65536,\nn_iterations: 352136,\nBW_peak: 0.000000,\nBW_average: 92.310512,\nMsgRate: 0.176068,\n},\n}\n"
	quoted := `{"test_info": {"test": "RDMA_Write_BW_Test", "Device": "mlx5_0", "Number_of_qps": 1, "TX_depth": 128, "Mtu": 4096, "Link_type": "Ethernet", "GID_index": 3, "rdma_cm_QPs": "OFF"}, "results": {"MsgSize": 65536, "n_iterations": 352136, "BW_peak": 0.0, "BW_average": 92.310512, "MsgRate": 0.176068}}`
	mib := strings.Replace(old, "92.310512", "11004.270554", 1)
	for name, file := range map[string]string{"unquoted": old, "quoted": quoted, "MiB": mib} {
		alone := parse(t, "", "", file)
		if alone.Device != "mlx5_0" || alone.MTU != 4096 || alone.GID != 3 || alone.Title != "RDMA_Write BW Test" || len(alone.Rows) != 1 {
			t.Errorf("%s: %+v", name, alone)
		}
		if got := rejected(alone.Judge(&hundred, Limits{})); got != "" {
			t.Errorf("%s alone: %s", name, got)
		}
		both := parse(t, nic+gbHead+gbRow+line, "", file)
		if len(both.Rows) != 1 {
			t.Fatalf("%s: %d rows", name, len(both.Rows))
		}
		got := both.Rows[0].Average
		if off := got.V - 92310512000; max(off, -off) > 1000 || got.Step > 10000 {
			t.Errorf("%s: the average is %d±%d", name, got.V, got.Step)
		}
	}

	stale := parse(t, nic+gbHead+gbRow+line, "", strings.Replace(old, "352136", "4711", 1))
	if stale := parse(t, nic+gbHead+gbRow+line, "", strings.Replace(old, "GID_index: 3", "GID_index: 1", 1)); stale.GID != 3 {
		t.Errorf("the head gave way to a file of another run: GID index %d", stale.GID)
	}
	if got := stale.Rows[0]; got.Average.V != 92310000000 || got.Iterations != 352136 {
		t.Errorf("the table gave way to a file of another run: %+v", got)
	}
	fs := stale.Judge(&hundred, Limits{})
	if len(fs) != 1 || fs[0].Code != Stale || fs[0].Reject {
		t.Errorf("%+v", fs)
	}

	// Where the message rate is too small to tell the unit, there is no bandwidth.
	for _, file := range []string{strings.Replace(old, "0.176068", "0.000000", 1), strings.Replace(old, "92.310512", "12.5", 1)} {
		if r := parse(t, "", "", file); r.File.Average.Set {
			t.Errorf("%+v", r.File.Average)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, x := range []struct {
		stdout, stderr, file string
		rc                   int
		want                 error
	}{
		{"", "", "", 0, ErrNothing},
		{"hello\n", "world\n", "{}", 0, ErrNothing},
		{"0.0665\n0.0667\n", "", "", 0, ErrNothing},
		{"", "", "", 1, nil},
		{"0.0665\n", "", "", 0, nil},
		{strings.Repeat("x", 16<<20), "y", "", 0, ErrTooLong},
	} {
		if _, err := Parse([]byte(x.stdout), []byte(x.stderr), []byte(x.file), x.rc); !errors.Is(err, x.want) {
			t.Errorf("%.20q %.20q %q: %v, want %v", x.stdout, x.stderr, x.file, err, x.want)
		}
	}
}

// TestJudge: one thing wrong at a time.
func TestJudge(t *testing.T) {
	good := nic + gbHead + gbRow + line
	is := func(a, b string) string { return strings.Replace(good, a, b, 1) }
	for _, x := range []struct {
		name, stdout, stderr string
		test                 func(*Test)
		want                 Code
	}{
		{name: "nothing", stdout: good},
		{name: "peak is not measured", stdout: " WARNING: BW peak won't be measured in this run.\n" + good},
		{name: "the other CPU's clock", stdout: good, stderr: "Conflicting CPU frequency values detected: 800.000000 != 2000.000000. CPU Frequency is not max.\n", want: Clock},
		{name: "no report for the clock", stdout: nic, stderr: "Can't produce a report\n", want: Clock},
		{name: "retries, and no exit code", stdout: nic, stderr: " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n", want: Retries},
		{name: "not ready", stdout: nic, stderr: " Failed status 13: wr_id 0 syndrom 0x0\n", want: NotReady},
		{name: "local protection", stdout: nic, stderr: " Failed status 4: wr_id 0 syndrom 0x51\n", want: Failed},
		{name: "options by name", stdout: nic, stderr: " tx_depth mismatch: local=128, remote=64\nFailed to exchange data between server and clients\n", want: Options},
		{name: "no perftest", stdout: "", stderr: "sh: 1: ib_write_bw: not found\n", want: NoTool},
		{name: "link down", stdout: "", stderr: " Port number 1 state is Down\n", want: LinkDown},
		{name: "no route", stdout: nic, stderr: "Failed to modify QP 1234 to RTR\n", want: NoPath},
		{name: "memory", stdout: "", stderr: "Couldn't allocate MR\n", want: NoMemory},
		{name: "another device", stdout: is("mlx5_0", "mlx5_1"), want: NotAsked},
		{name: "another test", stdout: is("RDMA_Write", "RDMA_Read"), want: NotAsked},
		{name: "queue pairs", stdout: is("qps   : 1", "qps   : 2"), want: NotAsked},
		{name: "depth", stdout: is(": 128", ": 64"), test: func(t *Test) { t.Depth = 128 }, want: NotAsked},
		{name: "GID", stdout: is("index       : 3", "index       : 0"), want: WrongGID},
		{name: "InfiniBand", stdout: is("type       : Ethernet", "type       : IB"), want: NotAsked},
		{name: "rdma_cm", stdout: is("QPs\t : OFF", "QPs\t : ON"), want: NotAsked},
		{name: "MTU", stdout: is("4096[B]", "1024[B]"), test: func(t *Test) { t.MTU = 4096 }, want: WrongMTU},
		{name: "class", stdout: is("OFF\n Data ex. method : Ethernet", "ON\n Data ex. method : rdma_cm \tTOS    : 0"), test: func(t *Test) { t.RDMACM = true }, want: Class},
		{name: "size", stdout: good, test: func(t *Test) { t.Size = 4096 }, want: NotAsked},
		{name: "nothing carried", stdout: is("352136           0.00               92.31  \t\t   0.176068", "0 0.00 0.00 0.000000"), want: Nothing},
		{name: "zero rate", stdout: is("92.31  \t\t   0.176068", "0.00 0.000000"), want: Nothing},
		{name: "not a number", stdout: is("92.31  \t\t   0.176068", "-nan -nan"), want: NoResult},
		{name: "negative", stdout: is("92.31  \t\t   0.176068", "-92.31 -0.176068"), want: Nonsense},
		{name: "MB that are no MiB", stdout: is("Gb/sec]    BW average[Gb/sec]", "MB/sec]    BW average[MB/sec]"), want: Nonsense},
		{name: "bytes for bits", stdout: is("92.31", "11.54"), want: Nonsense},
		{name: "MB of 1,000,000", stdout: is("92.31", "88.03"), want: Nonsense},
		{name: "half round trips", stdout: strings.Replace(nic, "RDMA_Write BW", "RDMA_Write Latency", 1) + latHead + strings.Replace(latRow, "100000", "500000", 1) + line, test: func(t *Test) { t.Latency, t.Size, t.Duration, t.Iterations = true, 2, 0, 500000 }},
		{name: "whole round trips", stdout: strings.Replace(nic, "RDMA_Write BW", "RDMA_Read Latency", 1) + latHead + strings.Replace(latRow, "100000", "500000", 1) + line, test: func(t *Test) { t.Op, t.Latency, t.Size, t.Duration, t.Iterations = Read, true, 2, 0, 500000 }, want: TooShort},
		{name: "few", stdout: is("352136 ", "52 "), want: TooShort},
		{name: "half of the time", stdout: is("352136 ", "176000 "), want: TooShort},
		{name: "short by what is asked for", stdout: good, test: func(t *Test) { t.Duration = 10 * time.Second }, want: TooShort},
		{name: "the end is missing", stdout: strings.TrimSuffix(good, "\n"+line), want: NoResult},
		{name: "no row", stdout: nic + gbHead + line, want: NoResult},
		{name: "two rows", stdout: nic + gbHead + gbRow + gbRow + line, want: NotAsked},
		{name: "cycles", stdout: strings.Replace(nic, "RDMA_Write BW", "RDMA_Write Latency", 1) + latHead + "#, cycles\n1, 4711\n" + line + latHead + latRow, test: func(t *Test) { t.Latency, t.Size, t.Duration, t.Iterations = true, 2, 0, 100000 }, want: Nonsense},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := Parse([]byte(x.stdout), []byte(x.stderr), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			test := hundred
			if x.test != nil {
				x.test(&test)
			}
			fs := r.Judge(&test, Limits{})
			if got := rejected(fs); got != x.want {
				t.Errorf("rejected for %q, want %q: %+v", got, x.want, fs)
			}
		})
	}
	for rc, want := range map[int]Code{1: Failed, -1: NoEnd, 124: NoEnd, 127: NoTool, 137: Killed, 255: Killed} {
		r, err := Parse([]byte(good), nil, nil, rc)
		if err != nil {
			t.Fatal(err)
		}
		if fs := r.Judge(&hundred, Limits{}); len(fs) != 1 || fs[0].Code != want {
			t.Errorf("exit code %d: %+v, want %s", rc, fs, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range recordings(f) {
		f.Add([]byte(p.Stdout), []byte(p.Stderr), p.file, p.ExitCode)
	}
	f.Add([]byte(nic+gbHead+gbRow), []byte("\x1b]0;x\x07\x00\xff IB device \u202e not found"), []byte(`{"MsgSize":"9223372036854775807","n_iterations":1,"MsgRate":1e300,"BW_average":-1}`), 0)
	f.Add([]byte(latHead+"#, usec\n1, 1e400\n2, 3.5\n"+latRow), []byte{}, []byte{}, 0)
	f.Fuzz(func(t *testing.T, stdout, stderr, file []byte, rc int) {
		r, err := Parse(stdout, stderr, file, rc)
		if err != nil {
			return
		}
		if again, _ := Parse(stdout, stderr, file, rc); !cmp.Equal(describe(&r), describe(&again)) {
			t.Error("the same output is read in two ways")
		}
		for _, s := range append([]string{r.Device, r.Title, r.Version, r.Link}, lines(&r)...) {
			if !utf8.ValidString(s) || len(s) > longLine*3 || strings.ContainsAny(s, "\x00\x1b\n\r") {
				t.Errorf("%q gets through", s)
			}
		}
		test := hundred
		fs := r.Judge(&test, Limits{})
		if rc != 0 && rejected(fs) == "" {
			t.Error("a failed test is not rejected")
		}
		if rejected(fs) == "" && !passes(&r) && !r.passive() {
			t.Errorf("not rejected: %s", describe(&r))
		}
		if other := parseAll(stderr, stdout); other != nil {
			Compare(&r, other)
		}
	})
}

// passes is what a row that may be used has at least.
func passes(r *Report) bool {
	for _, w := range r.Rows {
		if g := w.Goodput(); w.Side == Both && w.Size == hundred.Size && w.Iterations >= 100 && g.V > 0 && g.V < most {
			return true
		}
	}
	return false
}

func parseAll(a, b []byte) *Report {
	r, err := Parse(a, b, nil, 0)
	if err != nil {
		return nil
	}
	return &r
}

func lines(r *Report) (all []string) {
	for _, w := range r.Rows {
		all = append(all, w.Line)
	}
	for _, n := range r.Notes {
		all = append(all, n.Line)
	}
	for _, c := range r.Counts {
		all = append(all, c.Name)
	}
	return all
}

// TestLong: lines that never end and streams without any are read in a time that does not matter.
func TestLong(t *testing.T) {
	for _, b := range [][]byte{bytes.Repeat([]byte("a"), 15<<20), bytes.Repeat([]byte("\n"), 15<<20), bytes.Repeat([]byte(" 1 2\n"), 1<<20)} {
		if _, err := Parse(b, nil, nil, 1); err != nil {
			t.Error(err)
		}
	}
}
