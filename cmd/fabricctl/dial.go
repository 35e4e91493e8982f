package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/hostssh"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/drivers/sshcli"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
)

// dialler opens connections to the devices of one model.
type dialler struct {
	app    *app
	fabric *model.Fabric
	os     map[string]string // device to dialect
	reads  bool              // only to read: nothing is copied to a device

	allowJobs bool // hosts may write what kills live queue pairs
	binaries  hostBinaries
}

func (a *app) dialler(f *model.Fabric, n *intent.Net) *dialler {
	d := &dialler{app: a, fabric: f, os: map[string]string{}}
	for i := range n.Devices {
		d.os[n.Devices[i].Name] = n.Devices[i].OS()
	}
	return d
}

// noAddress is what open says of a device that cannot be reached for want of an address: the same of each but for the name.
func noAddress(name string) error {
	return fmt.Errorf("%s: no address; give an Inventory with -f that has devices: {NAME: {address: 10.0.0.11}}", name)
}

// open is a new connection to a device of the inventory.
func (d *dialler) open(ctx context.Context, name string) (drivers.Device, error) {
	e := d.fabric.Endpoints[name]
	if e == nil || !e.Address.Set {
		return nil, noAddress(name)
	}
	dev, err := d.connect(ctx, e, d.os[name])
	if err != nil {
		return nil, err
	}
	if d.app.readOnly {
		dev = drivers.ReadOnly(name, dev)
	}
	return dev, nil
}

// connect is a new connection to an endpoint, by the transport of its operating system.
func (d *dialler) connect(ctx context.Context, e *model.Endpoint, os string) (drivers.Device, error) {
	switch os {
	case "sonic":
		return d.gnmi(ctx, e)
	case "linux":
		return d.host(ctx, e)
	}
	return d.cli(ctx, e, os)
}

// ready looks at what connect would use, without connecting: references that lead nowhere, files that hold nothing.
func (d *dialler) ready(ctx context.Context, e *model.Endpoint, os string) error {
	if os == "sonic" {
		c, err := d.gnmiConfig(ctx, e)
		if err == nil {
			err = c.Check()
		}
		return err
	}
	c, err := d.ssh(ctx, e)
	if err == nil {
		_, err = d.secret(ctx, e.SSH.Enable)
	}
	if err == nil {
		err = ssh.Check(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Device, err)
	}
	return nil
}

func (d *dialler) gnmi(ctx context.Context, e *model.Endpoint) (drivers.Device, error) {
	c, err := d.gnmiConfig(ctx, e)
	if err != nil {
		return nil, err
	}
	return gnmi.Dial(ctx, c)
}

// gnmiConfig is how to reach a device over gNMI, jump hosts included.
func (d *dialler) gnmiConfig(ctx context.Context, e *model.Endpoint) (gnmi.Config, error) {
	c := gnmi.Config{
		Name: e.Device, Address: net.JoinHostPort(e.Address.V, strconv.Itoa(e.GNMI.Port.V)), Plaintext: e.GNMI.Plaintext.V,
		TLS: gnmi.TLS{ServerName: e.GNMI.ServerName.V, Insecure: e.GNMI.Insecure.V}, Known: &d.app.known, Log: d.app.log,
		ReadOnly: d.app.readOnly,
	}
	user, err := d.text(ctx, e.GNMI.Username)
	if err != nil {
		return c, fmt.Errorf("%s: username: %w", e.Device, err)
	}
	c.Username = user
	if e.GNMI.Via.V != "" {
		jump, err := d.sshUser(ctx, e)
		if err != nil {
			return c, fmt.Errorf("%s: ssh of the jump host: %w", e.Device, err)
		}
		c.Via = d.jumps(jump, e, e.GNMI.Via)
	}
	var ca, cert secret.Secret
	for _, s := range []struct {
		what string
		from model.Value[string]
		to   *secret.Secret
	}{
		{"password", e.GNMI.Password, &c.Password},
		{"tls.ca", e.GNMI.CA, &ca},
		{"tls.cert", e.GNMI.Cert, &cert},
		{"tls.key", e.GNMI.Key, &c.TLS.Key},
	} {
		if *s.to, err = d.secret(ctx, s.from); err != nil {
			return c, fmt.Errorf("%s: %s: %w", e.Device, s.what, err)
		}
	}
	if !ca.IsZero() {
		c.TLS.CA = []byte(ca.Reveal())
	}
	if !cert.IsZero() {
		c.TLS.Cert = []byte(cert.Reveal())
	}
	return c, nil
}

func (d *dialler) cli(ctx context.Context, e *model.Endpoint, os string) (drivers.Device, error) {
	c, err := d.ssh(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Device, err)
	}
	enable, err := d.secret(ctx, e.SSH.Enable)
	if err != nil {
		return nil, fmt.Errorf("%s: enable_password: %w", e.Device, err)
	}
	return sshcli.Dial(ctx, sshcli.Config{Name: e.Device, OS: os, SSH: c, EnablePassword: enable, ReadOnly: d.app.readOnly, Now: time.Now, Log: d.app.log})
}

func (d *dialler) host(ctx context.Context, e *model.Endpoint) (drivers.Device, error) {
	c, err := d.ssh(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Device, err)
	}
	binary := d.binaries.find
	switch {
	case d.app.readOnly || d.reads:
		binary = noBinary
	case e.Lab.V:
		binary = labBinary
	}
	cfg := hostssh.Config{SSH: c, Binary: binary, Sudo: c.User != "root" && !e.Lab.V, AllowJobs: d.allowJobs, Wait: d.app.wait}
	if d.fabric != nil { // what is only read has no use for it
		cfg.Know = d.fabric.Catalog.Tell(!d.app.untrusted)
	}
	return hostssh.Dial(ctx, cfg)
}

