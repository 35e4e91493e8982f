package gnmi_test

import (
	"context"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/render"
)

func TestConform(t *testing.T) {
	conform.Run(t, func(t *testing.T) conform.Subject {
		s := launch(t, sonic.Options{})
		proxy := conform.NewProxy(t, s.Addr())
		good := config(s)
		good.Address = proxy.Addr()
		wrong := good
		wrong.Password = secret.New("CANARY-wrong")
		stranger := good
		stranger.TLS.CA = launch(t, sonic.Options{}).CA()
		dial := func(c gnmi.Config) func(context.Context) (drivers.Device, error) {
			return func(ctx context.Context) (drivers.Device, error) {
				d, err := gnmi.Dial(ctx, c)
				if err != nil {
					return nil, err
				}
				return d, nil
			}
		}
		to := func(live render.Config, table, row, field, value string) render.Change {
			c := change(table, row, field, nil, &value)
			if now, ok := live.Find(c.Key); ok {
				c = change(table, row, field, &now, &value)
			}
			return c
		}
		return conform.Subject{
			Name: "leaf1", Secrets: []string{canary, "CANARY-wrong"}, Same: render.ByOS("sonic").Same,
			Open: dial(good), WrongPassword: dial(wrong), WrongCertificate: dial(stranger),
			Auths: func() int { return s.Stats().Logins },
			Changes: func(live render.Config) []render.Change {
				return []render.Change{
					to(live, "SCHEDULER", "fctl", "type", "DWRR"),
					to(live, "SCHEDULER", "fctl", "weight", "40"),
					to(live, "WRED_PROFILE", "P", "green_min_threshold", "1500000"),
					to(live, "QUEUE", "Ethernet8|3", "scheduler", "fctl"),
				}
			},
			Other: func(live render.Config) []render.Change {
				return []render.Change{
					to(live, "WRED_PROFILE", "P", "green_min_threshold", "500000"),
					to(live, "WRED_PROFILE", "P", "green_drop_probability", "20"),
				}
			},
			Bad: func(live render.Config) ([]render.Change, int) {
				return []render.Change{
					to(live, "SCHEDULER", "scheduler.0", "weight", "20"),
					to(live, "WRED_PROFILE", "P", "green_min_threshold", "3000000"), // above green_max_threshold
					to(live, "QUEUE", "Ethernet8|3", "scheduler", "scheduler.0"),
				}, 1
			},
			Writes: func() int { return s.Stats().Paths },
			State:  func() string { return string(s.Config().JSON()) },
			RejectNext: func(sentence string) {
				s.Fault(sonic.Faults{Set: sonic.Refuse, Sentence: sentence, Times: 1})
			},
			OKButDoNot: func() { s.Fault(sonic.Faults{Set: sonic.Pretend, Times: 1}) },
			Slow:       func(d time.Duration) { s.Fault(sonic.Faults{Slow: d}) },
			Stall: func() <-chan struct{} {
				held := make(chan struct{})
				s.Fault(sonic.Faults{Set: sonic.Hang, Times: 1, Held: func() { close(held) }})
				return held
			},
			ChangeBehind: func(k render.Key) { s.Edit(func(db sonic.DB) { db.Set(k.Scope, k.Object, k.Field, "77") }) },
			DropAfter:    proxy.DropAfter,
			Bytes:        proxy.Bytes,
		}
	})
}
