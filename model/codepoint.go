package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// dscpScalar is one code point or a range of them.
func dscpScalar() *scalar {
	return &scalar{noun: "DSCP from 0 to 63, or a range such as 24-31", schema: numberOrText(0, 63, dscpPattern), parse: func(s string) (string, *problem) {
		if _, _, p := parseDSCP(s); p != nil {
			return "", p
		}
		return s, nil
	}}
}

// codeScalar is one code point.
func codeScalar() *scalar {
	return &scalar{noun: "DSCP from 0 to 63", schema: numberSchema(0, 63), parse: func(s string) (string, *problem) {
		lo, hi, p := parseDSCP(s)
		switch {
		case p != nil:
			return "", p
		case lo != hi:
			return "", &problem{"value", "is a range", "an application marks one code point"}
		}
		return s, nil
	}}
}

func parseDSCP(s string) (lo, hi int, p *problem) {
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	lo, p = parseInt(a)
	if p == nil {
		hi, p = parseInt(b)
	}
	if n := codeNumber(s); p != nil && n != "" {
		return 0, 0, &problem{"value", "is named, and code points are numbers here", fmt.Sprintf("%s is %s: write %s", clip(s), n, n)}
	}
	switch {
	case p != nil && isRange:
		return 0, 0, &problem{"value", "is not a DSCP range", "write 24-31"}
	case s == "rest":
		return 0, 0, &problem{"value", "stands for a whole list", "write dscp: rest, without brackets"}
	case p != nil && p.what == notWhole:
		return 0, 0, &problem{"value", "is not a code point (DSCP)", "write a number from 0 to 63, or a range such as 24-31"}
	case p != nil:
		return 0, 0, p
	case lo > 63 || hi > 63:
		hint := ""
		switch {
		case lo == hi && lo < 256:
			hint = tosHint(lo)
		case hi < 256:
			hint = "a ToS byte is a code point times 4"
		}
		return 0, 0, &problem{"value", "is not from 0 to 63", hint}
	case hi < lo:
		return 0, 0, &problem{"value", "is a range that runs backwards", fmt.Sprintf("write %d-%d", hi, lo)}
	}
	return lo, hi, nil
}

// codeNumber is a code point, or a range of them, that is given by name, in numbers: "34" for "AF41"; "" when it is none.
func codeNumber(s string) string {
	a, b, isRange := strings.Cut(s, "-")
	if strings.EqualFold(s, "voice-admit") {
		a, isRange = s, false
	}
	lo, ok := units.ParseCodePoint(a)
	if !ok || !isRange {
		if !ok || isDigits(a) {
			return ""
		}
		return strconv.Itoa(int(lo))
	}
	hi, ok := units.ParseCodePoint(b)
	if !ok || isDigits(a) && isDigits(b) {
		return ""
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}

// restScalar is the word rest where code points could be listed. What would be an element of the list is told so.
func restScalar() *scalar {
	s := enumScalar("rest")
	s.noun = "the word rest"
	word := s.parse
	s.parse = func(text string) (string, *problem) {
		c, p := word(text)
		if p == nil {
			return c, nil
		}
		number := codeNumber(text)
		if number != "" {
			return "", &problem{"value", "is one code point by its name, and not a list of numbers", fmt.Sprintf("%s is %s: write a list: [%s]", clip(text), number, number)}
		}
		if _, _, bad := parseDSCP(text); bad == nil {
			return "", &problem{"value", "is one value, and not a list", "write a list: [" + text + "]"}
		}
		if Closest(text, []string{"rest"}) == "" {
			p.hint = "write a list of code points such as [26, 28-31], or rest"
		}
		return "", p
	}
	return s
}
