package engine

// What is read for each frame stands in port, queue, group and sender; what is rarely needed stands in portCold and elsewhere,
// so that the first kind stays in the nearest cache.

// A port is one end of a link. The first 64 bytes are what a frame that comes in needs, and what decides whether the port may
// send; the others are the wire.
type port struct {
	busy   Time   // end of the frame that was sent last
	sent   uint64 // number of the event at that time; the frame's arrival has the next
	perB   Time   // picoseconds for each byte, or 0: the rate does not divide 8e12
	delay  Time
	owner  int32 // index of its switch, or of its NIC
	mtu    uint16
	peer   uint16
	class  [NumMarks]uint8
	flags  uint8
	ready  uint8 // queues that are not empty, as bits
	halted uint8 // queues that are stopped by pauses
	strict uint8 // queues that are served before others
	turn   uint8 // queue that is being served by deficit round robin
	_      [11]byte
	wire   wire
	_      [16]byte
}

// Flags of a port.
const (
	isNIC  = 1 << iota
	waking // the tx slot holds an event
	toNIC  // the peer is a NIC that takes in all at once
	owing  // pauses wait to be sent: portCold.frames
)

const frameOn = 1 << 3 // in portCold.frames

// Values of port.class: group<<4 | queue, or noClass.
const noClass = 0xff

// portCold is the rest of a port.
type portCold struct {
	tally
	frames    []uint8 // pauses to send: priority, and frameOn
	chores    []chore
	since     [NumPriorities]Time // start of the pause that is obeyed
	until     [NumPriorities]Time // its end, unless it is refreshed; 0 = no chore waits for it
	stopped   uint8               // priorities that are paused
	owed      uint8               // priorities for which a chore will refresh
	sampled   Time                // for which any priority was stopped, since the last row of the series
	sampledAt Time
	dog       *dog
}

// tally is the counters of a port that are not of a queue or of a group.
type tally struct {
	paused   [NumPriorities]Time // for which priorities were stopped
	longest  [NumPriorities]Time
	received [NumPriorities]uint64 // pauses
	ignored  [NumPriorities]uint64
	pauses   [NumPriorities]uint64 // sent
	resumes  [NumPriorities]uint64
	refresh  [NumPriorities]uint64
	drops    [NumDropReasons]uint64
	bytes    [NumDropReasons]uint64
	refused  [NumPriorities]uint64 // drops by group
}

// place is where the queue or the group of a port stands: those of one priority beside each other, since most traffic is of one
// or two, and those of a port a power of two apart would crowd into few sets of the cache.
func (s *run) place(pi int32, pri uint8) int32 { return int32(pri)*int32(len(s.ports)) + pi }

// portAt and priorityAt are the way back.
func (s *run) portAt(place int32) int32 { return place % int32(len(s.ports)) }

func (s *run) priorityAt(place int32) uint8 { return uint8(place / int32(len(s.ports))) }

// A queue is an egress queue of a switch, or the account of a NIC's. The first 64 bytes are all that a frame needs that passes.
type queue struct {
	flags   uint8
	pool    int8
	weight  int32
	deficit int32
	max     int64
	tx      uint64
	txBytes uint64
	bytes   int64
	last    Time // of the statistics
	kmin    int64
	ring
	area   account
	kmax   int64
	slope  float64  // probability of a mark for each byte above kmin
	times  []uint64 // picoseconds by bucket of length
	marked uint64
	drops  uint64
	alpha  int64
	limit  int64
	_      [8]byte
}

// Flags of a queue.
const (
	queueLimited = 1 << iota
	queueDrops   // what it would mark
	queueDead    // the watchdog drops what it holds, and what comes
)

// A group is the buffer of a priority at an ingress port, in 64 bytes.
type group struct {
	held     int64 // bytes, without those in headroom
	headroom int64 // bytes in headroom
	static   int64
	max      int64
	alpha    int32
	reserved int32
	room     int32 // cap of headroom
	xon      int32
	offset   int32
	roomMax  int32
	listed   int32 // place in swtch.paused
	pool     int8
	lossless bool
	paused   bool
}

// A swtch is a shared buffer.
type swtch struct {
	pools    []pool
	held     int64 // bytes in all queues
	heldMax  int64
	headroom int64 // bytes in headroom, of all groups
	roomMax  int64
	roomCap  int64 // bytes of headroom that groups share, or 0
	rng      uint64
	onEntry  bool
	paused   []int32 // groups
	turn     int     // in paused
}

type pool struct {
	size int64
	in   int64 // bytes that groups hold, without reserved ones and without headroom
	out  int64 // bytes that queues hold
	max  int64 // of in
}

// A nic is the sending and receiving end of flows.
type nic struct {
	port    int32
	classes []class
	data    uint8   // classes that have flows
	paced   []int32 // heap of flows by when they may send next
	wakeAt  Time
	asked   Time   // when that was decided
	cnpHead uint32 // kind and mark of notifications
	cnpWait Time
	cnpGap  Time
	cnpTo   uint8 // class of notifications
	react   *react
	slow    *slow

	cnps, outOfSeq, duplicate uint64
}

// A class is a traffic class of a NIC: answers that wait, and flows that may send, of which one after the other does.
type class struct {
	answers  ring
	flows    []int32
	eligible []uint64 // bitmap over flows
	count    int      // of bits set
	last     int32    // that has sent
}
