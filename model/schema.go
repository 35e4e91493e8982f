package model

// field describes one place of a document: which node kinds it takes, and what may stand below. A place may take
// several kinds (xoff is a size or a mapping). Keys of mappings, elements of lists and leaves are all fields.
type field struct {
	key      string
	doc      string
	required bool
	later    bool    // read, but nothing is rendered from it yet
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

func (f field) must() field  { f.required = true; return f }
func (f field) inert() field { f.later = true; return f }

func leaf(key string, s *scalar, doc string) field { return field{key: key, scalar: s, doc: doc} }

func group(key, doc string, kids ...field) field { return field{key: key, doc: doc, kids: kids} }

// header is what every document starts with.
func header(nameDoc string) []field {
	return []field{
		leaf("apiVersion", enumScalar(APIVersion), "version of the document's format").must(),
		leaf("kind", enumScalar(kinds()...), "what the document is about").must(),
		group("metadata", "identity", leaf("name", textScalar("name"), nameDoc)),
	}
}

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

func fabricSchema() *field {
	kids := header("")
	kids[2] = group("metadata", "identity", leaf("name", nameScalar(), "name of the fabric; part of the names of shared objects").must()).must()
	kids = append(
		kids, topologySchema(),
		mtuSchema(true).must(),
		field{key: "classes", doc: "traffic classes; a class's priority is also its traffic class and queue", required: true, named: true, list: classSchema(true)},
		watchdogSchema(),
		group(
			"manage", "who owns what; what nobody lists is observe",
			manageSchema("switches", "all switches"), manageSchema("hosts", "all hosts"),
			leaf("adopt", boolScalar(), "whether live objects bound by modelled ports alone may be taken over"),
		),
		group(
			"nccl", "the hosts' NCCL file",
			leaf("class", nameScalar(), "class that NCCL traffic uses; default: that of the application nccl, or the only lossless class"),
			leaf("timeout", intScalar("exponent", 1, 31), "NCCL_IB_TIMEOUT: 4.096 us * 2^n"),
			leaf("retry_count", intScalar("count", 1, 7), "NCCL_IB_RETRY_CNT"),
		),
		field{key: "applications", doc: "the marking table: which application sends in which class", named: true, list: &field{key: "application", kids: []field{
			leaf("name", nameScalar(), "name of the application, such as nccl or nvme-of").must(),
			leaf("business", textScalar("business"), "whose traffic it is; different ones do not share a lossless class"),
			leaf("class", nameScalar(), "class that it sends in").must(),
			leaf("dscp", codeScalar(), "code point that it marks; default: the first one of its class"),
		}}},
		field{key: "overrides", doc: "changes by role, device and port; the most specific wins", dict: roleOverride()},
		field{key: "acknowledge", doc: "warnings that are meant to be so", list: &field{key: "acknowledgement", kids: []field{
			leaf("rule", textScalar("rule id"), "rule id").must(),
			leaf("reason", textScalar("reason"), "why the finding is accepted").must(),
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
				more, leaf("speed", rateScalar(), "speed of the link, bits per second"),
				leaf("cable", lengthScalar(), "length of the cable").inert(),
			)...,
		)
	}
	tier := func(key, doc string, more ...field) field {
		return group(
			key, doc, append(
				[]field{
					leaf("count", intScalar("number", 0, maxDevices), "how many").must(),
					leaf("platform", textScalar("platform"), "platform name, such as sonic/sn5600").must(),
				}, more...,
			)...,
		)
	}
	carries := field{key: "carries", doc: "what runs over these links: rdma, storage, management", list: &field{key: "kind of traffic", scalar: enumScalar(CarriesNames()...)}}
	servers := func(key, doc string) field {
		return group(
			key, doc,
			leaf("per_leaf", intScalar("number", 0, maxDevices), "hosts on each leaf").must(),
			leaf("rails", intScalar("number", 1, 64), "rails per host; the NIC of rail i goes to leaf i of a group of that many leaves"),
			leaf("bond", intScalar("number", 1, 8), "NIC ports per bond, each to a leaf of its own; default 1, no bond"),
			leaf("platform", textScalar("platform"), "platform name; default linux/generic"),
			leaf("nic", textScalar("NIC model"), "NIC model"),
			carries,
			field{key: "netdevs", doc: "interface names of NIC 1, 2, … where they are the same on every host", list: &field{key: "netdev", scalar: ifaceScalar()}},
		)
	}
	parallel := leaf("parallel", intScalar("number", 1, 64), "links between the same two devices; default 1")
	split := func() *scalar { return intScalar("number", 1, 16) }
	breakout := leaf("breakout", split(), "into how many links a physical port of a switch is split, at both ends")
	breakout.kids = []field{
		leaf("upper", split(), "into how many links a port of the upper switch is split"),
		leaf("lower", split(), "into how many links a port of the lower switch is split"),
	}
	hostBreakout := leaf("breakout", split(), "into how many links a physical port of the leaf is split")
	listed := link(
		"link", "", leaf("a", portRefScalar(), "one end, device:port").must(),
		leaf("b", portRefScalar(), "the other end, device:port").must(),
		leaf("role", enumScalar(portRoles()...), "role of its ports on switches, such as peer-link or border"),
		leaf("breakout", split(), "how many links share the physical port on a switch"),
		carries,
	)
	links := group(
		"links", "links between tiers, and single links",
		link("leaf_spine", "every link between a leaf and a spine", parallel, breakout),
		link("spine_super", "every link between a spine and a super-spine", parallel, breakout),
		link("host_leaf", "every link between a host and a leaf", parallel, hostBreakout),
		link("storage_leaf", "every link between a storage host and a leaf; default as host_leaf", parallel, hostBreakout),
	)
	links.kids = append(links.kids, field{key: "list", doc: "single links: new ones, or what is different about a generated one", list: &listed})
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
		field{key: "devices", doc: "devices listed one by one: new ones, or what is different about a generated one", named: true, list: &field{key: "device", kids: []field{
			leaf("name", nameScalar(), "name of the device").must(),
			leaf("role", nameScalar(), "role, such as spine, leaf, host, storage"),
			leaf("platform", textScalar("platform"), "platform name; linux/… makes it a host"),
			leaf("group", nameScalar(), "redundancy group: its members are never changed at the same time; default: derived from the links"),
			{key: "ports", doc: "ports that have no link, need an interface name here, or differ from what is generated", named: true, list: &field{key: "port", kids: []field{
				leaf("name", nameScalar(), "name of the port").must(),
				leaf("iface", ifaceScalar(), "the device's name of the port; the inventory wins"),
				leaf("role", enumScalar(portRoles()...), "what is at the other end; at a border lossless ends, and an unused port is left alone, whoever manages the device"),
				leaf("speed", rateScalar(), "speed of the port when no link gives it"),
				leaf("bond", nameScalar(), "bond that a host's port is a member of"),
				leaf("rail", intScalar("rail", 0, 63), "rail of a host's port, from 0"),
				leaf("nic", textScalar("NIC model"), "NIC model of a host's port"),
				carries,
			}}},
		}}},
	).must()
}

// portRoles are the roles that a listed port may have.
func portRoles() []string {
	return []string{"fabric", "host", "storage", "border", "peer-link", "nic", "unused"}
}

func mtuSchema(withRoCE bool) field {
	f := group(
		"mtu", "frame sizes",
		leaf("fabric", bytesScalar(), "switch port: L2 frame without FCS"), leaf("host", bytesScalar(), "host: netdev MTU"),
	)
	if withRoCE {
		f.kids = append(f.kids, leaf("roce", bytesScalar(), "RDMA payload that the hosts' MTU has to carry"))
	}
	return f
}

// classSchema is a class, whole or as an override may change it.
func classSchema(whole bool) *field {
	name := leaf("name", nameScalar(), "name of the class").must()
	ecn := group(
		"ecn", "marking ramp at the egress queue",
		leaf("kmin", bytesScalar(), "queue length where marking begins"),
		leaf("kmax", bytesScalar(), "queue length where marking reaches pmax"),
		leaf("pmax", shareScalar(), "marking probability at kmax"),
	)
	bandwidth := leaf("bandwidth", wholeShareScalar(), "share among the weighted classes")
	weight := leaf("weight", intScalar("weight", 1, 100), "in place of bandwidth: weight relative to the other classes', as switches count; the weights need not add up to 100")
	if !whole {
		return &field{key: "class", kids: []field{name, ecn, bandwidth, weight}}
	}
	ecn.doc += "; off when PFC alone is meant"
	ecn.scalar = enumScalar("off")
	xoff := group(
		"xoff", "where pause begins: a size, a dynamic threshold (alpha), or a share of something named",
		leaf("alpha", ratioScalar(), "dynamic threshold: share of the free pool").inert(),
		leaf("share", shareScalar(), "share of the base").inert(),
		leaf("of", textScalar("base"), "base of the share").inert(),
	)
	xoff.scalar, xoff.later = bytesScalar(), true
	return &field{key: "class", kids: []field{
		name,
		leaf("role", enumScalar("cnp"), "cnp: the class of congestion notification packets"),
		{key: "dscp", doc: "code points, or rest", required: true, scalar: enumScalar("rest"), list: &field{key: "DSCP", scalar: dscpScalar()}},
		leaf("priority", intScalar("priority", 0, 7), "priority, traffic class and queue").must(),
		leaf("lossless", boolScalar(), "whether PFC protects it"),
		ecn,
		group(
			"pfc", "buffers of a lossless class", xoff,
			leaf("headroom", autoBytesScalar(), "what is still in flight after the pause").inert(),
			leaf("xon", autoBytesScalar(), "where pause ends").inert(),
		),
		bandwidth,
		weight,
		leaf("scheduling", enumScalar("strict", "weighted", "none"), "default weighted; none: the queue has no scheduler of its own, and what the device does by itself holds"),
		leaf("fan_in", intScalar("number", 1, 4096), "smallest congesting fan-in, for the ECN rules").inert(),
		leaf("flows", intScalar("number", 1, 1<<20), "flows per fan-in, for the ECN rules").inert(),
		leaf("drop_incomplete_arp", boolScalar(), "feeds the rule arp-complete").inert(),
	}}
}

func watchdogSchema() field {
	return group(
		"pfc_watchdog", "what to do with a queue that pause keeps stuck",
		leaf("detect", durationScalar(), "how long a queue may be stuck"),
		leaf("restore", durationScalar(), "how long it must be free before it is used again"),
		leaf("poll", durationScalar(), "how often to look"),
		leaf("action", enumScalar("drop", "forward", "alert"), "what to do"),
	)
}

func modeScalar() *scalar { return enumScalar("own", "observe", "ignore") }

func manageSchema(key, doc string) field {
	f := field{key: key, doc: doc + ": own, observe or ignore, for all areas or by area", scalar: modeScalar()}
	for _, a := range AreaNames() {
		f.kids = append(f.kids, leaf(a, modeScalar(), "ownership of the area"))
	}
	return f
}

// overrideKids are the values that an override of any level may change.
func overrideKids() []field {
	return []field{
		leaf("state", enumScalar("active", "planned", "maintenance", "absent"), "lifecycle"),
		manageSchema("manage", "ownership here"),
		mtuSchema(false),
		{key: "classes", doc: "values of classes, by name", named: true, list: classSchema(false)},
		watchdogSchema(),
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
			"gnmi", "gNMI",
			leaf("port", intScalar("port", 1, 65535), "TCP port; default 8080, SONiC's own"),
			group(
				"tls", "TLS",
				leaf("ca", referenceScalar(false), "certificate authority, a reference"),
				leaf("cert", referenceScalar(false), "client certificate, a reference"),
				leaf("key", referenceScalar(true), "client key, a reference"),
				leaf("server_name", addressScalar(), "name in the device's certificate"),
				leaf("insecure", boolScalar(), "do not verify the device; warned about unless lab is true"),
			),
			leaf("plaintext", boolScalar(), "no TLS at all, the password in the clear; warned about unless lab is true"),
			leaf("username", userScalar(), "text or reference"),
			leaf("password", referenceScalar(true), "reference"),
			viaField("jump hosts, in order: host, host:port or user@host each; entered with the device's ssh username, key and known_hosts; [] for none"),
		),
		group(
			"ssh", "SSH",
			leaf("port", intScalar("port", 1, 65535), "TCP port; default 22"),
			leaf("username", userScalar(), "text or reference"),
			leaf("password", referenceScalar(true), "reference"),
			leaf("enable_password", referenceScalar(true), "what the device asks for at enable, a reference"),
			leaf("key", referenceScalar(true), "private key, a reference"),
			leaf("known_hosts", referenceScalar(false), "known host keys, a reference"),
			viaField("jump hosts, in order: host, host:port or user@host each; [] for none"),
			leaf("insecure", boolScalar(), "do not verify the host key; warned about unless lab is true"),
		),
		leaf("lab", boolScalar(), "an emulated or disposable device"),
		leaf("management", enumScalar(OutOfBand, InBand), "whether our way to the device takes the ports that the model configures; default out-of-band"),
	}
}

