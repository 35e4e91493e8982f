package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// OwnPersonalities are those that a user described, or changed, by name.
func (c *Catalog) OwnPersonalities() []Personality {
	all := c.personalities()
	var own []Personality
	for _, name := range all.names {
		if all.own[name] {
			own = append(own, *all.byName[name])
		}
	}
	return own
}

// told is a personality on its way to a host: the facts that a user gave, as text.
type told struct {
	Name  string     `json:"name"`
	Facts []toldFact `json:"facts"`
}

type toldFact struct {
	Key        string   `json:"key"`
	Values     []string `json:"values"`
	Source     string   `json:"source"`
	Confidence string   `json:"confidence"`
}

// Tell is what a host needs to be told to know the personalities that a user described: JSON for each, which Know reads there.
// With trusted false, knobs that run a program are left out.
func (c *Catalog) Tell(trusted bool) []json.RawMessage {
	var all []json.RawMessage
	for _, name := range c.NamesOf(KindPersonality) {
		e := c.find(KindPersonality, name).entry
		if e.BuiltIn() {
			continue
		}
		t := told{Name: name}
		for _, f := range e.Facts {
			if k, err := ParseKnob(f.Text()); err == nil && len(k.Command) > 0 && !trusted && !f.BuiltIn {
				continue
			}
			if !f.BuiltIn {
				t.Facts = append(t.Facts, toldFact{f.Key, f.Values, f.Source, f.Confidence})
			}
		}
		b, err := json.Marshal(t)
		if err == nil { // strings always encode
			all = append(all, b)
		}
	}
	return all
}

// Know is c with the personalities that a laptop told of. It trusts none of it: every fact is checked as a document's would be,
// and one that is not legal refuses all.
func (c *Catalog) Know(messages []json.RawMessage) (*Catalog, error) {
	fields := fieldsOf(KindPersonality)
	var entries []Entry
	for _, m := range messages {
		var t told
		dec := json.NewDecoder(bytes.NewReader(m))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil {
			return nil, fmt.Errorf("personality: %w", err)
		}
		if t.Name == "" || len(t.Name) > 64 || strings.Trim(t.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return nil, fmt.Errorf("personality: %q is not a name", shorten(t.Name))
		}
		e := Entry{Kind: KindPersonality, Name: t.Name}
		for _, f := range t.Facts {
			i := slices.IndexFunc(fields, func(x Field) bool { return x.Key == f.Key })
			if i < 0 || len(f.Values) == 0 || len(f.Values) > 1 && !fields[i].List || len(f.Values) > 100 {
				return nil, fmt.Errorf("personality %s: %q is no fact of one, or has no value", t.Name, shorten(f.Key))
			}
			fact := Fact{Key: f.Key, Source: f.Source, Confidence: f.Confidence}
			for _, v := range f.Values {
				canonical, err := fields[i].check(v)
				if err != nil {
					return nil, fmt.Errorf("personality %s: %s: %w", t.Name, f.Key, err)
				}
				fact.Values = append(fact.Values, canonical)
			}
			e.Facts = append(e.Facts, fact)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return c, nil
	}
	return c.With(entries...), nil
}
