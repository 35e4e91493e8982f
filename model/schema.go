package model

import (
	"slices"
	"sync"
)

// field describes one place of a document: which node kinds it takes, and what may stand below. A place may take
// several kinds (xoff is a size or a mapping). Keys of mappings, elements of lists and leaves are all fields.
type field struct {
	key      string
	doc      string
	example  string   // something to paste, where that says more than the kind of value; flow style
	apart    []string // more to paste, in order: elements of one list have each another value
	aka      []string // what people call the key elsewhere
	required bool
	scalar   *scalar // takes a scalar
	kids     []field // takes a mapping with these keys
	dict     *field  // takes a mapping with any name as key; its key says what the names are
	list     *field  // takes a list of these
	named    bool    // the list's elements are mappings, merged by their name
}

func (f *field) kid(key string) *field {
	for i := range f.kids { // a field is large: not by value
		if f.kids[i].key == key {
			return &f.kids[i]
		}
	}
	return nil
}

func (f field) must() field          { f.required = true; return f }
func (f field) like(ex string) field { f.example = ex; return f }

// unlike gives the values to choose from for a key that no two elements of a list have alike.
func (f field) unlike(exs ...string) field { f.apart = exs; return f }

// called says what people call the key elsewhere.
func (f field) called(aka ...string) field { f.aka = aka; return f }

// usual is the key below f that people call word elsewhere, or "".
func (f *field) usual(word string) string {
	for i := range f.kids {
		if slices.ContainsFunc(f.kids[i].aka, func(a string) bool { return fold(a) == fold(word) }) {
			return f.kids[i].key
		}
	}
	return ""
}

func leaf(key string, s *scalar, doc string) field { return field{key: key, scalar: s, doc: doc} }

func group(key, doc string, kids ...field) field { return field{key: key, doc: doc, kids: kids} }

// header is what every document starts with.
func header(nameDoc string) []field {
	return []field{
		leaf("apiVersion", enumScalar(APIVersion), "version of the document's format: "+APIVersion).must().like(APIVersion),
		leaf("kind", enumScalar(kinds()...), "what the document is about: Fabric (what all agree on), Inventory (which box is which), Profile (hardware)").must(),
		group("metadata", "what the document is called", leaf("name", textScalar("name"), nameDoc)).like("{name: NAME}"),
	}
}

// exampleClasses are the two classes that every model has.
const exampleClasses = "[{name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}, {name: default, dscp: rest, priority: 0}]"

func kinds() []string { return []string{"Fabric", "Inventory", "Profile"} }

// schemaOf is the schema of a document kind.
func schemaOf(kind string) *field {
	switch kind {
	case "Inventory":
		return inventorySchema()
	case "Profile":
		return profileSchema()
	}
	return fabricSchema()
}

// The schemas of the kinds of documents, each made once, when it is first asked for: nobody changes them. They are no sync.OnceValue, since
// the linker would then keep what makes them in the program for hosts, which reads no document.
var (
	schemaOnce [3]sync.Once
	schemas    [3]*field
)

func schemaAt(i int, build func() *field) *field {
	schemaOnce[i].Do(func() { schemas[i] = build() })
	return schemas[i]
}

func fabricSchema() *field    { return schemaAt(0, newFabricSchema) }
func inventorySchema() *field { return schemaAt(1, newInventorySchema) }
func profileSchema() *field   { return schemaAt(2, newProfileSchema) }

