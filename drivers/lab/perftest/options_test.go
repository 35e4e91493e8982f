package perftest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, line string) (Options, *Ended) {
	t.Helper()
	f := strings.Fields(line)
	tool, ok := Find(f[0])
	if !ok {
		t.Fatalf("%s is no tool", f[0])
	}
	return Parse(tool, f[1:])
}

func TestOptions(t *testing.T) {
	usual := Options{IBPort: 1, Port: 18515, Size: 65536, Depth: 128, QPs: 1, Iterations: 5000, GID: NotGiven, TClass: NotGiven, ToS: NotGiven, JSONFile: "perftest_out.json"}
	for line, change := range map[string]func(*Options){
		"ib_write_bw": func(*Options) {},
		"ib_write_bw -d mlx5_0 -F --report_gbits -D 3 10.0.0.2": func(o *Options) {
			o.Device, o.AnyClock, o.Gbits, o.Duration, o.fixedDuration, o.Server = "mlx5_0", true, true, 3, true, "10.0.0.2"
		},
		"ib_write_bw --ib-dev=mlx5_0 --size 4096 -q4 -Ft 16 host2": func(o *Options) {
			o.Device, o.Size, o.QPs, o.AnyClock, o.Depth, o.Server = "mlx5_0", 4096, 4, true, 16, "host2"
		},
		"ib_send_bw host2 -b -n 20 -m 1024 -x 3 --tclass=106": func(o *Options) {
			o.Both, o.Iterations, o.Depth, o.MTU, o.GID, o.TClass, o.Server = true, 20, 20, 1024, 3, 106, "host2"
		},
		"ib_read_bw -R -T 105 -p 18600 -N -S 3 -u 14 -c RC --out_json": func(o *Options) { o.RDMACM, o.ToS, o.Port, o.JSON = true, 105, 18600, true },
		"ib_write_lat -t 64": func(o *Options) { o.Size, o.Depth, o.Iterations = 2, 1, 1000 },
		"ib_write_bw --output=bandwidth --out_json_file=/tmp/x -f 1 -D3": func(o *Options) {
			o.Output, o.JSONFile, o.Margin, o.Duration, o.fixedDuration = "bandwidth", "/tmp/x", 1, 3, true
		},
		"ib_write_bw -D 9 --cpu_util": func(o *Options) { o.Margin, o.Duration, o.fixedDuration, o.CPU = 2, 9, true, true },
		"ib_read_lat -n 2000 -H":      func(o *Options) { o.Size, o.Depth, o.Iterations, o.Samples = 2, 1, 2000, true },
	} {
		got, ended := parse(t, line)
		want := usual
		want.Tool, _ = Find(strings.Fields(line)[0])
		change(&want)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Options{})); d != "" || ended != nil {
			t.Errorf("%s: %v (-want +got)\n%s", line, ended, d)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for line, want := range map[string]string{
		"ib_write_bw --nonsense":       "ib_write_bw: unrecognized option '--nonsense'\n Invalid Command or flag.\n",
		"ib_write_bw --rate_limit=1":   "ib_write_bw: unrecognized option '--rate_limit'\n",
		"ib_write_bw -D 4 -f 2":        "please check that DURATION > 2*MARGIN\n",
		"ib_write_bw -a":               "ib_write_bw: invalid option -- 'a'\n",
		"ib_write_bw -Fa":              "ib_write_bw: invalid option -- 'a'\n",
		"ib_write_bw -s":               "ib_write_bw: option requires an argument -- 's'\n",
		"ib_write_bw --size":           "ib_write_bw: option '--size' requires an argument\n",
		"ib_write_bw --rdma_cm=yes":    "ib_write_bw: option '--rdma_cm' doesn't allow an argument\n",
		"ib_write_bw a b":              " Invalid Command or flag.\n Please check command line and run again.\n",
		"ib_write_bw -c UD":            "ib_write_bw: option '-c UD' is not emulated\n",
		"ib_write_lat -b":              "ib_write_lat: invalid option -- 'b'\n",
		"ib_write_bw -x 65":            " Gid index should be between 0 and 64\n Parser function exited with Error\n",
		"ib_write_bw -p 0":             " Port should be between 1 and 65535\n",
		"ib_write_bw -n 4":             " Iteration num should be between 5 and ",
		"ib_write_bw -q nine":          " Num of QPs should be between 1 and ",
		"ib_write_bw --tclass=256 -F":  " Traffic Class should be between 0 and 255\n",
		"ib_write_bw -D 0 -s 99999999": " Duration period should be between 1 and ",
	} {
		if _, ended := parse(t, line); ended == nil || ended.Status != 1 || !strings.HasPrefix(ended.Stderr, want) {
			t.Errorf("%s: %+v, want %q", line, ended, want)
		}
	}
	for line, want := range map[string]string{
		"ib_write_bw -h": "Usage:\n  ib_write_bw            start a server and wait for connection\n", "ib_read_lat -V": "Version: 6.06\n",
	} {
		if _, ended := parse(t, line); ended == nil || ended.Status != 0 || !strings.HasPrefix(ended.Stdout, want) {
			t.Errorf("%s: %+v", line, ended)
		}
	}
}

// FuzzParse: whatever is typed, the tools run with numbers in their ranges, or say why not.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"-d mlx5_0 -F --report_gbits -D 3 host2", "-s 4096 -q 4 -t 16 -m 1024", "--size=x -x", "-R -T 105 --out_json_file=", "- -- --= -", "-n5 -b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, tool := range Tools() {
			o, ended := Parse(tool, strings.Fields(line))
			if ended != nil {
				if ended.Status != 0 && ended.Stderr+ended.Stdout == "" {
					t.Errorf("%s %q ends and says nothing", tool.Name, line)
				}
				continue
			}
			if o.Size < 1 || o.Depth < 1 || o.QPs < 1 || o.Iterations < 5 || o.Duration < 0 || o.Port < 1 || o.Port > 65535 || o.GID > 64 || o.MTU < 0 {
				t.Errorf("%s %q: %+v", tool.Name, line, o)
			}
			s := Side{Options: o, Card: Card{Name: "mlx5_0"}}
			mtu, _, _ := o.PathMTU(4096)
			if head := s.Head(mtu); o.Output == "" && !strings.Contains(head, "Mtu             : ") {
				t.Errorf("%s %q: %q", tool.Name, line, head)
			}
		}
	})
}
