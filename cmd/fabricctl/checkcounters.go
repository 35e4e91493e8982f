package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// counterLines are what there is to say about the counters of a device: what is not zero, a line for each interface. Traffic
// that went well (packets, bytes) is in the JSON alone.
func counterLines(c *check.Counters) []string {
	if c.Error != "" {
		return []string{show.Paint(show.Red, "counters were not read: ") + diag.OneLine(c.Error)}
	}
	head := "counters, as they stand since each was cleared:"
	if c.During != "" {
		head = "counted in " + c.During + ":"
	}
	lines := []string{head}
	width := 0
	for _, i := range c.Interfaces {
		width = max(width, len(i.Iface))
	}
	var zero []string
	for _, i := range c.Interfaces {
		words := counterWords(i.Values)
		if len(words) == 0 {
			zero = append(zero, i.Iface)
			continue
		}
		lines = append(lines, "  "+show.Pad(i.Iface, width+2)+strings.Join(words, ", "))
	}
	if len(zero) > 0 {
		lines = append(lines, "  nothing but zeros on "+show.PortList(zero))
	}
	if len(c.Interfaces) == 0 && len(c.Notes) == 0 {
		lines = append(lines, "  none on the interfaces of the model")
	}
	if len(c.Interfaces) > 0 && len(c.Lacks) > 0 {
		var names []string
		for _, n := range c.Lacks {
			if !traffic(n) {
				names = append(names, string(n))
			}
		}
		if len(names) > 0 {
			lines = append(lines, "  not available here: "+strings.Join(names, ", "))
		}
	}
	for _, n := range c.Notes {
		lines = append(lines, "  "+diag.OneLine(n))
	}
	return lines
}

// counterWords are the counters that are not zero, with their values. All priorities together are left out beside each.
func counterWords(values map[observe.Name]uint64) []string {
	var words []string
	for _, n := range observe.Counted() {
		if traffic(n.Name) {
			continue
		}
		var each []string
		for p := range 8 {
			if v := values[n.Name.Of(p)]; n.Each && v > 0 {
				each = append(each, string(n.Name.Of(p))+" "+amount(v, n.Unit))
			}
		}
		if v := values[n.Name]; v > 0 && len(each) == 0 {
			each = []string{string(n.Name) + " " + amount(v, n.Unit)}
		}
		words = append(words, each...)
	}
	return words
}

// traffic reports whether a counter grows whenever all is well.
func traffic(n observe.Name) bool {
	return slices.Contains([]observe.Name{
		observe.TxPackets, observe.TxBytes, observe.RxPackets, observe.RxBytes,
		observe.PortTxPackets, observe.PortTxBytes, observe.PortRxPackets, observe.PortRxBytes,
	}, n)
}

// amount is a value with its unit, where the name does not say it.
func amount(v uint64, unit string) string {
	switch {
	case unit == "ns" && v <= math.MaxInt64:
		return units.Duration(v).String()
	case unit == "bytes":
		return fmt.Sprintf("%dB", v)
	}
	return fmt.Sprint(v)
}
