package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Files are read once, and again when they change.
func TestKnownRemembers(t *testing.T) {
	const a = "[127.0.0.1]:2222 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJEh8RjPqYiBZcZEQAW6wvmBsvAp9uyGm0GJjQSpC4oG\n"
	path := filepath.Join(t.TempDir(), "known_hosts")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	write(a, now)
	k := new(Known)
	first, err := k.read([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.read([]string{path}); err != nil || again != first {
		t.Errorf("read twice: %v", err)
	}
	write("# gone\n@cert-authority *.pod1 "+strings.TrimPrefix(a, "[127.0.0.1]:2222 "), now.Add(time.Second))
	changed, err := k.read([]string{path})
	if err != nil || changed == first || !changed.authorities[place{path, 2}] || changed.authorities[place{path, 1}] {
		t.Errorf("a change was not seen: %+v, %v", changed, err)
	}
	write("one two three\n", now.Add(2*time.Second))
	if _, err := k.read([]string{path}); err == nil {
		t.Error("a damaged file was taken")
	}
	if _, err := k.read([]string{path + ".none"}); err == nil {
		t.Error("a missing file was taken")
	}
	if _, err := (*Known)(nil).read(nil); err != nil {
		t.Errorf("no files: %v", err)
	}
}
