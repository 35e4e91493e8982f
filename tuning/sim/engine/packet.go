package engine

// A packet is a frame on its way: a value of 16 bytes that is copied from ring to ring.
type packet struct {
	flow uint32
	psn  uint32 // of data: its number in the flow; of answers: the number that is expected next; of pauses: the priority
	head uint32 // kind, mark and flags, and below them the place of its next hop in run.ways
	size uint16 // bytes, without overhead
	in   uint16 // port by which it came into the switch that holds it
}

// kind is what a packet is.
type kind uint8

const (
	data    kind = iota
	ack          // what is before psn has arrived
	nack         // and what arrived last was not psn
	cnp          // congestion notification
	ask          // request to send from psn on: the sender of a READ hears it
	pause        // PFC, on
	unpause      // PFC, off
)

// The bits of packet.head.
const (
	wayBits  = 24
	wayMask  = 1<<wayBits - 1
	headCE   = 1 << 24 // congestion experienced; on an acknowledgement in Compat, the echo of it
	headLast = 1 << 25 // of a message: to be acknowledged at once, and its acknowledgement is news to the sender
	markAt   = 26
	kindAt   = 29
)

func headOf(k kind, mark int8, way uint32) uint32 {
	return uint32(k)<<kindAt | uint32(mark)<<markAt | way
}

func (k *packet) kind() kind   { return kind(k.head >> kindAt) }
func (k *packet) mark() uint32 { return k.head >> markAt & 7 }
func (k *packet) way() uint32  { return k.head & wayMask }

// congested marks data. Answers are marked too, and counted, but nobody asks them about it, and their bit is the echo.
func (k *packet) congested() {
	if k.kind() == data {
		k.head |= headCE
	}
}

// A ring is a queue of packets. It grows to the power of two that holds the most it ever had.
type ring struct {
	buf        []packet
	head, tail uint32
}

func (r *ring) empty() bool { return r.head == r.tail }

func (r *ring) first() *packet { return &r.buf[r.head&uint32(len(r.buf)-1)] }

func (r *ring) push(k packet) {
	if r.tail-r.head == uint32(len(r.buf)) {
		r.grow()
	}
	r.buf[r.tail&uint32(len(r.buf)-1)] = k
	r.tail++
}

func (r *ring) grow() {
	b := make([]packet, max(16, 2*len(r.buf)))
	for i := r.head; i != r.tail; i++ {
		b[i&uint32(len(b)-1)] = r.buf[i&uint32(len(r.buf)-1)]
	}
	r.buf = b
}

// A flight is a packet on a wire. Packets of a wire arrive in the order in which they left, so that only the first has an
// event, and the others know how much later they arrive than the one before: as long as that one is still on the wire, it is
// no more than propagation and serialisation of one frame.
type flight struct {
	packet
	later    uint32 // picoseconds
	laterSeq uint32 // sequence numbers
}

// A wire is what a port has sent and what has not arrived.
type wire struct {
	buf        []flight
	head, tail uint32
	lastAt     Time // arrival of the last one
	lastSeq    uint64
}

func (w *wire) push(k packet, at Time, seq uint64) {
	if w.tail-w.head == uint32(len(w.buf)) {
		w.grow()
	}
	w.buf[w.tail&uint32(len(w.buf)-1)] = flight{k, uint32(at - w.lastAt), uint32(seq - w.lastSeq)}
	w.tail++
	w.lastAt, w.lastSeq = at, seq
}

func (w *wire) grow() {
	b := make([]flight, max(16, 2*len(w.buf)))
	for i := w.head; i != w.tail; i++ {
		b[i&uint32(len(b)-1)] = w.buf[i&uint32(len(w.buf)-1)]
	}
	w.buf = b
}
