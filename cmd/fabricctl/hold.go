package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// longest is how long a hold may be asked for. What is to be left alone for longer belongs in the model.
const longest = 30 * 24 * time.Hour

// holdJSON is one hold as hold, hold release and hold list print it.
type holdJSON struct {
	Fabric string `json:"fabric"` // of a journal.Hold too, which says it only where it is another one
	State  string `json:"state"`  // active, expired, or released
	journal.Hold

	OnHost    bool   `json:"on_host,omitempty"`    // the host that it is about was told
	HostError string `json:"host_error,omitempty"` // why it could not be
}

type holdsJSON struct {
	Schema string     `json:"schema"`
	Holds  []holdJSON `json:"holds"`
}

func (a *app) newHold() *cobra.Command {
	var span time.Duration
	var reason string
	c := &cobra.Command{
		Use:   "hold DEVICE[:PORT]",
		Short: "Keep fabricctl's hands off a device or port for a while: changes by hand stay",
		Long: `Until the time is over or the hold is released, apply, runs resume and runs rollback write nothing to the device, or to
the port, whoever calls them with this state directory. plan and drift go on looking, and show what they leave out. A run that is at
work stops before its next transaction there; what it has begun is brought to its end.

A plan leaves the held changes out and names them. apply carries out the others and ends with exit 3; when nothing else has
to change, or when the fabric would no longer agree without what is held, it writes nothing and ends with exit 4.
A hold on a port leaves out the whole device when a change is shared with that port (a profile, a map).

A hold lives in the state directory, as leases do: operators who do not share it do not see it. Given with the inventory, it
counts for the device by its serial number and address too, whatever other models call it. A second hold on the same thing
replaces the first. For more than 30 days, write state: maintenance in the model.

A hold on a host, given with the inventory, is written to the host too: its agent leaves alone what is held, and the host refuses
whoever comes with another state directory. When the host cannot be reached, that is said, the hold stands here, and the exit code is 3.`,
		Example: "  fabricctl hold -f pod1/ leaf3 --for 2h --reason \"optics on Ethernet8 are being replaced\"\n" +
			"  fabricctl hold -f pod1/ leaf3:Ethernet8 --for 30m --reason \"PFC switched off by hand, ticket 4711\"\n" +
			"  fabricctl hold list\n  fabricctl hold release leaf3",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("hold wants one DEVICE[:PORT], or list, or release")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.runHold(c.Context(), args[0], span, reason) },
	}
	c.Flags().DurationVar(&span, "for", 0, "how long, for example 30m or 2h (needed)")
	c.Flags().StringVar(&reason, "reason", "", "why, for those who wonder (needed)")
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "List the holds in the state directory, expired ones too; with -f those of one fabric", Args: noArgs,
		Example: "  fabricctl hold list\n  fabricctl hold list -f pod1/ -o json",
		RunE:    func(*cobra.Command, []string) error { return a.runHoldList() },
	}, &cobra.Command{
		Use: "release DEVICE[:PORT]", Short: "End a hold; anybody may", Example: "  fabricctl hold release leaf3:Ethernet8",
		Long: "End a hold. What was changed by hand meanwhile is then shown by plan like any other difference: adopt it by writing it in the model,\n" +
			"or let apply take it back. With -f the hold of that fabric; without, the only one by that name in the state directory.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("hold release wants one DEVICE[:PORT]; fabricctl hold list shows them")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var refs []string
			if dir, err := a.state(); err == nil {
				all, _ := journal.AllHolds(rollout.HoldsDir(dir))
				for _, f := range all {
					for _, h := range f.Holds {
						refs = append(refs, h.Ref())
					}
				}
			}
			return refs, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return a.runHoldRelease(c.Context(), args[0]) },
	})
	return c
}