func newFabricSchema() *field {
	kids := header("")
	kids[2] = group("metadata", "which fabric this is", leaf("name", nameScalar(), "name of the fabric; on devices, the names of its profiles and maps begin with fctl- and this name").must().like("pod1")).must().like("{name: pod1}")
	kids = append(
		kids, topologySchema(),
		mtuSchema(true).must(),
		field{key: "classes", doc: "traffic classes: which packets share a priority, a queue and its thresholds", required: true, named: true, list: classSchema(true), example: exampleClasses},
		watchdogSchema(),
		group(
			"manage", "what fabricctl may write; what nobody lists is observe: compared and shown, never written",
			manageSchema("switches", "what may be written on switches", areasOf(false)), manageSchema("hosts", "what may be written on hosts", areasOf(true)),
			leaf("adopt", boolScalar(), "true: profiles and maps of other names are edited in place when only ports of the model use them, as with --adopt"),
		).like("{switches: own, hosts: own}"),
		group(
			"nccl", "what the hosts' /etc/nccl.conf says",
			leaf("class", nameScalar(), "class that NCCL traffic uses; default: that of the application nccl, or the only lossless class"),
			leaf("timeout", intScalar("exponent", 1, 31), "NCCL_IB_TIMEOUT, an exponent n: a lost packet is noticed after 4.096us times 2 to the n (20 is 4.3s)"),
			leaf("retry_count", intScalar("count", 1, 7), "NCCL_IB_RETRY_CNT: how often a send is repeated before the job fails"),
			leaf("version", ncclVersionScalar(), "oldest NCCL in use; before 2.21 the GID index of the host's address is written, from 2.21 on NCCL finds it; default 2.21"),
			leaf("qps_per_connection", intScalar("number", 1, 128), "NCCL_IB_QPS_PER_CONNECTION: queue pairs of each connection, over which ECMP spreads it"),
			field{key: "socket_ifname", example: "eno1", doc: "NCCL_SOCKET_IFNAME: interfaces of what is not RDMA, one or a list; exactly these, not all that begin so", scalar: ifaceScalar(), list: &field{key: "interface", scalar: ifaceScalar()}},
			leaf("address_family", enumScalar("ipv4", "ipv6").meant("afinet", "ipv4", "afinet6", "ipv6", "inet", "ipv4", "inet6", "ipv6", "4", "ipv4", "6", "ipv6"), "NCCL_IB_ADDR_FAMILY: of the GIDs that NCCL uses; default: that of the NICs' addresses in the inventory, else ipv4"),
			leaf("hca", enumScalar("auto", "off"), "NCCL_IB_HCA: auto, the RDMA devices of the host's ports in the order of rails (the default); off, not written"),
			leaf("cross_nic", intScalar("number", 0, 2), "NCCL_CROSS_NIC: whether rings may change rails: 0 never, which suits rails, 1 they may, 2 NCCL decides"),
		).like("{class: training}"),
		hostsSchema(),
		field{key: "applications", doc: "the marking table: which application sends in which class", named: true, example: "[{name: nccl, business: training, class: training}]", list: &field{key: "application", kids: []field{
			leaf("name", nameScalar(), "name of the application, such as nccl or nvme-of").must().like("nccl"),
			leaf("business", textScalar("business"), "whose traffic it is; different ones do not share a lossless class"),
			leaf("class", nameScalar(), "class that it sends in").must().like("training"),
			leaf("dscp", codeScalar(), "code point (DSCP, not the ToS byte) that it marks; default: the first one of its class"),
		}}},
		field{key: "overrides", doc: "what differs for a role such as leaf, below it for a device, and below that for a port; the most specific wins", dict: roleOverride(), example: "{leaf: {devices: {leaf2: {state: maintenance}}}}"},
		field{key: "acknowledge", doc: "warnings that are meant to be so, each with its reason; errors cannot be acknowledged", example: "[{rule: oversubscription, reason: \"3:1 is meant here\"}]", list: &field{key: "acknowledgement", kids: []field{
			leaf("rule", textScalar("rule id"), "id of the rule, as the warning shows it").must().like("oversubscription"),
			leaf("reason", textScalar("reason"), "why the finding is accepted").must().like("\"why this is meant to be so\""),
			leaf("role", nameScalar(), "only findings about devices of this role alone"),
			leaf("device", nameScalar(), "only findings about this device alone"),
		}}},
	)
	return &field{key: "Fabric", kids: kids}
}

