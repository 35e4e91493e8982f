// Package perftest emulates the command line of the verbs tests of linux-rdma/perftest (ib_write_bw and its kin): what they
// take, what they print, and how they fail. It measures nothing: the numbers come from whoever runs the test.
//
// What it prints follows recordings of version 6.06. An option that is not emulated is refused as perftest refuses one that
// it does not know.
package perftest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Version is the version that is imitated, as --version prints it.
const Version = "6.06"

// Op is the operation of a test.
type Op uint8

// The operations.
const (
	Write Op = iota
	Read
	Send
)

// Tool is one of the programs.
type Tool struct {
	Name    string
	Op      Op
	Latency bool
}

// Tools are the programs that are emulated.
func Tools() []Tool {
	return []Tool{
		{"ib_write_bw", Write, false},
		{"ib_read_bw", Read, false},
		{"ib_send_bw", Send, false},
		{"ib_write_lat", Write, true},
		{"ib_read_lat", Read, true},
		{"ib_send_lat", Send, true},
	}
}

// Find is the program of that name.
func Find(name string) (Tool, bool) {
	i := slices.IndexFunc(Tools(), func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return Tools()[i], true
}

// NotGiven is the value of a number that was not given and has no default of its own.
const NotGiven = -1

// Options are what was asked for.
type Options struct {
	Tool
	Server string // to connect to; "" = it is the server

	Device        string // "" = the first one
	IBPort        int
	Port          int // TCP
	Size          int // bytes of a message
	Depth         int // messages under way at most
	QPs           int
	Iterations    int
	Duration      int // seconds in all, 0 = so many iterations
	Margin        int // of them, seconds at the begin and at the end that are not measured
	MTU           int // as given; 0 = the port's
	GID           int // index, or NotGiven
	TClass        int // ToS byte, or NotGiven
	ToS           int // of rdma_cm, or NotGiven
	Both          bool
	RDMACM        bool
	Gbits         bool
	AnyClock      bool   // no word on the frequency of the CPU
	JSON          bool   //
	JSONFile      string //
	CPU           bool   // print how busy the CPU was
	Samples       bool   // print each latency
	Output        string // "", "bandwidth", "message_rate" or "latency": that number alone
	fixedDuration bool
}

// Measured is how many seconds of a duration are measured.
func (o *Options) Measured() int { return o.Duration - 2*o.Margin }

// Ended is a program that ended before it did anything: what it printed, and its exit status.
type Ended struct {
	Stdout, Stderr string
	Status         int
}

// option is an option that is emulated. value is how its value is called, "" = it has none.
type option struct {
	short, long, value, help string
	set                      func(o *Options, v string) *Ended
}

// number is an option whose value is a number from low to high; the sentence is what perftest says of one beyond.
func number(into func(*Options) *int, low, high int, name string) func(*Options, string) *Ended {
	return func(o *Options, v string) *Ended {
		n, err := strconv.Atoi(v)
		if err != nil || n < low || n > high {
			return &Ended{Stderr: fmt.Sprintf(" %s should be between %d and %d\n Parser function exited with Error\n", name, low, high), Status: 1}
		}
		*into(o) = n
		return nil
	}
}

func flag(into func(*Options) *bool) func(*Options, string) *Ended {
	return func(o *Options, _ string) *Ended { *into(o) = true; return nil }
}

func text(into func(*Options) *string) func(*Options, string) *Ended {
	return func(o *Options, v string) *Ended { *into(o) = v; return nil }
}

func options() []option {
	discard := func(*Options, string) *Ended { return nil }
	return []option{
		{"b", "bidirectional", "", "both directions at once", flag(func(o *Options) *bool { return &o.Both })},
		{"c", "connection", "RC", "type of connection", func(o *Options, v string) *Ended {
			if v == "RC" {
				return nil
			}
			return o.refuse(fmt.Sprintf("option '-c %s' is not emulated", v))
		}},
		{"d", "ib-dev", "dev", "RDMA device (default the first one)", text(func(o *Options) *string { return &o.Device })},
		{"D", "duration", "seconds", "run for so long", func(o *Options, v string) *Ended {
			o.fixedDuration = true
			return number(func(o *Options) *int { return &o.Duration }, 1, 100_000_000, "Duration period")(o, v)
		}},
		{"f", "margin", "seconds", "at the begin and the end of the duration that are not measured (default a quarter)", number(func(o *Options) *int { return &o.Margin }, 0, 1_000_000, "margin")},
		{"F", "CPU-freq", "", "no word on the frequency of the CPU", flag(func(o *Options) *bool { return &o.AnyClock })},
		{"h", "help", "", "this text", nil},
		{"H", "report-histogram", "", "print each latency", flag(func(o *Options) *bool { return &o.Samples })},
		{"i", "ib-port", "port", "port of the device (default 1)", number(func(o *Options) *int { return &o.IBPort }, 1, 255, "IB Port")},
		{"m", "mtu", "mtu", "256 to 4096 (default the port's)", func(o *Options, v string) *Ended { o.MTU, _ = strconv.Atoi(v); o.MTU = max(o.MTU, 1); return nil }},
		{"n", "iters", "n", "messages (default 5000, of latency tests 1000)", number(func(o *Options) *int { return &o.Iterations }, 5, 100_000_000, "Iteration num")},
		{"N", "noPeak", "", "no peak bandwidth", discard},
		{"p", "port", "port", "TCP port (default 18515)", number(func(o *Options) *int { return &o.Port }, 1, 65535, "Port")},
		{"q", "qp", "n", "queue pairs (default 1)", number(func(o *Options) *int { return &o.QPs }, 1, 16384, "Num of QPs")},
		{"R", "rdma_cm", "", "connect with rdma_cm", flag(func(o *Options) *bool { return &o.RDMACM })},
		{"s", "size", "bytes", "of a message (default 65536, of latency tests 2)", number(func(o *Options) *int { return &o.Size }, 1, 1<<31-1, "Message size")},
		{"S", "sl", "sl", "service level, which says nothing on Ethernet", discard},
		{"t", "tx-depth", "n", "messages under way at most (default 128)", number(func(o *Options) *int { return &o.Depth }, 1, 131072, "Tx depth")},
		{"T", "tos", "tos", "ToS byte of rdma_cm", number(func(o *Options) *int { return &o.ToS }, 0, 256, "TOS")},
		{"u", "qp-timeout", "n", "4us * 2^n", discard},
		{"V", "version", "", "print the version", nil},
		{"x", "gid-index", "n", "of the GID table", number(func(o *Options) *int { return &o.GID }, 0, 64, "Gid index")},
		{"", "cpu_util", "", "print how busy the CPU was, with a duration", flag(func(o *Options) *bool { return &o.CPU })},
		{"", "out_json", "", "write a report", flag(func(o *Options) *bool { return &o.JSON })},
		{"", "out_json_file", "file", "where (default perftest_out.json)", text(func(o *Options) *string { return &o.JSONFile })},
		{"", "output", "units", "one number alone: bandwidth, message_rate or latency", text(func(o *Options) *string { return &o.Output })},
		{"", "report_gbits", "", "in Gbit/s instead of MiB/s", flag(func(o *Options) *bool { return &o.Gbits })},
		{"", "tclass", "tos", "ToS byte", number(func(o *Options) *int { return &o.TClass }, 0, 255, "Traffic Class")},
	}
}

// Parse reads the arguments of a tool. ended is not nil when it would not have begun.
func Parse(t Tool, args []string) (o Options, ended *Ended) {
	o = Options{
		Tool: t, IBPort: 1, Port: 18515, Size: 65536, Depth: 128, QPs: 1, Iterations: 5000, Margin: NotGiven, GID: NotGiven, TClass: NotGiven, ToS: NotGiven,
		JSONFile: "perftest_out.json",
	}
	if t.Latency {
		o.Size, o.Depth, o.Iterations = 2, 1, 1000
	}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if word == "-" || !strings.HasPrefix(word, "-") {
			if o.Server != "" {
				return o, o.refuse("")
			}
			o.Server = word
			continue
		}
		if args, ended = o.take(word, args); ended != nil {
			return o, ended
		}
	}
	return o, o.together()
}