func (a *app) runHold(ctx context.Context, ref string, span time.Duration, reason string) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	switch reason = strings.TrimSpace(reason); {
	case span <= 0:
		return usage("say for how long: --for 2h")
	case span > longest:
		return fail(exitUsage, "write state: maintenance in the model for what is to be left alone for longer", "--for %s is more than %d days", spanText(span), int(longest.Hours())/24)
	case reason == "" || len(reason) > 300 || strings.ContainsAny(reason, "\r\n"):
		return usage("say why, in one line of at most 300 bytes: --reason \"optics are being replaced\"")
	}
	f, err := a.named()
	if err != nil {
		return err
	}
	now, me := time.Now().UTC().Truncate(time.Second), journal.Self("")
	h := journal.Hold{Owner: me.Owner, Host: me.Host, Since: now, Until: now.Add(span), Reason: reason}
	if h.Device, h.Port, h.Iface, err = find(f, ref); err != nil {
		return err
	}
	h.Serial, h.Address = box(f, h.Device)
	dir, err := a.state()
	if err != nil {
		return err
	}
	was, err := journal.SetHold(ctx, rollout.HoldsDir(dir), f.Name.V, h, journal.Options{Now: time.Now})
	switch {
	case errors.Is(err, journal.ErrOtherHold):
		return fail(exitRefused, "hold it for longer, or "+a.command(append([]string{"hold", "release", quote(h.Ref())}, a.modelFlags("")...)...)+" first", "%w", err)
	case err != nil:
		return err
	}
	said := holdJSON{Fabric: f.Name.V, State: "active", Hold: h}
	far := h
	far.Fabric = f.Name.V
	told := a.tellHost(ctx, f, h.Device, func(ctx context.Context, on holder) error {
		facts, _, err := on.Facts(ctx)
		if err == nil {
			far.Iface = cmp.Or(facts.Aliases[h.Iface], h.Iface) // the inventory may name a NIC by its PCI address
			_, err = on.Hold(ctx, far)
		}
		return err
	})
	said.OnHost, said.HostError = a.onHost(h.Device, "keeps it too, for its agent and for other operators", "was not told, and its agent may still write there", told)
	code := done(exitOK)
	if said.HostError != "" {
		code = done(exitPartly)
	}
	if json {
		return cmp.Or(a.printJSON(holdsJSON{"fabricctl/hold/v1", []holdJSON{said}}), code)
	}
	fmt.Fprintln(a.sys.out, h)
	if was != nil && was.Active(now) {
		fmt.Fprintf(a.sys.out, "instead of: %s\n", was)
	}
	if l, err := journal.ReadLease(journal.LeasePath(rollout.LeasesDir(dir), f.Name.V)); err == nil && l.Held(now) {
		fmt.Fprintf(a.sys.out, "run %s of %s is at work: it stops before its next transaction there, and what it has begun comes to its end\n", l.Run, l.Owner)
	}
	fmt.Fprintf(a.sys.err, "kept in %s; operators who do not share it do not see it\n", dir)
	if h.Serial == "" && h.Address == "" {
		fmt.Fprintf(a.sys.err, "nothing given with -f says the address or serial number of %s: the hold counts for it in the fabric %s alone; with the inventory, it counts for models that call it otherwise too\n",
			h.Device, f.Name.V)
	}
	return code
}

// spanText is a time as people write it: "1000h", "90m".
func spanText(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = strings.TrimSuffix(s, zero[1:])
		}
	}
	return s
}

// box is what the inventory says of a device by which other models know it too. The serial numbers of a lab are made of
// names, which models share.
func box(f *model.Fabric, device string) (serial, address string) {
	i := slices.IndexFunc(f.Devices, func(d model.Device) bool { return d.Name == device })
	e := f.Endpoints[device]
	if i < 0 || e == nil {
		return "", ""
	}
	if serial = e.Serial.V; e.Lab.V {
		serial = ""
	}
	os, _, _ := strings.Cut(f.Devices[i].Platform.V, "/")
	return serial, e.HostPort(os)
}

// named is the model as far as names go. An emergency does not wait until the model is free of errors.
func (a *app) named() (*model.Fabric, error) {
	if len(a.fabric) == 0 {
		return nil, fail(exitUsage, "for example: fabricctl hold -f pod1/ leaf3 --for 2h --reason \"...\"", "no model given: it says which fabric is meant")
	}
	f, l := model.Load(osFS{}, a.fabric...)
	if !f.Name.Set || len(f.Devices) == 0 {
		show.Findings(a.sys.err, l.Sort())
		return nil, fail(exitError, "", "the model cannot be read far enough to know its name and devices; nothing was held")
	}
	if n := l.Count(diag.Error); n > 0 {
		fmt.Fprintf(a.sys.err, "the model has %s (fabricctl validate shows them), which does not matter here\n", diag.Count(n, "error"))
	}
	return f, nil
}

// find is what a reference names: a device, and with a port its names in the model and on the device.
func find(f *model.Fabric, ref string) (device, port, iface string, err error) {
	device, rest, hasPort := strings.Cut(ref, ":")
	i := slices.IndexFunc(f.Devices, func(d model.Device) bool { return d.Name == device })
	if i < 0 {
		names := make([]string, len(f.Devices))
		for j, d := range f.Devices {
			names[j] = d.Name
		}
		return "", "", "", noDeviceOf(names, device)
	}
	if !hasPort {
		return device, "", "", nil
	}
	var names []portName
	for _, p := range f.Devices[i].Ports {
		if p.Name == rest || p.Iface.Set && p.Iface.V == rest {
			return device, p.Name, p.Iface.V, nil
		}
		names = append(names, portName{p.Name, p.Iface.V})
	}
	return "", "", "", noPort(device, rest, names)
}

// holdScope is where holds are, and of which fabric alone they are asked for: the one of -f, or "" for all.
func (a *app) holdScope() (dir, fabric string, err error) {
	if len(a.fabric) > 0 {
		f, err := a.named()
		if err != nil {
			return "", "", err
		}
		fabric = f.Name.V
	}
	dir, err = a.state()
	return dir, fabric, err
}

