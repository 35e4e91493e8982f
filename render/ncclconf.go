package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// NCCLPath is the file that every NCCL process of a host reads last; the environment and ~/.nccl.conf win over it.
const NCCLPath = "/etc/nccl.conf"

// ncclMax is where NCCL cuts a name or a value, in bytes.
const ncclMax = 1023

// ParseNCCL reads the text of an nccl.conf as NCCL does (src/misc/param.cc): one NAME=value a line, a comment where
// "#" is the first character, nothing quoted, nothing trimmed, the first of two equal names wins. Lines that NCCL
// skips, and names that no program could ask for, give nothing. Keys are {"nccl", NCCLPath, NAME}.
func ParseNCCL(text []byte) Config {
	var c Config
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		name, value, ok := ncclLine(line)
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		c = append(c, Setting{Key: Key{"nccl", NCCLPath, name}, Value: value})
	}
	return c.Sorted()
}

// EditNCCL is text after cs, whose keys must be of the form that ParseNCCL gives. A name that is there already is
// set where it stands first; a new one is added at the end; a removed one is removed everywhere, or else a later
// line would take its place. All other bytes stay. It refuses what NCCL would read back as something else.
func EditNCCL(text []byte, cs []Change) ([]byte, error) {
	lines := slices.Collect(bytes.Lines(text))
	for _, c := range cs {
		name := c.Key.Field
		if c.Key.Scope != "nccl" || c.Key.Object != NCCLPath || !ncclName(name) {
			return nil, fmt.Errorf("%s is not a variable of %s", c.Key, NCCLPath)
		}
		is := func(line []byte) bool { n, _, ok := ncclLine(line); return ok && n == name }
		if c.After == nil {
			lines = slices.DeleteFunc(lines, is)
			continue
		}
		if !ncclValue(*c.After) {
			return nil, fmt.Errorf("%s: a value of at most %d printable bytes is needed, %q is not one", name, ncclMax, *c.After)
		}
		i := slices.IndexFunc(lines, is)
		if i < 0 {
			i = len(lines)
			if i > 0 && !bytes.HasSuffix(lines[i-1], []byte("\n")) {
				lines[i-1] = append(bytes.Clone(lines[i-1]), '\n')
			}
			lines = append(lines, []byte("\n"))
		}
		lines[i] = append([]byte(name+"="+*c.After), ending(lines[i])...)
	}
	return bytes.Join(lines, nil), nil
}

func ncclLine(line []byte) (name, value string, ok bool) {
	line, _, _ = bytes.Cut(line, []byte{0})
	line = line[:len(line)-len(ending(line))]
	n, v, ok := bytes.Cut(line, []byte("="))
	if !ok || !ncclName(string(n)) { // which no comment has
		return "", "", false
	}
	return string(n), ncclCut(ncclCut(string(v))), true
}

// ncclCut is s as far as NCCL reads it, with what is not UTF-8 replaced. Twice is as often as needed: replacing makes
// text longer.
func ncclCut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), ncclMax)], "\uFFFD")
}

func ending(line []byte) []byte {
	return line[len(bytes.TrimRight(line, "\r\n")):]
}

func ncclName(s string) bool {
	return s != "" && len(s) <= ncclMax && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func ncclValue(s string) bool {
	return len(s) <= ncclMax && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xFFFD })
}
