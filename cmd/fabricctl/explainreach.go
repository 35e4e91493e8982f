package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// explainReach is how a device is reached and known, with the line of each value. Secrets are references, which are not
// followed.
type explainReach struct {
	Channel string             `json:"channel"` // gnmi or ssh
	Groups  []string           `json:"groups"`  // of the inventory
	Hops    int                `json:"hops,omitempty"`
	Values  []explainReachLine `json:"values"`
}

type explainReachLine struct {
	Path   string      `json:"path"` // as in the inventory
	Value  string      `json:"value"`
	Origin *originJSON `json:"origin,omitempty"`
}

// reachOf is how a device is reached; nil when the inventory gives no address.
func reachOf(e *model.Endpoint, dev *intent.Device) *explainReach {
	if e == nil || !e.Address.Set {
		return nil
	}
	r := &explainReach{Channel: "ssh", Groups: append([]string{}, e.Groups...), Hops: dev.Way.Hops}
	add := func(path, value string, from *model.Origin) {
		if value != "" && from != nil {
			r.Values = append(r.Values, explainReachLine{path, value, origin(from)})
		}
	}
	text := func(path string, v model.Value[string]) { add(path, v.V, v.From) }
	flag := func(path string, v model.Value[bool]) { add(path, strconv.FormatBool(v.V), v.From) }
	text("address", e.Address)
	text("serial", e.Serial)
	text("hostname", e.Hostname)
	jumps := e.SSH.Via.V != ""
	if dev.OS() == "sonic" {
		r.Channel = "gnmi"
		g := e.GNMI
		add("gnmi.port", strconv.Itoa(g.Port.V), g.Port.From)
		text("gnmi.username", g.Username)
		text("gnmi.password", g.Password)
		text("gnmi.tls.ca", g.CA)
		text("gnmi.tls.cert", g.Cert)
		text("gnmi.tls.key", g.Key)
		text("gnmi.tls.server_name", g.ServerName)
		flag("gnmi.tls.insecure", g.Insecure)
		flag("gnmi.plaintext", g.Plaintext)
		text("gnmi.via", g.Via)
		jumps = g.Via.V != ""
	} else {
		add("ssh.port", strconv.Itoa(e.SSH.Port.V), e.SSH.Port.From)
		text("ssh.password", e.SSH.Password)
		text("ssh.enable_password", e.SSH.Enable)
		flag("ssh.insecure", e.SSH.Insecure)
		text("ssh.via", e.SSH.Via)
	}
	if r.Channel == "ssh" || jumps { // jump hosts are entered with these
		text("ssh.username", e.SSH.Username)
		text("ssh.key", e.SSH.Key)
		text("ssh.known_hosts", e.SSH.KnownHosts)
	}
	flag("lab", e.Lab)
	text("management", e.Management)
	text("management_port", e.ManagementPort)
	return r
}

func (r *explainReach) print(w io.Writer) {
	if r == nil {
		return
	}
	channel := map[string]string{"gnmi": "gNMI", "ssh": "SSH"}[r.Channel]
	fmt.Fprintf(w, "\nreached over %s", channel)
	if len(r.Groups) > 0 {
		fmt.Fprintf(w, ", in the groups %s", strings.Join(r.Groups, ", "))
	}
	if r.Hops > 0 {
		fmt.Fprintf(w, ", %s from where we come in", diag.Count(r.Hops, "link"))
	}
	fmt.Fprintln(w)
	for _, v := range r.Values {
		fmt.Fprintln(w, strings.TrimRight("  "+show.Pad(v.Path, 25)+show.Pad(v.Value, 24)+v.Origin.String(), " "))
	}
}
