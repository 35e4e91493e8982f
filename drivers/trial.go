package drivers

import "context"

// Permission is what came of trying an operation.
type Permission string

const (
	Allowed  Permission = "allowed"
	Refused  Permission = "refused"
	NotTried Permission = "not tried"
)

// Trial is one operation that an account may do or not, and what came of trying it without changing anything.
type Trial struct {
	Operation string     `json:"operation"`        // "begin a configuration session"
	Verdict   Permission `json:"verdict"`          //
	For       string     `json:"for,omitempty"`    // what needs it: "plan", "apply"; "" = nothing of fabricctl's
	How       string     `json:"how"`              // what was sent, and why that changes nothing; or why nothing was sent
	Answer    string     `json:"answer,omitempty"` // the device's own sentence, of a refusal
}

// Trier is a device on which operations can be tried without an effect. An error means that the trials could not be
// ended properly, and says what may be left behind; the trials so far come with it.
type Trier interface {
	Try(context.Context) ([]Trial, error)
}
