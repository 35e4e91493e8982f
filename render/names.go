package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// objectName is the name of a shared object: prefix-fabric-part[-part…], of at most limit characters, each of which
// ok allows; others become "-". A name over the limit is cut and ends in 6 hex digits of the digest of the full name.
// Names say where an object is used (fabric, override site, class), never what it holds: an edited value edits the
// object and renames nothing.
//
//	objectName(32, ok, "pod1", "leaf.storage", "training")   fctl-pod1-leaf-storage-training
func objectName(limit int, ok func(rune) bool, fabric string, parts ...string) string {
	full := strings.Join(append([]string{Prefix, fabric}, parts...), "-")
	name := fabricPrefix(limit, ok, fabric) + allowed(ok, strings.Join(parts, "-"))
	return cut(name, limit, "-", full)
}

// rampSite is the site of the objects that hold a port's marking ramps: its override site, and the speed where a ramp
// follows from that.
func rampSite(p *intent.Port) string {
	if p.Ramps == 0 {
		return p.Site
	}
	return p.Site + "-" + speedWord(p.Speed)
}

// speedWord is a speed in names, "400G".
func speedWord(s units.BitRate) string { return strings.TrimSuffix(s.String(), "bps") }

// ownName reports whether name is one that objectName can give to an object of this fabric. Objects of another
// fabric, whatever its name, are not ours.
func ownName(limit int, ok func(rune) bool, fabric, name string) bool {
	return hasPrefix(name, fabricPrefix(limit, ok, fabric))
}

// hasPrefix is ownName for a prefix of fabricPrefix.
func hasPrefix(name, prefix string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	return found && rest != "" && rest[0] != '-'
}

// fabricPrefix is what every object of a fabric starts with. Hyphens of the fabric's name are doubled, so that the
// objects of "pod1-a" do not look like objects of "pod1", and a long name is cut on its own, so that no cut of the
// whole name can hide whose object it is.
func fabricPrefix(limit int, ok func(rune) bool, fabric string) string {
	part := strings.ReplaceAll(allowed(ok, fabric), "-", "--")
	return Prefix + "-" + cut(part, limit/2-len(Prefix), "", fabric) + "-"
}

// allowed is s with everything that ok refuses replaced by "-".
func allowed(ok func(rune) bool, s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || ok(r) {
			return r
		}
		return '-'
	}, s)
}

// cut is s, or, when that is longer than limit, its start, sep and 6 hex digits of the digest of full.
func cut(s string, limit int, sep, full string) string {
	if len(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(full))
	tail := sep + hex.EncodeToString(sum[:3])
	return s[:limit-len(tail)] + tail
}
