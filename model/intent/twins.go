package intent

import "slices"

// Twins reports whether a and b, of one Net, differ in nothing but who they are, where they stand, and what is at the
// other ends of their links: the leaves of a fabric mostly do. Where their values come from is not compared.
func Twins(a, b *Device) bool {
	switch {
	case a.Platform != b.Platform || a.Fabric != b.Fabric || a.Role != b.Role || a.Tier != b.Tier:
	case a.Host != b.Host || a.State != b.State || a.Manage != b.Manage || a.Pools != b.Pools:
	case a.Classes != b.Classes || a.CNP != b.CNP || a.RoCE != b.RoCE || a.NCCL != b.NCCL || a.Catalog != b.Catalog:
	case !slices.Equal(a.Policies, b.Policies) || len(a.Ports) != len(b.Ports):
	default:
		for i := range a.Ports {
			if a.Ports[i].alone() != b.Ports[i].alone() {
				return false
			}
		}
		return true
	}
	return false
}

// alone is p without what is at its other end, and without the lines that say so.
func (p *Port) alone() Port {
	q := *p
	q.Peer, q.PeerPort, q.IfaceAt, q.RoleAt, q.IPAt = "", "", nil, nil, nil
	return q
}
