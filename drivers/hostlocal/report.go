package hostlocal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Report is what the agent says of itself after each look, in a file of the state directory: status shows it, and the
// agent finds there what it did before a restart.
type Report struct {
	Time    time.Time `json:"time"`             // of the last look
	PID     int       `json:"pid"`              //
	Drift   int       `json:"drift"`            // settings that differ and were not repaired
	Says    string    `json:"says"`             // what the agent makes of the host, in a sentence
	Repairs int       `json:"repairs"`          // settings repaired since it was started
	Failed  int       `json:"failed,omitempty"` // repairs that failed since it was started
}

func (m Machine) reportPath() string { return filepath.Join(m.State, "agent.json") }

// LastReport is what the agent said last; nil when there is none.
func (m Machine) LastReport() (*Report, error) {
	b, err := readFile(m.reportPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", m.reportPath(), err)
	}
	return r, nil
}

// leave writes a report.
func (m Machine) leave(r Report) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(m.reportPath(), append(b, '\n'), 0o644)
}

// writeFile writes a file whole or not at all. Nothing is synced: what is written again every minute need not survive a
// power cut.
func writeFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // is gone by now when all went well
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
