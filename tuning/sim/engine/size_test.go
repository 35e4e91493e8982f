package engine

import (
	"testing"
	"unsafe"
)

// TestSizes: what is read for each frame starts where a line of the cache does.
func TestSizes(t *testing.T) {
	for name, size := range map[string]uintptr{"port": unsafe.Sizeof(port{}), "queue": unsafe.Sizeof(queue{}), "group": unsafe.Sizeof(group{}), "sender": unsafe.Sizeof(sender{})} {
		if size%64 != 0 {
			t.Errorf("a %s has %d bytes, not a multiple of 64", name, size)
		}
	}
	if n := unsafe.Offsetof(queue{}.ring); n != 64 {
		t.Errorf("a queue's ring is at %d", n)
	}
	if n := unsafe.Offsetof(port{}.wire); n != 64 {
		t.Errorf("a port's wire is at %d", n)
	}
	if n := unsafe.Sizeof(flight{}); n != 24 {
		t.Errorf("a flight has %d bytes", n)
	}
}
