package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
)

type locksJSON struct {
	Schema string          `json:"schema"`
	Locks  []journal.Lease `json:"locks"`
}

func (a *app) newLock() *cobra.Command {
	c := &cobra.Command{
		Use:   "lock",
		Short: "List or break the leases that keep two runs on one fabric apart",
		Args:  wantVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newLockList(), a.newLockBreak())
	return c
}

func (a *app) newLockList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the leases in the state directory that are not free",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			dir, err := a.leases()
			if err != nil {
				return err
			}
			ls, err := journal.Leases(dir)
			if err != nil {
				return err
			}
			if json {
				if ls == nil {
					ls = []journal.Lease{}
				}
				return a.printJSON(locksJSON{"fabricctl/locks/v1", ls})
			}
			rows := a.header("fabric", "state", "by", "run", "fence")
			empty := len(rows)
			for _, l := range ls {
				if l.Free != "" {
					continue
				}
				state := "expired"
				switch now := time.Now(); {
				case l.Held(now):
					state = "held until " + l.Expires.Format(time.RFC3339)
				case now.Before(l.Expires):
					state = "its process is gone"
				}
				rows = append(rows, []string{l.Name, state, fmt.Sprintf("%s (pid %d)", l.Owner, l.PID), l.Run, strconv.FormatUint(l.Fence, 10)})
			}
			if len(rows) == empty {
				fmt.Fprintf(a.sys.err, "no lease is held in %s\n", dir)
				return nil
			}
			show.Table(a.sys.out, rows)
			return nil
		},
	}
}

func (a *app) newLockBreak() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "break FABRIC",
		Short: "Break a fabric's lease; its holder is fenced out before its next write",
		Long: `Break a fabric's lease. That of a holder whose time is up, or whose process on this host is gone, is broken at once. One that is held is shown, with
who has it and when it was renewed last, and asked about, unless --yes is given; where nobody can be asked, --yes is needed (exit 4). What was shown is what
is broken: when it was given back or somebody else has taken it meanwhile, nothing is done (exit 4). The holder writes nothing any more, not even what would
take back its last change: finish that with runs resume, runs rollback or tune resume.`,
		Example: "  fabricctl lock break pod1\n  fabricctl lock break pod1 --yes",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("lock break wants one fabric; fabricctl lock list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.runLockBreak(c.Context(), args[0], yes) },
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask, also when its holder is at work")
	return c
}

func (a *app) runLockBreak(ctx context.Context, fabric string, yes bool) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	if !nameRE.MatchString(fabric) {
		return usage("%q is not a fabric's name", fabric)
	}
	dir, err := a.leases()
	if err != nil {
		return err
	}
	l, unread := journal.ReadLease(journal.LeasePath(dir, fabric))
	switch now := time.Now(); {
	case unread != nil: // a damaged file is what this repairs
	case l.Fence == 0 || l.Free != "":
		return fail(exitError, a.command("lock", "list")+" shows the leases", "nobody holds a lease of fabric %s in %s", fabric, dir)
	case l.Held(now) && !yes:
		if err := a.askBreak(ctx, &l, now); err != nil {
			return err
		}
	}
	return a.breakLease(ctx, dir, fabric, l, json)
}

// breakLease breaks the lease of a fabric that was seen, and no other.
func (a *app) breakLease(ctx context.Context, dir, fabric string, seen journal.Lease, json bool) error {
	was, err := journal.Break(ctx, journal.LeasePath(dir, fabric), seen, journal.Options{Now: time.Now})
	switch {
	case errors.Is(err, journal.ErrOtherLease):
		now := "nobody holds it any more"
		if was.Fence > 0 && was.Free == "" {
			now = was.Owner + " holds it for " + a.heldFor(&was)
		}
		return fail(exitRefused, a.command("lock", "list")+" shows the leases", "the lease of fabric %s was not broken: %w: %s", fabric, err, now)
	case err != nil:
		return err
	}
	if json {
		return a.printJSON(locksJSON{"fabricctl/locks/v1", []journal.Lease{was}})
	}
	who := "its file was damaged"
	if was.Run != "" {
		who = "it was held by " + was.Owner + " for " + a.heldFor(&was)
	}
	_, err = fmt.Fprintf(a.sys.out, "%s: broken; %s\n", fabric, who)
	return err
}

// askBreak says who holds a lease, and asks whether it is to be broken all the same. Where nobody can be asked that is refused.
func (a *app) askBreak(ctx context.Context, l *journal.Lease, now time.Time) error {
	fmt.Fprintf(a.sys.err, "warning: fabric %s is in use by %s: %s\n", l.Name, a.heldFor(l), heldBy(l, now))
	switch yes, err := show.AskYes(ctx, a.sys.in, a.sys.err, "break the lease of "+l.Name); {
	case errors.Is(err, show.ErrNoTerminal):
		return fail(exitRefused, "interrupt it, which takes back what it tries; or break the lease all the same: "+a.command("lock", "break", l.Name, "--yes"), "the lease of fabric %s was not broken: its holder is at work", l.Name)
	case err != nil:
		return interrupted(ctx, fmt.Errorf("nothing was done: %w", err))
	case !yes:
		return fail(exitError, "", "nothing was done: the answer was not \"yes\"")
	}
	return nil
}

// heldBy is who holds a lease, since when, and whether it is known to be at work.
func heldBy(l *journal.Lease, now time.Time) string {
	words := fmt.Sprintf("%s holds its lease since %s", l.Owner, l.Acquired.UTC().Format(time.RFC3339))
	if !l.Renewed.IsZero() {
		words += fmt.Sprintf(", and has renewed it %s ago", now.Sub(l.Renewed).Round(time.Second))
	}
	switch alive, known := l.Alive(); {
	case known && alive:
		return words + fmt.Sprintf("; its process lives on this host (pid %d)", l.PID)
	case known:
		return words + fmt.Sprintf("; its process is gone (pid %d)", l.PID)
	}
	return words + fmt.Sprintf("; whether its process lives is not seen from here (pid %d on %s)", l.PID, l.Host)
}

// heldFor is what a lease is held for: a run, or an experiment.
func (a *app) heldFor(l *journal.Lease) string {
	if a.isExperiment(l.Run) {
		return "tuning experiment " + l.Run
	}
	return "run " + l.Run
}

// leases is where the engine keeps its leases.
func (a *app) leases() (string, error) {
	dir, err := a.state()
	return rollout.LeasesDir(dir), err
}