func topologySchema() field {
	link := func(key, doc string, more ...field) field {
		return group(
			key, doc, append(
				more, leaf("speed", rateScalar(), "speed of each link, in bits per second").called("rate", "bandwidth", "bps"),
				leaf("cable", lengthScalar(), "length of the cable, in metres; a longer one keeps more bytes in flight when pause is sent").called("length", "distance"),
			)...,
		).like("{speed: 400Gbps, cable: 5m}")
	}
	tier := func(key, doc string, more ...field) field {
		return group(
			key, doc, append(
				[]field{
					leaf("count", intScalar("number", 0, maxDevices), "how many devices").must().like("2"),
					leaf("platform", textScalar("platform"), "operating system and model, such as sonic/sn5600; fabricctl profiles lists them").must().like("sonic/sn5600"),
				}, more...,
			)...,
		).like("{count: 2, platform: sonic/sn5600}")
	}
	carries := field{key: "carries", doc: "what runs over these links: rdma, storage, management", list: &field{key: "kind of traffic", scalar: enumScalar(CarriesNames()...)}}
	servers := func(key, doc string) field {
		return group(
			key, doc,
			leaf("per_leaf", intScalar("number", 0, maxDevices), "hosts on each leaf").must().like("8").called("count", "number"),
			leaf("rails", intScalar("number", 1, 64), "rails per host; the NIC of rail i goes to leaf i of a group of that many leaves; default 1"),
			leaf("bond", intScalar("number", 1, 8), "NIC ports per bond, each to a leaf of its own; default 1, no bond"),
			leaf("platform", textScalar("platform"), "operating system and kind of host; default linux/generic"),
			leaf("nic", textScalar("NIC model"), "model of the NICs, such as connectx-7; fabricctl profiles lists them"),
			carries,
			field{key: "netdevs", doc: "interface names of NIC 1, 2, … where they are the same on every host", example: "[rdma0]", list: &field{key: "netdev", scalar: ifaceScalar()}},
			field{key: "rdma", doc: "names of the RDMA devices of NIC 1, 2, … where they are the same on every host", example: "[mlx5_0]", list: &field{key: "RDMA device", scalar: rdmaScalar()}},
		).like("{per_leaf: 8}")
	}
	parallel := leaf("parallel", intScalar("number", 1, 64), "links between the same two devices; default 1")
	split := splitScalar
	breakout := leaf("breakout", split(), "into how many links a physical port of a switch is split, at both ends; default 1, not split")
	breakout.kids = []field{
		leaf("upper", split(), "into how many links a port of the upper switch is split"),
		leaf("lower", split(), "into how many links a port of the lower switch is split"),
	}
	hostBreakout := leaf("breakout", split(), "into how many links a physical port of the leaf is split; default 1, not split")
	listed := link(
		"link", "", leaf("a", portRefScalar(), "one end, device:port").must().like("leaf1:uplink-1").called("from", "src", "source", "local"),
		leaf("b", portRefScalar(), "the other end, device:port").must().like("spine1:downlink-1").called("to", "dst", "destination", "peer", "remote"),
		leaf("role", enumScalar(portRoles()...), "role of its ports on switches, such as peer-link or border"),
		leaf("breakout", split(), "how many links share the physical port on a switch; default 1"),
		carries,
	)
	links := group(
		"links", "links between tiers, and single links",
		link("leaf_spine", "every link between a leaf and a spine", parallel, breakout).called("spine_leaf"),
		link("spine_super", "every link between a spine and a super-spine", parallel, breakout).called("super_spine", "super_spines", "spine_super_spine"),
		link("host_leaf", "every link between a host and a leaf", parallel, hostBreakout).called("leaf_host", "hosts", "leaf_hosts"),
		link("storage_leaf", "every link between a storage host and a leaf; default as host_leaf", parallel, hostBreakout).called("leaf_storage", "storage"),
	)
	links.kids = append(links.kids, field{
		key: "list", doc: "single links: new ones, or what is different about a generated one", list: &listed,
		example: "[{a: leaf1:peer-1, b: leaf2:peer-1, speed: 400Gbps}]",
	})
	return group(
		"topology", "devices and links: generated by counts, listed, or both",
		leaf("pods", intScalar("number", 1, 1000), "how often spines, leaves and hosts are repeated, as pod1-leaf1 and so on"),
		leaf("planes", intScalar("number", 1, 16), "separate leaf-spine fabrics over the same hosts, as plane1-leaf1 and so on; a host has a NIC port in each"),
		tier(
			"super_spines", "the tier above the spines; joins the pods",
			leaf("groups", intScalar("number", 1, 256), "parts of the super-spines; spine i of a pod is linked to part i alone; default 1, all to all"),
		),
		tier("spines", "the upper tier, of each pod and plane"), tier("leaves", "the lower tier, of each pod and plane"),
		servers("hosts", "hosts below the leaves"), servers("storage", "storage hosts below the leaves; they carry storage unless told otherwise"),
		links,
		field{key: "devices", doc: "devices listed one by one: new ones, or what is different about a generated one", named: true, example: "[{name: leaf1, role: leaf}]", list: &field{key: "device", kids: []field{
			leaf("name", nameScalar(), "name of the device").must().like("leaf1"),
			leaf("role", nameScalar(), "role, which overrides and acknowledgements name: spine, leaf, host, storage or a word of your own"),
			leaf("platform", textScalar("platform"), "operating system and model, such as sonic/sn5600; linux/… makes it a host"),
			leaf("group", nameScalar(), "redundancy group: its members stand in for each other; default: derived from the links"),
			{key: "ports", doc: "ports that have no link, need an interface name here, or differ from what is generated", named: true, example: "[{name: out-1, role: border}]", list: &field{key: "port", kids: []field{
				leaf("name", nameScalar(), "name of the port").must().like("out-1"),
				leaf("iface", ifaceScalar(), "the device's own name of the port, such as Ethernet1/1; the inventory wins"),
				leaf("role", enumScalar(portRoles()...), "what is at the other end; at a border lossless ends, and an unused port is left alone, whoever manages the device"),
				leaf("speed", rateScalar(), "speed of the port when no link gives it"),
				leaf("bond", nameScalar(), "bond that a host's port is a member of"),
				leaf("rail", intScalar("rail", 0, 63), "rail of a host's port, from 0"),
				leaf("nic", textScalar("NIC model"), "NIC model of a host's port"),
				leaf("rdma", rdmaScalar(), "name of the RDMA device of a host's port, such as mlx5_0"),
				carries,
			}}},
		}}},
		leaf("routing", enumScalar(RoutingNames()...), "what routing allows, for finding deadlocks: up-down (the default): never down and up again, which eBGP with one AS number per tier ensures; shortest-path: whatever is shortest, also while links are down; listed: only what routes lists"),
		field{key: "routes", doc: "ways that packets of a lossless class take, besides those that follow from the links", list: &field{key: "route", kids: []field{
			{key: "path", example: "[host1, leaf1, spine1, leaf2, host5]", doc: "the devices in order, from host to host; device:port where only that port towards the next one is meant", required: true, list: &field{key: "device", scalar: stopScalar()}},
			{key: "class", example: "training", doc: "class of the packets; as a list, one for each link, where switches on the way move them to another", required: true, scalar: nameScalar(), list: &field{key: "class", scalar: nameScalar()}},
		}}},
	).must().like("{spines: {count: 2, platform: sonic/sn5600}, leaves: {count: 4, platform: sonic/sn5600}, links: {leaf_spine: {speed: 400Gbps}}}")
}

