package model

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// problem is why a scalar was refused: a rule id, the rest of the sentence that starts with the text, and a hint.
type problem struct{ rule, what, hint string }

// scalar is one kind of leaf: what it is called, how its text is checked and made canonical, and the same as JSON Schema.
type scalar struct {
	noun   string
	secret bool // never repeat the text in a finding
	parse  func(text string) (canonical string, p *problem)
	schema func() schema // made when it is asked for: documents are checked without it
}

// fromUnits wraps a parser of package units; pattern is its language.
func fromUnits[T fmt.Stringer](noun string, pattern func() string, parse func(string) (T, error)) *scalar {
	return &scalar{noun: noun, schema: func() schema { return textSchema(pattern())() }, parse: func(s string) (string, *problem) {
		v, err := parse(s)
		if e := (*units.Error)(nil); errors.As(err, &e) {
			return "", &problem{"units", e.What, e.Hint}
		}
		return v.String(), nil
	}}
}

func bytesScalar() *scalar {
	return fromUnits("size such as 9216B or 800KB", quantityPattern(units.SizeUnits), units.ParseBytes)
}

func rateScalar() *scalar {
	return fromUnits("rate such as 400Gbps", quantityPattern(units.RateUnits), units.ParseBitRate)
}

func lengthScalar() *scalar {
	return fromUnits("length such as 40m", quantityPattern(units.LengthUnits), units.ParseLength)
}

func durationScalar() *scalar {
	return fromUnits("time such as 200ms", quantityPattern(units.TimeUnits), units.ParseDuration)
}

// ratioScalar is a fraction. A whole one is a number in YAML.
func ratioScalar() *scalar {
	s := fromUnits("fraction such as 1/2", nil, units.ParseRatio)
	s.schema = numberOrText(1, 1<<31-1, ratioPattern)
	return s
}

// shareScalar is a percentage from 0% to 100%.
func shareScalar() *scalar {
	s := fromUnits("share such as 20%", func() string { return sharePattern }, units.ParsePercent)
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		c, p := inner(text)
		if p != nil {
			return c, p
		}
		if v, err := units.ParsePercent(text); err != nil || v > 100*units.OnePercent {
			return "", &problem{"units", "is above 100%", ""}
		}
		return c, nil
	}
	return s
}

// wholeShareScalar is a percentage from 1% to 100% without decimals, as schedulers take it.
func wholeShareScalar() *scalar {
	s := shareScalar()
	s.schema = textSchema(`(100|[1-9][0-9]?)(\.0+)?%`)
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		c, p := inner(text)
		if p != nil {
			return c, p
		}
		if v, err := units.ParsePercent(text); err != nil || v == 0 || v%units.OnePercent != 0 {
			return "", &problem{"value", "is not a whole percentage", "schedulers take 1% to 100% without decimals"}
		}
		return c, nil
	}
	return s
}

// parseAutoBytes reads a size or "auto".
func parseAutoBytes(s string) (AutoBytes, error) {
	if s == "auto" {
		return AutoBytes{Auto: true}, nil
	}
	v, err := units.ParseBytes(s)
	return AutoBytes{Bytes: v}, err
}

// String is the text form.
func (a AutoBytes) String() string {
	if a.Auto {
		return "auto"
	}
	return a.Bytes.String()
}

func autoBytesScalar() *scalar {
	return fromUnits("size such as 100KB, or auto", func() string { return "auto|" + quantityPattern(units.SizeUnits)() }, parseAutoBytes)
}

// intScalar is a plain decimal number from lo to hi.
func intScalar(noun string, lo, hi int) *scalar {
	a := "a"
	if strings.IndexByte("aeiou", noun[0]) >= 0 {
		a = "an"
	}
	said := fmt.Sprintf("%s from %d to %d", noun, lo, hi)
	hint := "write " + a + " " + said
	return &scalar{noun: said, schema: numberSchema(lo, hi), parse: func(s string) (string, *problem) {
		v, p := parseInt(s)
		if p != nil && p.what == notWhole {
			p.hint = hint
		}
		if p != nil {
			return "", p
		}
		if v < lo || v > hi {
			return "", &problem{"value", fmt.Sprintf("is not from %d to %d", lo, hi), hint}
		}
		return strconv.Itoa(v), nil
	}}
}

