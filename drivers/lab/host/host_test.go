package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

func start(t *testing.T, o Options) (*Host, string) {
	t.Helper()
	if o.Links == nil {
		o.Links = []Link{{Name: "eth0", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:17:00.0"}}
	}
	o.Password = "pw"
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.dir); err == nil {
			t.Error("the file tree is still there")
		}
	})
	addr, err := h.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return h, addr
}

func login(t *testing.T, h *Host, addr string) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.Password("pw")}, HostKeyCallback: ssh.FixedHostKey(h.HostKey())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sh is a command's outputs and status, in the way of a transcript.
func sh(t *testing.T, c *ssh.Client, command string) string {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b strings.Builder
	s.Stdout, s.Stderr = &b, &b
	if err := s.Run(command); err != nil {
		e, ok := errors.AsType[*ssh.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "[%d]", e.ExitStatus())
	}
	return b.String()
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
		err  string
	}{
		{"", nil, ""},
		{"  a  b\tc ", []string{"a", "b", "c"}, ""},
		{`'a b' "c d" e\ f ''`, []string{"a b", "c d", "e f", ""}, ""},
		{`'o'\''brien' "a\"b"`, []string{"o'brien", `a"b`}, ""},
		{`'$HOME; \n'`, []string{`$HOME; \n`}, ""},
		{`"$HOME"`, nil, `'$' is not quoted`},
		{"a;b", nil, `';' is not quoted`},
		{"a\nb", nil, `'\n' is not quoted`},
		{"~/x", nil, `'~' is not quoted`},
		{"'a", nil, "unterminated quoted string"},
		{`a\`, nil, `'\\' is not quoted`},
	} {
		got, err := words(tt.line)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%q: %v, want %q (-want +got):\n%s", tt.line, err, tt.err, diff)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add(`exec 'a b' "c\"d" e\ f`)
	f.Fuzz(func(t *testing.T, line string) {
		quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		if ws, err := words(quoted); err != nil || len(ws) != 1 || ws[0] != line {
			t.Errorf("%q came back as %q, %v", line, ws, err)
		}
		words(line)
	})
}

func TestShell(t *testing.T) {
	h, addr := start(t, Options{Hostname: "gpu-17", NCCL: "A=1\n"})
	c := login(t, h, addr)
	for _, step := range [][2]string{
		{"uname -sm", "Linux x86_64\n"},
		{"uname -r", "6.12.0-emulated\n"},
		{"hostname", "gpu-17\n"},
		{"exec hostname", "gpu-17\n"},
		{"sudo -n hostname", "gpu-17\n"},
		{"test -e /etc/nccl.conf", ""},
		{"test -e /etc/nothing", "[1]"},
		{"cat '/etc/nccl.conf'", "A=1\n"},
		{"cat /etc/nothing", "cat: /etc/nothing: No such file or directory\n[1]"},
		{"sha256sum /etc/nccl.conf", "91d6a3d55e9fea7911c537afae6607c77fa8bc0f3a76c375e104ac5a8cfa84db  /etc/nccl.conf\n"},
		{"ip link set dev eth0 mtu 9000", ""},
		{"ip link set eth0 mtu 9979", "Error: mtu greater than device maximum.\n[2]"},
		{"ip link set eth0 mtu 60", "Error: mtu less than device minimum.\n[2]"},
		{"ip link set eth7 mtu 1500", "Cannot find device \"eth7\"\n[1]"},
		{"ip link set eth0 mtu x", "Error: argument \"x\" is wrong: Invalid \"mtu\" value\n[255]"},
		{"ip link set eth0 down", "ip: only link show and link set dev NAME mtu N are emulated\n[255]"},
		{"cat ../../../etc/passwd", "cat: ../../../etc/passwd: No such file or directory\n[1]"},
		{"reboot", "sh: 1: reboot: not found\n[127]"},
		{"./agent serve", "sh: 1: ./agent: not found\n[127]"},
		{"/etc/nccl.conf serve", "sh: 1: /etc/nccl.conf: Permission denied\n[126]"},
		{"cat $HOME", "sh: 1: Syntax error: '$' is not quoted\n[2]"},
		{"ip -j link show", `[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"operstate":"UNKNOWN","link_type":"loopback"},` +
			`{"ifindex":2,"ifname":"eth0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":9000,"operstate":"UP","link_type":"ether"}]` + "\n"},
	} {
		if got := sh(t, c, step[0]); got != step[1] {
			t.Errorf("$ %s\n got %q\nwant %q", step[0], got, step[1])
		}
	}
}

// talk starts the agent and returns how to exchange a line with it.
func talk(t *testing.T, h *Host, c *ssh.Client) func(string) string {
	t.Helper()
	if err := h.fs.WriteFile(rel(h.home())+"/fabricctl-host-1", []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	in, err1 := s.StdinPipe()
	out, err2 := s.StdoutPipe()
	if err := errors.Join(err1, err2, s.Start("exec './fabricctl-host-1' serve")); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	say := func(line string) string {
		if line != "" {
			fmt.Fprintln(in, line)
		}
		got, err := r.ReadString('\n')
		if err != nil && err != io.EOF {
			return err.Error()
		}
		return strings.TrimSuffix(got, "\n")
	}
	if got := say(""); !strings.HasPrefix(got, `{"hello":"fabricctl-host","protocol":3,`) {
		t.Fatalf("hello: %s", got)
	}
	return say
}

// The transcript of the messages as package hostwire documents them.
func TestAgent(t *testing.T) {
	h, addr := start(t, Options{Hostname: "gpu-17", NCCL: "# c\nA=1\nX=9\n"})
	say := talk(t, h, login(t, h, addr))
	const commit = `{"id":%d,"op":"commit","tx":"t","changes":[{"op":"set","key":["link","eth0","mtu"],"before":"1500","after":"%s"},` +
		`{"op":"remove","key":["nccl","/etc/nccl.conf","A"],"before":"1"},{"op":"add","key":["nccl","/etc/nccl.conf","B"],"after":"2"}]}`
	for _, step := range [][2]string{
		{`{"id":1,"op":"ping"}`, `{"id":1}`},
		{`{"id":2,"op":"read"}`, `{"config":[{"key":["link","eth0","mtu"],"value":"1500"},{"key":["nccl","/etc/nccl.conf","A"],"value":"1"},{"key":["nccl","/etc/nccl.conf","X"],"value":"9"}],"id":2}`},
		{`{"id":3,"op":"facts"}`, `{"caps":{"atomic":false,"confirm":false,"counters":true,"persists_on_commit":true},"facts":{"aliases":{"0000:17:00.0":"eth0"},"hostname":"gpu-17","notes":["this host is emulated"],"serial":"","version":"6.12.0-emulated"},"id":3}`},
		{fmt.Sprintf(commit, 4, "9979"), `{"error":{"code":"rejected","message":"mtu greater than device maximum (invalid argument)","sent":"link|eth0|mtu 9979","sentence":"mtu greater than device maximum (invalid argument)"},"id":4}`},
		{fmt.Sprintf(commit, 5, "9000"), `{"id":5}`},
		{fmt.Sprintf(commit, 6, "9000"), `{"id":6}`},
		{fmt.Sprintf(commit, 7, "4200"), `{"error":{"code":"moved","message":"commit: [link eth0 mtu] is 9000, expected 1500"},"id":7}`},
		{`{"id":8,"op":"commit","within_ms":1}`, `{"error":{"code":"no-confirm","message":"commit: no confirm timer"},"id":8}`},
		{`{"id":0,"op":"ping"}` + "\n" + `{"id":10,"op":"know","know":[{}]}`, `{"id":10}`},
		{`{"id":11,"op":"hold","hold":{"fabric":"pod1","device":"h1","owner":"eve@noc","until":"2999-01-01T00:00:00Z","reason":"r"}}`, `{"holds":null,"id":11}`},
		{fmt.Sprintf(commit, 12, "1500"), `{"error":{"code":"held","message":"commit: it is held: on the host, h1 of fabric pod1 is held until 2999-01-01T00:00:00Z by eve@noc: r"},"id":12}`},
		{`{"id":13,"op":"release","hold":{"fabric":"pod1","device":"h1"}}`, `{"holds":[{"fabric":"pod1","device":"h1","owner":"eve@noc","until":"2999-01-01T00:00:00Z","reason":"r"}],"id":13}`},
		{`{"id":14,"op":"holds"}`, `{"holds":null,"id":14}`},
		{`{"id":9,"op":"reboot"}`, `{"error":{"code":"protocol","message":"operation reboot is not known"},"id":9}`},
	} {
		if got := say(step[0]); got != step[1] {
			t.Errorf("%s\n got %s\nwant %s", step[0], got, step[1])
		}
	}
	want := "link eth0 mtu 9000\n/etc/nccl.conf:\n# c\nX=9\nB=2\n"
	if n := h.Counters(); h.Held() != want || n.MTUSets != 2 || n.FileWrites != 2 {
		t.Errorf("after %+v the host holds\n%s", n, h.Held())
	}
}

const one = `{"id":1,"op":"commit","changes":[{"key":["link","eth0","mtu"],"before":"1500","after":"9000"}]}`

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults func(*Host) Faults
		want   string // answer to a commit
		mtu    int
	}{
		{"behaves", func(*Host) Faults { return Faults{} }, `{"id":1}`, 9000},
		{
			"refuses", func(*Host) Faults { return Faults{RejectMTU: "invalid argument"} },
			`{"error":{"code":"rejected","message":"invalid argument","sent":"link|eth0|mtu 9000","sentence":"invalid argument"},"id":1}`, 1500,
		},
		{"says so and does not", func(*Host) Faults { return Faults{Ignore: true} }, `{"id":1}`, 1500},
		{"changed behind the back", func(h *Host) Faults {
			return Faults{Ignore: true, OnWrite: func(string) string { _ = h.SetMTU("eth0", 4200); return "" }}
		}, `{"id":1}`, 4200},
		{"drops at a byte", func(*Host) Faults { return Faults{DropAfter: 1} }, "", 1500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, addr := start(t, Options{})
			say := talk(t, h, login(t, h, addr))
			h.SetFaults(tt.faults(h))
			if got := say(one); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got := h.Links()[0].MTU; got != tt.mtu {
				t.Errorf("the MTU is %d, want %d", got, tt.mtu)
			}
		})
	}
}

func TestStall(t *testing.T) {
	h, addr := start(t, Options{})
	c := login(t, h, addr)
	say := talk(t, h, c)
	held := make(chan struct{})
	h.SetFaults(Faults{Stall: true, OnWrite: func(string) string { close(held); return "" }})
	answer := make(chan string)
	go func() { answer <- say(one) }()
	<-held
	select {
	case got := <-answer:
		t.Errorf("it answered %s", got)
	default:
	}
	c.Close()
	if got := <-answer; strings.HasPrefix(got, "{") || h.Links()[0].MTU != 1500 {
		t.Errorf("after the end: %q, MTU %d", got, h.Links()[0].MTU)
	}
}

func TestWrongPasswords(t *testing.T) {
	h, addr := start(t, Options{MaxAuthTries: 2})
	tries := 0
	ask := ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) { tries++; return "no", nil }), 5)
	_, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ask}, HostKeyCallback: ssh.FixedHostKey(h.HostKey())})
	if n := h.Counters(); err == nil || n.Passwords != 2 || n.Refused != 2 {
		t.Errorf("%v after %+v", err, n)
	}
}

func TestSetVariable(t *testing.T) {
	for _, tt := range []struct{ text, value, want string }{
		{"", "1", "A=1\n"},
		{"B=2", "1", "B=2\nA=1\n"},
		{"#A=3\nA=2\nB=1\nA=4\n", "1", "#A=3\nA=1\nB=1\nA=4\n"},
		{"#A=3\nA=2\nB=1\nA=4\n", "", "#A=3\nB=1\n"},
	} {
		v := &tt.value
		if tt.value == "" {
			v = nil
		}
		if got := setVariable(tt.text, "A", v); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
