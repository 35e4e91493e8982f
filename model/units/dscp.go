package units

import (
	"strconv"
	"strings"
)

// ParseCodePoint reads a DSCP as devices and people spell it: a number from 0 to 63, or a name of RFC 2474 (default, csN), RFC 2597
// (afXY), RFC 3246 (ef), RFC 5865 (va) or RFC 8622 (le).
func ParseCodePoint(s string) (uint8, bool) {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return uint8(n), n < 64
	}
	switch s = strings.ToLower(s); s {
	case "default", "be":
		return 0, true
	case "le":
		return 1, true
	case "va", "voice-admit":
		return 44, true
	case "ef":
		return 46, true
	}
	if d, ok := strings.CutPrefix(s, "cs"); ok && len(d) == 1 && '0' <= d[0] && d[0] <= '7' {
		return 8 * (d[0] - '0'), true
	}
	if d, ok := strings.CutPrefix(s, "af"); ok && len(d) == 2 && '1' <= d[0] && d[0] <= '4' && '1' <= d[1] && d[1] <= '3' {
		return 8*(d[0]-'0') + 2*(d[1]-'0'), true
	}
	return 0, false
}
