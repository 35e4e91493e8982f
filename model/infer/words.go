package infer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Roles that Wire gives.
const (
	superSpine = "super-spine"
	spine      = "spine"
	leaf       = "leaf"
	host       = "host"
	plain      = "switch" // where nothing tells what a switch is there for
)

// isTier reports whether a role is one of switches.
func isTier(role string) bool {
	return slices.Contains([]string{superSpine, spine, leaf, plain}, role)
}

var (
	macRE   = regexp.MustCompile(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$|^[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}$`)
	ifaceRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,14}$`) // of a Linux host
)

func isMAC(s string) bool   { return macRE.MatchString(s) }
func isIface(s string) bool { return ifaceRE.MatchString(s) }

// Name is s as a model may name things: letters, digits, "-", "_" and "."; everything else becomes "-". It is "" when
// nothing is left to begin with.
func Name(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, "-_.")
	return s[:min(len(s), 63)]
}

// clip shortens what a device said.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// some lists the first few of names.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), intent.CompareNames)
}
