package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// bufferDevice is a leaf with one lossless class on priority 3, all of whose ports do as edit says.
func bufferDevice(edit func(*intent.Policy)) intent.Device {
	d := exampleDevice("Ethernet0", "Ethernet8")
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	for i := range d.Ports {
		d.Ports[i].Manage, d.Ports[i].Speed, d.Ports[i].Cable = d.Manage, 400*units.Gbps, 40*units.Metre
	}
	for i := range d.Policies {
		d.Policies[i].Known |= intent.AreaSet(intent.AreaBuffer)
		edit(&d.Policies[i])
	}
	return d
}

func explicit(alpha units.Ratio) func(*intent.Policy) {
	return func(p *intent.Policy) {
		p.Queues[3].Buffer = intent.Buffer{On: true, Alpha: alpha, Headroom: 203 * units.KiB, Xon: 19 * units.KiB, Reserved: 222 * units.KiB}
	}
}

func made(cable units.Length) func(*intent.Policy) {
	return func(p *intent.Policy) {
		p.Cable, p.Queues[3].Buffer = cable, intent.Buffer{On: true, Device: true}
	}
}

// sonicLive is a switch with what buffermgrd made, in one row for priorities 3 and 4 as on factory configurations, or
// in the row given.
func sonicLive(row string) Config {
	c := sonicBase("Ethernet0", "Ethernet8")
	for _, iface := range []string{"Ethernet0", "Ethernet8"} {
		c = append(c,
			Setting{Key: Key{"BUFFER_PG", iface + "|" + row, "profile"}, Value: "pg_lossless_400000_40m_profile"},
			Setting{Key: Key{"BUFFER_PG", iface + "|0", "profile"}, Value: "ingress_lossy_profile"},
			Setting{Key: Key{"CABLE_LENGTH", "AZURE", iface}, Value: "40m"})
	}
	return c.Sorted()
}

func bufferChanges(t *testing.T, d intent.Device, live Config) []Change {
	t.Helper()
	want, l := sonicRender(d, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	own, _ := Owned(&sonic, d, Facts{}, live)
	return slices.DeleteFunc(Diff(&sonic, Facts{}, live.Filter(own), want.Filter(own)), func(c Change) bool {
		return !strings.HasPrefix(c.Key.Scope, "BUFFER") && c.Key.Scope != "CABLE_LENGTH"
	})
}

func TestSonicBufferChanges(t *testing.T) {
	for name, x := range map[string]struct {
		want intent.Device
		row  string
		keys []string // objects and fields that change on Ethernet0, and shared ones
	}{
		"the switch makes them and did": {bufferDevice(made(40 * units.Metre)), "3", nil},
		"in one row for two":            {bufferDevice(made(40 * units.Metre)), "3-4", nil},
		"another cable":                 {bufferDevice(made(5 * units.Metre)), "3", []string{"set CABLE_LENGTH|AZURE|Ethernet0"}},
		"a profile of ours": {bufferDevice(explicit(units.Ratio{Num: 1, Den: 2})), "3", []string{
			"add BUFFER_PROFILE|fctl-pod1-fabric-training-400G-40m-1881|dynamic_th", "add BUFFER_PROFILE|fctl-pod1-fabric-training-400G-40m-1881|pool",
			"add BUFFER_PROFILE|fctl-pod1-fabric-training-400G-40m-1881|size", "add BUFFER_PROFILE|fctl-pod1-fabric-training-400G-40m-1881|xoff",
			"add BUFFER_PROFILE|fctl-pod1-fabric-training-400G-40m-1881|xon", "set BUFFER_PG|Ethernet0|3|profile", "set CABLE_LENGTH|AZURE|Ethernet0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range bufferChanges(t, x.want, sonicLive(x.row)) {
				if !strings.Contains(c.Key.String(), "Ethernet8") {
					got = append(got, string(c.Op)+" "+c.Key.String())
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, x.keys) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(x.keys, "\n"))
			}
		})
	}
}