func inventorySchema() *field {
	device := append(
		transportKids(),
		leaf("address", addressScalar(), "management address"),
		leaf("platform", textScalar("platform"), "platform name, such as sonic/sn5600, where no topology gives it; must agree with one that does"),
		leaf("serial", textScalar("serial number"), "expected serial number; a different one refuses the write"),
		leaf("hostname", hostnameScalar(), "expected host name; a different one refuses the write"),
		leaf("management_port", nameScalar(), "port of the model that our way in takes, when management is in-band"),
		field{key: "ports", doc: "interface names by port", dict: &field{key: "PORT", scalar: ifaceScalar()}},
		field{key: "nics", doc: "NICs of a host, in order", list: &field{key: "NIC", kids: []field{
			leaf("netdev", ifaceScalar(), "interface name"),
			leaf("pci", pciScalar(), "PCI address, when the interface name is not fixed"),
			leaf("ip", prefixScalar(), "address on the fabric").inert(),
			leaf("rail", intScalar("rail", 0, 63), "rail, from 0; must agree with the topology"),
			leaf("model", textScalar("NIC model"), "NIC model"),
			{key: "carries", doc: "what runs over it: rdma, storage, management", list: &field{key: "kind of traffic", scalar: enumScalar(CarriesNames()...)}},
			leaf("port", portRefScalar(), "switch port at the other end; must agree with the topology"),
		}}},
	)
	kids := append(
		header("name of the inventory"),
		group("defaults", "what all devices share", transportKids()...),
		field{key: "groups", doc: "what some devices share; wins over defaults, and a device wins over its groups", dict: &field{key: "GROUP", kids: append(
			transportKids(),
			field{key: "roles", doc: "roles whose devices are in the group", list: &field{key: "role", scalar: nameScalar()}},
			field{key: "devices", doc: "devices that are in the group, by name", list: &field{key: "device", scalar: nameScalar()}},
		)}},
		field{key: "devices", doc: "devices by name", dict: &field{key: "DEVICE", kids: device}},
	)
	return &field{key: "Inventory", kids: kids}
}
