package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// scrubbed stands where a secret was.
const scrubbed = "<scrubbed>"

// Removal is a place from which secrets were taken. It holds none.
type Removal struct {
	Where string `json:"where"` // "TACPLUS|global|passkey", "line 12, username"
	What  string `json:"what"`  // the rule
}

// scrubber takes secrets out of texts, and remembers them, so that what was a secret in one place is one everywhere.
type scrubber struct {
	removed []Removal
	secrets map[string]bool
}

func newScrubber() *scrubber { return &scrubber{secrets: map[string]bool{}} }

// text is the text of an operating system's configuration without its secrets. It is an error when the text is not
// what that system writes, since then nobody can say what is secret in it.
func (s *scrubber) text(os string, text []byte) ([]byte, error) {
	switch os {
	case "sonic":
		return s.sonic(text)
	case "eos":
		return []byte(s.eos(string(text))), nil
	}
	return []byte(s.lines(string(text))), nil
}

// take notes that a secret was taken from somewhere. Each of its words counts that does not look like a word of the
// configuration's own.
func (s *scrubber) take(where, what, secret string) {
	s.removed = append(s.removed, Removal{where, what})
	for _, w := range strings.Fields(secret) {
		if w = strings.Trim(w, `"',;`); looksSecret(w) {
			s.secrets[w] = true
		}
	}
}

// looksSecret reports whether a word that was a secret somewhere can be taken out everywhere without taking words of
// the language out: it is long enough, and mixes letters with digits, is a long number, or holds unusual signs.
func looksSecret(w string) bool {
	if len(w) < 8 || strings.Contains(w, scrubbed) || interfaceRE.MatchString(w) || isAddress(w) {
		return false
	}
	digits := strings.ContainsAny(w, "0123456789")
	letters := strings.ToLower(w) != strings.ToUpper(w)
	unusual := strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz0123456789-_./:") != ""
	return digits && letters || digits && len(w) >= 16 || unusual || strings.ContainsFunc(w, func(r rune) bool {
		return strings.ContainsRune("!@#$%^&*+=~?|", r)
	})
}

// isAddress reports whether w is an IP or MAC address or a prefix.
func isAddress(w string) bool {
	_, err := netip.ParseAddr(w)
	_, err2 := netip.ParsePrefix(w)
	_, err3 := net.ParseMAC(w)
	return err == nil || err2 == nil || err3 == nil
}

// everywhere takes what was a secret somewhere out of texts, as it stands there and inside JSON, in one pass.
func (s *scrubber) everywhere() *strings.Replacer {
	var pairs []string
	for _, w := range longestFirst(s.secrets) {
		pairs = append(pairs, w, scrubbed)
		if j, err := json.Marshal(w); err == nil && string(j) != `"`+w+`"` {
			pairs = append(pairs, strings.Trim(string(j), `"`), scrubbed)
		}
	}
	return strings.NewReplacer(pairs...)
}

// longestFirst is the keys of a map, so that no key goes before one that holds it.
func longestFirst[V any](m map[string]V) []string {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b string) int { return len(b) - len(a) })
	return keys
}

// shape is what a secret looks like, wherever it stands.
type shape struct {
	what string
	re   *regexp.Regexp
	keep string              // what stays of a match, in terms of its groups
	is   func(m string) bool // nil = every match
}

// shapes are looked for in every value and line, whatever its name.
var shapes = []shape{
	{"PEM block", regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\z)`), scrubbed, nil},
	{"password hash", regexp.MustCompile(`\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|sha256|sha512|md5|argon2i?d?|scrypt|pbkdf2[-\w]*)\$[^\s"']+`), scrubbed, nil},
	{"SSH key", regexp.MustCompile(`(?:(?:sk-)?(?:ssh|ecdsa)-[-\w.@]+)\s+[A-Za-z0-9+/]{20,}={0,2}`), scrubbed, nil},
	{"token", regexp.MustCompile(`eyJ[-\w]{8,}\.[-\w]+(?:\.[-\w]*)?`), scrubbed, nil},
	{"login in a URL", regexp.MustCompile(`://[^/\s:@"]+:[^/\s@"]+@`), "://" + scrubbed + "@", nil},
	{"login of a command", regexp.MustCompile(`((?:^|\s)(?:-u|--user)[ =]+)[^\s:"']+:[^\s"']+`), "${1}" + scrubbed, nil},
	{"HTTP header", regexp.MustCompile(`(?i)(\bauthorization["']?\s*[=:]\s*["']?)(?:(?:basic|bearer|digest|token)\s+)?[^\s"',<]+`), "${1}" + scrubbed, nil},
	{"streaming key", regexp.MustCompile(`(?i)(-(?:cv|ingest)[-_]?auth[= ])\S+`), "${1}" + scrubbed, nil},
	{"named secret", regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|secret|token|api[-_]?key|private[-_]?key|community)["']?\s*[=:]\s*["']?)[^\s"',]+`), "${1}" + scrubbed, nil},
	{"long hexadecimal", regexp.MustCompile(`\b(?:0x)?[0-9a-fA-F]{32,}\b`), scrubbed, nil},
	{"long random text", regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`), scrubbed, isRandom},
}

