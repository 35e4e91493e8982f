package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
)

// schemaFile is what init calls the schema beside a model, and what its documents name in their first line.
const schemaFile = "fabric.schema.json"

func (a *app) newSchema() *cobra.Command {
	var check, layer bool
	c := &cobra.Command{
		Use:   "schema [--check PATH...]",
		Short: "Print the JSON Schema of the model's documents, or check documents with it",
		Long: `Print the JSON Schema (2020-12) of Fabric, Inventory and Profile documents, for editors: completion, descriptions with
units, and mistakes shown while typing. An editor with a YAML language server finds it by the first line of a document:

  # yaml-language-server: $schema=./` + schemaFile + `

With --layer, for documents that only add to others: what another layer may give is not required.

With --check, the PATHs (after any -f) are checked as layers of one model by a validator that shares no code with
fabricctl's own: each document by itself, then all of them together. A ` + schemaFile + ` beside them that is not the one
this fabricctl writes is a warning. What a schema cannot say (what must agree, or differ), validate says.`,
		Example: "  fabricctl schema > " + schemaFile + "\n  fabricctl schema --check fabric.yaml inventory.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && !check {
				return fail(exitUsage, "give --check to check documents", "schema takes no arguments without --check")
			}
			if check && layer {
				return usage("--layer is for printing; --check tries both")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if check {
				return a.runSchemaCheck(append(slices.Clone(a.fabric), args...))
			}
			if _, err := a.wants("text", "json"); err != nil {
				return err
			}
			_, err := a.sys.out.Write(model.JSONSchema(layer))
			return err
		},
	}
	c.Flags().BoolVar(&check, "check", false, "check documents")
	c.Flags().BoolVar(&layer, "layer", false, "the schema of documents that only add to others")
	return c
}

func (a *app) runSchemaCheck(layers []string) error {
	if _, err := a.wants(findingFormats()...); err != nil {
		return err
	}
	if len(layers) == 0 {
		return fail(exitUsage, "for example: schema --check fabric.yaml", "no document given")
	}
	l, err := schemaFindings(layers)
	if err != nil {
		return err
	}
	l.Add(outdated(layers)...)
	return a.printValidation(layers, l.Sort())
}

// schemaFindings checks layers with the schema: each document, and when nothing is wrong with any, all together.
func schemaFindings(layers []string) (diag.List, error) {
	part, err := newJudge(model.JSONSchema(true))
	if err != nil {
		return nil, err
	}
	docs, l := model.Documents(osFS{}, layers...)
	for _, d := range docs {
		l.Add(part.violations(d)...)
	}
	if len(docs) == 0 && len(l) == 0 {
		l.Errorf("document", diag.Pos{File: layers[0]}, "", "there is no document here")
	}
	if l.HasErrors() {
		return l.Sort(), nil
	}
	whole, err := newJudge(model.JSONSchema(false))
	if err != nil {
		return nil, err
	}
	f, _ := model.Load(osFS{}, layers...)
	for _, d := range f.Documents() {
		l.Add(whole.violations(d)...)
	}
	return l.Sort(), nil
}

// judge is a schema that can be asked: whether a document is right, and what a place of it is for.
type judge struct {
	schema *jsonschema.Schema
	text   map[string]any // the schema as JSON
}

func newJudge(text []byte) (judge, error) {
	const name = "urn:fabricctl:model"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return judge{}, fmt.Errorf("schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return judge{}, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return judge{}, fmt.Errorf("schema: %w", err)
	}
	whole, _ := doc.(map[string]any)
	return judge{s, whole}, nil
}

// violations are where a document is not what the schema says.
func (j judge) violations(d model.Document) diag.List {
	var bad *jsonschema.ValidationError
	if !errors.As(j.schema.Validate(d.JSON()), &bad) {
		return nil
	}
	var l diag.List
	for _, e := range leaves(bad) {
		l.Add(j.violation(e, d)...)
	}
	return l
}

// meaning is what the schema says about a place of a document, "" where it has none.
func (j judge) meaning(kind string, path []string) string {
	defs, _ := j.text["$defs"].(map[string]any)
	at, _ := defs[kind].(map[string]any)
	for _, p := range path {
		at = below(at, p)
	}
	text, _ := at["description"].(string)
	return text
}

