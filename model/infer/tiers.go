package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// tiers gives each device its role: what the command line asks for; else switches that hear hosts are leaves, and
// distance from them makes spines and super-spines. A switch of a leaf's name that hears no host is a leaf too. Where no
// host speaks LLDP, the ports that are configured and hear nobody stand for them.
func (w *wirer) tiers() {
	next := map[string][]string{} // switch to switches
	below := map[string]int{}     // ports with hosts
	quiet := map[string]int{}     // ports that are configured and have no peer
	isHost := map[string]bool{}
	for i := range w.devices {
		isHost[w.devices[i].Name] = w.devices[i].Host
	}
	links := 0
	for i := range w.devices {
		d := &w.devices[i]
		for j := range d.Ports {
			switch p := &d.Ports[j]; {
			case d.Host:
			case p.Peer == "" && configured(d.PolicyOf(p)) && w.outside[end{d.Name, p.Name}] == "":
				quiet[d.Name]++
			case p.Peer == "":
			case isHost[p.Peer]:
				below[d.Name]++
				links++
			default:
				next[d.Name] = append(next[d.Name], p.Peer)
				links++
			}
		}
	}
	guess := ""
	if len(below) == 0 && links > 0 {
		below = quiet
		guess = "no host is heard over LLDP: switches with configured ports that hear nobody are taken for leaves"
	}
	stems, far := map[string]bool{}, map[string]int{}
	var queue []string
	for i := range w.devices {
		if d := &w.devices[i]; !d.Host && below[d.Name] > 0 && links > 0 {
			stems[stem(d.Name)] = true
			far[d.Name] = 1
			queue = append(queue, d.Name)
		}
	}
	if len(stems) > 0 {
		for i := range w.devices { // leaves without hosts yet
			if d := &w.devices[i]; !d.Host && far[d.Name] == 0 && stems[stem(d.Name)] && stem(d.Name) != "" {
				far[d.Name] = 1
				queue = append(queue, d.Name)
				w.info(d.Name, "role-guess", "give --role "+d.Name+"=ROLE to say otherwise", "it hears no host, and is taken for a leaf by its name")
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, peer := range next[queue[0]] {
			if far[peer] == 0 {
				far[peer] = far[queue[0]] + 1
				queue = append(queue, peer)
			}
		}
	}
	w.assign(far)
	if guess != "" && len(stems) > 0 {
		w.info("", "role-guess", "give --role PATTERN=ROLE to say otherwise", "%s", guess)
	}
}

// assign writes the roles down by distance from the hosts.
func (w *wirer) assign(far map[string]int) {
	var lost []string
	for i := range w.devices {
		d := &w.devices[i]
		asked := w.roleOf(d.Name, d.Hostname)
		switch {
		case asked != "":
			d.Role = asked
		case d.Host && d.Role == "":
			d.Role = host
		case d.Host:
		case far[d.Name] == 1:
			d.Role = leaf
		case far[d.Name] == 2:
			d.Role = spine
		case far[d.Name] > 2:
			d.Role = superSpine
		default:
			d.Role = plain
			lost = append(lost, d.Name)
		}
	}
	if len(lost) > 0 {
		w.warn("", "role-unknown", "give --role PATTERN=ROLE, for example --role 'leaf*=leaf'",
			"LLDP does not tell what %s there for: %s", diag.Plural(len(lost), "switch is", "switches are"), some(lost))
	}
}

// stem is a name without its numbers: "pod1-leaf12" is "pod-leaf".
func stem(name string) string { return strings.Trim(strings.Map(noDigits, name), "-_.") }

func noDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// configured reports whether anything of the agreement is set up on a port. MTU and maps do not count: every port has
// the one, and on some systems the device has the other for all ports.
func configured(p *intent.Policy) bool {
	q := p.Only(intent.AreaSet(intent.AreaPFC, intent.AreaECN, intent.AreaScheduler, intent.AreaWatchdog))
	return q.Queues != [8]intent.Queue{} || q.Watchdog.On
}

// portRoles says what each port of a switch is there for. One that hears a stranger and is not lossless, while others
// of its device are, is a border; one that hears nobody and has nothing configured is not used.
func (w *wirer) portRoles() {
	isHost := map[string]bool{}
	for i := range w.devices {
		isHost[w.devices[i].Name] = w.devices[i].Host
	}
	role := map[string]string{}
	for i := range w.devices {
		role[w.devices[i].Name] = w.devices[i].Role
	}
	for i := range w.devices {
		d := &w.devices[i]
		lossless := slices.ContainsFunc(d.Policies, func(p intent.Policy) bool { return len(p.Lossless()) > 0 })
		var strangers []string
		for j := range d.Ports {
			p := &d.Ports[j]
			at := end{d.Name, p.Name}
			pol := d.PolicyOf(p)
			stranger := w.outside[at]
			switch {
			case d.Host:
				p.Role = "nic"
			case p.Peer != "" && isHost[p.Peer]:
				p.Role = "host"
			case p.Peer != "" && role[p.Peer] == d.Role && d.Role == leaf:
				p.Role = "peer-link"
			case p.Peer != "":
				p.Role = "fabric"
			case stranger != "" && !w.unread[stranger] && lossless && len(pol.Lossless()) == 0 && !pol.Watchdog.On:
				p.Role = "border"
				w.info(at.String(), "border", "", "it hears %s, which is not among the devices, and is not lossless: the model calls it a border", stranger)
			case stranger != "":
				p.Role = "fabric"
				strangers = append(strangers, fmt.Sprintf("%s on %s", stranger, p.Name))
			case !configured(pol):
				p.Role = "unused"
			case d.Role == leaf:
				p.Role = "host"
			default:
				p.Role = "fabric"
			}
		}
		if len(strangers) > 0 {
			w.warn(d.Name, "border", "read them too, or give the ports role: border, where lossless ends",
				"it hears %s not among the devices, so where the fabric ends is not known: %s",
				diag.Plural(len(strangers), "neighbour that is", "neighbours that are"), some(strangers))
		}
	}
}

// silent says which devices were of no help.
func (w *wirer) silent() {
	var unread []string
	for _, name := range sortedKeys(w.unread) {
		if w.unread[name] {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 {
		w.warn("", "switch-not-read", "add their addresses to the inventory, and import them too",
			"%s a role with --role, heard over LLDP and not read; links there are left out: %s", diag.Plural(len(unread), "switch is given", "switches are given"), some(unread))
	}
	why := map[string][]string{}
	for i := range w.boxes {
		if b := &w.boxes[i]; b.NoLLDP != "" {
			why[b.NoLLDP] = append(why[b.NoLLDP], b.Device.Name)
		}
	}
	for _, reason := range sortedKeys(why) {
		w.warn("", "no-lldp", "switch LLDP on, or write their links under topology.links.list", "%s: %s; links between them are not known", some(why[reason]), reason)
	}
	var deaf []string
	for i := range w.boxes {
		if b := &w.boxes[i]; b.NoLLDP == "" && len(b.Heard) == 0 && !b.Device.Host {
			deaf = append(deaf, b.Device.Name)
		}
	}
	if len(deaf) > 0 {
		w.found.Add(diag.Finding{
			Rule: "no-lldp", Severity: diag.Warning, Msg: "nothing is heard over LLDP on " + some(deaf),
			Hint: "see whether LLDP runs there, or write their links under topology.links.list",
		})
	}
}
