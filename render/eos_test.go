package render

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosTestTarget is a 64-port leaf. Maps and watchdog are one for the device: each follows from what all its policies
// share, so that sites never disagree.
func eosTestTarget() target {
	return target{
		dialect: &eos, model: "eos/7060x6", iface: func(n int) string { return fmt.Sprintf("Ethernet%d/1", n+1) },
		areas: intent.SwitchAreas,
		adjust: func(t *rapid.T, p *intent.Policy) {
			var named []uint8
			for i, q := range p.Queues {
				if q.Used {
					named = append(named, uint8(i))
				}
			}
			for i := range p.DSCP {
				p.DSCP[i] = named[i*len(named)/64]
			}
			if p.Watchdog.On {
				p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 410, Poll: 95, Action: intent.ActionDrop}
			}
		},
	}
}

func TestEOSProperties(t *testing.T) { checkProperties(t, eosTestTarget()) }

// linuxTestTarget is a host with several NICs, whose NCCL file is one.
func linuxTestTarget() target {
	return target{
		dialect: &linux, model: "linux/generic", iface: func(n int) string { return fmt.Sprintf("rdma%d", n) },
		areas: intent.HostAreas,
		adjust: func(t *rapid.T, p *intent.Policy) {
			p.MTU = units.Bytes(rapid.IntRange(1280, 9216).Draw(t, "netdev mtu"))
			p.NCCL = intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7}
		},
	}
}

func TestLinuxProperties(t *testing.T) { checkProperties(t, linuxTestTarget()) }
