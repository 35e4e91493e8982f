package render

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// eos is Arista EOS, as `show running-config` writes it. The syntax follows Arista's published designs and the AVD
// collection's intended configurations; none of it was tried on a device of ours. Where a comment says "not
// verified", the behaviour is from a weaker source.
//
// Scope is the mode path joined by ">" ("qos profile X>uc-tx-queue 3", "interface Ethernet1/1"). Object is the head
// of a line and Value what follows it; compound lines have one setting per Field:
//
//	{"", "qos map dscp 26 to traffic-class", ""}                                    3
//	{"qos profile X", "priority-flow-control priority 3", ""}                       no-drop
//	{"qos profile X>uc-tx-queue 3", "random-detect ecn", "minimum-threshold"}       800000 bytes
//
// A mode line is a setting with an empty value (profiles, queues of profiles, interfaces), but for the queues of an
// interface, which are only a way in. A line that is not understood is kept whole as an Object without value.
// "no X" is the value "no" where EOS keeps it as a state of its own (no qos trust, no priority, …).
var eos = Dialect{
	OS:      "eos",
	Ext:     ".eos.cfg",
	Owns:    eosOwns,
	Left:    eosLeft,
	Render:  eosRender,
	Text:    eosText,
	Parse:   eosParse,
	Lift:    eosLift,
	Ports:   eosPorts,
	Refs:    eosRefs,
	Windows: []Window{{Lo: "minimum-threshold", Hi: "maximum-threshold"}},
	Phase:   func(Change) int { return 0 },
	Same:    eosSame,
	Risk:    eosRisk,
	Lines:   eosLines,
}

// Heads of the lines that carry the agreement.
const (
	eosTrust    = "qos trust"
	eosPFC      = "priority-flow-control"
	eosAllOff   = eosPFC + " all off" // on every port, whatever ports and profiles say
	eosWatchdog = "priority-flow-control pause watchdog"
	eosTimeout  = eosWatchdog + " default timeout"
	eosRecovery = eosWatchdog + " default recovery-time"
	eosPolling  = eosWatchdog + " default polling-interval"
	eosAction   = eosWatchdog + " action"
	eosTimer    = eosWatchdog + " port timer"
	eosPortAct  = eosWatchdog + " port action"
	eosPriority = "priority"
	eosShare    = "bandwidth percent"
	eosECN      = "random-detect ecn"
	eosCount    = "random-detect ecn count"
	eosMTU      = "mtu"
	eosBinding  = "service-profile"
	eosSend     = "flowcontrol send"    // 802.3x
	eosReceive  = "flowcontrol receive" // 802.3x

	eosProfileMode   = "qos profile "
	eosInterfaceMode = "interface "
)

func eosDSCP(n int) string    { return "qos map dscp " + strconv.Itoa(n) + " to traffic-class" }
func eosTC(n int) string      { return "qos map traffic-class " + strconv.Itoa(n) + " to tx-queue" }
func eosNoDrop(n int) string  { return eosPFC + " priority " + strconv.Itoa(n) }
func eosPort(i string) string { return eosInterfaceMode + i }

var (
	eosDSCPHead = regexp.MustCompile(`^qos map dscp (\d{1,2}) to traffic-class$`)
	eosTCHead   = regexp.MustCompile(`^qos map traffic-class ([0-7]) to tx-queue$`)
	eosPrioHead = regexp.MustCompile(`^priority-flow-control priority ([0-7])$`)
	eosQueue    = regexp.MustCompile(`^(uc-tx-queue|tx-queue) ([0-7])$`)
	eosEthernet = regexp.MustCompile(`^Ethernet\d{1,4}(/\d{1,4}){0,3}$`)
	eosSeconds  = regexp.MustCompile(`^\d{1,6}(\.\d{1,6})?$`)
)

// number is the number that head finds in object.
func number(head *regexp.Regexp, object string) (int, bool) {
	m := head.FindStringSubmatch(object)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.Atoi(m[len(m)-1])
	return n, true
}

// eosDefaultTC is the traffic class that EOS gives a code point without a map line: the low end is inverted (not
// verified).
func eosDefaultTC(dscp int) int {
	switch dscp / 8 {
	case 0:
		return 1
	case 1:
		return 0
	}
	return dscp / 8
}

// compound is a line of several values. Words is how many words the value of a field has; fields are written in
// this order and read in any.
type compound struct {
	head   string
	fields []compoundField
}

type compoundField struct {
	name  string
	words int
}

var eosCompounds = []compound{
	{eosECN, []compoundField{{"minimum-threshold", 2}, {"maximum-threshold", 2}, {"max-mark-probability", 1}, {"weight", 1}}},
	{eosTimer, []compoundField{{"timeout", 1}, {"polling-interval", 1}, {"recovery-time", 1}, {"forced", 0}}},
}

// compoundOf is the compound whose head is object, nil when there is none.
func compoundOf(object string) *compound {
	if i := slices.IndexFunc(eosCompounds, func(c compound) bool { return c.head == object }); i >= 0 {
		return &eosCompounds[i]
	}
	return nil
}

// line is the whole line for the fields given, in the device's order; "" when there are none.
func (c *compound) line(fields map[string]string) string {
	words := []string{c.head}
	for _, f := range c.fields {
		if v, ok := fields[f.name]; ok {
			words = append(words, f.name)
			if v != "" {
				words = append(words, v)
			}
		}
	}
	if len(words) == 1 {
		return ""
	}
	return strings.Join(words, " ")
}

