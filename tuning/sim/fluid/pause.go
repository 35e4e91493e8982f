package fluid

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/units"
)

// PauseCycle is n ports that bring in the link's speed each and share one port of the same speed, with PFC and without DCQCN.
// Each is told to stop when its group holds Xoff, to go on when it holds Xon again, and does so a Loop later.
type PauseCycle struct {
	Speed     units.BitRate
	Ports     int
	Xoff, Xon units.Bytes
	Loop      units.Duration // from the threshold until what arrives changes: the wait for the wire, the frame, both ways, the response
}

// Cycle is what PauseCycle repeats for ever. Sizes are in bytes, of each group.
type Cycle struct {
	Peak, Trough float64
	Headroom     float64 // of Peak above Xoff
	Period       float64 // seconds
	Paused       float64 // part of it for which each sender is stopped
	Idle         float64 // part of it for which the port has nothing to send: Xon is too low for the loop
}

// Solve follows the cycle: the group of each port fills with C - C/n and empties with C/n, so that it goes on rising for a loop
// after Xoff and falling for a loop after Xon, or until it is empty.
func (c PauseCycle) Solve() (Cycle, error) {
	if c.Speed <= 0 || c.Ports < 2 || c.Xoff <= 0 || c.Xon < 0 || c.Xon > c.Xoff || c.Loop < 0 {
		return Cycle{}, fmt.Errorf("%d ports of %s, xoff %s, xon %s, a loop of %s: no cycle comes of it", c.Ports, c.Speed, c.Xoff, c.Xon, c.Loop)
	}
	n, loop := float64(c.Ports), seconds(c.Loop)
	drain := float64(c.Speed) / 8 / n
	fill := drain * (n - 1)
	x := Cycle{Headroom: fill * loop, Trough: max(0, float64(c.Xon)-drain*loop)}
	x.Peak = float64(c.Xoff) + x.Headroom
	rises := (float64(c.Xoff)-x.Trough)/fill + loop
	falls := (x.Peak-float64(c.Xon))/drain + loop
	x.Period = rises + falls
	x.Paused = falls / x.Period
	if empty := falls - (x.Peak-x.Trough)/drain; empty > 0 {
		x.Idle = empty / x.Period
	}
	return x, nil
}