// ssh is how to reach a device over SSH, jump hosts included.
func (d *dialler) ssh(ctx context.Context, e *model.Endpoint) (ssh.Config, error) {
	c, err := d.sshUser(ctx, e)
	if err != nil {
		return c, err
	}
	if c.Password, err = d.secret(ctx, e.SSH.Password); err != nil {
		return c, fmt.Errorf("password: %w", err)
	}
	c.Via = d.jumps(c, e, e.SSH.Via)
	return c, nil
}

// sshUser is ssh as far as a jump host is entered like the device: without its password.
func (d *dialler) sshUser(ctx context.Context, e *model.Endpoint) (ssh.Config, error) {
	c := ssh.Config{Name: e.Device, Address: e.Address.V, Insecure: e.SSH.Insecure.V, Agent: d.app.sys.env("SSH_AUTH_SOCK"), Keepalive: 15 * time.Second, Log: d.app.log}
	if e.SSH.Port.V != 0 {
		c.Address = net.JoinHostPort(e.Address.V, strconv.Itoa(e.SSH.Port.V))
	}
	var err error
	if c.User, err = d.text(ctx, e.SSH.Username); err != nil {
		return c, fmt.Errorf("username: %w", err)
	}
	c.KnownHosts, c.Known = d.knownHosts(e), &d.app.hosts
	if k := e.SSH.Key; k.Set {
		c.Keys = []ssh.Key{{Path: path(k)}}
	}
	return c, nil
}

// jumps are the jump hosts on the way to a device, entered as the device is, but with no password and with their keys
// verified: c is how the device would be reached over SSH.
func (d *dialler) jumps(c ssh.Config, e *model.Endpoint, via model.Value[string]) []ssh.Config {
	if e.Lab.V { // a lab is on this machine, whatever the defaults say of the others
		return nil
	}
	var hops []ssh.Config
	for _, h := range model.Hops(via.V) {
		hop := c
		hop.Name, hop.Address, hop.User = h.Address, h.Address, cmp.Or(h.User, c.User)
		hop.Password, hop.Insecure, hop.Via, hop.Jump = secret.Secret{}, false, nil, true
		hops = append(hops, hop)
	}
	return hops
}

// knownHosts are the files that vouch for a device: the inventory's, or else the user's and the machine's.
func (d *dialler) knownHosts(e *model.Endpoint) []string {
	if e.SSH.KnownHosts.Set {
		return []string{path(e.SSH.KnownHosts)}
	}
	files := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append([]string{filepath.Join(home, ".ssh", "known_hosts")}, files...)
	}
	return files
}

// path is the file that a file: reference names, relative to the document that holds it.
func path(v model.Value[string]) string {
	p := strings.TrimPrefix(v.V, "file:")
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(v.Pos().File), p)
}

// text is a value that may be a reference but need not be secret.
func (d *dialler) text(ctx context.Context, v model.Value[string]) (string, error) {
	if secret.IsReference(v.V) {
		s, err := d.secret(ctx, v)
		return s.Reveal(), err
	}
	return v.V, nil
}

// secret follows a reference; an unset value is the zero Secret.
func (d *dialler) secret(ctx context.Context, v model.Value[string]) (secret.Secret, error) {
	if !v.Set || v.V == "" {
		return secret.Secret{}, nil
	}
	s, err := d.app.secrets.Resolve(ctx, v.V, secret.Options{Base: filepath.Dir(v.Pos().File), Untrusted: d.app.untrusted})
	if err != nil {
		err = unresolvedError{err}
		if isUnset(v.V) {
			d.app.unset.note(func() []string { return d.unset(v) })
		}
	}
	return s, err
}

// isUnset reports whether a reference is to an environment variable that is not set.
func isUnset(ref string) bool {
	name, ok := strings.CutPrefix(ref, "env:")
	if !ok {
		return false
	}
	_, set := os.LookupEnv(name)
	return !set
}

// unset are the environment variables that a reference and the inventory have logins come from, and that are not set: who is told of one wants
// to know all.
func (d *dialler) unset(one model.Value[string]) []string {
	names := []string{strings.TrimPrefix(one.V, "env:")}
	for device, e := range d.fabric.Endpoints {
		refs := []model.Value[string]{e.SSH.Username, e.SSH.Password, e.SSH.Enable, e.SSH.Key}
		if d.os[device] == "sonic" {
			refs = []model.Value[string]{e.GNMI.Username, e.GNMI.Password, e.GNMI.CA, e.GNMI.Cert, e.GNMI.Key}
		}
		for _, v := range refs {
			if isUnset(v.V) {
				names = append(names, strings.TrimPrefix(v.V, "env:"))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unsetNames are the environment variables that a call has missed.
type unsetNames struct {
	mu    sync.Mutex
	names []string
}

// note takes the names that are not set, the first time.
func (u *unsetNames) note(names func() []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		u.names = names()
	}
}

// hint says what to export; "" = nothing was missed.
func (u *unsetNames) hint() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch n := len(u.names); n {
	case 0:
		return ""
	case 1:
		return "export " + u.names[0] + ": a login comes from there"
	default:
		return "export " + strings.Join(u.names[:n-1], ", ") + " and " + u.names[n-1] + ": logins come from there"
	}
}

// unresolvedError is a reference that could not be followed.
type unresolvedError struct{ error }

func (e unresolvedError) Unwrap() error { return e.error }
