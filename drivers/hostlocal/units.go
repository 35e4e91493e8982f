package hostlocal

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// ProgramPath is where the units look for the program.
const ProgramPath = "/usr/local/sbin/fabricctl-host"

// MetricsPath is where the agent's unit has it write its metrics: where node_exporter is told to look for them, or where
// anything else that reads files can.
const MetricsPath = "/run/fabricctl/fabricctl.prom"

// Unit is a file of a host: the host file, a systemd unit, a rule.
type Unit struct {
	Path string `json:"path"` // absolute, on the host
	Text string `json:"text"`
}

// UnitOptions are the choices of who writes units.
type UnitOptions struct {
	Services []string // those whose locked memory has no limit, where the model says so
}

var serviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9:_.@-]*$`)

// Units is all that a host needs to hold what its file says: the file, the unit that applies it at boot, that of the agent,
// what starts them for NICs that come late, and drop-ins for services. The same file gives the same bytes.
func Units(f *File, o UnitOptions) ([]Unit, error) {
	b, err := f.Encode()
	if err != nil {
		return nil, err
	}
	us := []Unit{
		{DefaultFile, string(b)},
		{"/etc/systemd/system/fabricctl-host.service", bootUnit(f)},
		{"/etc/systemd/system/fabricctl-host-agent.service", agentUnit(f)},
		{"/etc/udev/rules.d/90-fabricctl-host.rules", udevRule},
		{"/etc/tmpfiles.d/fabricctl-host.conf", tmpfiles},
	}
	if len(o.Services) > 0 && !f.asks(func(p *intent.Policy) bool { return p.System.Memlock }) {
		return nil, fmt.Errorf("the model does not lift the limit on locked memory of %s: write hosts: {memlock: unlimited} into it, or leave --service away", f.Device.Name)
	}
	for _, s := range o.Services {
		name := strings.TrimSuffix(s, ".service")
		if !serviceName.MatchString(name) {
			return nil, fmt.Errorf("--service %q is not the name of a service", s)
		}
		us = append(us, Unit{path.Join("/etc/systemd/system", name+".service.d", "50-fabricctl-memlock.conf"), memlock(f)})
	}
	return us, nil
}

// asks reports whether a NIC of the host is to hold something.
func (f *File) asks(what func(*intent.Policy) bool) bool {
	return slices.ContainsFunc(f.Device.Ports, func(p intent.Port) bool {
		return p.State == intent.Active && what(&f.Device.Policies[p.Policy])
	})
}

// head is the first lines of a unit.
func head(f *File, what string) string {
	return fmt.Sprintf("# Written by fabricctl host unit for %s of %s. Changes go into the model.\n[Unit]\nDescription=%s\n",
		plain(f.Device.Name), plain(f.Device.Fabric), what)
}

// plain is text that cannot be anything but text in a unit.
func plain(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "%", "%%")
}

// bootUnit waits for the NICs that the model names: one that does not come delays it by as long as systemd waits for devices,
// and holds up nothing else.
func bootUnit(f *File) string {
	var wants []string
	for _, p := range f.Device.Ports {
		if p.State == intent.Active && p.Iface != "" && !strings.Contains(p.Iface, ":") {
			wants = append(wants, "sys-subsystem-net-devices-"+escapeUnit(p.Iface)+".device")
		}
	}
	slices.Sort(wants)
	wants = slices.Compact(wants)
	if f.asks(func(p *intent.Policy) bool { return p.RoCE.On }) {
		wants = append(wants, "modprobe@rdma_cm.service") // whose directory of configfs has the default of RDMA-CM
	}
	s := head(f, "RoCE settings of this host")
	s += "After=network-pre.target sys-kernel-config.mount sys-kernel-debug.mount systemd-modules-load.service\n"
	for _, w := range wants {
		s += "Wants=" + w + "\nAfter=" + w + "\n"
	}
	return s + `ConditionPathExists=` + DefaultFile + `

# Not RemainAfterExit: a NIC that comes late starts it again, and a second apply writes nothing. At boot nothing runs over
# the links yet, so they may flap; installing this unit is the leave for drivers that nobody has tried.
[Service]
Type=oneshot
ExecStart=` + ProgramPath + ` apply --yes --allow-disruptive --accept-unverified --timeout 10m
TimeoutStartSec=15min
` + hardening + `
[Install]
WantedBy=multi-user.target
`
}

func agentUnit(f *File) string {
	return head(f, "Keeper of the RoCE settings of this host") + `After=fabricctl-host.service
ConditionPathExists=` + DefaultFile + `

[Service]
Type=notify
ExecStart=` + ProgramPath + ` agent --metrics ` + MetricsPath + ` --accept-unverified --log-level info
ExecReload=/bin/kill -HUP $MAINPID
WatchdogSec=5min
Restart=on-failure
RestartSec=10s
` + hardening + `
[Install]
WantedBy=multi-user.target
`
}

// hardening is what both units may not do. They are root without most of what root may: netlink needs CAP_NET_ADMIN, debugfs and
// PCI configuration CAP_SYS_ADMIN, and a file keeps its owner by CAP_CHOWN and CAP_FOWNER. KillMode: the process that takes a change back
// in time outlives who made it. /proc and /sys are not among what ProtectSystem protects.
const hardening = `KillMode=process
StateDirectory=fabricctl
StateDirectoryMode=0700
RuntimeDirectory=fabricctl
RuntimeDirectoryPreserve=yes
UMask=0022
CapabilityBoundingSet=CAP_NET_ADMIN CAP_SYS_ADMIN CAP_CHOWN CAP_FOWNER
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=/etc
ProtectHome=yes
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_NETLINK AF_UNIX AF_INET
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
`

const udevRule = `# Written by fabricctl host unit. NICs that come, or get a driver, after boot are set too; what is set already is not written again.
ACTION=="add|bind|move", SUBSYSTEM=="net", SUBSYSTEMS=="pci", TAG+="systemd", ENV{SYSTEMD_WANTS}+="fabricctl-host.service"
ACTION=="add", SUBSYSTEM=="infiniband", TAG+="systemd", ENV{SYSTEMD_WANTS}+="fabricctl-host.service"
`

const tmpfiles = `# Written by fabricctl host unit.
d /var/lib/fabricctl 0700 root root -
d /run/fabricctl 0755 root root -
`

// memlock lifts the limit for a service: those of /etc/security are for logins.
func memlock(f *File) string {
	return fmt.Sprintf("# Written by fabricctl host unit for %s of %s: RDMA locks the memory that it reads and writes.\n[Service]\nLimitMEMLOCK=infinity\n",
		plain(f.Device.Name), plain(f.Device.Fabric))
}

// escapeUnit is a name as a part of a unit's name (systemd-escape): what is not a letter, a digit, "_", ":" or "." is written
// as a number, and a dot too where it comes first.
func escapeUnit(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '/':
			b.WriteByte('-')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == ':', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
