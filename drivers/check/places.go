package check

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// What a piece of a configuration is, besides a name of a kind.
const (
	words  = "words"  // the configuration's own words, and the names of its objects
	values = "values" // what fields are set to
)

// walkNames goes through a configuration, and calls f for each place where a name stands, with the kind of name
// ("device", "domain", "user", "serial", "text"), and for all that stands elsewhere.
func walkNames(os string, text []byte, f func(kind, s string)) {
	switch os {
	case "sonic":
		var db map[string]map[string]map[string]any
		if json.Unmarshal(text, &db) == nil {
			for _, table := range slices.Sorted(maps.Keys(db)) {
				f(words, table)
				for _, row := range slices.Sorted(maps.Keys(db[table])) {
					f(sonicRow(table), row)
					for _, field := range slices.Sorted(maps.Keys(db[table][row])) {
						f(words, field)
						sonicValue(sonicField(table, field), db[table][row][field], f)
					}
				}
			}
		}
	case "eos":
		for l := range strings.Lines(string(text)) {
			eosNames(strings.Fields(l), f)
		}
	}
}

// sonicRow says what the keys of a table's rows are.
func sonicRow(table string) string {
	switch table {
	case "DEVICE_NEIGHBOR_METADATA", "PEER_SWITCH", "SYSLOG_SERVER", "NTP_SERVER", "TACPLUS_SERVER", "RADIUS_SERVER", "LDAP_SERVER":
		return "device"
	case "GNMI_CLIENT_CERT", "SNMP_USER", "USER":
		return "user"
	}
	return words
}

// sonicField says what a field holds.
func sonicField(table, field string) string {
	switch {
	case field == "hostname", field == "peer_switch", field == "name" && slices.Contains([]string{"DEVICE_NEIGHBOR", "BGP_NEIGHBOR", "BGP_MONITORS"}, table):
		return "device"
	case field == "description", field == "remark", strings.EqualFold(field, "location"), strings.EqualFold(field, "contact"):
		return "text"
	case strings.Contains(field, "serial"):
		return "serial"
	case field == "user", field == "username":
		return "user"
	}
	return values
}

func sonicValue(kind string, v any, f func(kind, s string)) {
	switch v := v.(type) {
	case string:
		f(kind, v)
	case []any:
		for _, x := range v {
			sonicValue(kind, x, f)
		}
	}
}

// eosPlaces are words of EOS after which a name stands. "*" is any word; a "vrf NAME" in between is skipped.
var eosPlaces = []struct {
	kind   string
	rest   bool // it goes on to the end of the line
	before []string
}{
	{"device", false, []string{"hostname"}},
	{"text", true, []string{"description"}},
	{"text", true, []string{"neighbor", "*", "description"}},
	{"user", false, []string{"username"}},
	{"user", false, []string{"snmp-server", "user"}},
	{"domain", false, []string{"dns", "domain"}},
	{"domain", false, []string{"ip", "domain-name"}},
	{"text", true, []string{"snmp-server", "location"}},
	{"text", true, []string{"snmp-server", "contact"}},
	{"text", true, []string{"snmp-server", "chassis-id"}},
	{"device", false, []string{"snmp-server", "host"}},
	{"device", false, []string{"ip", "host"}},
	{"device", false, []string{"ipv6", "host"}},
	{"device", false, []string{"ntp", "server"}},
	{"device", false, []string{"sntp", "server"}},
	{"device", false, []string{"logging", "host"}},
	{"device", false, []string{"radius-server", "host"}},
	{"device", false, []string{"tacacs-server", "host"}},
	{"device", false, []string{"server"}}, // of a group of aaa
}

// eosNames splits a line into names and the rest.
func eosNames(w []string, f func(kind, s string)) {
	for i := range eosPlaces {
		p := &eosPlaces[i]
		from := eosAfter(w, p.before)
		if from < 0 || from >= len(w) {
			continue
		}
		to := from + 1
		if p.rest {
			to = len(w)
		}
		f(p.kind, strings.Join(w[from:to], " "))
		f(words, strings.Join(w[:from], " "))
		f(words, strings.Join(w[to:], " "))
		return
	}
	f(words, strings.Join(w, " "))
}

// eosAfter is the place after words at the beginning of a line, -1 when these are others.
func eosAfter(w, before []string) int {
	i := 0
	skip := func() {
		if i > 0 && i+1 < len(w) && w[i] == "vrf" {
			i += 2
		}
	}
	for _, b := range before {
		skip()
		if i >= len(w) || b != "*" && w[i] != b {
			return -1
		}
		i++
	}
	skip()
	return i
}
