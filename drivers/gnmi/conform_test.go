package gnmi_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/model/observe"
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
			Counting:     counting(s),
		}
	})
}

// counting is the counters of an emulated switch, and nonsense that a switch might answer.
func counting(s *sonic.Switch) *conform.Counting {
	values := map[observe.Port]uint64{}
	for i, iface := range []string{"Ethernet0", "Ethernet16"} {
		for n, v := range map[observe.Name]uint64{
			observe.PFCRx.Of(3): 7, observe.PFCTx.Of(4): 0, observe.PFCPaused.Of(3): 5000, observe.PFCPausing.Of(7): 1000, observe.ECNMarked.Of(3): 1 << 63,
			observe.DropOut.Of(0): 3, observe.TxPackets.Of(3): 9, observe.TxBytes.Of(3): 9000, observe.WatchdogStuck.Of(3): 1, observe.WatchdogFreed.Of(3): 1,
			observe.WatchdogDrop.Of(3): 4, observe.DropIn.Of(3): 2, observe.QueueWatermark.Of(3): 4096, observe.GroupWatermark.Of(3): 8192,
			observe.RoomWatermark.Of(3): 1, observe.PortRxBytes: 12, observe.PortDropIn: 2, observe.LinkPauseRx: 0, observe.PortErrors: 1,
		} {
			if i == 0 || v > 2 {
				values[observe.Port{Iface: iface, Name: n}] = v
			}
		}
	}
	junk := func(answer func(path []string) any) func() {
		return func() { s.Fault(sonic.Faults{Counters: answer}) }
	}
	always := func(v any) func([]string) any { return func([]string) any { return v } }
	rows := func(v any) func([]string) any {
		return func(path []string) any {
			row := map[string]any{"SAI_PORT_STAT_PFC_3_RX_PKTS": v, "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": v, "SAI_QUEUE_STAT_PACKETS": v, "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": v, "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS": v}
			switch {
			case len(path) == 3:
				return map[string]any{"etp1:3": row, "etp1:33": row, "etp1": row, ":": row}
			case path[len(path)-1] == "Ethernet*":
				return map[string]any{"etp1": row, "etp1\x1b[2J": row, "": row}
			case len(path) == 1 && !strings.HasPrefix(path[0], "USER"):
				return nil
			}
			return row
		}
	}
	many := map[string]any{}
	for i := range 1<<16 + 1 {
		many[strconv.Itoa(i)] = map[string]any{}
	}
	return &conform.Counting{
		Set: s.SetCounters, Values: values,
		Asked: func() int { return s.Stats().Gets }, Most: 8,
		Junk: map[string]func(){
			"negative": junk(rows("-1")), "not a number": junk(rows("NaN")), "too large": junk(rows("18446744073709551616")), "a fraction": junk(rows("1.5")),
			"a number in JSON": junk(rows(-1)), "an exponent": junk(rows(1e300)), "a list": junk(rows([]string{"7"})), "escapes": junk(rows("\x1b[2J7")), "nothing": junk(rows(nil)),
			"not a table": junk(always("7")), "no object": junk(always([]any{1})), "too many rows": junk(always(many)), "an empty object": junk(always(map[string]any{})),
			"numbers that are no numbers": junk(func(path []string) any {
				if strings.HasSuffix(path[0], "_NAME_MAP") {
					return map[string]any{"Ethernet0:3": "../../etc", "Ethernet0:4": 7, "Ethernet0:5": "oid:0x", "nope:3": "oid:0x1"}
				}
				return nil
			}),
		},
	}
}
