package render

import (
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// sizes gives each lossless priority a receive buffer of its own and the others buffer 0, as large as the model says.
func (n *linuxNIC) sizes() {
	var buffer, size [8]uint64
	asked := -1
	for i, q := range n.policy.Queues {
		if q.Lossless {
			buffer[i] = uint64(i)
		}
		if q.Buffer.On {
			size[buffer[i]] = max(size[buffer[i]], uint64(q.Buffer.Reserved))
			asked = i
		}
	}
	if asked < 0 {
		return
	}
	field := intent.Field("reserved." + string(rune('0'+asked)))
	if buffer == ([8]uint64{}) {
		n.say("not-expressible", diag.Info, n.d.Origin(n.port, field), "", "no priority of %s is lossless: its receive buffers are left to its driver", n.name(n.port))
		return
	}
	n.knob("buffer", linuxKey("buffer", n.port.Iface, "priorities"), linuxPairs(buffer), field)
	if n.has("buffer") {
		n.put(linuxKey("buffer", n.port.Iface, "sizes"), linuxPairs(size), field)
	}
}

// buffers reads what the driver knows of its cable, and the receive buffer of each priority, where they are laid out as
// sizes does. Others are the driver's own choice.
func (x *linuxLifter) buffers(dcb bool) {
	if !x.named && dcb || x.named && x.PFCDelay == profiles.DelayMetres {
		x.p.Known |= intent.AreaSet(intent.AreaBuffer)
		x.number("pfc", "delay", 1<<16, func(n uint64) {
			if n <= maxDelay {
				x.p.Cable = units.Length(n) * units.Metre
			}
		})
	}
	list, ok := x.value("buffer", "priorities")
	if !ok {
		return
	}
	x.p.Known |= intent.AreaSet(intent.AreaBuffer)
	buffer, ok := linuxNumbers(list, 8)
	if !ok {
		x.say(Key{"buffer", x.link, "priorities"}, "%q does not give each priority a buffer", list)
	}
	list, _ = x.value("buffer", "sizes")
	size, ok := linuxNumbers(list, 1<<32)
	if !ok {
		x.say(Key{"buffer", x.link, "sizes"}, "%q does not give each buffer a size", list)
	}
	ours := len(x.p.Lossless()) > 0
	for i, q := range x.p.Queues {
		ours = ours && (q.Lossless && int(buffer[i]) == i || !q.Lossless && buffer[i] == 0)
	}
	for i := range x.p.Queues {
		if !ours {
			break
		}
		if q := &x.p.Queues[i]; size[buffer[i]] > 0 {
			q.Buffer = intent.Buffer{On: true, Reserved: units.Bytes(size[buffer[i]])}
		}
	}
}
