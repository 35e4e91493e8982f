// Package examples holds the example models, for the demo and for tests.
package examples

import "embed"

// FS holds each example in a directory of its name.
//
//go:embed */*.yaml
var FS embed.FS
