// Package engine simulates a RoCEv2 fabric packet by packet: switches with shared buffers, PFC, ECN marking and
// schedulers, and NICs with DCQCN and go-back-N. It knows ports, bytes and picoseconds; what they stand for (models,
// devices, classes, workloads) is the business of package sim.
//
// A run is single-threaded and a pure function of its Config: the same Config gives the same Result, to the last event,
// on any machine. Runs share nothing, so many of them run side by side.
package engine

// Time is simulated time, or a span of it, in picoseconds. The longest run is 50 days.
type Time int64

// Spans of time.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Sizes of the tables that packets are classified with.
const (
	NumMarks      = 8 // kinds of packets that a run tells apart: what a real packet says with its code point
	NumPriorities = 8 // priorities, priority groups and queues of a port
)

// None is the index of nothing: a port without a switch, a mark that is not classified, a flow that waits for no other.
const None = -1

// Config is a fabric with its traffic. Indices are positions in its slices. Run refuses one that makes no sense.
type Config struct {
	// Compat computes as the reference simulator does, to the nanosecond. Serialisation and pacing are cut to whole
	// nanoseconds, and a gap between frames is waited out whatever becomes of the rate. Notifications are a flag on the
	// acknowledgement, a NIC's answers go before all data and heed no pause, and duplicates are not acknowledged again. The
	// frame that is over a threshold as the first is headroom, pools may be overfull, and a pause ends only when its own
	// group gives bytes back. The ways are those of its hash, quantiles are in buckets of 1,000 bytes, and a run that
	// hangs goes on until Stop. Rates are whole bits per second, and what is drawn are the reference's own numbers, those of its
	// run number Seed. Overhead, Transport and Reaction of ports are still as given.
	Compat   bool
	Seed     uint64 // of marking and of whatever else is drawn
	Overhead int32  // bytes on the wire for each frame besides its own: FCS 4, preamble 8 and gap 12 are 24

	Switches  []Switch
	Ports     []Port
	NICs      []NIC
	Flows     []Flow
	Transport Transport

	// Next lists the ports that a switch may send to a NIC by, in the order in which its hash chooses; nil means all ways
	// of the fewest hops, ports in ascending order.
	Next func(sw, nic int) []int32

	// NotECT are the marks, as bits, of packets that say that their ends do not know congestion marks, so that none is put on them.
	NotECT uint8

	Stop    Time       // the run ends there, or when all flows of a known size have ended
	ToStop  bool       // it goes on until Stop also when they have, for the sake of those that never end
	Measure Time       // results are of what happens from here on
	Sample  Time       // a row of Result.Series each so often, over the whole run; 0 = none
	Watch   []QueueRef // queues whose length is in the rows
	Audit   int        // everything is counted anew each so many events, and a byte that is missing ends the run; 0 = never

	// Progress, when not nil, is told how far the run is, each few thousand events.
	Progress func(at Time)

	// Pauses, when not nil, is told of each pause (or, with on false, resume) that a port obeys, when it takes effect.
	Pauses func(at Time, port, priority int, on bool)
}

// QueueRef names a queue of a port.
type QueueRef struct{ Port, Queue int }

// Pool is a part of a switch's buffer. Index 0 of Switch.Pools is that of lossless traffic by custom. A frame is on the account
// of its group in one pool and of its queue in another, or in the same: the two kinds of accounts are kept apart.
type Pool struct {
	Size int64 // bytes that its groups share, and that its queues share, without reserved bytes and without headroom
}

// Switch is a shared buffer with ports, and how its ways are chosen.
type Switch struct {
	Buffer   int64 // bytes that it has in all; 0 = not known. What pools, reserve and headroom add up to must fit in it
	Pools    []Pool
	Headroom int64  // bytes of headroom that all groups share; 0 = each group has its own
	HashSeed uint32 // of ECMP
	OnEntry  bool   // marks are decided when a packet joins the queue and not when it leaves
}

// Class is what a port makes of a packet that comes in: its ingress priority group, and its queue at whichever port it
// goes out by.
type Class struct {
	Group int8 // or None: dropped, as unclassified
	Queue int8
}

// Port is one end of a link: of a switch, or the only one of a NIC.
type Port struct {
	Switch int   // or None: a NIC's
	Peer   int   // the port at the other end
	Rate   int64 // bits per second
	Delay  Time  // propagation to the peer
	MTU    int32 // largest frame that it takes in or sends, without FCS; 0 = any

	// Obeys[p] are the queues, as bits, that a received pause for priority p stops. On a NIC, queues are traffic classes.
	Obeys    [NumPriorities]uint8
	Reaction Time  // from the receipt of a pause until it is obeyed
	Quanta   int32 // pause time in the frames that it sends, in quanta of 512 bit times, 16 or more, refreshed at half of it; 0 = until resumed

	Classify [NumMarks]Class // of packets that come in
	Groups   [NumPriorities]Group
	Queues   [NumPriorities]Queue

	Watchdog Watchdog
}