// eosKeepsNo reports whether "no object" is a state that EOS shows and that "default object" takes back.
func eosKeepsNo(object string) bool {
	switch object {
	case eosTrust, eosPriority, eosPFC, eosWatchdog:
		return true
	}
	return eosPrioHead.MatchString(object)
}

// eosLine is the line for one object that is not compound.
func eosLine(object, value string) string {
	switch {
	case value == "no" && eosKeepsNo(object):
		return "no " + object
	case value == "":
		return object
	}
	return object + " " + value
}

// The components of a scope are mode lines; ">" in one is written %3E.
var (
	eosEscape   = strings.NewReplacer("%", "%25", ">", "%3E")
	eosUnescape = strings.NewReplacer("%3E", ">", "%25", "%")
)

// eosInside is the scope of what is in the mode line, itself in scope.
func eosInside(scope, line string) string {
	if scope == "" {
		return eosEscape.Replace(line)
	}
	return scope + ">" + eosEscape.Replace(line)
}

// eosPath is the mode lines that lead into scope.
func eosPath(scope string) []string {
	if scope == "" {
		return nil
	}
	path := strings.Split(scope, ">")
	for i, p := range path {
		path[i] = eosUnescape.Replace(p)
	}
	return path
}

// eosRefs: a binding points at its profile, and what is in a profile or queue at the line that makes it. Only
// profiles of ours are ever made or removed, so that only their contents point at them.
func eosRefs(k Key, value string) []Key {
	if k.Object == eosBinding && k.Field == "" && strings.HasPrefix(k.Scope, eosInterfaceMode) {
		return []Key{{"", eosProfileMode + value, ""}}
	}
	path := eosPath(k.Scope)
	switch {
	case len(path) == 1 && strings.HasPrefix(path[0], eosProfileMode+Prefix):
		return []Key{{"", path[0], ""}}
	case len(path) == 2 && strings.HasPrefix(path[0], eosProfileMode):
		return []Key{{eosInside("", path[0]), path[1], ""}}
	}
	return nil
}

// eosIsPause reports whether an object is one direction of 802.3x link pause.
func eosIsPause(object string) bool { return object == eosSend || object == eosReceive }

// eosSame: a code point or traffic class without a line is where EOS puts it by default; 0.20 seconds are 0.2; link pause is off
// unless set, and so are PFC and no-drop in a profile. On an interface "no" and "drop" win over the profile, and are not as if
// the line were absent. A port of ours always has "qos trust dscp" from its profile, so that the same line on the
// interface changes nothing.
func eosSame(k Key, a, b *string, _ Facts) bool {
	x, okx := eosEffective(k, a)
	y, oky := eosEffective(k, b)
	return okx == oky && (!okx || x == y)
}

func eosEffective(k Key, v *string) (string, bool) {
	if v == nil {
		if n, ok := number(eosDSCPHead, k.Object); ok && k.Scope == "" && n < 64 {
			return strconv.Itoa(eosDefaultTC(n)), true
		}
		if n, ok := number(eosTCHead, k.Object); ok && k.Scope == "" {
			return strconv.Itoa(n), true
		}
		if k.Object == eosTrust && strings.HasPrefix(k.Scope, eosInterfaceMode) {
			return "dscp", true
		}
		return "", false
	}
	if *v == "auto" && k.Scope == "" && k.Object == eosPolling { // EOS's choice, as without the line
		return "", false
	}
	switch {
	case k.Field != "":
	case *v == "off" && eosIsPause(k.Object):
		return "", false
	case *v == "no" && k.Object == eosPFC, (*v == "no" || *v == "drop") && eosPrioHead.MatchString(k.Object):
		return "off", strings.HasPrefix(k.Scope, eosInterfaceMode)
	}
	return eosNormal(k.Object, k.Field, *v), true
}

// eosNormal writes a number of seconds the shortest way; every other value is itself.
func eosNormal(object, field, v string) string {
	switch object {
	case eosTimeout, eosRecovery, eosPolling:
	case eosTimer:
		if field == "" {
			return v
		}
	default:
		return v
	}
	if !eosSeconds.MatchString(v) {
		return v
	}
	whole, frac, _ := strings.Cut(v, ".")
	whole, frac = strings.TrimLeft(whole, "0"), strings.TrimRight(frac, "0")
	if whole == "" {
		whole = "0"
	}
	if frac == "" {
		return whole
	}
	return whole + "." + frac
}

// eosNameLimit bounds the names of profiles; what EOS allows is not published, this is well below any limit seen.
const eosNameLimit = 64

func eosNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// eosProfile is the mode line of the profile of a site: ours, or the live one that was adopted for it.
func eosProfile(d *intent.Device, f Facts, site string) (line string, adopted bool) {
	ours := eosProfileMode + objectName(eosNameLimit, eosNameRune, d.Fabric, site)
	line = f.Names.Name("", ours)
	return line, line != ours
}

// eosQueueWord is how the platform calls the queues that are scheduled: the Jericho family has tx-queue.
func eosQueueWord(d *intent.Device) string {
	if word := d.Profile.Words["tx_queue"]; word != "" {
		return word
	}
	return "uc-tx-queue"
}