// isRandom reports whether a long word mixes digits with letters of both cases, as keys do and names do not. A path may
// do so too: the parts of one are short, or hold no capitals.
func isRandom(w string) bool {
	const short = 10 // few keys in base64 have a slash that often
	named := func(part string) bool { return len(part) <= short || strings.ToLower(part) == part }
	return strings.ContainsAny(w, "0123456789") && strings.ToLower(w) != w && strings.ToUpper(w) != w &&
		slices.ContainsFunc(strings.Split(w, "/"), func(part string) bool { return !named(part) })
}

// shaped takes out of a text what looks like a secret.
func (s *scrubber) shaped(where, text string) string {
	for _, x := range shapes {
		text = x.re.ReplaceAllStringFunc(text, func(m string) string {
			if x.is != nil && !x.is(m) || strings.Contains(m, scrubbed) {
				return m
			}
			kept := x.re.ReplaceAllString(m, x.keep)
			s.take(where, x.what, strings.TrimPrefix(m, kept[:commonPrefix(m, kept)]))
			return kept
		})
	}
	return text
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// lines scrubs a text of which only the shapes are known.
func (s *scrubber) lines(text string) string { return s.shaped("text", text) }

// sonic scrubs a ConfigDB: fields by their names, rows whose key is the secret, and shapes everywhere.
func (s *scrubber) sonic(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var db map[string]any
	if err := d.Decode(&db); err != nil {
		return nil, fmt.Errorf("the configuration is not a JSON object, so nobody can say what is secret in it")
	}
	for _, table := range slices.Sorted(maps.Keys(db)) {
		rows, ok := db[table].(map[string]any)
		if !ok {
			db[table] = s.value(table, "", db[table])
			continue
		}
		s.sonicRows(table, rows)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(db); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *scrubber) sonicRows(table string, rows map[string]any) {
	n := 0
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		v, at := rows[row], row
		if table == "SNMP_COMMUNITY" || table == "SNMP_AGENT_ADDRESS_CONFIG" && strings.Contains(row, "community") { // the community is the key
			n++
			at = fmt.Sprintf("<scrubbed-%d>", n)
			s.take(table, "row key", row)
			delete(rows, row)
		} else if clean := s.shaped(table, row); clean != row {
			n++
			at = fmt.Sprintf("%s-%d", clean, n)
			delete(rows, row)
		}
		rows[at] = s.value(table+"|"+at, "", v)
	}
}

// value scrubs what stands at a place. A field with a secret's name loses all it holds.
func (s *scrubber) value(where, field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = s.value(where+"|"+k, k, v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = s.value(where, field, v[i])
		}
		return v
	case string:
		if v != "" && isSecretName(field) || strings.HasPrefix(where, "NTP_KEY|") && field == "value" {
			s.take(where, "field", v)
			return scrubbed
		}
		return s.shaped(where, v)
	case json.Number:
		if isSecretName(field) {
			s.take(where, "field", v.String())
			return scrubbed
		}
		return v
	}
	return v
}

// secretNames are parts of the names of fields that hold secrets.
var secretNames = []string{"passw", "passkey", "passphrase", "secret", "community", "private", "credential", "token", "_cak", "_ckn", "psk", "hash_pw", "authkey", "shared_key", "crypt_key"}

// isSecretName reports whether a field of that name holds a secret.
func isSecretName(field string) bool {
	f := strings.ToLower(field)
	return f == "key" || f == "cak" || f == "ckn" || f == "md5" || strings.HasSuffix(f, "_key") || strings.HasSuffix(f, "_md5") ||
		slices.ContainsFunc(secretNames, func(n string) bool { return strings.Contains(f, n) })
}