// Group is the buffer of an ingress priority group. The threshold is Static bytes when above 0, else Alpha/65536 of what is
// free in the pool.
type Group struct {
	Lossless  bool // it sends pauses, of the priority of its own number
	Pool      int8
	Reserved  int64 // bytes that it has to itself
	Static    int64
	Alpha     int64 // in 1/65536
	Headroom  int64 // bytes for what arrives above the threshold; cap of what it takes when the switch shares headroom
	Xon       int64 // sending goes on when no more than this is held, reserved bytes not counted
	XonOffset int64 // or when so much less than the threshold is held; 0 = that does not count
}

// Queue is an egress queue. Limits drop; lossless queues have none.
type Queue struct {
	Strict bool  // before those that are not; among them, the higher number first
	Weight int32 // of deficit round robin, in bytes for each round; at least a frame's length is wise
	Pool   int8
	Alpha  int64 // longest it grows, in 1/65536 of what is free in the pool; 0 = no such limit
	Limit  int64 // longest it grows, in bytes; 0 = no such limit
	Marks  bool  // or, with Drops, discards what it would mark
	Drops  bool
	Kmin   int64 // bytes in the queue; above it, packets are marked with a probability up to Pmax, above Kmax all are
	Kmax   int64
	Pmax   float64 // 0 to 1
}

// WatchdogAction is what a watchdog does with a queue that was stopped for too long.
type WatchdogAction uint8

// What a watchdog does.
const (
	WatchdogOff WatchdogAction = iota
	WatchdogDrop
	WatchdogForward
	WatchdogAlert
)

// Watchdog looks for queues that stay stopped.
type Watchdog struct {
	Action  WatchdogAction
	Queues  uint8 // that it watches, as bits
	Poll    Time
	Detect  Time
	Restore Time
}

// NIC is a host's end of a link: it sends what its flows have and takes in what arrives.
type NIC struct {
	Port     int
	Address  uint32 // that ECMP hashes
	CNPMark  int8   // mark of the notifications that it sends
	CNPClass int8   // and the queue (traffic class) by which it sends them
	CNPWait  Time   // from a marked packet to the notification
	CNPGap   Time   // at most one notification of a flow in it
	React    Reaction

	// A receiver that is slow takes in Drain bits per second, keeps up to Buffer bytes of each priority, and pauses at Xoff until it is down to Xon.
	Drain  int64 // 0 = as fast as it comes
	Buffer int64
	Xoff   int64
	Xon    int64

	Storms []Storm
}

// Storm is a fault: from From until To, the NIC sends pauses for the priorities (bits), whether it has PFC or not, and takes
// nothing in of them: what arrives is kept as far as there is room in Buffer.
type Storm struct {
	From, To   Time // To 0 = for ever
	Priorities uint8
}

// Reaction is the parameters of the reaction point of DCQCN.
type Reaction struct {
	On           bool
	CutOnCNP     bool // the rate is cut at each notification; else at most once each CutTimer, which runs free from the first one
	AlphaTimer   Time
	CutTimer     Time
	RateTimer    Time
	ByteCounter  int64 // bytes sent after which the rate goes up; 0 = time alone counts
	FastRecovery int   // steps up before the increase is additive; the reference has 1
	G            float64
	AI, HAI      int64 // bits per second
	MinRate      int64
	ClampTarget  bool // the target falls to the current rate at every cut, not only at one after an increase
}

// Transport is what all reliable connections have in common.
type Transport struct {
	AckSize   int32 // frame of an acknowledgement, of a NACK, and of a notification
	CNPSize   int32
	PauseSize int32
	Header    int32 // bytes that a frame has besides its payload
	AckEvery  int32 // packets for each acknowledgement; a message's last is always acknowledged
	RTO       Time  // 0 = a lost tail is never sent again
	NackGap   Time  // a NACK for the same hole is repeated after it
}

// Flow is the traffic of one queue pair. A flow sends Bytes, or for ever; with Message, in messages of which at most Depth are not
// acknowledged.
type Flow struct {
	Src, Dst   int   // NICs
	Bytes      int64 // 0 = endless
	Start      Time
	After      int   // flow that must have been received whole first (then Start counts from there), or None
	Mark       int8  // of its packets and acknowledgements
	Class      int8  // queue (traffic class) of the sending NIC
	Answers    int8  // queue of the receiving NIC for its acknowledgements and requests, and 1 more; 0 = of the same number as Class
	Payload    int32 // bytes in a packet
	Message    int64 // 0 = it is one
	Depth      int32 // 0 = no limit
	SourcePort uint16
	Read       bool // the data goes from Dst to Src, on request
	Unnoticed  bool // whoever receives the data does not notify the sender of marks
}
