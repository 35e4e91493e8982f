package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// ifaceNameRE is what a model takes for a device's interface name.
var ifaceNameRE = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_./:]{0,63}$`)

// writeModel writes the two documents, both or none.
func (a *app) writeModel(o importFlags, r *importJSON, read []seen) error {
	fabric, inventory := o.files()
	text, err := inventoryOf(read, o.out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if err := writeAll([]document{{fabric, r.model.Text}, {inventory, text}}, o.force); err != nil {
		return err
	}
	r.Files = []string{fabric, inventory}
	return nil
}

// document is a file to write.
type document struct{ path, text string }

// writeAll writes files: every one is whole on the disk beside its place before the first takes it. With force they
// replace what is there.
func writeAll(ds []document, force bool) (err error) {
	var ready []*whole.Staged
	defer func() {
		for _, s := range ready {
			err = errors.Join(err, s.Drop())
		}
	}()
	for _, d := range ds {
		if info, err := os.Lstat(d.path); err == nil && (!force || !info.Mode().IsRegular()) {
			return stays(d.path)
		}
		s, err := whole.Stage(d.path, []byte(d.text), whole.Kept)
		if err != nil {
			return err
		}
		ready = append(ready, s)
	}
	for i, s := range ready {
		settle := s.SettleNew
		if force {
			settle = s.Settle
		}
		if err := settle(); errors.Is(err, fs.ErrExist) {
			return stays(ds[i].path)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// stays is the error of a file that is in the way.
func stays(path string) error {
	return fail(exitError, "move it away, or name another directory", "%s exists and stays as it is", path)
}

// keeps refuses to replace an inventory that says what import does not write: it would be lost. With names, also one
// that holds devices which are not among these.
func (o *importFlags) keeps(names []string) error {
	_, path := o.files()
	if _, err := os.Lstat(path); err != nil || !o.force {
		return nil
	}
	f, l := model.LoadInventory(osFS{}, path)
	paths := f.InventoryKeys()
	if len(paths) == 0 && l.HasErrors() {
		return fail(exitError, "mend it or move it away", "%s cannot be read, so that nobody knows what --force would replace: %s", path, l[0].Msg)
	}
	written := []string{"address", "platform", "hostname", "serial", "management", "management_port", "lab", "gnmi", "ssh"}
	var lost, gone []string
	for _, p := range paths {
		switch {
		case len(p) == 1 && p[0] != "apiVersion" && p[0] != "kind":
			lost = append(lost, p[0])
		case len(p) == 3 && !slices.Contains(written, p[2]):
			lost = append(lost, p[2]+" of "+p[1])
		case len(p) == 3 && names != nil && !slices.Contains(names, p[1]) && !slices.Contains(gone, p[1]):
			gone = append(gone, p[1])
		}
	}
	if len(lost) > 0 {
		return fail(exitError, "move that to another file, such as "+filepath.Join(o.out, "site.yaml")+", which is laid over the inventory and which import leaves alone",
			"%s says what import does not write, and --force would take it away: %s", path, show.Counted(lost, "key", ""))
	}
	if len(gone) > 0 {
		return fail(exitError, "import them too, or move their lines to another file, such as "+filepath.Join(o.out, "site.yaml"),
			"%s has devices that were not read, and --force would take them away: %s; nothing was written", path, show.NameList(gone))
	}
	return nil
}

// confusable finds devices that the inventory could not tell apart: those of one serial number, which are one device most
// likely, and those that call themselves alike. Where each of the latter has a serial number, that is enough, and their
// host names are left out of what was read.
func confusable(read []seen) diag.List {
	var l diag.List
	serials, names := map[string]int{}, map[string][]int{}
	for i := range read {
		f := &read[i].facts
		if j, taken := serials[strings.ToLower(f.Serial)]; taken {
			l.Add(diag.Finding{
				Rule: "same-serial", Severity: diag.Error, At: read[i].box.Device.Name, Hint: "import it under one name",
				Msg: fmt.Sprintf("%s and %s both have serial number %s: they look like one device", read[j].box.Device.Name, read[i].box.Device.Name, f.Serial),
			})
		} else if f.Serial != "" {
			serials[strings.ToLower(f.Serial)] = i
		}
		if f.Hostname != "" {
			k := strings.ToLower(f.Hostname)
			names[k] = append(names[k], i)
		}
	}
	for _, at := range names {
		if len(at) == 1 {
			continue
		}
		told := !slices.ContainsFunc(at, func(i int) bool { return read[i].facts.Serial == "" })
		for _, i := range at[1:] {
			d, first := &read[i], &read[at[0]]
			f := diag.Finding{
				Rule: "same-name", Severity: diag.Error, At: d.box.Device.Name, Hint: "give each a host name of its own, or import one of them",
				Msg: fmt.Sprintf("%s and %s both call themselves %s, and a serial number is not known of both: the wrong one could be written to",
					first.box.Device.Name, d.box.Device.Name, d.facts.Hostname),
			}
			if told {
				f.Severity, f.Hint = diag.Warning, "give each a host name of its own, and import again"
				f.Msg = fmt.Sprintf("%s and %s both call themselves %s: the inventory tells them apart by their serial numbers alone",
					first.box.Device.Name, d.box.Device.Name, d.facts.Hostname)
			}
			l.Add(f)
		}
		for _, i := range at {
			if told {
				read[i].facts.Hostname = ""
			}
		}
	}
	return l.Sort()
}

// inventoryOf says how the devices were reached. Secrets are the references that were given; those to files are written
// as they are found from dir.
func inventoryOf(read []seen, dir string) (string, error) {
	read = slices.Clone(read)
	slices.SortFunc(read, func(a, b seen) int { return intent.CompareNames(a.box.Device.Name, b.box.Device.Name) })
	var b strings.Builder
	fmt.Fprintf(&b, "# How fabricctl import reached the devices, and what they call themselves: another one there refuses a write.\n"+
		"apiVersion: %s\nkind: Inventory\ndevices:\n", model.APIVersion)
	w := referenceWriter{dir: dir}
	for i := range read {
		s := &read[i]
		e := s.target.Endpoint
		fmt.Fprintf(&b, "  %s:\n    address: %s\n    platform: %s\n",
			model.Scalar(s.box.Device.Name), model.Scalar(e.Address.V), model.Scalar(s.box.Device.Platform))
		for _, x := range []struct{ key, v string }{
			{"hostname", cmp.Or(e.Hostname.V, s.facts.Hostname)},
			{"serial", cmp.Or(e.Serial.V, s.facts.Serial)},
			{"management", given(e.Management)},
			{"management_port", given(e.ManagementPort)},
		} {
			if x.v != "" {
				fmt.Fprintf(&b, "    %s: %s\n", x.key, model.Scalar(x.v))
			}
		}
		if e.Lab.V {
			b.WriteString("    lab: true\n")
		}
		for _, x := range []struct {
			key    string
			fields []string
			used   bool
		}{{"gnmi", w.gnmi(&e.GNMI), s.target.OS == "sonic"}, {"ssh", w.ssh(&e.SSH), s.target.OS != "sonic" || e.GNMI.Via.V != ""}} {
			if len(x.fields) > 0 && x.used {
				fmt.Fprintf(&b, "    %s: {%s}\n", x.key, strings.Join(x.fields, ", "))
			}
		}
	}
	return b.String(), w.err
}

// given is v where somebody wrote it, and "" for a default.
func given(v model.Value[string]) string {
	if !v.Set {
		return ""
	}
	return v.V
}

// referenceWriter writes the fields of a transport as a flow mapping. The first error stays.
type referenceWriter struct {
	dir string
	err error
}

func (w *referenceWriter) gnmi(g *model.GNMI) []string {
	var tls []string
	for _, x := range []struct {
		key string
		v   model.Value[string]
	}{{"ca", g.CA}, {"cert", g.Cert}, {"key", g.Key}, {"server_name", g.ServerName}} {
		tls = w.text(tls, x.key, x.v)
	}
	tls = yes(tls, "insecure", g.Insecure)
	fs := port64(nil, g.Port)
	if len(tls) > 0 {
		fs = append(fs, "tls: {"+strings.Join(tls, ", ")+"}")
	}
	fs = yes(fs, "plaintext", g.Plaintext)
	fs = w.text(fs, "username", g.Username)
	fs = w.text(fs, "password", g.Password)
	return w.text(fs, "via", g.Via)
}

func (w *referenceWriter) ssh(s *model.SSH) []string {
	fs := port64(nil, s.Port)
	for _, x := range []struct {
		key string
		v   model.Value[string]
	}{
		{"username", s.Username},
		{"password", s.Password},
		{"enable_password", s.Enable},
		{"key", s.Key},
		{"known_hosts", s.KnownHosts},
		{"via", s.Via},
	} {
		fs = w.text(fs, x.key, x.v)
	}
	return yes(fs, "insecure", s.Insecure)
}

func port64(fs []string, v model.Value[int]) []string {
	if !v.Set {
		return fs
	}
	return append(fs, fmt.Sprintf("port: %d", v.V))
}

// yes is a flag that is set. One that the command line gave is for that call alone.
func yes(fs []string, key string, v model.Value[bool]) []string {
	if !v.V || fromFlag(v.From) {
		return fs
	}
	return append(fs, key+": true")
}

// text is a value as it was given; a reference to a file beside another document is written as it is found from here.
func (w *referenceWriter) text(fs []string, key string, v model.Value[string]) []string {
	if !v.Set || v.V == "" {
		return fs
	}
	s := v.V
	if p, ok := strings.CutPrefix(s, "file:"); ok && !filepath.IsAbs(p) {
		here, err := filepath.Abs(w.dir)
		there, err2 := filepath.Abs(path(v))
		rel, err3 := filepath.Rel(here, there)
		w.err = cmp.Or(w.err, err, err2, err3)
		s = "file:" + rel
	}
	return append(fs, key+": "+model.Scalar(s))
}
