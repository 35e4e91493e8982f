// Package conform is the suite that every Device passes. A transport's own test builds a Subject (an emulator, how
// to reach it, and its fault switches) and calls Run:
//
//	func TestConform(t *testing.T) {
//		conform.Run(t, func(t *testing.T) conform.Subject { … })
//	}
//
// Each case gets a Subject of its own, so nothing leaks from one to the next. What does not apply to a device is nil
// in its Subject, and the case is skipped with that reason. Nothing here passes or fails by the clock: time-outs are
// safety nets that turn a hang into a failure.
package conform

import (
	"context"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Subject is one emulated device with everything the suite needs of it. Required: Name, Same, Open, Changes, Other,
// Writes, State. Everything else may be nil where the device or its transport has no such thing.
type Subject struct {
	Name    string   // the device's inventory name; every error has to contain it
	Secrets []string // passwords in use; no error may contain one

	// Same is the dialect's equality of values, Dialect.Same.
	Same func(k render.Key, a, b *string, f render.Facts) bool

	// Open connects with good credentials. It is called many times; each call is a new connection.
	Open func(context.Context) (drivers.Device, error)
	// WrongPassword, WrongHostKey and WrongCertificate connect with one thing wrong. The error may come from here or,
	// where a transport connects late, from the first call.
	WrongPassword    func(context.Context) (drivers.Device, error)
	WrongHostKey     func(context.Context) (drivers.Device, error)
	WrongCertificate func(context.Context) (drivers.Device, error)
	// Auths counts the password attempts that the device has seen.
	Auths func() int

	// Changes is a valid, ordered set of at least two changes of what live holds. Other is another valid set that
	// moves at least one of the same keys to a third value.
	Changes func(live render.Config) []render.Change
	Other   func(live render.Config) []render.Change
	// Bad is an ordered set of which the device refuses the change at index bad by its own rules, not by a fault
	// switch. There is at least one change after it.
	Bad func(live render.Config) (cs []render.Change, bad int)

	// Writes counts the write requests that the device has seen: lines typed in a configuration mode, paths of a Set,
	// netlink messages that set. Opening and dropping an empty session counts as a write too.
	Writes func() int
	// State is the configuration in effect as text: equal when and only when the configuration is equal. Sessions,
	// counters and clocks are not part of it.
	State func() string
	// Advance moves the device's clock, so that commit timers run out. Nil when it has no timers.
	Advance func(time.Duration)
	// LeaveOpen leaves an open, uncommitted transaction behind, as a killed process would. For Confirmers.
	LeaveOpen func(drivers.TxID)

	// Counting is for Sensors.
	Counting *Counting

	// RejectNext makes the device refuse the next write request with this sentence.
	RejectNext func(sentence string)
	// OKButDoNot makes the device accept the next commit and not carry it out.
	OKButDoNot func()
	// Slow delays the device's next answers by d each.
	Slow func(d time.Duration)
	// Stall makes the device hold its answer to the next write request until the connection ends. The channel is
	// closed when it holds one.
	Stall func() <-chan struct{}
	// ChangeBehind moves the live value of k to one that no change of this Subject names.
	ChangeBehind func(k render.Key)
	// DropAfter cuts connections once when n more bytes have passed in both directions together; negative disarms.
	// Bytes is how many have passed since the start. A Proxy has both.
	DropAfter func(n int64)
	Bytes     func() int64
}

// patience is the safety net of every call. It is never waited for by a device that honours the contract.
const patience = 20 * time.Second

// Run runs the whole suite. mk starts a fresh device and stops it with t.Cleanup.
func Run(t *testing.T, mk func(t *testing.T) Subject) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.run(t, mk) })
	}
}

// one is a case on one Subject.
func one(f func(c *call)) func(*testing.T, func(*testing.T) Subject) {
	return func(t *testing.T, mk func(*testing.T) Subject) {
		f(&call{T: t, s: mk(t)})
	}
}

type testCase struct {
	name string
	run  func(*testing.T, func(*testing.T) Subject)
}

func cases() []testCase {
	return []testCase{
		{"facts", one(facts)},
		{"hundred reads are identical", one(hundredReads)},
		{"read your writes", one(readYourWrites)},
		{"nothing to do writes nothing", one(nothingToDo)},
		{"second commit writes nothing", one(idempotent)},
		{"half-applied changes are finished", one(halfApplied)},
		{"undo restores", one(undoRestores)},
		{"changed behind is refused before any write", one(changedBehind)},
		{"a guarded commit shows what it read", one(guarded)},
		{"two connections, one change", one(concurrent)},
		{"ended context writes nothing", one(endedContext)},
		{"closed device", one(closedDevice)},
		{"refused by the device's rules", one(refusedByRule)},
		{"refused line or path", one(refusedLine)},
		{"says OK but did not", one(okButDidNot)},
		{"slow answers", one(slowAnswers)},
		{"cancel in the middle of a commit", one(cancelled)},
		{"disconnect at any byte", disconnects},
		{"disconnect at any byte of a timed commit", timedDisconnects},
		{"wrong password is tried once", one(wrongPassword)},
		{"wrong host key", one(wrongHostKey)},
		{"wrong certificate", one(wrongCertificate)},
		{"confirm window without a timer", one(noConfirm)},
		{"unconfirmed commit reverts", one(unconfirmed)},
		{"confirmed commit stays", one(confirmed)},
		{"timed commit is aborted", one(abortTimed)},
		{"open transaction", one(openTransaction)},
		{"saved", one(saved)},
		{"sensor", one(sensor)},
		{"sensor tells what is counted", one(sensorTells)},
		{"sensor and nonsense", sensorJunk},
		{"sensor ends with its context", one(sensorEnds)},
		{"trials change nothing", one(trials)},
	}
}
