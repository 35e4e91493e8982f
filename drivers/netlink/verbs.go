package netlink

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// verbsProgram shows what only verbs know: how many queue pairs and completion queues a device can have. It takes some
// milliseconds for each GID, so what it said is kept: it changes with the firmware or the driver.
const verbsProgram = "/usr/bin/ibv_devinfo"

// verbsLimits are the limits of an RDMA device.
type verbsLimits struct{ QP, CQ int }

// verbsKept is what verbsProgram said, and of what.
type verbsKept struct {
	Of  string                 `json:"of"`
	Has map[string]verbsLimits `json:"has"`
}

// limitsOfVerbs is the limits by RDMA device; nil where the program is not installed or says nothing.
func (d *Device) limitsOfVerbs(ctx context.Context, ports []rdmaPort) map[string]verbsLimits {
	if len(ports) == 0 || d.cfg.Run == nil || !there(d.tree, verbsProgram) {
		return nil
	}
	of := d.boot()
	for _, p := range ports {
		of += " " + p.device + "=" + said(d.tree, sysRDMA+"/"+p.device+"/fw_ver")
	}
	if d.verbs.Of == of {
		return d.verbs.Has
	}
	keep := filepath.Join(d.cfg.State, "verbs.json")
	if b, err := os.ReadFile(keep); err == nil && d.cfg.State != "" {
		var k verbsKept
		if json.Unmarshal(b, &k) == nil && k.Of == of {
			d.verbs = k
			return k.Has
		}
	}
	out, err := d.cfg.Run(ctx, []string{verbsProgram, "-v"})
	if err != nil {
		return nil
	}
	d.verbs = verbsKept{of, parseVerbs(out)}
	if d.cfg.State != "" {
		_ = put(keep, d.verbs, func(string) {}) // next time it is asked again, and no more
	}
	return d.verbs.Has
}

// parseVerbs reads the output of ibv_devinfo -v.
func parseVerbs(out []byte) map[string]verbsLimits {
	has := map[string]verbsLimits{}
	device := ""
	for l := range bytes.Lines(out) {
		name, v, _ := strings.Cut(strings.TrimSpace(string(l)), ":")
		v = strings.TrimSpace(v)
		n, err := strconv.Atoi(v)
		h := has[device]
		switch {
		case name == "hca_id":
			device = v
			continue
		case device == "" || err != nil || n <= 0:
			continue
		case name == "max_qp":
			h.QP = n
		case name == "max_cq":
			h.CQ = n
		default:
			continue
		}
		has[device] = h
	}
	return has
}
