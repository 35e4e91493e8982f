package main

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/cmd/show"
)

// Commands that are printed to be pasted work as they stand: they name the state directory of this call, and where they need a model
// the layers and profiles that it was given.

// pastes are the commands that a call has made to be printed. Several goroutines may make some.
type pastes struct {
	mu  sync.Mutex
	all []string
}

// command is a command of fabricctl to be pasted. It finds what this call has left in its state directory, and reaches the same devices.
func (a *app) command(words ...string) string { return a.commandOn(a.fabric, words...) }

// commandOn is command on a model that may not be the one of this call.
func (a *app) commandOn(layers []string, words ...string) string {
	words = append([]string{"fabricctl"}, words...)
	if verb := strings.Join(words[1:min(3, len(words))], " "); words[1] == "plan" || words[1] == "apply" || verb == "runs resume" || verb == "runs rollback" {
		words = append(words, a.flagsFor(layers, "MODEL")...)
	}
	if a.stateDir != "" {
		words = append(words, "--state-dir", quote(a.stateDir))
	}
	return a.remember(strings.Join(words, " "))
}

// remember notes a command that is to be pasted, and returns it.
func (a *app) remember(command string) string {
	a.pastes.mu.Lock()
	defer a.pastes.mu.Unlock()
	a.pastes.all = append(a.pastes.all, command)
	return command
}

// modelFlags are the flags that name the model of this call; where it has none, its layer is called otherwise, unless that is "".
func (a *app) modelFlags(otherwise string) (words []string) { return a.flagsFor(a.fabric, otherwise) }

// flagsFor are modelFlags of some layers.
func (a *app) flagsFor(layers []string, otherwise string) (words []string) {
	if len(layers) == 0 && otherwise != "" {
		layers = []string{otherwise}
	}
	for _, f := range layers {
		words = append(words, "-f", quote(f))
	}
	for _, p := range a.profiles {
		words = append(words, "--profiles", quote(p))
	}
	return words
}

// whole is text in which the commands of this call stay on one line each, however long that is.
func (a *app) whole(text string) string {
	a.pastes.mu.Lock()
	defer a.pastes.mu.Unlock()
	slices.SortStableFunc(a.pastes.all, func(x, y string) int { return cmp.Compare(len(y), len(x)) }) // one may begin as another does
	for _, c := range a.pastes.all {
		text = strings.ReplaceAll(text, c, show.Whole(c))
	}
	return text
}

// again is a command on a run: it finishes it ("resume") or takes it back ("rollback").
func (a *app) again(verb, id string) string { return a.command("runs", verb, id) }

// quote is s as one word of a POSIX shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
