package observe

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/units"
)

// MaxTrace is the most bytes that a trace may have, or any other file that says what traffic to drive.
const MaxTrace = 1 << 26

// Limits on what is read.
const (
	maxFile  = 1 << 20 // bytes of a workload
	maxLine  = 1 << 12 // bytes of a line of a trace: each may become a field
	maxFlows = 1 << 20 // flows of a trace
)

// ReadWorkload reads the YAML form of a workload, of which JSON is a part. Unknown keys are errors.
func ReadWorkload(b []byte) (Workload, error) {
	if len(b) > maxFile {
		return Workload{}, fmt.Errorf("workload: the file has %d bytes, more than %d", len(b), maxFile)
	}
	var w Workload
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	switch err := d.Decode(&w); {
	case errors.Is(err, io.EOF):
		return Workload{}, &Error{"the file", "is empty", "write parts: [{kind: incast, n: 8}]"}
	case err != nil:
		return Workload{}, plainYAML(err)
	}
	var more any
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return Workload{}, &Error{"the file", "has a second document", "keep one workload in a file"}
	}
	if err := w.Check(); err != nil {
		return Workload{}, err
	}
	return w, nil
}

// plainYAML is an error of the library without the names of our types.
func plainYAML(err error) error {
	text := err.Error()
	var e *yaml.TypeError
	if errors.As(err, &e) {
		text = strings.Join(e.Errors, "; ")
	}
	for _, r := range [][2]string{
		{" in type observe.Workload", " in a workload"},
		{" in type observe.Part", " in a part of a workload"},
		{" in type observe.TraceFlow", " in a flow"},
		{"into observe.Workload", "as a workload"},
		{"into observe.Part", "as a part"},
		{"into []observe.Part", "as a list of parts"},
		{"into []observe.TraceFlow", "as a list of flows"},
		{"into observe.Kind", "as a kind"},
		{"into observe.Op", "as an operation"},
		{"into []string", "as a list of names"},
		{"into units.", "as "},
		{"yaml: ", ""},
	} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	return fmt.Errorf("workload: %s", text)
}

// traceColumns are the columns of a trace, in the order of a file without a heading.
var traceColumns = [...]string{"start", "src", "dst", "class", "bytes"}

// ParseTrace reads the flows of a trace: CSV with the columns start, src, dst, class and bytes, in that order or as the
// first line names them. Start and bytes have units ("10us", "1MB"); an empty class is that of the part. Lines that begin
// with # are left out.
func ParseTrace(b []byte) ([]TraceFlow, error) {
	if len(b) > MaxTrace {
		return nil, fmt.Errorf("trace: the file has %d bytes, more than %d", len(b), MaxTrace)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff")) // which spreadsheets write
	if n := longLine(b); n > 0 {
		return nil, fmt.Errorf("trace: line %d is longer than %d bytes", n, maxLine)
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comment, r.TrimLeadingSpace, r.FieldsPerRecord, r.ReuseRecord = '#', true, len(traceColumns), true
	order := [...]int{0, 1, 2, 3, 4}
	var flows []TraceFlow
	for first := true; ; first = false {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		line, _ := r.FieldPos(0)
		if first {
			if named, ok := heading(row); ok {
				order = named
				continue
			}
		}
		f, err := traceFlow(row, order)
		if err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", line, err)
		}
		if len(flows) == maxFlows {
			return nil, fmt.Errorf("trace: line %d: more than %d flows", line, maxFlows)
		}
		flows = append(flows, f)
	}
	if len(flows) == 0 {
		return nil, errors.New("trace: no flow in it")
	}
	return flows, nil
}

// longLine is the number of the first line that is too long, or 0.
func longLine(b []byte) int {
	n := 0
	for line := range bytes.Lines(b) {
		if n++; len(line) > maxLine {
			return n
		}
	}
	return 0
}

// heading is where each column is, if row names all of them.
func heading(row []string) (order [len(traceColumns)]int, ok bool) {
	for i, name := range traceColumns {
		at := -1
		for j, s := range row {
			if strings.EqualFold(strings.TrimSpace(s), name) {
				at = j
			}
		}
		if at < 0 {
			return order, false
		}
		order[i] = at
	}
	return order, true
}

func traceFlow(row []string, order [len(traceColumns)]int) (f TraceFlow, err error) {
	at := func(i int) string { return strings.Clone(strings.TrimSpace(row[order[i]])) }
	f = TraceFlow{Src: at(1), Dst: at(2), Class: at(3)}
	if f.Start, err = units.ParseDuration(at(0)); err != nil {
		return f, fmt.Errorf("start: %w", err)
	}
	if f.Bytes, err = units.ParseBytes(at(4)); err != nil {
		return f, fmt.Errorf("bytes: %w", err)
	}
	if e := (&Part{Kind: Trace, File: "-", Flows: []TraceFlow{f}}).check(); e != nil {
		return f, fmt.Errorf("%s %s", e.Text, e.What)
	}
	return f, nil
}