// The one row that the switch made for two priorities goes where both are the model's, and is in the way where one is
// not: the profile of one group beside a row for both is two answers to one question.
func TestSonicBufferRange(t *testing.T) {
	d := bufferDevice(explicit(units.Ratio{Num: 1, Den: 2}))
	live := sonicLive("3-4")
	cs := bufferChanges(t, d, live)
	risks := sonicRisk(live, cs, Facts{Model: "ACS-SN5600", Version: "SONiC.20240531"})
	if risks[0].Class != Refused || !strings.Contains(risks[0].Why, "one row holds priority groups 3-4 of the port") {
		t.Errorf("nobody minds: %+v", risks)
	}
	d.Classes[4] = "bulk"
	cs = bufferChanges(t, d, live)
	if !slices.ContainsFunc(cs, func(c Change) bool { return c.Op == Remove && c.Key.Object == "Ethernet0|3-4" }) {
		t.Errorf("the row for both stays: %s", describe(cs))
	}
	risks = sonicRisk(live, cs, Facts{Model: "ACS-SN5600", Version: "SONiC.20240531"})
	if len(risks) != 1 || risks[0].Class != Flap || !slices.Equal(risks[0].Ports, []string{"Ethernet0", "Ethernet8"}) || !strings.Contains(risks[0].Why, "BUFFER_PG") {
		t.Errorf("got %+v", risks)
	}
	on := Apply(live, []Change{{Op: Add, Key: Key{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]"}, After: ptr("on")}})
	lifted, l := sonicLift(Apply(on, cs), Facts{})
	if got := lifted["Ethernet0"].Queues[3].Buffer; got.Device || got.Headroom != 203*units.KiB || slices.ContainsFunc(l, func(f diag.Finding) bool { return strings.Contains(f.Msg, "priority 3") }) {
		t.Errorf("got %+v %v", got, l)
	}
}

// A row of several groups that somebody bound goes where the switch is to make their buffers, when all of them are the
// model's; when one is not it stays, and that is said.
func TestSonicBufferBoundRange(t *testing.T) {
	d := bufferDevice(made(40 * units.Metre))
	live := sonicLive("3-4")
	for i := range live {
		if live[i].Value == "pg_lossless_400000_40m_profile" {
			live[i].Value = "ingress_lossless_profile"
		}
	}
	said := func() string {
		_, l := Owned(&sonic, d, Facts{}, live)
		if i := slices.IndexFunc(l, func(f diag.Finding) bool { return f.Rule == "stays-bound" }); i >= 0 {
			return l[i].Msg
		}
		return ""
	}
	if cs := bufferChanges(t, d, live); len(cs) > 0 || !strings.Contains(said(), "binds a profile to priority groups 3-4 on Ethernet0, Ethernet8") {
		t.Errorf("%s\n%s", describe(cs), said())
	}
	d.Classes[4] = "bulk"
	if got := describe(bufferChanges(t, d, live)); got != "remove BUFFER_PG|Ethernet0|3-4|profile\nremove BUFFER_PG|Ethernet8|3-4|profile" || said() != "" {
		t.Errorf("%s\n%s", got, said())
	}
}

func describe(cs []Change) string {
	var lines []string
	for _, c := range cs {
		lines = append(lines, string(c.Op)+" "+c.Key.String())
	}
	return strings.Join(lines, "\n")
}

// Alpha and headroom change in place; what the updater does not change in place becomes another profile, to which ports
// are bound anew.
func TestSonicBufferEdits(t *testing.T) {
	facts := Facts{Model: "ACS-SN5600", Version: "SONiC.20240531"}
	first := bufferDevice(explicit(units.Ratio{Num: 1, Den: 2}))
	live := Apply(sonicLive("3"), bufferChanges(t, first, sonicLive("3")))
	for name, x := range map[string]struct {
		edit func(*intent.Buffer)
		flap bool
	}{
		"alpha":    {func(b *intent.Buffer) { b.Alpha = units.Ratio{Num: 2, Den: 1} }, false},
		"headroom": {func(b *intent.Buffer) { b.Headroom += units.KiB }, false},
		"xon":      {func(b *intent.Buffer) { b.Xon += units.KiB }, true},
		"reserved": {func(b *intent.Buffer) { b.Reserved += units.KiB }, true},
		"offset":   {func(b *intent.Buffer) { b.XonOffset = units.KiB }, true},
	} {
		t.Run(name, func(t *testing.T) {
			next := bufferDevice(func(p *intent.Policy) {
				explicit(units.Ratio{Num: 1, Den: 2})(p)
				x.edit(&p.Queues[3].Buffer)
			})
			cs := bufferChanges(t, next, live)
			risks := sonicRisk(live, cs, facts)
			if len(cs) == 0 || x.flap != (len(risks) == 1 && risks[0].Class == Flap) || !x.flap && len(risks) > 0 {
				t.Errorf("%s\n%+v", describe(cs), risks)
			}
			if x.flap && !slices.ContainsFunc(cs, func(c Change) bool { return c.Op == Remove && c.Key.Scope == "BUFFER_PROFILE" }) {
				t.Errorf("the old profile stays:\n%s", describe(cs))
			}
		})
	}
	cs := bufferChanges(t, bufferDevice(explicit(units.Ratio{Num: 2, Den: 1})), live)
	if r := sonicRisk(live, cs, Facts{Model: "Some-SKU"}); len(r) != 1 || r[0].Class != Refused || !strings.Contains(r[0].Why, `does not know HwSKU "Some-SKU"`) {
		t.Errorf("an unknown SKU: %+v", r)
	}
}

// A profile has to have a size, also one of 0; without it, that is said.
func TestSonicBufferNoSize(t *testing.T) {
	live := Apply(sonicLive("3"), bufferChanges(t, bufferDevice(explicit(units.Ratio{Num: 1, Den: 2})), sonicLive("3")))
	live = Apply(live, []Change{{Op: Add, Key: Key{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]"}, After: ptr("on")}})
	said := func(c Config) bool {
		_, l := sonicLift(c, Facts{})
		return slices.ContainsFunc(l, func(f diag.Finding) bool { return strings.Contains(f.Msg, "it has no size") })
	}
	if said(live) {
		t.Error("said of a profile with a size")
	}
	without := slices.DeleteFunc(slices.Clone(live), func(s Setting) bool { return s.Key.Scope == "BUFFER_PROFILE" && s.Key.Field == "size" })
	if len(without) == len(live) || !said(without) {
		t.Error("not said of a profile without one")
	}
}

// What SONiC has no words for is said with what it takes.
func TestSonicBufferNotExpressible(t *testing.T) {
	static := bufferDevice(func(p *intent.Policy) {
		explicit(units.Ratio{})(p)
		p.Queues[3].Buffer.Static = units.MB
	})
	fits := static
	fits.Pools.Static = true
	both := bufferDevice(explicit(units.Ratio{Num: 1, Den: 2}))
	both.Pools.Static = true
	for name, x := range map[string]struct {
		d         intent.Device
		msg, hint string
	}{
		"thirds":             {bufferDevice(explicit(units.Ratio{Num: 1, Den: 3})), "alpha 1/3 of class training is not a power of two", "write {alpha: 1/4} or {alpha: 1/2}"},
		"too small":          {bufferDevice(explicit(units.Ratio{Num: 1, Den: 512})), "alpha 1/512", "write {alpha: 1/256}"},
		"too large":          {bufferDevice(explicit(units.Ratio{Num: 300, Den: 1})), "alpha 300", "write {alpha: 128}"},
		"bytes":              {static, "the pause threshold of class training is 1MB; the buffer of sonic/sn5600 is dynamic", "write it as alpha, such as {alpha: 1/2}"},
		"bytes, static pool": {fits, "", ""},
		"alpha, static pool": {both, "is static, and SONiC takes bytes", "write it in bytes"},
		"half a metre":       {bufferDevice(made(500)), "the cable is 0.5m; SONiC takes whole metres", "say 1m"},
		"both ways": {bufferDevice(func(p *intent.Policy) {
			explicit(units.Ratio{Num: 1, Den: 2})(p)
			p.Cable = 5 * units.Metre
		}), "class training has a buffer of its own, and the switch is told a cable of 5m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, l := sonicRender(x.d, Facts{})
			if x.msg == "" {
				if len(l) > 0 {
					t.Error(l)
				}
				return
			}
			if len(l) == 0 || !strings.Contains(l[0].Msg, x.msg) || l[0].Hint != x.hint {
				t.Errorf("got %v", l)
			}
		})
	}
}

// What a switch holds is read as it stands, and what cannot be right is said.
func TestSonicBufferLift(t *testing.T) {
	const port = `"PORT": {"Ethernet0": {"mtu": "9100", "speed": "100000"}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}`
	const profile = `"BUFFER_PROFILE": {"mine": {"pool": "ingress_lossless_pool", "size": "1248", "xoff": "165568", "xon": "2288", "xon_offset": "2288", "dynamic_th": "-3"},
		"q_lossy": {"pool": "egress_lossy_pool", "size": "0", "dynamic_th": "3"}}`
	mine := intent.Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 8}, Headroom: 165568, Xon: 2288, XonOffset: 2288, Reserved: 1248}
	for name, x := range map[string]struct {
		text  string
		cable units.Length
		known bool
		want  intent.Buffer
		says  string
	}{
		"nothing about buffers": {``, 0, false, intent.Buffer{}, ""},
		"a pool and no group":   {`"BUFFER_POOL": {"ingress_lossless_pool": {"mode": "dynamic"}}`, 0, true, intent.Buffer{}, ""},
		"a pool, a cable and no group": {
			`"BUFFER_POOL": {"ingress_lossless_pool": {"mode": "dynamic"}}, "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}}`, 40 * units.Metre, true,
			intent.Buffer{On: true, Device: true},
			"the switch made no priority group for it: it does where pg_profile_lookup.ini has a row for the port's speed and 40m",
		},
		"made for another cable": {
			`"CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m"}}, "BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_lossless_100000_40m_profile"}}`, 5 * units.Metre, true,
			intent.Buffer{On: true, Device: true},
			"the switch made pg_lossless_100000_40m_profile, and the port has 100000 Mbps and a cable of 5m",
		},
		"made for another speed": {
			`"BUFFER_PG": {"Ethernet0|3": {"profile": "pg_lossless_400000_40m_profile"}}`, 0, true,
			intent.Buffer{On: true, Device: true},
			"the switch made pg_lossless_400000_40m_profile, and the port has 100000 Mbps",
		},
		"a cable":               {`"CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}}`, 40 * units.Metre, true, intent.Buffer{On: true, Device: true}, ""},
		"no cable":              {`"CABLE_LENGTH": {"AZURE": {"Ethernet0": "0m"}}`, 0, true, intent.Buffer{}, ""},
		"a strange cable":       {`"CABLE_LENGTH": {"AZURE": {"Ethernet0": "forty"}}`, 0, false, intent.Buffer{}, `the cable of Ethernet0 is "forty"`},
		"made":                  {`"BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_lossless_100000_40m_profile"}}`, 0, true, intent.Buffer{On: true, Device: true}, ""},
		"made with a threshold": {`"BUFFER_PG": {"Ethernet0|3": {"profile": "pg_lossless_100000_40m_th1_profile"}}`, 0, true, intent.Buffer{On: true, Device: true}, ""},
		"computed":              {`"BUFFER_PG": {"Ethernet0|3": {"profile": "NULL"}}, "DEVICE_METADATA": {"localhost": {"buffer_model": "dynamic"}}`, 0, true, intent.Buffer{On: true, Device: true}, ""},
		"dynamic, not asked for": {
			`"CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}}, "DEVICE_METADATA": {"localhost": {"buffer_model": "dynamic"}}`,
			40 * units.Metre, true,
			intent.Buffer{},
			"",
		},
		"somebody's":    {`"BUFFER_PG": {"Ethernet0|3-4": {"profile": "mine"}}, ` + profile, 0, true, mine, ""},
		"in brackets":   {`"BUFFER_PG": {"Ethernet0|3-4": {"profile": "[BUFFER_PROFILE|mine]"}}, ` + profile, 0, true, mine, ""},
		"for two ports": {`"BUFFER_PG": {"Ethernet0,Ethernet8|3-4": {"profile": "mine"}}, ` + profile, 0, true, mine, "one row is for several ports"},
		"twice":         {`"BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_lossless_100000_40m_profile"}, "Ethernet0|3": {"profile": "mine"}}, ` + profile, 0, true, mine, "which one counts is not defined"},
		"no threshold": {
			`"BUFFER_PG": {"Ethernet0|3": {"profile": "mine"}}, "BUFFER_PROFILE": {"mine": {"pool": "ingress_lossless_pool", "size": "1248", "xoff": "165568"}}`, 0, true,
			intent.Buffer{On: true, Headroom: 165568, Reserved: 1248},
			"neither dynamic_th nor static_th",
		},
		"not there": {`"BUFFER_PG": {"Ethernet0|3": {"profile": "nobody"}}`, 0, true, intent.Buffer{}, `BUFFER_PROFILE "nobody" does not exist`},
		"drops at egress": {
			`"BUFFER_PG": {"Ethernet0|3": {"profile": "mine"}}, "BUFFER_QUEUE": {"Ethernet0|3-4": {"profile": "q_lossy"}}, ` + profile, 0, true, mine,
			"its egress profile q_lossy is a lossy one",
		},
		"no egress": {
			`"BUFFER_PG": {"Ethernet0|3": {"profile": "mine"}}, "BUFFER_QUEUE": {"Ethernet0|5": {"profile": "q_lossy"}}, ` + profile, 0, true, mine,
			"queue 3 is lossless and has no egress buffer profile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := "{" + port
			if x.text != "" {
				text += ", " + x.text
			}
			c, l := sonicParse([]byte(text + "}"))
			lifted, m := sonicLift(c, Facts{})
			p := lifted["Ethernet0"]
			if got := p.Known.Has(intent.AreaBuffer); got != x.known || p.Cable != x.cable || p.Queues[3].Buffer != x.want || p.Queues[4].Buffer != (intent.Buffer{}) {
				t.Errorf("known %v, cable %s, %+v", got, p.Cable, p.Queues[3].Buffer)
			}
			said := ""
			for _, f := range append(l, m...) {
				said += f.Msg + "\n"
			}
			if !strings.Contains(said, x.says) || x.says == "" && l.Count(diag.Warning)+m.Count(diag.Warning) > 0 && !strings.Contains(name, "brackets") {
				t.Errorf("said %q", said)
			}
		})
	}
}
