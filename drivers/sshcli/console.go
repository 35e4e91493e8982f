package sshcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/scrapli/scrapligo/driver/generic"
	"github.com/scrapli/scrapligo/driver/opoptions"
	"github.com/scrapli/scrapligo/driver/options"
	"github.com/scrapli/scrapligo/util"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
)

// console is one connection, logged in, privileged, with paging off. Once broken it stays broken.
//
// scrapligo knows no contexts: the only way to stop it is to close the connection under it, which is done when the
// context ends. Its generic driver is used, not the network one, which types "end" into a session to find its way.
// Prompts are anchored to the device's own name at the end of what arrived, and the echo of a line is awaited byte
// for byte: text that looks like a prompt, or a prompt too many, does not shift answers to the wrong question.
type console struct {
	name   string // of the device in the inventory
	flow   *flow
	log    *slog.Logger
	quiet  time.Duration
	line   *line
	driver *generic.Driver
	secret secret.Secret
	prompt string // the last one
	broken error
}

// neverOps is scrapligo's own time-out, which ours come before.
const neverOps = 1000 * time.Hour

// open connects, logs in and prepares a console.
func open(ctx context.Context, c Config, f *flow) (*console, error) {
	client, err := ssh.Dial(ctx, c.SSH)
	if err != nil {
		return nil, err
	}
	stop := client.CloseOn(ctx)
	stream, err := client.Open(ctx, ssh.Spec{PTY: true})
	stop()
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	k := &console{name: c.Name, flow: f, log: c.Log, quiet: c.Timeout, secret: c.EnablePassword, line: &line{client: client, stream: stream}}
	if err := k.start(ctx); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *console) start(ctx context.Context) error {
	d, err := generic.NewDriver(k.name, options.WithCustomTransport(k.line), options.WithPromptPattern(k.flow.login),
		options.WithTimeoutOps(neverOps), options.WithReadDelay(20*time.Microsecond))
	if err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	k.driver = d
	if err := d.Open(); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	if err := k.findPrompt(ctx); err != nil {
		return err
	}
	if err := k.enable(ctx); err != nil {
		return err
	}
	for _, l := range k.flow.setup {
		if _, err := k.ask(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// findPrompt learns the device's name from its prompt. A banner may end in something like a prompt, so an empty line
// has to bring the same one back.
func (k *console) findPrompt(ctx context.Context) error {
	ch := k.driver.Channel
	var last string
	for i := range 5 {
		b, err := k.exchange(ctx, "log in", "a prompt", func() ([]byte, error) {
			if i > 0 {
				if err := ch.WriteReturn(); err != nil {
					return nil, err
				}
			}
			return ch.ReadUntilPrompt(ctx)
		})
		if err != nil {
			return err
		}
		m := k.flow.login.FindSubmatch(b)
		switch {
		case m == nil: // the end of a line longer than scrapligo looks back
			last = ""
		case string(m[0]) == last:
			ch.PromptPattern, k.prompt = k.flow.prompts(string(m[1])), last
			return nil
		default:
			last = string(m[0])
		}
	}
	return k.breakOff(fmt.Errorf("%s: log in: no prompt came twice, the last was %q", k.name, last))
}

// enable becomes privileged. The password is sent once.
func (k *console) enable(ctx context.Context) error {
	if k.flow.privileged(k.prompt) {
		return nil
	}
	answer, err := k.send(ctx, k.flow.enable, k.flow.question)
	if err != nil {
		return err
	}
	if k.flow.question.MatchString(answer) {
		if k.secret.IsZero() {
			return k.breakOff(fmt.Errorf("%s: %q: the device asks for a password and none is configured", k.name, k.flow.enable))
		}
		ch := k.driver.Channel
		b, err := k.exchange(ctx, k.flow.enable, "the prompt", func() ([]byte, error) {
			if err := ch.WriteAndReturn([]byte(k.secret.Reveal()), true); err != nil {
				return nil, err
			}
			return ch.ReadUntilAnyPrompt(ctx, []*regexp.Regexp{ch.PromptPattern, k.flow.question})
		})
		if err != nil {
			return err
		}
		answer = string(b)
		k.prompt = string(ch.PromptPattern.Find(b))
	}
	if !k.flow.privileged(k.prompt) {
		said := cmp.Or(k.flow.refused.FindString(answer), "nothing")
		return k.breakOff(&drivers.RejectedError{Device: k.name, Sent: k.flow.enable, Sentence: "no privileged prompt; the device said " + said})
	}
	return nil
}

// ask sends a line and returns its answer, without echo and prompt. A refusal is a RejectedError, after which the
// console is still good; every other error breaks it.
func (k *console) ask(ctx context.Context, l string) (string, error) {
	answer, err := k.send(ctx, l, nil)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimLeft(answer, "\n "), "\n")
	if s := k.flow.refused.FindString(first); s != "" {
		return answer, &drivers.RejectedError{Device: k.name, Sent: l, Sentence: strings.TrimSpace(s)}
	}
	return answer, nil
}

// do sends a line that changes something: a sentence of refusal anywhere in the answer counts.
func (k *console) do(ctx context.Context, l string) error {
	answer, err := k.ask(ctx, l)
	if err != nil {
		return err
	}
	if s := k.flow.refused.FindString(answer); s != "" {
		return &drivers.RejectedError{Device: k.name, Sent: l, Sentence: strings.TrimSpace(s)}
	}
	if answer = strings.TrimSpace(answer); answer != "" {
		k.log.Info("the device remarks", "device", k.name, "line", l, "remark", answer)
	}
	return nil
}

// all does lines one after the other.
func (k *console) all(ctx context.Context, ls []string) error {
	for _, l := range ls {
		if err := k.do(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// send types a line and reads to the next prompt, which becomes the current one, or to a question when one may come.
// The answer is without the prompt, but with the question.
func (k *console) send(ctx context.Context, l string, question *regexp.Regexp) (string, error) {
	if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == '?' }) {
		return "", fmt.Errorf("%s: %q: control characters and question marks cannot be typed: a terminal acts on them", k.name, l)
	}
	k.log.Debug("send", "device", k.name, "line", l)
	opts := []util.Option{opoptions.WithExactMatchInput(), opoptions.WithNoStripPrompt()}
	if question != nil {
		opts = append(opts, opoptions.WithInterimPromptPattern([]*regexp.Regexp{question}))
	}
	b, err := k.exchange(ctx, l, "the prompt after "+k.prompt, func() ([]byte, error) {
		r, err := k.driver.SendCommand(l, opts...)
		if err != nil {
			return nil, err
		}
		return []byte(r.Result), nil
	})
	if err != nil {
		return "", err
	}
	at := k.driver.Channel.PromptPattern.FindIndex(b)
	switch {
	case at != nil:
		k.prompt = string(b[at[0]:])
		return string(b[:at[0]]), nil
	case question != nil && question.Match(b):
		return string(b), nil
	}
	// The end of a line longer than scrapligo looks back.
	return "", k.breakOff(fmt.Errorf("%s: %q: was waiting for the prompt after %s, saw %s", k.name, l, k.prompt, k.line.seen(k.secret.Reveal())))
}

// exchange runs f, which talks to the device, until ctx ends, the device is quiet for too long, or the connection is
// lost. Any of these breaks the console.
func (k *console) exchange(ctx context.Context, what, awaited string, f func() ([]byte, error)) ([]byte, error) {
	if k.broken != nil {
		return nil, fmt.Errorf("%s: %q: the connection is gone: %w", k.name, what, k.broken)
	}
	if ctx.Err() != nil { // nothing was sent: the console is still good
		return nil, fmt.Errorf("%s: %q: %w", k.name, what, context.Cause(ctx))
	}
	heard := k.line.begin(k.quiet)
	stop := k.line.client.CloseOn(ctx)
	b, err := f()
	patient, open := heard(), stop()
	if patient && open && err == nil {
		return b, nil
	}
	cause := cmp.Or(context.Cause(ctx), k.line.why(), err)
	if !patient {
		cause = fmt.Errorf("nothing came for %v", k.quiet)
	}
	return nil, k.breakOff(fmt.Errorf("%s: %q: was waiting for %s, saw %s: %w", k.name, what, awaited, k.line.seen(k.secret.Reveal()), cause))
}

// breakOff ends the connection for a reason, which it returns.
func (k *console) breakOff(err error) error {
	k.broken = err
	_ = k.line.client.Close()
	return err
}

// close hangs up.
func (k *console) close() {
	if k.broken == nil {
		k.broken = errors.New("closed")
	}
	_ = k.line.client.Close()
	if k.driver != nil {
		_ = k.driver.Close()
	}
}
