package perftest

import (
	"fmt"
	"strings"
)

// Card is the RDMA device that a side runs on.
type Card struct {
	Name    string // of the device
	Reads   int    // most read requests under way
	NewAPI  bool   // it posts by ibv_wr_*
	Unknown bool   // perftest does not know the vendor, and says so of reads
}

// QP is what a side tells the other of a queue pair.
type QP struct {
	Number, PSN, RKey uint32
	Addr              uint64
}

// Side is one side of a test.
type Side struct {
	Options
	Card
	Index int // of its GID
	GID   [16]byte
	Pairs []QP
}

// Numbers are what was measured, as a run of the fabric has them.
type Numbers struct {
	Iterations int64   // messages in what was measured
	Bits       float64 // per second of payload, both directions where there are two
	Rate       float64 // messages per second

	// Of a latency test, in us.
	Min, Max, Typical, Average, Stdev, P99, P999 float64
	Latencies                                    []float64 // ascending; those that are printed one by one

	CPU float64 // percent of this side's host
}

const line = "---------------------------------------------------------------------------------------\n"

const banner = "\n************************************\n* Waiting for client to connect... *\n************************************\n"

func onOff(b bool) string {
	if b {
		return "ON"
	}
	return "OFF"
}

// facts are the lines of the head of a report: name and value.
func (s *Side) facts(mtu int) [][2]string {
	serves := s.Server == ""
	fs := [][2]string{
		{"PCIe relax order: ", onOff(s.Op != Write || !s.Latency)},
		{"ibv_wr* API     : ", onOff(s.NewAPI)},
	}
	if !serves || s.Both {
		fs = append(fs, [2]string{"TX depth        : ", fmt.Sprint(s.Depth)})
	}
	if s.Op == Send && (serves || s.Both) {
		depth := 512
		if !s.fixedDuration {
			depth = min(depth, s.Iterations)
		}
		fs = append(fs, [2]string{"RX depth        : ", fmt.Sprint(depth)})
	}
	if !s.Latency {
		fs = append(fs, [2]string{"CQ Moderation   : ", fmt.Sprint(s.moderation())})
	}
	fs = append(fs, [2]string{"Mtu             : ", fmt.Sprintf("%d[B]", mtu)}, [2]string{"Link type       : ", "Ethernet"}, [2]string{"GID index       : ", fmt.Sprint(s.Index)})
	if s.Op == Read {
		fs = append(fs, [2]string{"Outstand reads  : ", fmt.Sprint(s.Reads)})
	} else {
		fs = append(fs, [2]string{"Max inline data : ", "0[B]"})
	}
	fs = append(fs, [2]string{"rdma_cm QPs\t : ", onOff(s.RDMACM)})
	method := "Ethernet"
	if s.RDMACM {
		method = "rdma_cm"
	}
	if s.RDMACM && s.ToS != NotGiven {
		method += fmt.Sprintf(" \tTOS    : %d", s.ToS)
	}
	return append(fs, [2]string{"Data ex. method : ", method})
}

// moderation is how many messages share a completion: one where they are large.
func (s *Side) moderation() int {
	if s.Size > 8192 {
		return 1
	}
	n := min(100, s.Depth)
	if !s.fixedDuration {
		n = min(n, s.Iterations)
	}
	return n
}

func (s *Side) title() string {
	t := [...]string{"RDMA_Write", "RDMA_Read", "Send"}[s.Op]
	switch {
	case s.Latency:
		return t + " Latency Test"
	case s.Both:
		return t + " Bidirectional BW Test"
	}
	return t + " BW Test"
}

// passive reports whether a side measures nothing: it is read from.
func (s *Side) passive() bool { return s.Latency && s.Server == "" && s.Op == Read }

// Start is what is printed before anything else.
func (s *Side) Start() (stdout, stderr string) {
	if s.Op == Read && s.Unknown {
		stdout, stderr = line, "Device not recognized to implement inline feature. Disabling it\n"
	}
	if s.Output != "" {
		return "", stderr
	}
	if s.Server == "" {
		stdout += banner
	}
	return stdout, stderr
}

// Head is the report up to where the queue pairs are listed.
func (s *Side) Head(mtu int) string {
	if s.Output != "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s                    %s\n", line, s.title())
	fmt.Fprintf(&b, " Dual-port       : OFF\t\tDevice         : %s\n Number of qps   : %d\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n", s.Name, s.QPs)
	for _, f := range s.facts(mtu) {
		fmt.Fprintf(&b, " %s%s\n", f[0], f[1])
	}
	b.WriteString(line)
	if s.RDMACM && s.Server == "" {
		b.WriteString(" Waiting for client rdma_cm QP to connect\n Please run the same command with the IB/RoCE interface IP\n" + line)
	}
	return b.String()
}

// Peers lists the queue pairs of both sides, and the head of the table of results.
func (s *Side) Peers(other *Side) string {
	if s.Output != "" {
		return ""
	}
	var b strings.Builder
	s.list(&b, "local", s)
	s.list(&b, "remote", other)
	b.WriteString(line + s.tableHead())
	return b.String()
}

// tableHead is the head of the table of results.
func (s *Side) tableHead() string {
	cpu := ""
	if s.CPU {
		cpu = "    CPU_Util[%]"
	}
	switch {
	case s.passive():
		return ""
	case s.Latency && s.fixedDuration:
		return " #bytes        #iterations       t_avg[usec]    tps average\n"
	case s.Latency:
		return " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	case s.Gbits:
		return " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]" + cpu + "\n"
	}
	return " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]" + cpu + "\n"
}

