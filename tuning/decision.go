package tuning

import (
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Objective is what is better. J is ln goodput − Exchange·ln p99.9, so that with 0.1 one percent of goodput is worth ten
// percent of latency; a difference of 0.01 is called 1 % J.
type Objective struct {
	Exchange      float64 `json:"exchange"`      // 0 = goodput alone
	Lexicographic bool    `json:"lexicographic"` // goodput first, and latency among those within Tie of the best
	Tie           float64 `json:"tie"`           // differences in J up to here keep what is there, 0.005 by default; lexicographic: of ln goodput, 0.01
	PausedMost    float64 `json:"paused_most"`   // more of the time than this may no port be stopped by a switch; 0 = no ceiling
}

// Limits end an experiment on devices that serve others, and rule settings out.
type Limits struct {
	Drops    uint64  `json:"drops"`    // of lossless classes in one run; more trips
	Watchdog uint64  `json:"watchdog"` // events in one run
	Pausing  float64 `json:"pausing"`  // of the time that a host stops its switch, after the baseline; 0 = not looked at
	Rejected int     `json:"rejected"` // runs in a row that could not be used
}

// Budget is what may be spent. Zero is no limit.
type Budget struct {
	Runs int            `json:"runs"`
	Time units.Duration `json:"time"`
}

// Method is how settings are looked for.
type Method string

// The methods.
const (
	OFAT       Method = "ofat"        // one variable at a time
	NelderMead Method = "nelder-mead" // a simplex
	FullGrid   Method = "grid"        // all combinations of the ladders
)

// Verdict is what came of a comparison.
type Verdict string

// The verdicts.
const (
	Better       Verdict = "better"
	NoDifference Verdict = "no difference" // what there is is kept
	NoEffect     Verdict = "no effect"     // the variable does nothing here, as far as this workload goes
	Worse        Verdict = "worse"
	Plateau      Verdict = "plateau" // several are as good: the careful end of them was taken
	Undecided    Verdict = "undecided"
	Infeasible   Verdict = "infeasible" // it breaks a limit
	HostBound    Verdict = "host bound" // not the fabric: a host is slow
	WrongClass   Verdict = "wrong class"
	Interacting  Verdict = "interaction" // two variables have to be moved together
)

// Decision is what was concluded at one point, with its evidence.
type Decision struct {
	N        int     `json:"n"`        // from 1
	Step     string  `json:"step"`     // "baseline", "pfc ladder", "race", "ladder", "walk", "joint", "polish", "back", "interaction", "confirmation"
	Variable string  `json:"variable"` // that was moved; "" for several
	Cycle    int     `json:"cycle"`    // from 1; 0 = before or after the cycles
	From     Setting `json:"from"`     // what was there
	To       Setting `json:"to"`       // what is there now; the same when it is kept
	Verdict  Verdict `json:"verdict"`

	J       *stats.Interval `json:"j"`       // To against From, or the best that was tried against From; null without a comparison
	Goodput *stats.Interval `json:"goodput"` // of ln goodput
	Tail    *stats.Interval `json:"tail"`    // of ln p99.9

	Runs   int    `json:"runs"`   // made for it
	Total  int    `json:"total"`  // made until then
	Looks  int    `json:"looks"`  // at which it might have ended
	Reason string `json:"reason"` // in a sentence or two, for people
	Arms   []Arm  `json:"arms"`   // what was compared
}

// Arm is a setting in a comparison.
type Arm struct {
	Setting Setting `json:"setting"`
	Runs    int     `json:"runs"`    // that were compared
	Goodput float64 `json:"goodput"` // mean, bits per second
	P999    float64 `json:"p999"`    // of all runs together, seconds
	J       float64 `json:"j"`       // mean
	Left    string  `json:"left"`    // why it was left out of the later looks; "" = it was in all
}
