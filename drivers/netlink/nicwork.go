package netlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/render"
)

// stage is a group of settings of one NIC that are written together and read back before the next.
type stage string

// The stages, in their usual order.
const (
	stageFlag    stage = "flag"
	stageDCBX    stage = "dcbx"
	stageUnpause stage = "unpause" // priorities lose PFC
	stagePause   stage = "pause"
	stageMTU     stage = "mtu"
	stageApp     stage = "app"
	stageETS     stage = "ets"
	stagePFC     stage = "pfc"
	stageBuffer  stage = "buffer"
	stageKnobs   stage = "knobs" // congestion control and RoCE, in the order of the personality
	stagePCI     stage = "pci"
	stageIRQ     stage = "irq"
	stageRing    stage = "ring"
	stageFEC     stage = "fec"
)

// nicWork is the changes of one NIC.
type nicWork struct {
	w       *work
	nic     *nic
	changes []render.Change
	want    map[render.Key]*string
	mtu     *mtuChange
	target  *dcb.State // all that dcbnl is to show in the end; nil = it shows nothing
	before  render.Config
}

// add judges a change of a NIC, and notes it.
func (n *nicWork) add(c render.Change) error {
	k, hasFile := n.nic.per.Knob(knobName(c.Key))
	_, shown := n.before.Find(c.Key)
	switch c.Key.Scope {
	case scopeDCBX, scopePFC, scopeETS, scopeApp, scopeBuffer, scopeRate:
		if hasFile && (n.target == nil || n.target.PFC == nil) && shown { // a driver without dcbnl
			if err := n.w.d.knobIO(n.nic).check(k, c.After); err != nil {
				return err
			}
			break
		}
		if n.target == nil {
			if n.nic.dpu != "" {
				return errors.New(n.nic.dpu)
			}
			return errNotShown
		}
		if err := alter(n.target, c.Key, c.After); err != nil {
			return err
		}
	case scopePause, scopeFlag, scopeRing, scopeFEC:
		if err := n.checkEthtool(c); err != nil {
			return err
		}
	case scopePCI, scopeIRQ:
		if err := n.checkSystem(c); err != nil {
			return err
		}
	case scopeRoCE, scopeCC:
		if !hasFile {
			return fmt.Errorf("nothing is known of where driver %s has that", n.nic.hw.driver)
		}
		if err := n.w.d.knobIO(n.nic).check(k, c.After); err != nil {
			return err
		}
	}
	n.changes = append(n.changes, c)
	n.want[c.Key] = c.After
	return nil
}

// checkEthtool judges the value of a setting of ethtool.
func (n *nicWork) checkEthtool(c render.Change) error {
	if c.After == nil {
		return errors.New("a NIC that shows it always has it")
	}
	// Link pause of some NICs is not shown while PFC is on, and an undo takes that away before.
	hidden := c.Key.Scope == scopePause && n.nic.per.PauseNeedsNoPFC && n.nic.dcb != nil && pfcOn(n.nic.dcb) != 0
	if _, shown := n.before.Find(c.Key); !shown && !hidden {
		return errNotShown
	}
	var err error
	switch c.Key.Scope {
	case scopePause, scopeFlag:
		_, err = parseOnOff(*c.After)
	case scopeRing:
		_, err = parse32(*c.After)
	case scopeFEC:
		for f := range strings.FieldsSeq(*c.After) {
			if !slices.Contains(fecWords, f) {
				err = fmt.Errorf("%q is none of %s", f, strings.Join(fecWords, ", "))
			}
		}
	}
	return err
}

// checkSystem judges the value of a setting of PCI Express or of interrupts.
func (n *nicWork) checkSystem(c render.Change) error {
	if c.After == nil {
		return errors.New("a NIC that shows it always has it")
	}
	if _, shown := n.before.Find(c.Key); !shown {
		return errors.New("it cannot be read here, so it is not set")
	}
	if c.Key.Scope == scopePCI {
		_, err := readCode(*c.After)
		return err
	}
	if n.w.d.irqbalance() {
		return errors.New("irqbalance runs and moves interrupts: systemctl disable --now irqbalance")
	}
	irqs, _, may := n.w.d.interrupts(n.nic.hw.pci)
	_, err := arrange(*c.After, irqs, may)
	return err
}

