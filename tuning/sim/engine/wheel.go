package engine

import "math/bits"

// A wheel holds at most one event for each of a fixed number of slots, in the order of time and, at the same time, of
// sequence numbers. Buckets of 2^shift picoseconds are lists in that order, with a pointer to the tail: when a thousand ports
// start at one instant, each event is later than those before it, and is put at the end at once. What is beyond the wheel's
// horizon waits in a heap.
type wheel struct {
	slots []slot
	lists []list
	used  []uint64 // bitmap of buckets that are not empty
	far   []int32  // 4-ary heap
	shift uint
	mask  int64
	now   int64 // bucket of the event that was taken last
	near  int   // events in buckets
}

// A list is the events of a bucket.
type list struct{ head, tail int32 }

type slot struct {
	at   Time
	seq  uint64
	next int32
	heap int32 // place in the heap, or where it is otherwise
}

// Places of a slot that is not in the heap.
const (
	slotFree   = -1
	slotBucket = -2
)

const never = Time(1) << 62

// newWheel makes a wheel for a number of ports. Buckets are as wide as the time in which a fabric of that size, in use, has an
// event or a few: 4 ns for a handful of hosts, 256 ps for a hundred and for more, where more buckets would cost more than they
// save. There are enough of them for events that are as far in the future as a horizon. For a far one they get wider; beyond
// 134 us the heap has to do.
func newWheel(slots, ports int, horizon Time) wheel {
	shift := uint(8)
	for n := 256; n > ports && shift < 12; n /= 2 {
		shift++
	}
	log := uint(6)
	for Time(1)<<(shift+log) <= horizon && log < 17 {
		if log < 15 || shift >= 10 {
			log++
		} else {
			shift++
		}
	}
	w := wheel{
		slots: make([]slot, slots),
		lists: make([]list, 1<<log),
		used:  make([]uint64, 1<<(log-6)),
		shift: shift,
		mask:  1<<log - 1,
	}
	for i := range w.slots {
		w.slots[i].heap = slotFree
	}
	for i := range w.lists {
		w.lists[i].head = None
	}
	return w
}

func (a *slot) before(b *slot) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// set puts the event of a slot, which holds none, in its place.
func (w *wheel) set(id int32, at Time, seq uint64) {
	n := &w.slots[id]
	n.at, n.seq = at, seq
	b := int64(at) >> w.shift
	if b-w.now > w.mask {
		n.heap = int32(len(w.far))
		w.far = append(w.far, id)
		w.up(len(w.far) - 1)
		return
	}
	n.heap = slotBucket
	w.near++
	l := &w.lists[b&w.mask]
	if l.head < 0 {
		n.next = None
		l.head, l.tail = id, id
		w.used[b&w.mask>>6] |= 1 << uint(b&63)
		return
	}
	if t := &w.slots[l.tail]; t.before(n) {
		t.next, n.next = id, None
		l.tail = id
		return
	}
	e := &w.slots[l.head]
	if n.before(e) {
		n.next = l.head
		l.head = id
		return
	}
	for e.next >= 0 && w.slots[e.next].before(n) {
		e = &w.slots[e.next]
	}
	n.next = e.next
	e.next = id
}

// clear takes the event of a slot out, if it holds one.
func (w *wheel) clear(id int32) {
	n := &w.slots[id]
	where := n.heap
	n.heap = slotFree
	switch {
	case where == slotFree:
		return
	case where >= 0:
		w.dig(int(where))
		return
	}
	i := int64(n.at) >> w.shift & w.mask
	w.near--
	l := &w.lists[i]
	if l.head == id {
		l.head = n.next
		if n.next < 0 {
			w.used[i>>6] &^= 1 << uint(i&63)
		}
		return
	}
	h := l.head
	for w.slots[h].next != id {
		h = w.slots[h].next
	}
	w.slots[h].next = n.next
	if n.next < 0 {
		l.tail = h
	}
}

// holds reports whether a slot holds an event.
func (w *wheel) holds(id int32) bool { return w.slots[id].heap != slotFree }

// len is how many events there are.
func (w *wheel) len() int { return w.near + len(w.far) }

// take takes the earliest event out and returns its slot, whose time and number are still there to be read, or None.
func (w *wheel) take() int32 {
	if w.near == 0 {
		return w.takeFar()
	}
	i := int(w.now & w.mask)
	word := i >> 6
	x := w.used[word] >> uint(i&63)
	if x != 0 {
		i += bits.TrailingZeros64(x)
	} else {
		for last := len(w.used) - 1; x == 0; x = w.used[word] {
			word = (word + 1) & last
		}
		i = word<<6 + bits.TrailingZeros64(x)
	}
	l := &w.lists[i]
	h := l.head
	n := &w.slots[h]
	if len(w.far) > 0 && w.slots[w.far[0]].before(n) {
		return w.takeFar()
	}
	l.head = n.next
	if n.next < 0 {
		w.used[i>>6] &^= 1 << uint(i&63)
	}
	n.heap = slotFree
	w.near--
	w.now = int64(n.at) >> w.shift
	return h
}

func (w *wheel) takeFar() int32 {
	if len(w.far) == 0 {
		return None
	}
	id := w.far[0]
	w.dig(0)
	n := &w.slots[id]
	n.heap = slotFree
	w.now = int64(n.at) >> w.shift
	return id
}

func (w *wheel) up(i int) {
	id := w.far[i]
	for i > 0 {
		p := (i - 1) >> 2
		if !w.slots[id].before(&w.slots[w.far[p]]) {
			break
		}
		w.far[i] = w.far[p]
		w.slots[w.far[i]].heap = int32(i)
		i = p
	}
	w.far[i] = id
	w.slots[id].heap = int32(i)
}

func (w *wheel) down(i int) {
	id := w.far[i]
	for {
		c := i<<2 + 1
		if c >= len(w.far) {
			break
		}
		m := c
		for k := c + 1; k < min(c+4, len(w.far)); k++ {
			if w.slots[w.far[k]].before(&w.slots[w.far[m]]) {
				m = k
			}
		}
		if !w.slots[w.far[m]].before(&w.slots[id]) {
			break
		}
		w.far[i] = w.far[m]
		w.slots[w.far[i]].heap = int32(i)
		i = m
	}
	w.far[i] = id
	w.slots[id].heap = int32(i)
}

// dig takes the element at i out of the heap.
func (w *wheel) dig(i int) {
	last := len(w.far) - 1
	id := w.far[last]
	w.far = w.far[:last]
	if i == last {
		return
	}
	w.far[i] = id
	w.slots[id].heap = int32(i)
	w.down(i)
	w.up(int(w.slots[id].heap))
}