// below is the schema of what stands at a key or an index, nil when there is none.
func below(at map[string]any, p string) map[string]any {
	if properties, ok := at["properties"].(map[string]any); ok {
		if s, ok := properties[p].(map[string]any); ok {
			return s
		}
	}
	if patterns, ok := at["patternProperties"].(map[string]any); ok {
		for _, s := range patterns { // there is one
			m, _ := s.(map[string]any)
			return m
		}
	}
	if items, ok := at["items"].(map[string]any); ok {
		return items
	}
	alternatives, _ := at["anyOf"].([]any)
	for _, s := range alternatives {
		if m, ok := s.(map[string]any); ok {
			if found := below(m, p); found != nil {
				return found
			}
		}
	}
	return nil
}

// leaves are the errors that say what is wrong. Of alternatives, those that are not of another type count: a mapping that
// is wrong inside is not a word that is not there.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	causes := e.Causes
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok {
		causes = slices.DeleteFunc(slices.Clone(causes), func(c *jsonschema.ValidationError) bool {
			_, other := firstLeaf(c).ErrorKind.(*kind.Type)
			return other && slices.Equal(firstLeaf(c).InstanceLocation, e.InstanceLocation)
		})
		if len(causes) == 0 { // it is of no type that may stand here
			return []*jsonschema.ValidationError{e}
		}
	}
	var out []*jsonschema.ValidationError
	for _, c := range causes {
		out = append(out, leaves(c)...)
	}
	return out
}

func firstLeaf(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return e
}

// violation is one error in words, with what the place is for as its hint. Text is not repeated: it may be a secret.
func (j judge) violation(e *jsonschema.ValidationError, d model.Document) diag.List {
	path := e.InstanceLocation
	at := cmp.Or(strings.Join(path, "."), "the document")
	var l diag.List
	say := func(pos diag.Pos, hint, format string, args ...any) { l.Errorf("schema", pos, hint, format, args...) }
	pos, hint := d.Pos(path), j.meaning(d.Kind, path)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, p := range k.Properties {
			say(d.Key(path, p), "", "%s: the key %q cannot stand here", at, p)
		}
	case *kind.Required:
		for _, p := range k.Missing {
			say(pos, j.meaning(d.Kind, append(slices.Clone(path), p)), "%s has no %s", at, p)
		}
	case *kind.Type:
		want := make([]string, len(k.Want))
		for i, w := range k.Want {
			want[i] = shapeWord(w)
		}
		say(pos, hint, "%s takes %s, not %s", at, strings.Join(want, " or "), shapeWord(k.Got))
	case *kind.Enum:
		words := make([]string, len(k.Want))
		for i, w := range k.Want {
			words[i] = fmt.Sprint(w)
		}
		say(pos, hint, "%s is not one of %s", at, strings.Join(words, ", "))
	case *kind.Pattern:
		say(pos, hint, "%s is not written as it must be", at)
	case *kind.Minimum:
		say(pos, hint, "%s: %s is below %s", at, k.Got.RatString(), k.Want.RatString())
	case *kind.Maximum:
		say(pos, hint, "%s: %s is above %s", at, k.Got.RatString(), k.Want.RatString())
	default:
		say(pos, hint, "%s is of no kind that may stand here", at)
	}
	return l
}

// shapeWord is a type of JSON as people say it.
func shapeWord(t string) string {
	switch t {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "null":
		return "nothing"
	}
	return t
}

// outdated warns of a schema beside the layers that another fabricctl wrote.
func outdated(layers []string) diag.List {
	var l diag.List
	seen := map[string]bool{}
	for _, layer := range layers {
		dir := layer
		if info, err := os.Stat(layer); err != nil || !info.IsDir() {
			dir = filepath.Dir(layer)
		}
		path := filepath.Join(dir, schemaFile)
		if seen[path] {
			continue
		}
		seen[path] = true
		text, err := os.ReadFile(path)
		if err != nil || bytes.Equal(text, model.JSONSchema(false)) {
			continue // there is none, or it is the right one
		}
		l.Warningf("schema-outdated", diag.Pos{File: path}, "fabricctl schema > "+quote(path),
			"this is not the schema of this fabricctl, so an editor may miss mistakes or see some where there are none")
	}
	return l
}