// portRoles are the roles that a listed port may have.
func portRoles() []string {
	return []string{"fabric", "host", "storage", "border", "peer-link", "nic", "unused"}
}

func mtuSchema(withRoCE bool) field {
	f := group(
		"mtu", "frame sizes in bytes; a switch never carries less than its hosts send",
		leaf("fabric", bytesScalar(), "MTU of switch ports in bytes: the Ethernet frame with its header, without FCS"), leaf("host", bytesScalar(), "MTU of the hosts' interfaces in bytes: the IP packet, without the Ethernet header"),
	).like("{fabric: 9216B, host: 9000B}")
	if withRoCE {
		f.kids = append(f.kids, leaf("roce", bytesScalar(), "RDMA payload of a packet in bytes: 256B to 4096B; the hosts' MTU carries it and its headers"))
	}
	return f
}

// classSchema is a class, whole or as an override may change it.
func classSchema(whole bool) *field {
	name := leaf("name", nameScalar(), "name of the class").must().like("training")
	ecn := group(
		"ecn", "ECN: how a growing queue marks packets, so that senders slow down before pause is needed",
		leaf("kmin", bytesScalar(), "queue length in bytes at which marking begins; lower reacts earlier and costs throughput").called("min", "minimum", "min_threshold", "minimum_threshold"),
		leaf("kmax", bytesScalar(), "queue length in bytes at which marking reaches pmax; above it every packet is marked").called("max", "maximum", "max_threshold", "maximum_threshold"),
		leaf("pmax", shareScalar(), "share of packets that are marked at kmax").called("probability", "drop_probability", "mark_probability", "max_mark_probability"),
	).like("{kmin: 800KB, kmax: 3200KB, pmax: 20%}")
	bandwidth := leaf("bandwidth", wholeShareScalar(), "share of a port's bandwidth among the weighted classes when all want to send; together 100%")
	weight := leaf("weight", intScalar("weight", 1, 100), "in place of bandwidth: weight relative to the other classes', as switches count; the weights need not add up to 100")
	xoff := group(
		"xoff", "buffer at which pause is sent: a size in bytes, a dynamic threshold (alpha), or a share of something named",
		leaf("alpha", ratioScalar(), "dynamic threshold: this fraction of the buffer that is still free"),
		leaf("share", shareScalar(), "this share of what of names, in percent"),
		leaf("of", baseScalar(), "what the share is of: the shared pool, or the static buffer of a port"),
	)
	xoff.scalar, xoff.example = pauseScalar(), "{alpha: 1/2}"
	pfc := group(
		"pfc", "when a lossless class pauses, and the buffer it keeps for that", xoff,
		leaf("headroom", autoBytesScalar(), "buffer in bytes for what still arrives after pause was sent; auto: from speed, cable and MTU"),
		leaf("xon", autoBytesScalar(), "buffer in bytes below which sending may go on; auto: from the platform's table, or from xoff"),
		leaf("xon_offset", bytesScalar(), "or sending goes on when so many bytes less than xoff are held; default: with xon"),
		leaf("reserved", bytesScalar(), "buffer in bytes that the class has on each port to itself, as the switch counts it; default: with headroom"),
	).like("{xoff: {alpha: 1/2}, headroom: auto, xon: auto}")
	if !whole {
		return &field{key: "class", kids: []field{name, ecn, pfc, bandwidth, weight}}
	}
	ecn.doc += "; off: PFC alone, on purpose"
	ecn.scalar = enumScalar("off")
	return &field{key: "class", kids: []field{
		name,
		leaf("role", enumScalar("cnp"), "cnp: the class of congestion notification packets (CNP), by which receivers slow senders down; exactly one class has it"),
		{key: "dscp", example: "[26]", doc: "code points (DSCP, 0 to 63, not the ToS byte) of its packets, as a list; or rest: all that no other class names", required: true, scalar: restScalar(), list: &field{key: "DSCP", scalar: dscpScalar()}},
		leaf("priority", intScalar("priority", 0, 7), "priority that pause names; also the traffic class and the queue on every device").must().like("3").unlike("3", "4", "2", "5", "1", "6", "7", "0"),
		leaf("lossless", boolScalar(), "true: PFC pauses its priority instead of dropping; default false").called("no_drop", "pause"),
		ecn,
		pfc,
		bandwidth,
		weight,
		leaf("scheduling", enumScalar("strict", "weighted", "none"), "strict: before all weighted classes; weighted: by bandwidth (the default); none: the queue has no scheduler of its own, and what the device does by itself holds"),
		leaf("fan_in", intScalar("number", 1, 4096), "how many ports send to one at least when it is congested, for the rules about ECN; default 2"),
		leaf("flows", intScalar("number", 1, 1<<20), "how many flows each of these ports carries, for the rules about ECN; default 16"),
		leaf("drop_incomplete_arp", boolScalar(), "true: packets to hosts whose MAC address is not known are dropped, not flooded, which on a lossless class can lock the fabric"),
	}}
}

