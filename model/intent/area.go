package intent

import "strings"

// Area is the area that a value of a policy belongs to; ok is false for a field that no policy has.
func (f Field) Area() (Area, bool) {
	head, rest, _ := strings.Cut(string(f), ".")
	switch head {
	case "mtu":
		return AreaMTU, true
	case "trust", "dscp", "class":
		return AreaMaps, true
	case "lossless", "pause":
		return AreaPFC, true
	case "ecn":
		return AreaECN, true
	case "cable", "xoff", "headroom", "xon", "xon_offset", "reserved":
		return AreaBuffer, true
	case "scheduling", "weight":
		return AreaScheduler, true
	case "watchdog":
		return AreaWatchdog, true
	case "nccl":
		return AreaNCCL, rest != ""
	case "roce":
		return AreaRoCE, rest != ""
	case "cc":
		return AreaCC, rest != ""
	case "system":
		return AreaSystem, rest != ""
	}
	return 0, false
}