// splitScalar is into how many links a port is split; the form of switches, 2x400G, is told apart.
func splitScalar() *scalar {
	s := intScalar("number", 1, 16)
	whole := s.parse
	s.parse = func(text string) (string, *problem) {
		c, p := whole(text)
		if n, rest, ok := strings.Cut(text, "x"); p != nil && ok && rest != "" {
			if c, bad := whole(n); bad == nil {
				return "", &problem{"value", "says how fast the parts are too", "write " + c + ", and their speed under speed"}
			}
		}
		return c, p
	}
	return s
}

const notWhole = "is not a whole number"

// parseInt reads decimal digits only: no sign, no 0x, no leading zero, no separators.
func parseInt(s string) (int, *problem) {
	if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0123456789") == "" {
		return 0, &problem{
			"value", "starts with a zero, which some YAML readers take as octal",
			"write " + cmp.Or(strings.TrimLeft(s, "0"), "0"),
		}
	}
	if lower := strings.ToLower(s); strings.HasPrefix(lower, "0x") || strings.HasPrefix(lower, "0o") || strings.HasPrefix(lower, "0b") {
		if v, err := strconv.ParseInt(lower, 0, 64); err == nil {
			return 0, &problem{"value", "is not decimal", "write " + strconv.FormatInt(v, 10)}
		}
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, &problem{"value", notWhole, "write decimal digits only"}
	}
	v, err := strconv.Atoi(s)
	if err != nil || v > 1<<31-1 {
		return 0, &problem{"value", "is too large", ""}
	}
	return v, nil
}

// boolScalar is true or false; YAML 1.1's other spellings are refused.
func boolScalar() *scalar {
	return &scalar{noun: "true or false", schema: func() schema { return schema{"type": "boolean"} }, parse: func(s string) (string, *problem) {
		switch strings.ToLower(s) {
		case "true", "false":
			if s == strings.ToLower(s) {
				return s, nil
			}
			return "", &problem{"value", "is not true or false", "write " + strings.ToLower(s)}
		case "yes", "on", "y":
			return "", &problem{"value", "is not true or false", "write true"}
		case "no", "off", "n":
			return "", &problem{"value", "is not true or false", "write false"}
		}
		hint := "write true or false"
		if strings.Contains(s, "#") {
			hint += "; a comment needs a space before its #"
		}
		return "", &problem{"value", "is not true or false", hint}
	}}
}

// enumScalar is one of a few words.
func enumScalar(words ...string) *scalar {
	return &scalar{noun: "one of " + strings.Join(words, ", "), schema: func() schema { return schema{"type": "string", "enum": words} }, parse: func(s string) (string, *problem) {
		for _, w := range words {
			if w == s {
				return s, nil
			}
		}
		hint := "use " + strings.Join(words, ", ")
		if w := Closest(s, words); w != "" && len(words) == 1 {
			hint = "did you mean " + w + "?"
		} else if w != "" {
			hint = "did you mean " + w + "? " + hint
		} else if len(words) == 1 {
			hint = "the only word here is " + words[0]
		}
		return "", &problem{"value", "is not one of the words known here", hint}
	}}
}

// meant has s know what people call its words elsewhere: pairs of a word without punctuation, and the one that is right here.
func (s *scalar) meant(pairs ...string) *scalar {
	r := *s
	r.parse = func(text string) (string, *problem) {
		canonical, p := s.parse(text)
		if p != nil {
			for i := 0; i < len(pairs); i += 2 {
				if strings.ReplaceAll(fold(text), " ", "") == pairs[i] {
					p.hint = "write " + pairs[i+1]
				}
			}
		}
		return canonical, p
	}
	return &r
}

const maxName = 64

// nameScalar is a model name: it goes into CLI sessions, file names and paths.
func nameScalar() *scalar {
	return &scalar{noun: "name", schema: plainSchema(namePattern), parse: func(s string) (string, *problem) {
		if !isName(s, "-_.") {
			hint := "names are letters, digits and -_. , begin with a letter or digit, and have at most 64 characters"
			if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "{{") {
				hint = "write the name itself: variables are not filled in here"
			} else if n := strings.Join(strings.Fields(strings.Trim(s, "“”‘’\"'`")), "-"); n != s && isName(n, "-_.") {
				hint = "write " + n + ": " + hint
			}
			return "", &problem{"name", "is not a name", hint}
		}
		return s, nil
	}}
}

// ifaceScalar is a device's interface name.
func ifaceScalar() *scalar {
	return &scalar{noun: "interface name", schema: plainSchema(ifacePattern), parse: func(s string) (string, *problem) {
		if !isName(s, "-_./:") {
			return "", &problem{
				"name", "is not an interface name",
				"interface names are letters, digits and -_./: , begin with a letter or digit, and have at most 64 characters",
			}
		}
		return s, nil
	}}
}