func watchdogSchema() field {
	return group(
		"pfc_watchdog", "what to do with a queue that pause keeps stuck",
		leaf("detect", durationScalar(), "how long a queue may be paused without a packet leaving before it counts as stuck, such as 200ms").called("detection_time", "detection"),
		leaf("restore", durationScalar(), "how long a stuck queue must see no pause before it is used as before, such as 400ms").called("restoration_time", "restoration", "recovery_time"),
		leaf("poll", durationScalar(), "how often queues are looked at, such as 100ms; best not above half of detect").called("interval", "poll_interval", "polling_interval"),
		leaf("action", enumScalar("drop", "forward", "alert"), "what happens to a stuck queue: drop its packets, forward them in spite of pause, or only report"),
	).like("{detect: 200ms, restore: 400ms, poll: 100ms, action: drop}")
}

func modeScalar() *scalar { return enumScalar("own", "observe", "ignore") }

// areaMeaning is what owning an area means.
func areaMeaning(area string) string {
	switch area {
	case "mtu":
		return "the MTU of ports"
	case "maps":
		return "trust, and the maps from code points to traffic classes and queues"
	case "pfc":
		return "which priorities are lossless"
	case "ecn":
		return "marking ramps, and which queues mark"
	case "buffer":
		return "xoff, xon and headroom"
	case "scheduler":
		return "strict queues and the shares of the others"
	case "watchdog":
		return "the PFC watchdog"
	case "host-nccl":
		return "the hosts' /etc/nccl.conf"
	case "host-roce":
		return "RoCE version and ToS byte of RDMA connections, and what the driver forces on them"
	case "host-cc":
		return "congestion control of the hosts' NICs, and the class of the CNPs they send"
	case "host-system":
		return "PCIe read requests, interrupts, rings, FEC and locked memory of hosts"
	}
	return ""
}

