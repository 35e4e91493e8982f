package yang

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fabricctl/fabricctl/model/witness"
)

// Check has yanglint judge a config_db.json against all SONiC models; nil when it is valid. It skips the test when
// yanglint or the models are missing, and fails it when a table has no model, since that would not be judged.
func Check(t testing.TB, configDB []byte) error {
	t.Helper()
	yanglint := witness.Tool(t, "yanglint")
	dir := witness.Reference(t, "sonic-yang")
	models, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	instance, unmodelled, err := models.Instance(configDB)
	if err != nil {
		t.Fatal(err)
	}
	if len(unmodelled) > 0 {
		t.Fatalf("no model judges %q", unmodelled)
	}
	file := filepath.Join(t.TempDir(), "instance.json")
	if err := os.WriteFile(file, instance, 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(dir, "sonic-*.yang"))
	if err != nil {
		t.Fatal(err)
	}
	// All modules are listed: yanglint skips the conditions of those that are not.
	args := append([]string{"-p", dir, "-t", "config"}, append(modules, file)...)
	if out, err := exec.CommandContext(t.Context(), yanglint, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("yanglint: %w\n%s", err, out)
	}
	return nil
}
