// Package drivers declares what a device is to the rest of fabricctl. A transport implements Device and whichever
// companions its device can honour; drivers/conform is the suite that each of them passes.
//
// The rules that go with the interfaces: a Device is used by one goroutine at a time; every call honours its context
// within a second; every error names the device, the operation and the device's own sentence; an error from Commit
// means that the outcome is unknown until Read says otherwise.
package drivers

import (
	"context"
	"errors"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

// ErrMoved is returned by Commit, before anything is written, when the device holds neither the value a change
// expects nor the value it asks for.
var ErrMoved = errors.New("the device changed since the plan")

// ErrNoConfirm is returned by Commit, before anything is written, when a confirm window is asked of a device that
// cannot revert by itself.
var ErrNoConfirm = errors.New("the device has no confirm timer")

// ErrIdentity is returned when a device is not the one that the inventory describes.
var ErrIdentity = errors.New("this is not the device of the inventory")

// ErrReadOnly is returned by every write when --read-only is in force.
var ErrReadOnly = errors.New("read-only: no write is possible")

// ErrJobs is returned by Commit right before a write that takes a link down and up, when queue pairs of user processes
// are live on it, or cannot be counted, and the connection was not opened with leave to end them. What was written
// before stands, as after any error.
var ErrJobs = errors.New("live queue pairs would be killed")

// ErrHeld is returned by Commit, before anything is written, when somebody holds the device, or a port of it that would
// change.
var ErrHeld = errors.New("it is held")

// ErrBusy is returned by what writes, before anything is written, when another program of ours writes to the device.
var ErrBusy = errors.New("another writer is at work")

// RejectedError is a line or path that the device refused, with the device's own sentence.
type RejectedError struct {
	Device   string // inventory name
	Sent     string // the line or path
	Sentence string // what the device said
	Vague    bool   // it does not say whether that was for what was sent: a trouble of its own, which passes, sounds the same
}

func (e *RejectedError) Error() string {
	return e.Device + ": device refused " + quote(e.Sent) + ": " + e.Sentence
}

func quote(s string) string { return "\"" + s + "\"" }

// DiffersError is a setting that the device acknowledged and does not hold: it was read back at once, over the same
// connection.
type DiffersError struct {
	Device string // inventory name
	Sent   string // the setting and the value that was asked for
	Reads  string // what it reads instead; "absent" for nothing
}

func (e *DiffersError) Error() string {
	return e.Device + ": applied-but-differs: " + quote(e.Sent) + " was acknowledged, but reads " + e.Reads
}

// Unwrap is a RejectedError, for who need not tell the two apart: the device does not do what it was asked.
func (e *DiffersError) Unwrap() error {
	return &RejectedError{Device: e.Device, Sent: e.Sent, Sentence: "applied-but-differs: acknowledged, but reads " + e.Reads}
}

// Caps is what a device can do.
type Caps struct {
	Confirm          bool `json:"confirm"`            // reverts by itself unless confirmed
	Atomic           bool `json:"atomic"`             // a commit happens whole or not at all
	PersistsOnCommit bool `json:"persists_on_commit"` // a commit is saved at once
	Counters         bool `json:"counters"`           // Sensor is implemented

	ReadOnly string `json:"read_only,omitempty"` // why it can be read and not written; "" when it can be written
}

// Reader is a device that can only be looked at.
type Reader interface {
	// Facts identifies the device and says what it can do.
	Facts(ctx context.Context) (render.Facts, Caps, error)
	// Read is the whole running configuration as far as the dialect understands it. Directly after Facts on the same
	// connection it may be what Facts saw, where that was the whole; in any other place it is what the device holds now.
	Read(ctx context.Context) (render.Config, error)
	// Close ends the connection. It never writes.
	Close() error
}

// Device is a device that can be changed.
type Device interface {
	Reader
	// Commit reads first and requires the live value of each key to be Before or After (ErrMoved otherwise, nothing
	// written), skips what is at After, and writes the rest as one transaction where the device has them. With
	// within > 0 the device reverts by itself unless Confirm is called in time (ErrNoConfirm when it cannot).
	// An error means that the outcome is unknown: Read decides.
	Commit(ctx context.Context, tx TxID, cs []render.Change, within time.Duration) error
}

// Guarded is a device whose Commit can be asked to look at more than the keys that it changes, so that a connection may
// lie idle between a plan and its first write.
type Guarded interface {
	// CommitIf is Commit that shows ok what it has read, before anything is written: what the device says about itself and
	// its whole running configuration. An error of ok is returned as it is, and nothing was written. When ok was not
	// called, nothing was written either.
	CommitIf(ctx context.Context, tx TxID, cs []render.Change, within time.Duration, ok func(render.Facts, render.Config) error) error
	// Rest drops what is remembered of the device: it may be long, and of many devices, until the next call.
	Rest()
}

// JobKeeper is a device that counts live queue pairs right before each write that takes their link down, and refuses it
// with ErrJobs.
type JobKeeper interface {
	// AllowJobs gives leave to kill them, or takes it away, for the commits that follow. At first there is none.
	AllowJobs(yes bool)
}

// TxID identifies a transaction: letters, digits and "-", at most 40 of them.
type TxID string

// TxState is where a transaction stands on the device.
type TxState string

const (
	TxOpen  TxState = "open"  // begun, nothing committed
	TxTimed TxState = "timed" // committed, the device reverts at Deadline
)

// Tx is a transaction that the device still knows.
type Tx struct {
	ID       TxID
	State    TxState
	Deadline time.Time // zero when the device does not say
}

// Confirmer is a device whose transactions can be found again from any connection or process.
type Confirmer interface {
	// Pending lists transactions that look like ours, whoever began them.
	Pending(context.Context) ([]Tx, error)
	// Confirm makes a timed transaction permanent; anything else is an error.
	Confirm(context.Context, TxID) error
	// Abort drops an open transaction or reverts a timed one.
	Abort(context.Context, TxID) error
}

// Saver is a device whose running and startup configurations differ until saved.
type Saver interface {
	// Saved reports whether startup equals running.
	Saved(context.Context) (bool, error)
	// Save writes running to startup.
	Save(context.Context) error
}

// Sensor is a device with counters.
type Sensor interface {
	// Sense reads the counters of all interfaces that are among names, by the device's own names of interfaces; without
	// names, all that have a canonical one. What the device does not have, or does not tell in a way that is understood, is
	// missing from the result, which is not zero. It never writes, needs no right to, and asks a bounded number of
	// questions, whatever the device has: docs/counters.md says how many. At is the time of the reading by the clock of
	// who reads: the host's own where fabricctl-host does, else this machine's.
	Sense(ctx context.Context, names []observe.Name) (observe.Counters, error)
}

// Neighbour is what a device hears over LLDP on one of its ports. All but Port is the other side's word for itself, and
// hostile like everything that comes from a device.
type Neighbour struct {
	Port      string // the device's own name of the port
	Chassis   string // chassis id, as the device writes it
	System    string // system name; "" when the other side sends none
	PeerPort  string // port id: an interface name, an alias or a MAC address, as the other side chose
	PeerDescr string // port description
	Forwards  bool   // the other side says that it is a bridge or a router; a host with containers may say so too
}

// Neighbourer is a device that lists what it hears over LLDP, sorted by port. No neighbour and no LLDP look alike
// where the device does not tell them apart.
type Neighbourer interface {
	Neighbours(context.Context) ([]Neighbour, error)
}

// Rawer is a device that shows its running configuration as text of its own, whole: what the dialect does not
// understand too, secrets included.
type Rawer interface {
	Raw(context.Context) ([]byte, error)
}
