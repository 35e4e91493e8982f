package perftest

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/witness"
)

// realStat is what Linux has said of a cat.
const realStat = "30007 (cat) R 30005 30005 31426 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 5804549 3133440 408 18446744073709551615 94640646356992 94640646376873 140721033845248 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 94640646392880 94640646394496 94641533149184 140721033853623 140721033853643 140721033853643 140721033854955 0"

func TestReadStat(t *testing.T) {
	for line, want := range map[string]string{
		realStat: "30007 5804549 R true",
		strings.Replace(realStat, "(cat)", "(a) S 1 (b c))", 1): "30007 5804549 R true",
		strings.Replace(realStat, "30007", "1", 1):              "0 0 \x00 false", // nobody ends the first process
		strings.Replace(realStat, "30007", "-30007", 1):         "0 0 \x00 false",
		realStat[:60]: "0 0 \x00 false",
		"":            "0 0 \x00 false",
		") (":         "0 0 \x00 false",
	} {
		p, state, ok := readStat(line)
		if got := fmt.Sprintf("%d %d %c %t", p.PID, p.Start, state, ok); got != want {
			t.Errorf("%s\n%q, want %q", line, got, want)
		}
	}
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		witness.Missing(t, err.Error())
	}
	if p, state, ok := readStat(string(b)); !ok || p.PID != os.Getpid() || p.Start == 0 || state == 'Z' {
		t.Errorf("%s is read as %+v, %c", b, p, state)
	}
}

func TestReadListening(t *testing.T) {
	got := readListening(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:48A8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14567 1 0000000000000000 100 0 0 10 0
   1: 0100007F:48A9 0100007F:9C40 01 00000000:00000000 02:000AFC80 00000000     0        0 14568 2 0000000000000000 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14569 1 0000000000000000 100 0 0 10 0
   1: nonsense 0 0A
`)
	if len(got) != 2 || !got[18600] || !got[22] {
		t.Errorf("%v", got)
	}
}

// table is what gidCommand prints of an mlx5 with a VLAN, and of soft-RoCE on another interface.
const gidTable = `/sys/class/infiniband/mlx5_0/ports/1/gids/0:fe80:0000:0000:0000:0e42:a1ff:fe00:0001
/sys/class/infiniband/mlx5_0/ports/1/gids/1:fe80:0000:0000:0000:0e42:a1ff:fe00:0001
/sys/class/infiniband/mlx5_0/ports/1/gids/2:0000:0000:0000:0000:0000:ffff:c0a8:010b
/sys/class/infiniband/mlx5_0/ports/1/gids/4:0000:0000:0000:0000:0000:0000:0000:0000
/sys/class/infiniband/mlx5_0/ports/1/gids/6:0000:0000:0000:0000:0000:ffff:c0a8:010b
/sys/class/infiniband/mlx5_0/ports/1/gids/7:0000:0000:0000:0000:0000:ffff:c0a8:020b
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0:IB/RoCE v1
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1:RoCE v2
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2:IB/RoCE v1
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/6:RoCE v2
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/7:RoCE v2
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0:eth0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1:eth0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/2:eth0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/6:eth0
/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/7:eth0.200
/sys/class/infiniband/rxe0/ports/2/gids/300:0000:0000:0000:0000:0000:ffff:0a00:0001
/sys/class/infiniband/rxe0/ports/2/gid_attrs/types/300:RoCE v2
/sys/class/infiniband/rxe0/ports/2/gid_attrs/ndevs/300:eth1
/sys/class/infiniband/old0/ports/1/gids/0:0000:0000:0000:0000:0000:ffff:0a00:0002
/sys/class/infiniband/old0/ports/1/gid_attrs/types/0:IB/RoCE v1
/sys/class/infiniband/old0/ports/1/gid_attrs/ndevs/0:eth2
/sys/class/infiniband/un0/ports/1/gids/0:fe80:0000:0000:0000:0e42:a1ff:fe00:0002
/sys/class/infiniband/un0/ports/1/gid_attrs/types/0:RoCE v2
/sys/class/infiniband/un0/ports/1/gid_attrs/ndevs/0:eth3
grep: nonsense
`

// A GID is that of RoCE v2, the address and the interface: at whatever index it stands.
func TestPickGID(t *testing.T) {
	table := readGIDs(gidTable)
	ip := netip.MustParseAddr
	for _, tt := range []struct {
		end  End
		want string
	}{
		{End{Iface: "eth0", Address: ip("192.168.1.11")}, "mlx5_0/1/6"},
		{End{Address: ip("192.168.1.11")}, "mlx5_0/1/6"},
		{End{Iface: "eth0", Address: ip("192.168.2.11")}, "mlx5_0/1/7"}, // on its VLAN
		{End{Iface: "eth1", Address: ip("192.168.1.11")}, "no RDMA device has a GID of RoCE v2 for 192.168.1.11 on eth1"},
		{End{Iface: "eth0", RDMA: "mlx5_1", Address: ip("192.168.1.11")}, "no RDMA device"},
		{End{Iface: "eth0"}, "eth0 has several addresses, of which 192.168.1.11 and 192.168.2.11"},
		{End{Iface: "eth1"}, "number 300 of the table, and perftest takes up to 255"},
		{End{Iface: "eth2"}, "for RoCE v1 only"},
		{End{Iface: "eth3"}, "un0/1/0"},
		{End{Iface: "eth9"}, "no RDMA device has a GID of RoCE v2 for an IPv4 address on eth9"},
		{End{}, "neither the address nor the interface"},
	} {
		g, why := pick(table, &tt.end)
		if got := fmt.Sprintf("%s/%d/%d%s", g.device, g.port, g.index, why); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %s, want %s", tt.end, got, tt.want)
		}
	}
	if _, why := pick(nil, &End{Iface: "eth0"}); !strings.Contains(why, "is the driver loaded") {
		t.Error(why)
	}
}

func FuzzHostFiles(f *testing.F) {
	f.Add(realStat)
	f.Add(gidTable)
	f.Add("   0: 00000000:48A8 00000000:0000 0A 0")
	f.Fuzz(func(t *testing.T, text string) {
		if p, _, ok := readStat(text); ok && p.PID < 2 {
			t.Errorf("%d", p.PID)
		}
		for port := range readListening(text) {
			if port < 0 || port > 65535 {
				t.Errorf("%d", port)
			}
		}
		for _, g := range readGIDs(text) {
			if !plainWord(g.device, "_-.") || !g.address.IsValid() {
				t.Errorf("%+v", g)
			}
		}
		var id identity
		for line := range strings.Lines(mark + "\n" + text) {
			if id.line(line) {
				break
			}
		}
	})
}
