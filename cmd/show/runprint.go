package show

import (
	"fmt"
	"io"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
)

// RunJSON is what is printed of a run with -o json.
type RunJSON struct {
	Schema string `json:"schema"`
	*rollout.Run
}

// Run writes the outcome per device, what that comes to, and what to do when something is left. last says that no
// later attempt on the same run is known; again is the command that finishes the run ("resume") or takes it back ("rollback"), and holds the one that
// shows what is held.
func Run(w io.Writer, r *rollout.Run, last bool, again func(verb, id string) string, holds string) {
	if len(r.Results) == 0 {
		fmt.Fprintln(w, "nothing to do: no device is owned")
		return
	}
	for _, x := range r.Results {
		st := Green
		switch {
		case x.Outcome == rollout.Unknown || x.Outcome == rollout.NeedsHands:
			st = Red
		case x.Cause != rollout.None:
			st = Yellow
		}
		fmt.Fprintf(w, "%-16s %s", x.Device, Paint(st, string(x.Outcome)))
		if x.Cause != rollout.None {
			fmt.Fprintf(w, " (%s)", x.Cause)
		}
		if x.Message != "" {
			fmt.Fprintf(w, ": %s", diag.OneLine(Nameless(x.Message, x.Device)))
		}
		fmt.Fprintln(w)
		for _, n := range x.Notes {
			fmt.Fprintf(w, "    %s\n", n)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	if len(r.Left) > 0 && r.Kind != rollout.KindRollback {
		fmt.Fprintf(w, "held, left out: %s; %s says until when, then plan and apply again\n", NameList(r.Left), holds)
	}
	if r.ID == "" {
		fmt.Fprintln(w, "nothing was written")
		return
	}
	fmt.Fprintf(w, "run %s%s\n", r.ID, Outcome(r, last, again))
}

// Outcome is what is in force after an attempt, and how to go on when only a part is.
func Outcome(r *rollout.Run, last bool, again func(verb, id string) string) string {
	inForce, back, left := false, false, false
	var hands []string
	for _, x := range r.Results {
		sure := x.Outcome != rollout.Unknown && x.Outcome != rollout.NeedsHands
		if x.Outcome == rollout.NeedsHands {
			hands = append(hands, x.Device)
		}
		inForce = inForce || !sure || x.Outcome == rollout.Applied && x.Steps > 0
		back = back || x.Outcome == rollout.RolledBack
		left = left || !sure || x.Cause != rollout.None || r.Kind == rollout.KindRollback && x.Outcome == rollout.Applied
	}
	switch {
	case !inForce && back:
		return ": all that was written was taken back"
	case !inForce:
		return ": nothing was written"
	case !left || !last:
		return ""
	}
	first := ""
	if len(hands) > 0 {
		first = "\nfirst:           log in to " + NameList(hands) + ", and put right by hand what is said of it above"
	}
	if r.Kind == rollout.KindRollback {
		return first + "\nto take the rest back: " + again("rollback", r.ID)
	}
	return first + "\nto finish it:    " + again("resume", r.ID) + "\nto take it back: " + again("rollback", r.ID)
}
