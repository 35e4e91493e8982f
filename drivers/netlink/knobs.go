package netlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// knobKey is the key of a knob: "cc.ai_rate" is cc|IF|ai_rate.
func knobKey(link, knob string) render.Key {
	scope, field, _ := strings.Cut(knob, ".")
	return render.Key{Scope: scope, Object: link, Field: field}
}

// knobName is the way back.
func knobName(k render.Key) string { return k.Scope + "." + k.Field }

// knobIO reads and writes the knobs of one NIC's personality.
type knobIO struct {
	tree   Tree
	run    Runner
	at     profiles.Place
	memory *memory      // for set
	hook   func(string) // for set
}

// read is the canonical value of a knob; ok is false where this NIC does not have it, or where it takes a directory
// that nobody made yet: looking makes nothing.
func (io knobIO) read(ctx context.Context, k profiles.Knob) (value string, ok bool, err error) {
	if len(k.Command) > 0 {
		return io.command(ctx, k)
	}
	paths, err := io.find(k.Paths)
	if paths == nil || err != nil {
		return "", false, err
	}
	if value, err = io.value(k, paths); err != nil {
		return "", false, err
	}
	for _, also := range k.Also {
		paths, err := io.find([]string{also})
		if err != nil {
			return "", false, err
		}
		if paths == nil {
			continue
		}
		v, err := io.value(k, paths)
		if err != nil {
			return "", false, err
		}
		if v != value {
			return value + render.Beside + v, true, nil
		}
	}
	return value, true, nil
}

// find is the files of the first template that leads to one: eight where there is one for each priority, nil where no
// template leads anywhere.
func (io knobIO) find(templates []string) ([]string, error) {
	for _, t := range templates {
		if strings.Contains(t, "{priority}") {
			var all []string
			for p := range 8 {
				at := io.at
				at.Priority = p
				name, err := at.Fill(t)
				if err != nil || !there(io.tree, name) {
					break
				}
				all = append(all, name)
			}
			if len(all) == 8 {
				return all, nil
			}
			continue
		}
		name, err := io.at.Fill(t)
		if err != nil { // a name that this NIC lacks, such as that of an RDMA device
			continue
		}
		if there(io.tree, name) {
			return []string{name}, nil
		}
	}
	return nil, nil
}

func (io knobIO) value(k profiles.Knob, paths []string) (string, error) {
	var bits uint8
	for p, name := range paths {
		b, err := io.tree.Read(name)
		if err != nil {
			return "", err
		}
		v, err := k.Decode(string(b))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if !k.PerPriority() {
			return v, nil
		}
		if v == "1" {
			bits |= 1 << p
		}
	}
	return profiles.Priorities(bits), nil
}

// command runs the program of a knob; where it is not installed, the NIC does not have the knob.
func (io knobIO) command(ctx context.Context, k profiles.Knob) (string, bool, error) {
	if io.run == nil || !there(io.tree, k.Command[0]) {
		return "", false, nil
	}
	argv := make([]string, len(k.Command))
	for i, a := range k.Command {
		s, err := io.at.Fill(a)
		if err != nil {
			return "", false, nil
		}
		argv[i] = s
	}
	out, err := io.run(ctx, argv)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", argv[0], err)
	}
	v, err := k.Decode(string(out))
	return v, err == nil, err
}

// can reports whether a knob that is not there can be made: its directory is one that configfs makes.
func (io knobIO) can(k profiles.Knob) bool {
	if k.Mkdir == "" {
		return false
	}
	dir, err := io.at.Fill(k.Mkdir)
	return err == nil && there(io.tree, path.Dir(dir))
}