func manageSchema(key, doc string, areas []string) field {
	f := field{key: key, doc: doc + ": own, observe or ignore, for all areas or by area", scalar: modeScalar()}
	for _, a := range areas {
		f.kids = append(f.kids, leaf(a, modeScalar(), areaMeaning(a)))
	}
	return f
}

// overrideKids are the values that an override of any level may change.
func overrideKids() []field {
	return []field{
		leaf("state", enumScalar("active", "planned", "maintenance", "absent"), "active: written and must answer; maintenance: only looked at; planned, absent: not contacted"),
		manageSchema("manage", "what may be written here", AreaNames()),
		mtuSchema(false),
		{key: "classes", doc: "what differs in classes here, each by its name", named: true, list: classSchema(false)},
		watchdogSchema(),
		hostsSchema(),
	}
}

func roleOverride() *field {
	port := field{key: "PORT", kids: overrideKids()}
	device := field{key: "DEVICE", kids: append(overrideKids(), field{key: "ports", doc: "overrides by port", dict: &port})}
	return &field{key: "ROLE", kids: append(overrideKids(), field{key: "devices", doc: "overrides by device", dict: &device})}
}

// transportKids are the ways to reach a device.
func transportKids() []field {
	return []field{
		group(
			"gnmi", "how to reach a device over gNMI",
			leaf("port", intScalar("port", 1, 65535), "TCP port; default 8080, SONiC's own"),
			group(
				"tls", "how the device and we prove who we are; without a ca, the system's authorities are trusted",
				leaf("ca", referenceScalar(false), "certificate of the authority that signed the device's"),
				leaf("cert", referenceScalar(false), "our own certificate, where the device asks for one"),
				leaf("key", referenceScalar(true), "private key of our certificate"),
				leaf("server_name", addressScalar(), "name in the device's certificate; default: its address"),
				leaf("insecure", boolScalar(), "true: anybody may answer as the device; warned about unless lab is true"),
			).like("{ca: file:ca.pem}"),
			leaf("plaintext", boolScalar(), "true: no TLS at all, the password in the clear; warned about unless lab is true"),
			leaf("username", userScalar(), "account on the device, as text or as a reference"),
			leaf("password", referenceScalar(true), "where the password is; never the password itself"),
			viaField("jump hosts, in order: host, host:port or user@host each; entered with the device's ssh username, key and known_hosts; [] for none"),
		).like("{tls: {ca: file:ca.pem}, username: env:FABRIC_USER, password: env:FABRIC_PASSWORD}"),
		group(
			"ssh", "how to reach a device over SSH",
			leaf("port", intScalar("port", 1, 65535), "TCP port; default 22"),
			leaf("username", userScalar(), "account on the device, as text or as a reference"),
			leaf("password", referenceScalar(true), "where the password is; never the password itself"),
			leaf("enable_password", referenceScalar(true), "where the password is that the device asks for at enable"),
			leaf("key", referenceScalar(true), "where the private key is; default: the ssh-agent, when there is one"),
			leaf("known_hosts", referenceScalar(false), "file with the host keys of devices; default ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts"),
			viaField("jump hosts, in order: host, host:port or user@host each; [] for none"),
			leaf("insecure", boolScalar(), "true: any host key is taken; warned about unless lab is true"),
		).like("{username: env:FABRIC_USER, known_hosts: file:known_hosts}"),
		leaf("lab", boolScalar(), "true: an emulated or disposable device, on which nothing can break"),
		leaf("management", enumScalar(OutOfBand, InBand), "whether our way to the device takes the ports that the model configures; default out-of-band"),
	}
}

