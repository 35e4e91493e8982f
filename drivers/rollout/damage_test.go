package rollout

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
)

// A journal that was damaged after it was written is not one of a run that died before it was written down: devices may
// hold what it asks for. What can be read of it is said, no device is touched, and hands are needed.
func TestDamagedJournal(t *testing.T) {
	flip := func(line int) func([]byte) []byte {
		return func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			lines[line][len(lines[line])/2] ^= 1
			return bytes.Join(lines, nil)
		}
	}
	const unknown = "which devices the run wrote to is not known"
	for _, c := range []struct {
		name   string
		damage func([]byte) []byte
		says   string
	}{
		{"rubbish", func([]byte) []byte { return []byte("rubbish") }, "line 1 is damaged: it is not a record, nor the beginning of one; nothing of it can be read, and " + unknown},
		{"a line of rubbish", func([]byte) []byte { return []byte("rubbish\n") }, "nothing of it can be read, and " + unknown},
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, "nothing of it can be read, and " + unknown},
		{"a line that begins like a record", func([]byte) []byte { return []byte("{\"seq\":1,\"time\":\"\n") }, "nothing of it can be read, and " + unknown},
		{"lines of rubbish", func([]byte) []byte { return []byte("rub\nbish\n") }, "line 1 is damaged: its checksum does not match; nothing of it can be read"},
		{"the head", flip(0), "line 1 is damaged: its checksum does not match; 16 of its 17 lines can be read: it may have written to s1, s2, and to others"},
		{"the head is gone", func(b []byte) []byte { _, b, _ = bytes.Cut(b, []byte("\n")); return b }, "line 1 is damaged: record 2 stands here; 16 of its 16 lines can be read: it may have written to s1, s2, and to others"},
		{"only the end of an attempt is left", func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			return append([]byte("x\n"), lines[len(lines)-2]...)
		}, "1 of its 2 lines can be read: " + unknown},
		{"the middle", func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			return bytes.Join([][]byte{lines[0], lines[1], []byte("rubbish\n"), lines[len(lines)-2]}, nil)
		}, "line 3 is damaged: its checksum does not match; 3 of its 4 lines can be read: it may have written to s1, s2"},
		{"a part", func(b []byte) []byte {
			var some [][]byte
			for _, l := range bytes.SplitAfter(b, []byte("\n")) {
				if !bytes.Contains(l, []byte(`"device":"s2"`)) || bytes.Contains(l, []byte(`"kind":"run"`)) {
					some = append(some, l)
				}
			}
			return bytes.Join(some, nil)
		}, "it may have written to s1; by what is lost also to s2"},
	} {
		f := newFabric(stateDir(t), "s1", "s2")
		f.e.Parallel = 1
		if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
			t.Fatal(r, err)
		}
		path := runPath(f.e.StateDir, "run-1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := c.damage(b)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		opens := f.boxes["s1"].opens
		show := func(context.Context, string) (*Run, error) {
			_, err := Show(f.e.StateDir, "run-1", f.now)
			return nil, err
		}
		for verb, do := range map[string]func(context.Context, string) (*Run, error){"show": show, "resume": f.e.Resume, "rollback": f.e.Rollback} {
			r, err := do(context.Background(), "run-1")
			var broken *DamagedError
			if ExitCode(r, err) != 5 || !errors.As(err, &broken) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: exit %d, %v", c.name, verb, ExitCode(r, err), err)
			} else if h := broken.Hint(); !strings.Contains(h, "fabricctl plan ") || !strings.Contains(h, "fabricctl doctor ") || !strings.Contains(h, path) {
				t.Errorf("%s: hint %s", c.name, h)
			}
		}
		if f.boxes["s1"].opens != opens {
			t.Errorf("%s: a device was contacted", c.name)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("%s: the journal was changed, %v", c.name, err)
		}
		if l, err := Runs(f.e.StateDir, f.now); err != nil || len(l) != 1 || l[0].Status != Unfinished || !strings.Contains(l[0].Error, c.says) {
			t.Errorf("%s: runs %+v, %v", c.name, l, err)
		}
	}
}

// What a crash leaves of a run that was not written down yet is no damage, wherever it was cut.
func TestRunNeverWrittenDown(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	path := runPath(f.e.StateDir, "run-1")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(b, []byte("\n"))
	for n := 0; n <= len(head); n += 1 + n/4 {
		if err := os.WriteFile(path, head[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := f.e.Rollback(context.Background(), "run-1"); ExitCode(r, err) != 1 || !strings.Contains(err.Error(), "died before it was written down: no device was touched") {
			t.Errorf("%d bytes: exit %d, %v", n, ExitCode(r, err), err)
		}
	}
}

// A later run whose journal is damaged may be in force: an older one on the same devices is not taken back below it.
func TestDamagedLaterRun(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	f.now = f.now.Add(1)
	f.want["s2"] = append(newConfig(), conf("watch p1 time 900")...).Sorted()
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	path := runPath(f.e.StateDir, "run-2")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[5] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for verb, do := range map[string]func(context.Context, string) (*Run, error){"resume": f.e.Resume, "rollback": f.e.Rollback} {
		r, err := do(context.Background(), "run-1")
		if ExitCode(r, err) != 4 || !strings.Contains(err.Error(), "run run-2 came later, and may be in force on s2: its journal is damaged") || errors.Is(err, drivers.ErrMoved) {
			t.Errorf("%s: exit %d, %v", verb, ExitCode(r, err), err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r, err := f.e.Rollback(context.Background(), "run-1"); ExitCode(r, err) == 4 && r == nil {
		t.Errorf("with the journal away: %v", err)
	}
}
