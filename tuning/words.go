package tuning

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// words are a setting for people.
func (t *tuner) words(s Setting) string { return SettingText(t.vars, s) }

// change is what differs between two settings, for people.
func (t *tuner) change(from, to Setting) string {
	var parts []string
	for i := range to {
		if from[i] != to[i] {
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", t.vars[i].Name, t.vars[i].Text(to[i]), t.vars[i].Text(from[i])))
		}
	}
	return strings.Join(parts, ", ")
}

// percent is a difference of logarithms: "+1.3%, and between +0.4 and +2.2% with 99% confidence".
func percent(i stats.Interval) string {
	return fmt.Sprintf("%+.1f%%, and between %+.1f%% and %+.1f%% with %.4g%% confidence", 100*i.Est, 100*i.Low, 100*i.High, 100*i.Conf)
}
