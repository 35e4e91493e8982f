package lint

import (
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// answers are what formulas said to a pass. A fabric has thousands of places, few kinds of buffers and cables, and
// formulas that calculate exactly. The zero value has none yet; it is for one goroutine.
type answers struct {
	points     map[pauseCase]paused
	physics    map[derive.Link]units.Bytes
	standard   map[derive.Link]units.Bytes
	guaranteed map[spread]units.Bytes
}

// answer is what m has for k, or else what f says to it.
func answer[K comparable, V any](m *map[K]V, k K, f func() V) V {
	v, ok := (*m)[k]
	if !ok {
		if *m == nil {
			*m = map[K]V{}
		}
		v = f()
		(*m)[k] = v
	}
	return v
}

// pauseCase is what decides a pause threshold.
type pauseCase struct {
	static, shared units.Bytes
	alpha          units.Ratio
	groups         int
}

type paused struct {
	at intent.PauseAt
	ok bool
}

// pausePoint is intent.PausePoint.
func (a *answers) pausePoint(b intent.Buffer, pools intent.Pools, n int) (intent.PauseAt, bool) {
	x := answer(&a.points, pauseCase{b.Static, pools.Shared, b.Alpha, n}, func() (x paused) {
		x.at, x.ok = intent.PausePoint(b, pools, n)
		return x
	})
	return x.at, x.ok
}

// physicsMin is the headroom of derive.PhysicsMin.
func (a *answers) physicsMin(l derive.Link) units.Bytes {
	return answer(&a.physics, l, func() units.Bytes { return derive.PhysicsMin(l).Xoff })
}

// standardMax is the headroom of derive.StdMax with the delays of the standard.
func (a *answers) standardMax(l derive.Link) units.Bytes {
	return answer(&a.standard, l, func() units.Bytes { return derive.StdMax(l, derive.StandardDelays(l.Speed)).Xoff })
}

// spread is what decides the bound of derive.ECNBeforePFC.
type spread struct {
	pool  units.Bytes
	k, n  int
	share units.Ratio
}

// ecnBefore is the dynamic bound of derive.ECNBeforePFC without headroom in the pool.
func (a *answers) ecnBefore(s spread) units.Bytes {
	return answer(&a.guaranteed, s, func() units.Bytes {
		return derive.ECNBeforePFC(s.pool, s.k, s.n, 0, s.share).ECNDynamic.Down()
	})
}