// rdmaScalar is the name of an RDMA device. The port is not part of it.
func rdmaScalar() *scalar {
	return &scalar{noun: "RDMA device such as mlx5_0", schema: plainSchema(namePattern), parse: func(s string) (string, *problem) {
		if name, port, ok := strings.Cut(s, ":"); ok && isName(name, "-_.") && isDigits(port) {
			return "", &problem{"name", "holds a port", "write " + name}
		}
		if !isName(s, "-_.") {
			return "", &problem{"name", "is not the name of an RDMA device", "write it as ls /sys/class/infiniband does: mlx5_0"}
		}
		return s, nil
	}}
}

func isName(s, extra string) bool {
	if s == "" || len(s) > maxName || strings.IndexByte(extra, s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(extra, c) >= 0) {
			return false
		}
	}
	return true
}

// textScalar is any single line of printable text.
func textScalar(noun string) *scalar {
	return &scalar{noun: noun, schema: plainSchema(textPattern), parse: func(s string) (string, *problem) {
		if p := plainText(s); p != nil {
			return "", p
		}
		return s, nil
	}}
}

func plainText(s string) *problem {
	if s == "" {
		return &problem{"value", "is empty", ""}
	}
	if len(s) > 1024 {
		return &problem{"value", "is longer than 1024 bytes", ""}
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || '\u0080' <= r && r <= '\u009f' || r == '\u2028' || r == '\u2029' {
			return &problem{"value", "holds a control character", ""}
		}
	}
	return nil
}

// referenceScalar is where a file or secret is to be found: env:NAME, file:PATH or exec:COMMAND. A literal in the place
// of a secret is refused without repeating it.
func referenceScalar(secret bool) *scalar {
	return &scalar{noun: "reference such as env:NAME, file:PATH or exec:COMMAND", secret: secret, schema: textSchema(envPattern + "|(file|exec):" + textPattern), parse: func(s string) (string, *problem) {
		scheme, rest, _ := strings.Cut(s, ":")
		known := scheme == "env" || scheme == "file" || scheme == "exec"
		switch {
		case scheme == "env" && rest != "" && !isEnvName(rest):
			return "", &problem{"value", "is not the name of an environment variable", "write env:NAME, of letters, digits and _; a secret itself does not stand there"}
		case known && rest != "" && plainText(rest) == nil:
			return s, nil
		case known && plainText(rest) != nil:
			return "", &problem{"value", "refers to nothing", "write env:NAME, file:PATH or exec:COMMAND"}
		case secret:
			return "", &problem{
				"literal-secret", "stands in the model itself",
				"keep secrets out of the model: write env:NAME, file:PATH or exec:COMMAND",
			}
		}
		return "", &problem{"value", "is not a reference", "write file:" + clip(s)}
	}}
}

// userinfo reports whether s holds user:password@ as URLs do.
func userinfo(s string) bool {
	_, rest, ok := strings.Cut(s, "://")
	if !ok {
		rest = s
	}
	user, _, ok := strings.Cut(rest, "@")
	return ok && strings.Contains(user, ":")
}

func inURL() *problem {
	return &problem{"literal-secret", "holds a password", "keep secrets out of the model: the user's name and password have keys of their own, with env:NAME, file:PATH or exec:COMMAND"}
}

func isEnvName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

// userScalar is a user's name: text, or a reference to it.
func userScalar() *scalar {
	return checkedText("user name", envPattern+"|(file|exec):("+textPattern+")?|"+wordPattern(":"), func(s string) *problem {
		scheme, rest, colon := strings.Cut(s, ":")
		switch {
		case colon && scheme == "env" && !isEnvName(rest):
			return &problem{"value", "is not the name of an environment variable", "write env:NAME, of letters, digits and _"}
		case colon && scheme != "env" && scheme != "file" && scheme != "exec":
			return &problem{"literal-secret", "holds a colon, as if a password came after it", "write the user's name alone; the password has a key of its own"}
		}
		return nil
	})
}

// hostnameScalar is the name that a device gives itself.
func hostnameScalar() *scalar {
	return checkedText("host name", wordPattern("@"), func(s string) *problem {
		switch {
		case userinfo(s):
			return inURL()
		case strings.Contains(s, "@"):
			return &problem{"value", "is not a host name", "write the name alone"}
		}
		return nil
	})
}

