package observe

import (
	"strconv"
	"strings"
)

// Name is the canonical name of a counter of an interface, whatever the device calls it. Names of what there is for each
// priority (or queue, or priority group) end in its number: "pfc.rx.3". All are counts that only grow, but for gauges.
type Name string

// Counters of every priority; use Of to name the priority. The name alone is that of all priorities together, where a device
// does not tell them apart. Queue and priority have the same number where the device's maps are as a model has them.
const (
	PFCRx          Name = "pfc.rx"           // pause frames received: the neighbour stops us
	PFCTx          Name = "pfc.tx"           // pause frames sent: we stop the neighbour
	PFCPaused      Name = "pfc.paused_ns"    // time for which received pauses have stopped us, in ns
	PFCPausing     Name = "pfc.pausing_ns"   // time for which our pauses have stopped the neighbour, in ns
	ECNMarked      Name = "ecn.marked"       // packets marked congestion experienced on their way out
	Drop           Name = "drop"             // packets discarded, for whatever reason
	DropIn         Name = "drop.in"          // of these, at the ingress: no buffer left for the priority group
	DropOut        Name = "drop.out"         // of these, at the egress queue
	TxPackets      Name = "tx.packets"       // packets sent from the queue
	TxBytes        Name = "tx.bytes"         // bytes sent from the queue
	RxPackets      Name = "rx.packets"       // packets received with the priority
	RxBytes        Name = "rx.bytes"         // bytes received with the priority
	QueueWatermark Name = "watermark.queue"  // gauge: most bytes that the queue has held since the watermark was cleared
	GroupWatermark Name = "watermark.group"  // gauge: the same of the priority group, headroom not counted
	RoomWatermark  Name = "watermark.room"   // gauge: the same of the priority group's headroom
	WatchdogStuck  Name = "watchdog.stuck"   // times that the watchdog found the queue stopped for too long
	WatchdogFreed  Name = "watchdog.freed"   // times that it found the queue going again
	WatchdogDrop   Name = "watchdog.dropped" // packets that it has discarded
)

// Counters of a port as a whole.
const (
	PortTxPackets Name = "port.tx.packets"
	PortTxBytes   Name = "port.tx.bytes"
	PortRxPackets Name = "port.rx.packets"
	PortRxBytes   Name = "port.rx.bytes"
	PortDropIn    Name = "port.drop.in"  // packets discarded at the ingress, errors not counted
	PortDropOut   Name = "port.drop.out" // packets discarded at the egress
	PortErrors    Name = "port.errors"   // frames received with errors: a dirty link
	PortOversize  Name = "port.oversize" // frames discarded because they are longer than the port takes
	LinkPauseRx   Name = "link-pause.rx" // 802.3x pause frames received
	LinkPauseTx   Name = "link-pause.tx" // 802.3x pause frames sent
)

// Counters of a NIC.
const (
	CNPSent       Name = "cnp.sent"            // congestion notifications sent, as a receiver of marked packets
	CNPReceived   Name = "cnp.received"        // received, whatever became of them; some NICs tell no more
	CNPHandled    Name = "cnp.handled"         // received, and the rate of a flow was lowered
	CNPIgnored    Name = "cnp.ignored"         // received, and nothing done
	ECNReceived   Name = "ecn.received"        // RDMA packets received with a congestion mark
	OutOfSequence Name = "rdma.out-of-seq"     // packets that arrived out of order, at the receiver
	NAKReceived   Name = "rdma.nak"            // sequence errors that the receiver has told us, as a sender
	AckTimeouts   Name = "rdma.timeout"        // acknowledgements that did not come in time
	Duplicates    Name = "rdma.duplicate"      // requests that came again
	NoReceiveWQE  Name = "rdma.no-wqe"         // packets for which the application had no receive posted
	RetryExceeded Name = "rdma.retry-exceeded" // connections given up after too many retries
	Adaptive      Name = "rdma.adaptive"       // packets sent again before a time-out, by the NIC's own judgement
	NoBuffer      Name = "nic.no-buffer"       // packets lost because the NIC had no buffer left
	PauseStorm    Name = "nic.pause-storm"     // times that the NIC paused its switch for too long and was stopped: packets may be lost since
)

// Of names a counter of a priority, queue or priority group: PFCRx.Of(3) is "pfc.rx.3".
func (n Name) Of(priority int) Name { return n + "." + Name(strconv.Itoa(priority)) }