// list prints the queue pairs of x as s prints them: addresses only where the other side writes or reads by them.
func (s *Side) list(b *strings.Builder, where string, x *Side) {
	for _, q := range x.Pairs {
		fmt.Fprintf(b, " %s address: LID 0000 QPN 0x%04x PSN 0x%x", where, q.Number, q.PSN)
		if s.Op == Read && !s.RDMACM {
			fmt.Fprintf(b, " OUT 0x%02x", s.Reads)
		}
		if s.Op != Send && !s.RDMACM {
			fmt.Fprintf(b, " RKey 0x%06x VAddr 0x%014x", q.RKey, q.Addr)
		}
		b.WriteString("\n GID: ")
		for i, c := range x.GID {
			if i > 0 {
				b.WriteByte(':')
			}
			fmt.Fprintf(b, "%02d", c)
		}
		b.WriteByte('\n')
	}
}

// unit is a bandwidth in the unit that was asked for.
func (o *Options) unit(bits float64) float64 {
	if o.Gbits {
		return bits / 1e9
	}
	return bits / 8 / (1 << 20)
}

// Row is the row of results, and the end of the table. The peak is not measured, as with -D and -N.
func (s *Side) Row(n Numbers) string {
	if s.Output != "" {
		return s.number(n)
	}
	size := s.Size
	bw, own := s.unit(n.Bits), s.unit(n.Bits)
	if s.Both { // the format goes by what one side has done, and the number is of both
		own /= 2
	}
	switch {
	case s.passive():
		return ""
	case s.CPU: // recorded below 0.1 Gbit/s alone
		return fmt.Sprintf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\t    %.2f\n", size, n.Iterations, 0.0, bw, n.Rate/1e6, n.CPU) + line
	case s.Latency && s.fixedDuration:
		return fmt.Sprintf(" %-7d       %d            %-7.2f        %-7.2f\n", size, n.Iterations, n.Average, n.Rate) + line
	case s.Latency:
		return s.samples(n) + fmt.Sprintf(" %-7d %-10d   %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
			size, n.Iterations, n.Min, n.Max, n.Typical, n.Average, n.Stdev, n.P99, n.P999) + line
	case own < 0.1:
		return fmt.Sprintf(" %-7d    %d           %-7.6f            %-7.6f            %-7.6f\n", size, n.Iterations, 0.0, bw, n.Rate/1e6) + line
	default:
		return fmt.Sprintf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n", size, n.Iterations, 0.0, bw, n.Rate/1e6) + line
	}
}

// samples are the latencies one by one, and the head of the table again.
func (s *Side) samples(n Numbers) string {
	if !s.Samples {
		return ""
	}
	var b strings.Builder
	b.WriteString("#, usec\n")
	for i, v := range n.Latencies {
		fmt.Fprintf(&b, "%d, %g\n", i+1, v)
	}
	return b.String() + line + s.tableHead()
}

// number is the one number that was asked for.
func (s *Side) number(n Numbers) string {
	switch s.Output {
	case "bandwidth":
		return fmt.Sprintf("%f\n", s.unit(n.Bits))
	case "message_rate":
		return fmt.Sprintf("%f\n", n.Rate/1e6)
	}
	return fmt.Sprintf("%f\n", n.Average)
}

// Report is the file of --out_json: not JSON, with names and words that are not quoted, and commas at the end.
func (s *Side) Report(mtu int, n Numbers) string {
	var b strings.Builder
	name := strings.ReplaceAll(s.title(), " ", "_")
	fmt.Fprintf(&b, "{\ntest_info: {\ntest: %s,\nDual_port: OFF,\nDevice: \"%s\",\nNumber_of_qps: %d,\nTransport_type: IB,\nConnection_type: RC,\nUsing_SRQ: OFF,\n", name, s.Name, s.QPs)
	keys := strings.NewReplacer("PCIe relax order: ", "PCIe_relax_order: ", "ibv_wr* API     : ", "ibv_wr_API: ", "TX depth        : ", "TX_depth : ",
		"RX depth        : ", "RX_depth : ", "CQ Moderation   : ", "CQ_Moderation: ", "Mtu             : ", "Mtu: ", "Link type       : ", "Link_type: ",
		"GID index       : ", "GID_index: ", "Outstand reads  : ", "Outstand_reads: ", "Max inline data : ", "Max_inline_data: ", "rdma_cm QPs\t : ", "rdma_cm_QPs: ",
		"Data ex. method : ", "Data_ex_method: ", "[B]", "")
	for _, f := range s.facts(mtu) {
		fmt.Fprintf(&b, "%s%s,\n", keys.Replace(f[0]), keys.Replace(f[1]))
	}
	fmt.Fprintf(&b, "},\nresults: {\nMsgSize: %d,\nn_iterations: %d,\n", s.Size, n.Iterations)
	switch {
	case s.Latency && s.fixedDuration:
		fmt.Fprintf(&b, "t_avg: %.2f,\ntps_average: %.2f,\n", n.Average, n.Rate)
	case s.Latency:
		fmt.Fprintf(&b, "t_min: %.2f,\nt_max: %.2f,\nt_typical: %.2f,\nt_avg: %.2f,\nt_stdev: %.2f,\npercentile_99: %.2f,\npercentile_99.9: %.2f,\n",
			n.Min, n.Max, n.Typical, n.Average, n.Stdev, n.P99, n.P999)
	default:
		fmt.Fprintf(&b, "BW_peak: %f,\nBW_average: %f,\nMsgRate: %f,\n", 0.0, s.unit(n.Bits), n.Rate/1e6)
	}
	return b.String() + "},\n}\n"
}
