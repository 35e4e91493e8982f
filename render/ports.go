package render

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Port is what a configuration says of a front-panel port besides its behaviour.
type Port struct {
	Speed units.BitRate // bits per second; 0 = it does not say
}

// sonicPorts are the rows of PORT that have the name of a front-panel port. Speeds are in Mb/s.
func sonicPorts(c Config) map[string]Port {
	out := map[string]Port{}
	for _, s := range c {
		if s.Key.Scope != "PORT" || !sonicIface(s.Key.Object) {
			continue
		}
		p := out[s.Key.Object]
		if s.Key.Field == "speed" {
			if n, err := strconv.ParseInt(s.Value, 10, 32); err == nil && n > 0 {
				p.Speed = units.BitRate(n * 1_000_000)
			}
		}
		out[s.Key.Object] = p
	}
	return out
}

// eosSpeed is a line such as "speed 400g-8", "speed forced 100gfull" or "speed auto 200gfull".
var eosSpeed = regexp.MustCompile(`^speed (?:forced |auto )?(\d{1,4})g(?:full|-\d)?$`)

// eosPorts are the Ethernet interfaces. EOS writes a speed only where it was set; lanes and negotiation are not read.
func eosPorts(c Config) map[string]Port {
	out := map[string]Port{}
	for _, s := range c {
		if name, ok := strings.CutPrefix(s.Key.Object, eosInterfaceMode); ok && s.Key.Scope == "" && eosEthernet.MatchString(name) {
			out[name] = Port{Speed: out[name].Speed}
		}
		path := eosPath(s.Key.Scope)
		m := eosSpeed.FindStringSubmatch(s.Key.Object)
		if len(path) != 1 || m == nil {
			continue
		}
		if name, ok := strings.CutPrefix(path[0], eosInterfaceMode); ok && eosEthernet.MatchString(name) {
			n, _ := strconv.ParseInt(m[1], 10, 32)
			out[name] = Port{Speed: units.BitRate(n * 1_000_000_000)}
		}
	}
	return out
}