// check says why a knob cannot be set to a value.
func (io knobIO) check(k profiles.Knob, value *string) error {
	paths, err := io.find(k.Paths)
	switch {
	case err != nil:
		return err
	case value == nil && k.Mkdir == "":
		return errors.New("a NIC that shows it always has it")
	case value == nil:
		return nil
	case !k.Writable():
		return errors.New("this driver shows it and does not let it be set")
	case paths == nil && !io.can(k):
		return errors.New("this NIC does not have it: " + strings.Join(k.Paths, ", ") + " leads nowhere" + io.hint(k))
	}
	for v := range strings.SplitSeq(*value, render.Beside) {
		if k.PerPriority() {
			_, err = profiles.ParsePriorities(v)
		} else {
			_, err = k.Encode(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hint is what a person can do where configfs has no place for a knob.
func (io knobIO) hint(k profiles.Knob) string {
	switch {
	case k.Mkdir == "":
		return ""
	case !there(io.tree, "sys/kernel/config"):
		return " (modprobe configfs; mount -t configfs none /sys/kernel/config)"
	}
	return fmt.Sprintf(" (modprobe %s)", path.Base(path.Dir(k.Mkdir)))
}

// set puts a canonical value into the files of a knob, each only where it holds another, and makes it count. Nil takes a
// knob of configfs back to what its file said when its directory was made, and the last one of a directory takes that
// along.
func (io knobIO) set(k profiles.Knob, value *string) error {
	if err := io.memory.load(); err != nil {
		return err
	}
	if value == nil {
		return io.forget(k)
	}
	main, other, two := strings.Cut(*value, render.Beside)
	paths, err := io.find(k.Paths)
	if err == nil && paths == nil && io.can(k) {
		if err = io.make(k); err == nil {
			paths, err = io.find(k.Paths)
		}
	}
	if err == nil && paths == nil {
		err = errors.New("this NIC does not have it")
	}
	if err != nil {
		return err
	}
	if err := io.remember(k, paths); err != nil {
		return err
	}
	if err := io.put(k, paths, main); err != nil {
		return err
	}
	for _, also := range k.Also {
		v := main
		if two {
			v = other
		}
		paths, err := io.find([]string{also})
		if err == nil && paths != nil {
			err = io.put(k, paths, v)
		}
		if err != nil {
			return err
		}
	}
	return io.apply(k)
}

// make makes the directory of a knob, and remembers that it was not there.
func (io knobIO) make(k profiles.Knob) error {
	dir, err := io.at.Fill(k.Mkdir)
	if err != nil {
		return err
	}
	if err := io.memory.made(dir, ""); err != nil {
		return err
	}
	io.hook("mkdir " + dir + " before")
	err = io.tree.Mkdir(dir)
	io.hook("mkdir " + dir + " after")
	if errors.Is(err, fs.ErrExist) {
		_, _, err = io.memory.unmade(dir) // somebody was faster
	}
	return err
}

// remember keeps what the files of a knob said before our first write, where we made their directory.
func (io knobIO) remember(k profiles.Knob, paths []string) error {
	dir, err := io.at.Fill(k.Mkdir)
	if _, ours := io.memory.kept.Made[dir]; err != nil || !ours {
		return nil
	}
	for _, name := range paths {
		if _, known := io.memory.kept.Made[name]; known {
			continue
		}
		b, err := io.tree.Read(name)
		if err == nil {
			err = io.memory.made(name, string(b))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// untouched reports whether a directory was made by us and the files say what they said then.
func (io knobIO) untouched(mkdir string, templates []string, made map[string]string) bool {
	dir, err := io.at.Fill(mkdir)
	if _, ours := made[dir]; err != nil || mkdir == "" || !ours {
		return false
	}
	paths, err := io.find(templates)
	return err == nil && !slices.ContainsFunc(paths, func(name string) bool {
		text, written := made[name]
		b, err := io.tree.Read(name)
		return err != nil || written && string(b) != text
	})
}

// forget writes back what remember kept, and removes the directory with the last knob that has something to be put back.
func (io knobIO) forget(k profiles.Knob) error {
	paths, err := io.find(k.Paths)
	if err != nil || paths == nil {
		return err
	}
	dir, err := io.at.Fill(k.Mkdir)
	if err != nil {
		return err
	}
	if _, ours := io.memory.kept.Made[dir]; !ours {
		return fmt.Errorf("%s was not made by fabricctl, so it is not known what was there before: set it by hand", dir)
	}
	for _, name := range paths {
		text, known := io.memory.kept.Made[name]
		if !known {
			continue
		}
		if err := io.write(name, text); err != nil {
			return err
		}
		if _, _, err := io.memory.unmade(name); err != nil {
			return err
		}
	}
	for name := range io.memory.kept.Made {
		if strings.HasPrefix(name, dir+"/") {
			return nil
		}
	}
	io.hook("rmdir " + dir + " before")
	if err := io.tree.Rmdir(dir); err != nil {
		return err
	}
	io.hook("rmdir " + dir + " after")
	_, _, err = io.memory.unmade(dir)
	return err
}

func (io knobIO) write(name, text string) error {
	io.hook("write " + name + " before")
	err := io.tree.Write(name, 0, []byte(text))
	io.hook("write " + name + " after")
	return err
}

func (io knobIO) put(k profiles.Knob, paths []string, value string) error {
	want := []string{value}
	if k.PerPriority() {
		bits, err := profiles.ParsePriorities(value)
		if err != nil {
			return err
		}
		want = want[:0]
		for p := range 8 {
			want = append(want, strconv.Itoa(int(bits>>p&1)))
		}
	}
	for i, name := range paths {
		if b, err := io.tree.Read(name); err == nil {
			if now, err := k.Decode(string(b)); err == nil && now == want[i] {
				continue
			}
		}
		raw, err := k.Encode(want[i])
		if err != nil {
			return err
		}
		if err := io.write(name, raw+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// apply writes the file that makes what was written count, where a driver has one.
func (io knobIO) apply(k profiles.Knob) error {
	if k.Apply == "" {
		return nil
	}
	name, err := io.at.Fill(k.Apply)
	if err != nil || !there(io.tree, name) {
		return nil // newer drivers have none, and what is written counts at once
	}
	as := k.ApplyAs
	if as == "" {
		as = "1"
	}
	return io.write(name, as+"\n")
}