// Split is the counter's name without the priority it ends in, or priority -1 where it ends in none.
func (n Name) Split() (base Name, priority int) {
	i := strings.LastIndexByte(string(n), '.')
	if i < 0 || i != len(n)-2 || n[i+1] < '0' || n[i+1] > '7' {
		return n, -1
	}
	return n[:i], int(n[i+1] - '0')
}

// Counter describes a counter for people and programs.
type Counter struct {
	Name  Name
	Each  bool   // there is one for each priority
	Gauge bool   // its value may fall
	Unit  string // "frames", "packets", "bytes", "ns", "events"
	Doc   string
}

// Counted lists all counters that have a canonical name, in the order in which people read them.
func Counted() []Counter {
	return []Counter{
		{PFCRx, true, false, "frames", "pause frames received: the neighbour stops us"},
		{PFCTx, true, false, "frames", "pause frames sent: we stop the neighbour"},
		{PFCPaused, true, false, "ns", "time for which received pauses have stopped us"},
		{PFCPausing, true, false, "ns", "time for which our pauses have stopped the neighbour"},
		{ECNMarked, true, false, "packets", "packets marked congestion experienced on their way out"},
		{Drop, true, false, "packets", "packets discarded, for whatever reason"},
		{DropIn, true, false, "packets", "packets discarded at the ingress: no buffer left for the priority group"},
		{DropOut, true, false, "packets", "packets discarded at the egress queue"},
		{TxPackets, true, false, "packets", "packets sent from the queue"},
		{TxBytes, true, false, "bytes", "bytes sent from the queue"},
		{RxPackets, true, false, "packets", "packets received with the priority"},
		{RxBytes, true, false, "bytes", "bytes received with the priority"},
		{QueueWatermark, true, true, "bytes", "most bytes that the queue has held"},
		{GroupWatermark, true, true, "bytes", "most bytes that the priority group has held, headroom not counted"},
		{RoomWatermark, true, true, "bytes", "most bytes of headroom that the priority group has used"},
		{WatchdogStuck, true, false, "events", "times that the watchdog found the queue stopped for too long"},
		{WatchdogFreed, true, false, "events", "times that the watchdog found the queue going again"},
		{WatchdogDrop, true, false, "packets", "packets that the watchdog has discarded"},
		{PortTxPackets, false, false, "packets", "packets sent"},
		{PortTxBytes, false, false, "bytes", "bytes sent"},
		{PortRxPackets, false, false, "packets", "packets received"},
		{PortRxBytes, false, false, "bytes", "bytes received"},
		{PortDropIn, false, false, "packets", "packets discarded at the ingress, errors not counted"},
		{PortDropOut, false, false, "packets", "packets discarded at the egress"},
		{PortErrors, false, false, "frames", "frames received with errors"},
		{PortOversize, false, false, "frames", "frames discarded because they are longer than the port takes"},
		{LinkPauseRx, false, false, "frames", "802.3x pause frames received"},
		{LinkPauseTx, false, false, "frames", "802.3x pause frames sent"},
		{CNPSent, false, false, "packets", "congestion notifications sent"},
		{CNPReceived, false, false, "packets", "congestion notifications received"},
		{CNPHandled, false, false, "packets", "congestion notifications received and obeyed"},
		{CNPIgnored, false, false, "packets", "congestion notifications received and not obeyed"},
		{ECNReceived, false, false, "packets", "RDMA packets received with a congestion mark"},
		{OutOfSequence, false, false, "packets", "RDMA packets that arrived out of order"},
		{NAKReceived, false, false, "packets", "sequence errors that the receiver has told the sender"},
		{AckTimeouts, false, false, "events", "acknowledgements that did not come in time"},
		{Duplicates, false, false, "packets", "RDMA requests that came again"},
		{NoReceiveWQE, false, false, "packets", "RDMA packets for which the application had no receive posted"},
		{RetryExceeded, false, false, "events", "RDMA connections given up after too many retries"},
		{Adaptive, false, false, "packets", "RDMA packets sent again before a time-out"},
		{NoBuffer, false, false, "packets", "packets lost because the NIC had no buffer left"},
		{PauseStorm, false, false, "events", "times that the NIC paused its switch for too long and was stopped"},
	}
}
