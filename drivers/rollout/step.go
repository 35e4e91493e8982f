// Package rollout plans and carries out changes on many devices: it reads, adopts, diffs and phases (Plan), journals
// each step before the first byte is written, commits, reads back over a new connection, confirms and saves (Apply),
// and can finish or take back any run from its journal alone (Resume, Rollback).
//
// Nothing is believed. An error of a write means that the outcome is unknown until the device was read over a new
// connection, and so does success. What a Result says about a device was read from it.
package rollout

import "github.com/fabricctl/fabricctl/render"

// Step is one transaction on one device. It is journalled whole before any write, so that finishing or undoing it
// needs nothing else. Before and After are fingerprints of the owned live state.
type Step struct {
	Device  string          `json:"device"`
	Changes []render.Change `json:"changes"`
	Undo    []render.Change `json:"undo"`
	Before  string          `json:"before"`
	After   string          `json:"after"`
	Wave    int             `json:"wave"`
	Why     string          `json:"why"`
}
