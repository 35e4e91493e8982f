package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Findings writes findings in text form.
func Findings(w io.Writer, l diag.List) {
	for _, f := range l {
		word := f.Word() + ":"
		st := Cyan
		switch {
		case f.Severity == diag.Error:
			st = Red
		case f.Severity == diag.Warning && f.Ack == "":
			st = Yellow
		}
		fmt.Fprintln(w, strings.Replace(f.String(), word, Paint(st, word), 1))
	}
}
