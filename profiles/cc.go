package profiles

import (
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model/units"
)

// CCParam is one parameter of a NIC's congestion control by the name that models use, whichever driver has it. Its number
// counts Unit; the zero value of a parameter is a value too.
type CCParam struct {
	Name     string // "ai_rate"
	Unit     CCUnit
	Min, Max uint32 // what is known to be accepted; Max 0 = no limit is known
	Doc      string // what it does, for people
	Source   string // where the meaning and the range are from
}

// CCUnit is what the number of a congestion control parameter counts.
type CCUnit uint8

const (
	CCCount   CCUnit = iota // a plain number
	CCSwitch                // 0 is off and 1 is on
	CCRate                  // Mbit/s
	CCTime                  // microseconds
	CCBytes                 // bytes
	CCPercent               // whole percent
	CCPart                  // 1024ths
)

// NumCC is how many congestion control parameters there are.
const NumCC = 17

const (
	ccMeaning = "NVIDIA, DCQCN parameters; Linux 6.12 mlx5_ib cong.c"
	ccRanges  = "NVIDIA DOCA, DCQCN congestion control parameters; Linux 6.12 mlx5_ib cong.c"
)

// CCParams are the congestion control parameters that models speak about, in the order in which values of a policy
// hold them.
func CCParams() [NumCC]CCParam {
	return [NumCC]CCParam{
		{Name: "clamp_tgt_rate", Unit: CCSwitch, Max: 1, Doc: "true: each CNP sets the target rate to the current rate, so that recovery starts from there", Source: ccMeaning},
		{Name: "clamp_tgt_rate_after_time_inc", Unit: CCSwitch, Max: 1, Doc: "true: the same after the timer has raised the rate", Source: ccMeaning},
		{Name: "time_reset", Unit: CCTime, Min: 1, Doc: "time between two increases of the rate by the timer", Source: ccMeaning},
		{Name: "byte_reset", Unit: CCBytes, Doc: "bytes sent between two increases of the rate by the byte counter; 0B: the counter is off", Source: ccMeaning},
		{Name: "threshold", Unit: CCCount, Min: 1, Doc: "increases in fast recovery before the rate grows by ai_rate", Source: ccMeaning},
		{Name: "max_rate", Unit: CCRate, Doc: "highest rate of a flow; 0Mbps: that of the link", Source: ccMeaning},
		{Name: "ai_rate", Unit: CCRate, Min: 1, Doc: "additive increase: by how much the target rate grows in a step", Source: ccMeaning},
		{Name: "hai_rate", Unit: CCRate, Min: 1, Doc: "hyper increase: by how much the target rate grows in a step when there was no CNP for long", Source: ccMeaning},
		{Name: "gd", Unit: CCCount, Doc: "a CNP lowers the rate by alpha shifted right by this", Source: ccMeaning},
		{Name: "min_dec_fac", Unit: CCPercent, Max: 100, Doc: "the least that is left of a rate after one decrease", Source: ccMeaning},
		{Name: "min_rate", Unit: CCRate, Min: 1, Doc: "lowest rate of a flow", Source: ccMeaning},
		{Name: "rate_to_set_on_first_cnp", Unit: CCRate, Doc: "rate that a flow falls to at its first CNP; 0Mbps: it is lowered as by any other", Source: ccMeaning},
		{Name: "dce_tcp_g", Unit: CCPart, Max: 1023, Doc: "weight of the old value when alpha is updated, in 1024ths", Source: ccRanges},
		{Name: "dce_tcp_rtt", Unit: CCTime, Min: 1, Max: 131071, Doc: "time between two updates of alpha", Source: ccRanges},
		{Name: "rate_reduce_monitor_period", Unit: CCTime, Min: 1, Doc: "least time between two decreases of the rate of a flow", Source: ccMeaning},
		{Name: "initial_alpha_value", Unit: CCPart, Max: 1023, Doc: "alpha of a new flow, in 1024ths", Source: ccMeaning},
		{Name: "min_time_between_cnps", Unit: CCTime, Doc: "least time between two CNPs that the receiver sends for a flow", Source: ccMeaning},
	}
}

// CCIndex is the place of a parameter in CCParams, or -1.
func CCIndex(name string) int {
	ps := CCParams()
	return slices.IndexFunc(ps[:], func(p CCParam) bool { return p.Name == name })
}

// Text is a number of p as models write it: "5Mbps", "300us", "50%", "11".
func (p CCParam) Text(n uint32) string {
	switch p.Unit {
	case CCSwitch:
		return strconv.FormatBool(n != 0)
	case CCRate:
		return (units.BitRate(n) * units.Mbps).String()
	case CCTime:
		return (units.Duration(n) * units.Microsecond).String()
	case CCBytes:
		return units.Bytes(n).String()
	case CCPercent:
		return (units.Percent(n) * units.OnePercent).String()
	}
	return strconv.FormatUint(uint64(n), 10)
}
