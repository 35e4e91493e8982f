package hostverb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
)

// Agent keeps the machine as its host file says until ctx ends. reload has it read the file again.
func (p *Program) Agent(ctx context.Context, reload <-chan os.Signal, o Options) error {
	if o.Repair != "harmless" && o.Repair != "always" {
		return fail(exitUsage, "", "--repair %s: want harmless or always", o.Repair)
	}
	if o.Metrics != "" {
		if !strings.HasSuffix(o.Metrics, ".prom") {
			return fail(exitUsage, "", "--metrics %s: its name has to end in .prom, or node_exporter passes it over", o.Metrics)
		}
		if info, err := os.Stat(filepath.Dir(o.Metrics)); err != nil || !info.IsDir() {
			return fail(exitError, "make it first", "--metrics %s: there is no directory %s", o.Metrics, filepath.Dir(o.Metrics))
		}
	}
	file, err := o.Read()
	if err != nil {
		return err
	}
	m, err := p.Machine(file, o)
	if err != nil {
		return err
	}
	notify, err := hostlocal.NotifierOf(os.Getenv, os.Getpid(), hostlocal.DialNotify)
	if err != nil {
		return err
	}
	engine := func(file *hostlocal.File) (*rollout.Engine, error) {
		m, err := p.Machine(file, o)
		if err != nil {
			return nil, err
		}
		e := p.engine(m)
		e.NewID = func() string { return hostlocal.RunPrefix + rollout.NewRunID(e.Now()) }
		e.Progress = func(ev rollout.Event) { p.Log.Debug(show.Event(ev)) }
		return e, nil
	}
	// What listens listens before the first look, so that nothing is missed.
	w, err := dcb.Watch(dcb.Options{})
	if err != nil {
		return err
	}
	u, err := hostlocal.ListenUevents()
	if err != nil {
		_ = w.Close()
		return err
	}
	events := make(chan hostlocal.Event)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(events)
		if err := hostlocal.Watch(watching, w, u, events); watching.Err() == nil {
			p.Log.Error("the kernel's events", "error", err)
		}
	}()
	a := hostlocal.Agent{
		Machine: m, Load: o.Read, Engine: engine, Always: o.Repair == "always", Accept: o.Apply.AcceptUnverified, Metrics: o.Metrics, Notify: notify, Log: p.Log,
	}
	err = a.Run(ctx, events, reload)
	if busy := (*journal.BusyError)(nil); errors.As(err, &busy) {
		return fail(exitRefused, "stop that one first, or leave it the work", "%w", err)
	}
	return err
}