func newInventorySchema() *field {
	device := append(
		transportKids(),
		leaf("address", addressScalar(), "where the device is managed, without a port").called("ip", "host", "mgmt", "mgmt_ip", "management_ip", "ansible_host"),
		leaf("platform", textScalar("platform"), "platform name, such as sonic/sn5600, where no topology gives it; must agree with one that does"),
		leaf("serial", textScalar("serial number"), "expected serial number; a different one refuses the write").called("sn", "serial_number"),
		leaf("hostname", hostnameScalar(), "expected host name; a different one refuses the write"),
		leaf("management_port", nameScalar(), "port of the model that our way in takes, when management is in-band"),
		field{key: "ports", doc: "the device's own interface names, by the port's name in the model, such as downlink-1: Ethernet0", example: "{downlink-1: Ethernet0}", dict: &field{key: "PORT", scalar: ifaceScalar()}},
		field{key: "nics", doc: "NICs of a host: NIC 1 first", example: "[{netdev: rdma0}]", list: &field{key: "NIC", kids: []field{
			leaf("netdev", ifaceScalar(), "interface name on the host, such as rdma0").called("name", "interface", "iface", "dev"),
			leaf("pci", pciScalar(), "PCI address, when the interface name is not fixed"),
			leaf("rdma", rdmaScalar(), "name of its RDMA device, such as mlx5_0, where no host was read yet"),
			leaf("ip", prefixScalar(), "address on the fabric, with its prefix length; it tells which GID is the right one"),
			leaf("rail", intScalar("rail", 0, 63), "rail, from 0; must agree with the topology"),
			leaf("model", textScalar("NIC model"), "model of the NIC, such as connectx-7; fabricctl profiles lists them"),
			{key: "carries", doc: "what runs over it: rdma, storage, management", list: &field{key: "kind of traffic", scalar: enumScalar(CarriesNames()...)}},
			leaf("port", portRefScalar(), "switch port at the other end; must agree with the topology"),
		}}},
	)
	kids := append(
		header("name of the inventory, for people"),
		group("defaults", "how devices are reached that say nothing else", transportKids()...),
		field{key: "groups", doc: "what some devices share; wins over defaults, and a device wins over its groups", dict: &field{key: "GROUP", kids: append(
			transportKids(),
			field{key: "roles", doc: "roles whose devices are in the group", list: &field{key: "role", scalar: nameScalar()}},
			field{key: "devices", doc: "devices that are in the group, by name", list: &field{key: "device", scalar: nameScalar()}},
		)}},
		field{key: "devices", doc: "which box is which, by the device's name in the topology", example: "{leaf1: {address: 10.0.0.11}}", dict: &field{key: "DEVICE", kids: device}},
	)
	return &field{key: "Inventory", kids: kids}
}
