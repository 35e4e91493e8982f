package model

// Rule is one kind of finding that Load, With or Acknowledge reports, or intent.Resolve on their behalf.
type Rule struct{ ID, What string }

// Rules lists them, sorted by id. The linter has rules of its own.
func Rules() []Rule {
	return []Rule{
		{"acknowledge", "an acknowledgement matched no warning: nothing is found, only an info, or an error"},
		{"bandwidth", "the shares of the classes do not fit together"},
		{"buffer-by-hand", "a class asks for a buffer that is not written on a platform"},
		{"cabling", "inventory and topology join a NIC to different ports"},
		{"capacity", "a switch has more links than front ports"},
		{"cnp-class", "there must be exactly one class with role: cnp"},
		{"conflict", "two documents of one layer, or two groups of one device, set one place to different values, or a layer renames the fabric"},
		{"document", "a document has no usable apiVersion or kind, or none is a Fabric"},
		{"duplicate", "two things that must differ are the same"},
		{"duplicate-key", "a mapping has a key twice"},
		{"insecure", "a device's identity is not verified, and it is not marked as lab"},
		{"islands", "no path of links joins some hosts to the others"},
		{"limits", "the input is larger than any model that fabricctl handles"},
		{"literal-secret", "a secret stands in the model itself"},
		{"load", "a file or directory cannot be read"},
		{"missing", "something required is not given"},
		{"name", "a name has characters that command lines and paths do not take"},
		{"nccl-class", "it is not clear which class NCCL uses"},
		{"nic", "a NIC's model is unknown"},
		{"nic-limits", "the classes ask for more than a NIC is known to do"},
		{"nic-roce", "a NIC that should carry RDMA speaks no RoCE v2"},
		{"no-speed", "a link has no speed, so what depends on it is not judged"},
		{"patch", "an edit does not fit the model"},
		{"platform", "a platform is unknown, of the wrong kind, or another one in the inventory than in the topology"},
		{"port-speed", "a link is faster than the hardware at one of its ends"},
		{"profile", "a Profile document describes no hardware that could exist"},
		{"redundancy", "the switches of a bond are in different redundancy groups"},
		{"rest-class", "there must be exactly one class with dscp: rest"},
		{"roce-class", "it is not clear which class the storage of hosts uses"},
		{"serial", "a serial number is given that cannot be read from the device, so nothing is compared with it"},
		{"splice", "a value that an experiment found cannot be written into the text of the model"},
		{"starting-values", "a lossless class has no thresholds, and starts with values that nobody chose"},
		{"topology", "counts, links or NICs do not fit together"},
		{"unbound-port", "a port has no interface name, so nothing is rendered for it"},
		{"units", "a quantity is not written as one"},
		{"unknown-key", "a key does not exist, or belongs elsewhere"},
		{"unknown-name", "a device, port, class or role does not exist"},
		{"value", "a value is not one that is possible there"},
		{"wrong-shape", "a mapping, list or single value stands where another is needed"},
		{"xoff-share", "a pause threshold is a share of something that the platform does not have"},
		{"yaml", "the text is not the YAML that fabricctl reads"},
	}
}