// checkedText is text about which bad has nothing to say, which pattern says to editors.
func checkedText(noun, pattern string, bad func(string) *problem) *scalar {
	s := textScalar(noun)
	s.schema = plainSchema(pattern)
	plain := s.parse
	s.parse = func(text string) (string, *problem) {
		if p := bad(text); p != nil {
			return "", p
		}
		return plain(text)
	}
	return s
}

// addressScalar is an IP address or host name without a port.
func addressScalar() *scalar {
	return &scalar{noun: "IP address or host name", schema: hostSchema(addressPattern), parse: func(s string) (string, *problem) {
		if a, err := netip.ParseAddr(s); err == nil {
			if zone := a.Zone(); zone != "" && !(len(zone) < 16 && isName(zone, "-_.")) { // anything may stand there for the library
				return "", &problem{"value", "has a zone that is not the name of an interface", "write " + a.WithZone("").String() + "%eth0, or without a zone"}
			}
			return a.String(), nil
		}
		if userinfo(s) {
			return "", inURL()
		}
		if host, port, ok := strings.Cut(s, ":"); ok && strings.Trim(port, "0123456789") == "" && isName(host, "-.") {
			return "", &problem{"value", "holds a port", "write " + host + " here, and the port under gnmi.port or ssh.port"}
		}
		if strings.Trim(s, "0123456789.") == "" || !isName(s, "-_.") && !(len(s) <= 253 && isLongHost(s)) {
			hint := "write an address such as 192.0.2.11, or a host name"
			if h := bareHost(s); h != "" {
				hint = "write " + h
			}
			return "", &problem{"value", "is not an IP address or host name", hint}
		}
		return s, nil
	}}
}

func isAddress(s string) bool {
	_, p := addressScalar().parse(s)
	return p == nil
}

// bareHost is the address or name in a URL, or in front of a prefix length; "" when there is none.
func bareHost(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	h, _ := splitPort(s)
	if _, err := netip.ParseAddr(h); err == nil || isLongHost(h) && strings.Trim(h, "0123456789.") != "" {
		return h
	}
	return ""
}

// isLongHost is isName without the limit on length, for fully qualified names.
func isLongHost(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !isName(label, "-_") {
			return false
		}
	}
	return true
}

// prefixScalar is an IP address with a prefix length.
func prefixScalar() *scalar {
	return &scalar{noun: "IP address with prefix length", schema: textSchema(prefixPattern), parse: func(s string) (string, *problem) {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return "", &problem{"value", "is not an IP address with a prefix length", "write 192.168.1.11/31"}
		}
		return p.String(), nil
	}}
}

// pciScalar is a PCI address: domain:bus:device.function.
func pciScalar() *scalar {
	return &scalar{noun: "PCI address", schema: textSchema(pciPattern), parse: func(s string) (string, *problem) {
		const shape = "hhhh:hh:hh.h"
		lower := strings.ToLower(s)
		ok := len(lower) == len(shape)
		for i := 0; ok && i < len(shape); i++ {
			if shape[i] == 'h' {
				ok = strings.IndexByte("0123456789abcdef", lower[i]) >= 0
			} else {
				ok = lower[i] == shape[i]
			}
		}
		if !ok {
			return "", &problem{"value", "is not a PCI address", `write it in quotes with its domain: "0000:17:00.0"`}
		}
		return lower, nil
	}}
}

// portRefScalar is device:port, both model names.
func portRefScalar() *scalar {
	return &scalar{noun: "port such as leaf1:downlink-1", schema: textSchema(namePattern + ":" + namePattern), parse: func(s string) (string, *problem) {
		device, port, ok := strings.Cut(s, ":")
		if !ok || !isName(device, "-_.") || !isName(port, "-_.") {
			return "", &problem{"value", "is not device:port", "write leaf1:downlink-1"}
		}
		return s, nil
	}}
}

// stopScalar is a device on a route, or one of its ports.
func stopScalar() *scalar {
	return &scalar{noun: "device or port such as leaf1 or leaf1:uplink-1", schema: plainSchema(namePattern + "(:" + namePattern + ")?"), parse: func(s string) (string, *problem) {
		device, port, ok := strings.Cut(s, ":")
		if !isName(device, "-_.") || ok && !isName(port, "-_.") {
			return "", &problem{"value", "is neither a device nor device:port", "write leaf1 or leaf1:uplink-1"}
		}
		return s, nil
	}}
}

// clip keeps texts in messages short.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
