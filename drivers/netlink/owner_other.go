//go:build !unix

package netlink

import (
	"context"
	"io/fs"
	"syscall"
)

func owner(fs.FileInfo) (uid, gid int) { return -1, -1 }

// lock needs a system with hosts of ours: there is no other process to keep out.
func (d *Device) lock(context.Context) (unlock func(), err error) { return func() {}, nil }

func writable(string) error { return nil }

// AgentLock is the file of the state directory that an agent has locked while it runs.
const AgentLock = "agent.lock"

func (d *Device) kept() bool { return false }

func ownSession() *syscall.SysProcAttr { return nil }