func (a *app) runHoldList() error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	dir, only, err := a.holdScope()
	if err != nil {
		return err
	}
	all, err := journal.AllHolds(rollout.HoldsDir(dir)) // what can be read is shown, and then what cannot
	r := holdsJSON{"fabricctl/holds/v1", []holdJSON{}}
	now := time.Now()
	for _, f := range all {
		for _, h := range f.Holds {
			if only != "" && f.Fabric != only {
				continue
			}
			state := "expired"
			if h.Active(now) {
				state = "active"
			}
			r.Holds = append(r.Holds, holdJSON{Fabric: f.Fabric, State: state, Hold: h})
		}
	}
	if json {
		return errors.Join(a.printJSON(r), err)
	}
	for _, h := range r.Holds {
		until := "held until " + h.Until.Format(time.RFC3339)
		if h.State == "expired" {
			until = "expired at " + h.Until.Format(time.RFC3339) + ", without force"
		}
		fmt.Fprintf(a.sys.out, "%s  %s  %s, by %s since %s: %s\n", h.Fabric, h.Ref(), until, h.Owner, h.Since.Format(time.RFC3339), h.Reason)
	}
	if len(r.Holds) == 0 && err == nil {
		fmt.Fprintf(a.sys.err, "nothing is held in %s\n", dir)
	}
	return err
}

func (a *app) runHoldRelease(ctx context.Context, ref string) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	var f *model.Fabric
	if len(a.fabric) > 0 {
		if f, err = a.named(); err != nil {
			return err
		}
	}
	dir, err := a.state()
	if err != nil {
		return err
	}
	h, err := heldHere(dir, f, ref)
	if err != nil {
		return err
	}
	if h != nil {
		if _, err := journal.ReleaseHold(ctx, rollout.HoldsDir(dir), h.Fabric, h.Device, h.Port, journal.Options{Now: time.Now}); err != nil {
			return err
		}
	}
	was, told := a.releaseOnHost(ctx, f, h, ref)
	switch {
	case h == nil && was != nil:
		h = &holdJSON{Fabric: f.Name.V, State: "released", Hold: *was}
	case h == nil && told != nil && !errors.Is(told, errNotHost):
		return fail(exitError, "", "nobody holds %s in %s, and its host could not be asked: %w", ref, dir, told)
	case h == nil:
		return fail(exitError, a.command("hold", "list")+" shows what is held", "nobody holds %s in %s", ref, dir)
	}
	until := h.Until.Format(time.RFC3339)
	h.OnHost, h.HostError = a.onHost(h.Device, "has released it too", "was not told: there the hold ends at "+until+", or when it is released again", told)
	code := done(exitOK)
	if h.HostError != "" {
		code = done(exitPartly)
	}
	if json {
		return cmp.Or(a.printJSON(holdsJSON{"fabricctl/hold-release/v1", []holdJSON{*h}}), code)
	}
	fmt.Fprintf(a.sys.out, "%s: released; it was held until %s by %s: %s\n", h.Ref(), until, h.Owner, h.Reason)
	if f == nil && h.Address != "" {
		fmt.Fprintf(a.sys.err, "if it is a host, it keeps the hold until then: give -f with the inventory to release it there too\n")
	}
	return code
}

// heldHere is the hold in a state directory that a reference means, in the fabric of f or, where that is nil, in any; nil
// when there is none.
func heldHere(dir string, f *model.Fabric, ref string) (*holdJSON, error) {
	all, err := journal.AllHolds(rollout.HoldsDir(dir))
	if err != nil {
		return nil, err
	}
	device, port, _ := strings.Cut(ref, ":")
	var found []holdJSON
	for _, x := range all {
		for _, h := range x.Holds {
			if (f == nil || f.Name.V == x.Fabric) && h.Device == device && (h.Port == port || port != "" && h.Iface == port) {
				found = append(found, holdJSON{Fabric: x.Fabric, State: "released", Hold: h})
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	return nil, fail(exitUsage, "say which with -f", "%s is held in %s", ref, diag.Count(len(found), "fabric"))
}

// releaseOnHost tells the host that a hold is over: that of h, or where it is not known here, that of a reference.
func (a *app) releaseOnHost(ctx context.Context, f *model.Fabric, h *holdJSON, ref string) (was *journal.Hold, err error) {
	if f == nil {
		return nil, errNotHost
	}
	device, port, _ := strings.Cut(ref, ":")
	if h != nil {
		device, port = h.Device, h.Port
	} else if d, p, _, err := find(f, ref); err == nil {
		device, port = d, p
	}
	return was, a.tellHost(ctx, f, device, func(ctx context.Context, on holder) (err error) {
		was, err = on.Release(ctx, f.Name.V, device, port)
		return err
	})
}

// heldOn finds who holds a device of a fabric, for verbs that only look: a sentence for each hold, and one where nobody
// knows what is held.
func (a *app) heldOn(fabric string) func(*intent.Device, render.Facts) []string {
	var on func(*intent.Device, render.Facts) []journal.Hold
	dir, err := a.state()
	if err == nil {
		on, err = rollout.Held(dir, time.Now(), fabric)
	}
	return func(d *intent.Device, f render.Facts) []string {
		if err != nil {
			return []string{"what is held is not known: " + err.Error()}
		}
		var said []string
		for _, h := range on(d, f) {
			said = append(said, h.String())
		}
		return said
	}
}
