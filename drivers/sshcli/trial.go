package sshcli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

var _ drivers.Trier = (*Device)(nil)

// probe is a line that is typed into a session which is dropped: it shows whether an account may type it.
type probe struct {
	operation string
	needs     string // as in drivers.Trial.For
	line      func(f render.Facts) string
}

// Try reads, begins a session of its own, types the flow's probes into it, and drops it. A session is a copy of the
// configuration: what is typed into it has no effect until a commit, which is never sent. Whether the session is gone
// is looked up; when it may not be, the error says its name. Of a read-only device nothing but reading is tried.
func (d *Device) Try(ctx context.Context) ([]drivers.Trial, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	f, err := d.identity(ctx, k)
	if err != nil {
		return nil, err
	}
	var ts []drivers.Trial
	_, err = k.ask(ctx, d.flow.running)
	ts, err = tried(ts, drivers.Trial{Operation: "show the running configuration", For: "plan", How: fmt.Sprintf("typed %q", d.flow.running)}, err)
	if err != nil {
		return ts, err
	}
	ts, err = d.trySession(ctx, k, f, ts)
	return append(ts, drivers.Trial{
		Operation: "save", For: "apply", Verdict: drivers.NotTried,
		How: fmt.Sprintf("%q would save what others have changed; the account needs it", d.flow.save),
	}), err
}

// trySession tries what needs a session.
func (d *Device) trySession(ctx context.Context, k *console, f render.Facts, ts []drivers.Trial) ([]drivers.Trial, error) {
	begin := drivers.Trial{Operation: "begin a configuration session", For: "apply"}
	inside := make([]drivers.Trial, len(d.flow.probes))
	for i, p := range d.flow.probes {
		inside[i] = drivers.Trial{Operation: p.operation, For: p.needs, Verdict: drivers.NotTried, How: "there is no session to try it in"}
	}
	if d.config.ReadOnly {
		begin.Verdict, begin.How = drivers.NotTried, "it was not to be written to, and a session is begun by a command of configuration"
		return append(append(ts, begin), inside...), nil
	}
	name := prefix + "doctor-" + token()
	begin.How = fmt.Sprintf("began session %s, a copy that changes nothing until it is committed, and dropped it", name)
	ts, err := tried(ts, begin, k.all(ctx, d.flow.begin(name)))
	if err != nil {
		return ts, d.drop(ctx, name, err)
	}
	if ts[len(ts)-1].Verdict == drivers.Allowed {
		if !d.flow.inside.MatchString(k.prompt) {
			return ts, d.drop(ctx, name, k.breakOff(fmt.Errorf("%s: began session %s and was waiting for its prompt, saw %q", d.config.Name, name, k.prompt)))
		}
		for i, p := range d.flow.probes {
			line := p.line(f)
			inside[i].How = fmt.Sprintf("typed %q in the session that was dropped", line)
			var one []drivers.Trial
			if one, err = tried(nil, inside[i], k.do(ctx, line)); err != nil {
				break
			}
			inside[i] = one[0]
		}
		if err == nil {
			err = d.dropped(ctx, name)
		} else {
			return append(ts, inside...), d.drop(ctx, name, err)
		}
	}
	if err != nil {
		err = fmt.Errorf("session %s could not be dropped and may still be open; it holds nothing that was committed: %w", name, err)
	}
	return append(ts, inside...), err
}

// tried adds t with what err says of it: a refusal is a verdict, any other error ends the trials.
func tried(ts []drivers.Trial, t drivers.Trial, err error) ([]drivers.Trial, error) {
	var no *drivers.RejectedError
	switch {
	case err == nil:
		t.Verdict = drivers.Allowed
	case errors.As(err, &no):
		t.Verdict, t.Answer = drivers.Refused, no.Sentence
	default:
		return ts, err
	}
	return append(ts, t), nil
}

// token tells the sessions of two trials apart.
func token() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Raw is the running configuration as the device shows it.
func (d *Device) Raw(ctx context.Context) ([]byte, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	text, _, err := d.read(ctx, k)
	return []byte(text + "\n"), err
}
