package check

import (
	"fmt"
	"slices"
	"strings"
)

// eosFree are the lines after which free text follows, up to a line EOF.
var eosFree = []string{"banner login", "banner motd", "banner exec", "action bash", "code", "script"}

// eosSecretWords are words after which the rest of a line is secret.
var eosSecretWords = []string{
	"secret", "password", "passphrase", "key", "md5", "sha", "community", "hash", "token", "ssh-key", "sshkey", "auth-password", "priv-password",
}

// eos scrubs a running configuration: what follows a word that announces a secret or a command goes, to the end of the
// line, and free text goes whole. Lines keep their place and their indentation.
func (s *scrubber) eos(text string) string {
	var out []string
	free := ""
	for i, l := range strings.Split(text, "\n") {
		where := fmt.Sprintf("line %d", i+1)
		trimmed := strings.TrimSpace(l)
		switch {
		case free != "" && trimmed == "EOF":
			free = ""
		case free != "":
			if trimmed != "" {
				s.take(where, "free text of "+free, l)
			}
			continue
		case slices.Contains(eosFree, trimmed):
			out = append(out, l, scrubbed)
			free = trimmed
			continue
		default:
			l = s.shaped(where, s.eosLine(where, l))
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// eosLine is a line without what follows the first word that announces a secret.
func (s *scrubber) eosLine(where, l string) string {
	words := strings.Fields(l)
	cut := len(words)
	for i, w := range words {
		if w == "key" && i+1 < len(words) && (words[i+1] == "field" || words[i+1] == "size") { // of a TCAM profile
			continue
		}
		if isEOSSecret(words[:i], strings.ToLower(w)) {
			cut = i + 1
			break
		}
	}
	if len(words) > 3 && words[0] == "snmp-server" && words[1] == "host" { // the community stands last, without a word for it
		cut = min(cut, 3)
	}
	if cut >= len(words) {
		return l
	}
	s.take(where+", "+words[0], "after "+words[cut-1], strings.Join(words[cut:], " "))
	indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
	return indent + strings.Join(words[:cut], " ") + " " + scrubbed
}

// isEOSSecret reports whether a word announces a secret, given those before it.
func isEOSSecret(before []string, w string) bool {
	if len(before) > 0 && before[0] == "description" { // free text; only shapes count
		return false
	}
	switch {
	case slices.Contains(eosSecretWords, w):
		return true
	case w == "bash", w == "exec" && len(before) == 0: // a command of a shell or a daemon, which may hold anything
		return true
	case strings.HasSuffix(w, "-key") || strings.HasSuffix(w, "-secret") || strings.HasSuffix(w, "-password") || strings.HasSuffix(w, "key-string"):
		return true
	case w == "auth" || w == "priv":
		return len(before) > 0 && before[0] == "snmp-server"
	case w == "text": // vrrp 1 peer authentication text X
		return len(before) > 0 && before[len(before)-1] == "authentication"
	}
	return false
}