// take reads one word that starts with -, which may be several short options, and its value, and returns what is left.
func (o *Options) take(word string, args []string) ([]string, *Ended) {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, value, given := strings.Cut(name, "=")
		i := slices.IndexFunc(options(), func(x option) bool { return x.long == name })
		switch {
		case i < 0:
			return args, o.refuse(fmt.Sprintf("unrecognized option '--%s'", name))
		case options()[i].value == "" && given:
			return args, o.refuse(fmt.Sprintf("option '--%s' doesn't allow an argument", name))
		case options()[i].value != "" && !given && len(args) == 0:
			return args, o.refuse(fmt.Sprintf("option '--%s' requires an argument", name))
		case options()[i].value != "" && !given:
			value, args = args[0], args[1:]
		}
		return args, o.apply(options()[i], value)
	}
	for rest := word[1:]; rest != ""; {
		letter := rest[:1]
		rest = rest[1:]
		i := slices.IndexFunc(options(), func(x option) bool { return x.short == letter })
		if i < 0 {
			return args, o.refuse(fmt.Sprintf("invalid option -- '%s'", letter))
		}
		value := ""
		if options()[i].value != "" {
			switch {
			case rest != "":
				value, rest = rest, ""
			case len(args) == 0:
				return args, o.refuse(fmt.Sprintf("option requires an argument -- '%s'", letter))
			default:
				value, args = args[0], args[1:]
			}
		}
		if ended := o.apply(options()[i], value); ended != nil {
			return args, ended
		}
	}
	return args, nil
}

