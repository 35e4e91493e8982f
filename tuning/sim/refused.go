package sim

import (
	"github.com/fabricctl/fabricctl/model/diag"
)

// Error is the first finding that is an error, and how many more there are.
func (r *Refused) Error() string {
	errs := r.Findings.Count(diag.Error)
	for _, f := range r.Findings {
		if f.Severity == diag.Error {
			if errs > 1 {
				return f.Msg + " (and " + diag.Count(errs-1, "other error") + ")"
			}
			return f.Msg
		}
	}
	return "the simulation was refused"
}
