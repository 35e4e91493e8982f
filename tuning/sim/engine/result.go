package engine

// End says why a run ended.
type End uint8

// Why a run ended.
const (
	EndStop        End = iota // at Config.Stop
	EndDone                   // all flows of a known size have ended
	EndIdle                   // nothing can ever happen again: what has not ended is lost, or waits for what never comes
	EndDeadlock               // ports wait for each other in a circle, which Result.Stuck names
	EndLivelock               // packets move and nothing is delivered
	EndInterrupted            // the context ended: the Result is of the time until then, and comes with the context's error
)

// Result is what happened in a run, from Config.Measure on. Slices have the order of the Config's.
type Result struct {
	End      End
	At       Time   // when the run ended
	Span     Time   // what the counters are of: At - Measure, or less
	Events   uint64 // that were dealt with in the whole run
	Packets  uint64 // data packets that were received in order, in the whole run
	Hash     uint64 // of the order of all events of the whole run
	Flows    []FlowResult
	Ports    []PortResult
	Switches []SwitchResult
	NICs     []NICResult
	Series   []Sample
	Stuck    []Stuck // for EndDeadlock, EndIdle and EndLivelock: who waits; for EndStop, a circle that only watchdogs can end
}

// FlowResult is what became of a flow. Bytes are of payload.
type FlowResult struct {
	Started, Done bool
	Start         Time   // when it started
	Completion    Time   // from its start until the acknowledgement of its last byte; 0 = it has not ended
	Received      int64  // bytes that arrived in order
	Before        int64  // bytes that had arrived in order before Config.Measure
	Acked         int64  // bytes that were acknowledged
	Sent          uint64 // packets, those that were sent again included
	Resent        uint64
	ResentBytes   int64  // between what was acknowledged and what was sent, at each NACK
	Marked        uint64 // packets that arrived with a mark
	CNPs          uint64 // notifications that reached the sender
	Cuts          uint64 // of its rate
	NACKs         uint64
	Timeouts      uint64
	Dropped       uint64     // its frames that were discarded, answers and notifications included
	Rate          int64      // of the reaction point at the end, bits per second
	Messages      *Histogram // times from the first packet of a message until it is acknowledged, in ns; nil = the flow has no messages
}

// DropReason is why a packet was discarded.
type DropReason uint8

// Why packets are discarded.
const (
	DropHeadroom     DropReason = iota // a lossless group has no headroom left
	DropIngress                        // a lossy group is at its threshold
	DropEgress                         // a queue is at its limit
	DropWRED                           // discarded in place of a mark
	DropMTU                            // longer than the port takes
	DropWatchdog                       // the watchdog empties its queue
	DropUnclassified                   // no group takes it
	DropNIC                            // a slow receiver has no room
	NumDropReasons
)

// PortResult is what happened at a port.
type PortResult struct {
	TxFrames, TxBytes uint64 // data, acknowledgements and notifications
	Drops             [NumDropReasons]uint64
	DropBytes         [NumDropReasons]uint64
	Groups            [NumPriorities]GroupResult
	Queues            [NumPriorities]QueueResult
	PausedLongest     [NumPriorities]Time // longest uninterrupted time for which a priority was stopped by the peer
}

// GroupResult is the ingress side of a priority.
type GroupResult struct {
	PausesSent, ResumesSent uint64 // by us; refreshes are not counted
	RefreshesSent           uint64
	PausesReceived          uint64 // obeyed by us, as a sender, refreshes included
	PausesIgnored           uint64 // received and not obeyed
	Paused                  Time   // for which we, as a sender, were stopped
	Max                     int64  // most bytes held, headroom not counted
	HeadroomMax             int64
	Drops                   uint64 // for lack of headroom, of the pool, or of a NIC's buffer
}

// QueueResult is the egress side of a priority.
type QueueResult struct {
	Mean          float64 // bytes, over time
	P50, P95, P99 int64   // bytes, over time: the lower edge of a bucket of a Histogram; with Config.Compat, of buckets of 1,000 bytes
	Max           int64
	TxFrames      uint64
	TxBytes       uint64
	Marked        uint64
	Drops         uint64
	Stuck         uint64 // times that the watchdog found it stopped for too long; that on which it acts at Config.Measure is one
	Restored      uint64
}

// SwitchResult is what happened in a switch's buffer.
type SwitchResult struct {
	SharedMax   []int64 // by pool: most bytes in use
	HeadroomMax int64   // most bytes of headroom in use, all groups together
	BufferMean  float64 // bytes held in all queues, over time
	BufferMax   int64
}

// NICResult is what happened at a host's end.
type NICResult struct {
	CNPsSent  uint64
	HeldMax   int64  // bytes in a slow receiver
	OutOfSeq  uint64 // packets that arrived out of order
	Duplicate uint64
}

// Stuck is a port's queue that waits, and on whom.
type Stuck struct {
	Port, Queue int
	Bytes       int64
	PausedBy    int // port that pauses it, or None
}

// Sample is the state at one time, Config.Sample after the one before.
type Sample struct {
	At       Time
	Queues   []int64 // bytes in each queue of Config.Watch
	Received []int64 // by flow, payload bytes that arrived in order
	Acked    []int64 // by flow, payload bytes that were acknowledged: later, and in bursts where acknowledgements are paused
	Rates    []int64 // by flow, bits per second that the reaction point allows
	Paused   []Time  // by port: for which any priority was stopped, since the sample before
	Marked   uint64  // packets, since the sample before
	Drops    uint64
}