func (o *Options) apply(x option, value string) *Ended {
	switch x.long {
	case "help":
		return &Ended{Stdout: usage(o.Tool)}
	case "version":
		return &Ended{Stdout: "Version: " + Version + "\n"}
	}
	return x.set(o, value)
}

// together refuses what contradicts itself, and puts the defaults that hang together.
func (o *Options) together() *Ended {
	switch {
	case o.ToS != NotGiven && !o.RDMACM:
		return &Ended{Stdout: " TOS only valid for rdma_cm based QP and RawEth QP \n", Status: 1}
	case o.Latency && o.Both:
		return o.refuse("invalid option -- 'b'")
	}
	if o.Latency {
		o.Depth = 1
	}
	if o.Margin == NotGiven { // the help says 2; recordings and the source say this
		o.Margin = o.Duration / 4
	}
	switch {
	case !o.fixedDuration:
		o.Depth = min(o.Depth, o.Iterations)
	case o.Measured() <= 0: // by the source; it was not recorded
		return &Ended{Stderr: "please check that DURATION > 2*MARGIN\n", Status: 1}
	}
	return nil
}

// refuse is what getopt and then perftest say of an option that they do not know.
func (o *Options) refuse(why string) *Ended {
	e := &Ended{Stdout: usage(o.Tool), Status: 1}
	if why != "" {
		e.Stderr = o.Name + ": " + why + "\n"
	}
	e.Stderr += " Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited with Error\n"
	return e
}

func usage(t Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %-23sstart a server and wait for connection\n  %-23sconnect to server at <host>\n\nOptions that the lab emulates:\n", t.Name, t.Name+" <host>")
	for _, x := range options() {
		s := "      "
		if x.short != "" {
			s = "  -" + x.short + ", "
		}
		s += "--" + x.long
		if x.value != "" {
			s += "=<" + x.value + ">"
		}
		fmt.Fprintf(&b, "%s  %s\n", s, x.help)
	}
	return b.String() + "\n"
}

// PathMTU is the payload of a packet with an active MTU of the port of active bytes, and what perftest says of a choice that
// cannot be.
func (o *Options) PathMTU(active int) (mtu int, stdout, stderr string) {
	enum := 0
	for a := active; a >= 256; a /= 2 {
		enum++
	}
	switch {
	case o.MTU == 0:
		return active, "", ""
	case !slices.Contains([]int{256, 512, 1024, 2048, 4096}, o.MTU):
		return active, "", fmt.Sprintf(" Invalid MTU - %d \n Please choose mtu from {256,512,1024,2048,4096}\n Will run with the port active mtu - %d\n", o.MTU, enum)
	case o.MTU > active:
		return active, fmt.Sprintf("Requested mtu is higher than active mtu \nChanging to active mtu - %d\n", enum), ""
	}
	return o.MTU, "", ""
}
