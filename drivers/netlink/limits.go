package netlink

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/render"
)

var limitKey = render.Key{Scope: "limit", Object: render.MemlockPath, Field: "memlock"}

const limitsHead = `# Of fabricctl: RDMA programs lock the memory that they use. PAM gives this to sessions at login; services of systemd
# do not read it, and need LimitMEMLOCK=infinity in their unit.
`

// parseLimits is the limit of locked memory that the file gives to everybody; nothing when it gives none, or gives
// different ones to different users.
func parseLimits(text []byte) render.Config {
	values := map[string]bool{}
	users := map[string]bool{}
	for l := range bytes.Lines(text) {
		w := strings.Fields(string(l))
		if len(w) != 4 || strings.HasPrefix(w[0], "#") || w[2] != "memlock" {
			continue
		}
		values[w[3]] = true
		switch w[1] {
		case "-":
			users[w[0]+" soft"], users[w[0]+" hard"] = true, true
		default:
			users[w[0]+" "+w[1]] = true
		}
	}
	if len(values) != 1 || !users["* soft"] || !users["* hard"] || !users["root soft"] || !users["root hard"] {
		return nil
	}
	for v := range values {
		return render.Config{{Key: limitKey, Value: v}}
	}
	return nil
}

// editLimits is the text after a change: the file has one purpose, so it is written as a whole; without a limit it is
// not there, which nil says.
func editLimits(c render.Change) ([]byte, error) {
	if c.Key != limitKey {
		return nil, errors.New("a host has no such setting")
	}
	if c.After == nil {
		return nil, nil
	}
	if _, err := strconv.ParseUint(*c.After, 10, 64); err != nil && *c.After != "unlimited" {
		return nil, fmt.Errorf("%q is neither unlimited nor a number of KiB", *c.After)
	}
	return fmt.Appendf(nil, "%s* - memlock %s\nroot - memlock %[2]s\n", limitsHead, *c.After), nil
}