// check is what is to be judged over all changes of a NIC.
func (n *nicWork) check() error {
	qos := n.touches(scopePFC) || n.touches(scopeETS) || n.touches(scopeApp) || n.touches(scopeBuffer)
	if !qos {
		return nil
	}
	if n.nic.per.BondRefuses && n.nic.bond != "" {
		return fmt.Errorf("its driver refuses QoS while it is in a bond (%s)", n.nic.bond)
	}
	flagOff := n.want[n.flagKey()]
	if flagOff != nil && *flagOff == "off" || n.gives() {
		return nil // the mode of DCBX follows the flag, and is looked at when it is written
	}
	if why := foreign(n.nic, n.target); why != "" {
		return fmt.Errorf("%s, and would take the change back: %s", why, remedy(n.nic))
	}
	return nil
}

// unlisted is the settings of those scopes that the first entry for a code point sets back and that no change names.
func (n *nicWork) unlisted(s *dcb.State) render.Config {
	return slices.DeleteFunc(dcbSettings(n.nic.Name, s), func(x render.Setting) bool {
		_, asked := n.want[x.Key]
		return asked || !slices.Contains(n.nic.per.AppResets, x.Key.Scope)
	})
}

// trusts tells, for a NIC on which the first entry for a code point sets other things back, whether it has one now, and
// whether it will.
func (n *nicWork) trusts() (now, then bool) {
	if n.target == nil || len(n.nic.per.AppResets) == 0 {
		return false, false
	}
	return len(dscps(n.nic.dcb.Apps)) > 0, len(dscps(n.target.Apps)) > 0
}

// switching is the name under which memory knows that the first or last entry for a code point of a NIC is on its way.
func switching(link string) string { return "switching " + link }

// remember keeps what the first entry for a code point is going to set back, and recall wants it again when the last
// one goes.
func (n *nicWork) remember() error {
	now, then := n.trusts()
	if now == then {
		return nil
	}
	if err := n.w.d.memory.made(switching(n.nic.Name), ""); err != nil || now {
		return err
	}
	for _, s := range n.unlisted(n.nic.dcb) {
		if err := n.w.d.memory.made(s.Key.String(), s.Value); err != nil {
			return err
		}
	}
	return nil
}

func (n *nicWork) recall() error {
	if now, then := n.trusts(); !now || then {
		return nil
	}
	for _, s := range n.unlisted(n.target) {
		if v, ok := n.w.d.memory.kept.Made[s.Key.String()]; ok {
			if err := alter(n.target, s.Key, &v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *nicWork) flagKey() render.Key {
	return render.Key{Scope: scopeFlag, Object: n.nic.Name, Field: n.nic.per.LLDPFlag}
}

// gives reports whether the NIC is given back to its firmware: an undo, which goes the other way round there.
func (n *nicWork) gives() bool {
	f := n.want[n.flagKey()]
	m := n.want[render.Key{Scope: scopeDCBX, Object: n.nic.Name, Field: "mode"}]
	return f != nil && *f == "on" || m != nil && n.target != nil && foreign(n.nic, n.target) != ""
}

func (n *nicWork) touches(scope string) bool {
	return slices.ContainsFunc(n.changes, func(c render.Change) bool { return c.Key.Scope == scope })
}

// of is the changes of some scopes.
func (n *nicWork) of(scopes ...string) []render.Change {
	return slices.DeleteFunc(slices.Clone(n.changes), func(c render.Change) bool { return !slices.Contains(scopes, c.Key.Scope) })
}

// stages is the order of work on this NIC.
func (n *nicWork) stages() []stage {
	qos := []stage{stageApp, stageETS, stagePFC, stageBuffer}
	if len(n.nic.per.Order) > 0 {
		qos = qos[:0]
		for _, o := range n.nic.per.Order {
			qos = append(qos, stage(o))
		}
	}
	own := []stage{stageFlag, stageDCBX}
	rest := slices.Concat([]stage{stageUnpause, stagePause, stageMTU}, qos, []stage{stageKnobs, stagePCI, stageIRQ, stageRing, stageFEC})
	if n.gives() {
		return append(rest, own...)
	}
	return append(own, rest...)
}

func (n *nicWork) run(ctx context.Context) error {
	if err := n.remember(); err != nil {
		return n.w.d.named("commit", err)
	}
	for _, s := range n.stages() {
		if err := n.write(ctx, s); err != nil {
			return err
		}
	}
	if err := n.settle(ctx); err != nil {
		return err
	}
	_, _, err := n.w.d.memory.unmade(switching(n.nic.Name))
	return err
}
