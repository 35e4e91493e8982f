package model

import (
	"fmt"
	"regexp"
	"strings"
)

var plainRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// Scalar is s as YAML takes it for text, in block and in flow mappings, as a key and as a value.
func Scalar(s string) string {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return `"` + s + `"`
	}
	if plainRE.MatchString(s) {
		return s
	}
	return fmt.Sprintf("%q", s)
}
