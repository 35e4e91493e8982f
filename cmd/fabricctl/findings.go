package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
)

// findingFormats are the formats of -o in which findings can be printed.
func findingFormats() []string { return []string{"text", "json", "sarif", "junit", "github"} }

// printValidation prints findings in the format of -o, and ends with their exit code.
func (a *app) printValidation(layers []string, l diag.List) error {
	var err error
	switch a.output {
	case "json":
		err = a.printJSON(findingsJSON{"fabricctl/findings/v1", layers, l.Count(diag.Error), l.Count(diag.Warning), l.Count(diag.Info), show.Some(l)})
	case "sarif":
		err = a.printJSON(sarifOf(l))
	case "junit":
		err = writeJUnit(a.sys.out, layers, l)
	case "github":
		err = writeGitHub(a.sys.out, l)
	default:
		show.Findings(a.sys.out, l)
		summary := "no errors"
		if n := l.Count(diag.Error); n > 0 {
			summary = diag.Count(n, "error")
		}
		fmt.Fprintf(a.sys.err, "%s, %s, %s\n", summary, diag.Count(l.Count(diag.Warning), "warning"), diag.Count(l.Count(diag.Info), "info"))
	}
	switch {
	case err != nil:
		return err
	case l.HasErrors():
		return done(exitError)
	}
	return nil
}

// saying is all that a finding says but its place: the message, and the hint below it.
func saying(f diag.Finding) string {
	if f.Hint == "" {
		return f.Msg
	}
	return f.Msg + "\nhint: " + f.Hint
}

// The parts of SARIF 2.1.0 that findings need.
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   string    `json:"id"`
		Text sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations,omitempty"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Suppressions []sarifSuppressed `json:"suppressions,omitempty"`
	}
	sarifSuppressed struct {
		Kind   string `json:"kind"`
		Reason string `json:"justification"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
		Col  int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// sarifOf is findings for code scanning. What the model acknowledges is suppressed, with its reason; the fingerprint
// stays when a finding moves to another line.
func sarifOf(l diag.List) sarif {
	titles := map[string]string{}
	for _, r := range allRules() {
		titles[r.ID] = cmp.Or(titles[r.ID], r.Title)
	}
	rules, at := []sarifRule{}, map[string]int{}
	for _, f := range l {
		if _, ok := at[f.Rule]; !ok {
			at[f.Rule] = 0
			rules = append(rules, sarifRule{f.Rule, sarifText{cmp.Or(titles[f.Rule], f.Rule)}})
		}
	}
	slices.SortFunc(rules, func(a, b sarifRule) int { return cmp.Compare(a.ID, b.ID) })
	for i, r := range rules {
		at[r.ID] = i
	}
	results := []sarifResult{}
	for _, f := range l {
		sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Pos.File, f.At, f.Msg}, "\x00")))
		r := sarifResult{
			RuleID: f.Rule, RuleIndex: at[f.Rule], Level: f.Severity.String(), Message: sarifText{saying(f)},
			Fingerprints: map[string]string{"fabricctl/v1": hex.EncodeToString(sum[:16])},
		}
		if f.Severity == diag.Info {
			r.Level = "note"
		}
		switch {
		case !f.Pos.IsZero():
			r.Locations = []sarifLocation{{Physical: physical(f.Pos)}}
		case f.At != "":
			r.Locations = []sarifLocation{{Logical: []sarifLogical{{f.At}}}}
		}
		for _, x := range f.Related {
			r.Related = append(r.Related, sarifLocation{Physical: physical(x.Pos), Message: &sarifText{x.Msg}})
		}
		if f.Ack != "" {
			r.Suppressions = []sarifSuppressed{{"inSource", f.Ack}}
		}
		results = append(results, r)
	}
	return sarif{
		"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0",
		[]sarifRun{{sarifTool{sarifDriver{"fabricctl", toolVersion(), rules}}, "unicodeCodePoints", results}},
	}
}

// physical is a place in a file; nil when there is none.
func physical(p diag.Pos) *sarifPhysical {
	if p.IsZero() {
		return nil
	}
	u := url.URL{Path: filepath.ToSlash(p.File)}
	if filepath.IsAbs(p.File) {
		u.Scheme = "file"
	}
	ph := &sarifPhysical{Artifact: sarifArtifact{u.String()}}
	if p.Line > 0 {
		ph.Region = &sarifRegion{p.Line, p.Col}
	}
	return ph
}

// The parts of JUnit's XML that build servers read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Skipped *junitSkipped `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// writeJUnit writes findings as tests, a suite for each file: an error fails, what is acknowledged is skipped, and the
// rest passes with its text. A model without findings is one test that passes.
func writeJUnit(w io.Writer, layers []string, l diag.List) error {
	all := junitSuites{Name: "fabricctl validate"}
	suite := func(name string) *junitSuite {
		i := slices.IndexFunc(all.Suites, func(s junitSuite) bool { return s.Name == name })
		if i < 0 {
			i = len(all.Suites)
			all.Suites = append(all.Suites, junitSuite{Name: name})
		}
		return &all.Suites[i]
	}
	for _, f := range l {
		name := cmp.Or(f.Pos.File, "model")
		s := suite(name)
		c := junitCase{Class: name, Name: f.Rule}
		if at := cmp.Or(strings.TrimPrefix(f.Pos.String(), f.Pos.File+":"), f.At); at != "" && at != f.Pos.File {
			c.Name += " " + at
		}
		switch {
		case f.Severity == diag.Error:
			c.Failure = &junitFailure{f.Msg, f.Rule, f.String()}
			s.Failures++
			all.Failures++
		case f.Ack != "":
			c.Skipped = &junitSkipped{"acknowledged: " + f.Ack}
			s.Skipped++
		default:
			c.Out = f.String()
		}
		s.Cases = append(s.Cases, c)
		s.Tests++
		all.Tests++
	}
	if len(l) == 0 {
		name := strings.Join(layers, ", ")
		all.Suites, all.Tests = []junitSuite{{Name: name, Tests: 1, Cases: []junitCase{{Class: name, Name: "no findings"}}}}, 1
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	return err
}

// writeGitHub writes findings as workflow commands, which GitHub shows beside the lines of a pull request. What is
// acknowledged is not shown.
func writeGitHub(w io.Writer, l diag.List) error {
	var b strings.Builder
	for _, f := range l {
		if f.Ack != "" {
			continue
		}
		command := f.Severity.String()
		if f.Severity == diag.Info {
			command = "notice"
		}
		properties := []string{"title=" + githubProperty(f.Rule)}
		if f.Pos.Line > 0 {
			properties = append([]string{fmt.Sprintf("line=%d,col=%d", f.Pos.Line, f.Pos.Col)}, properties...)
		}
		if f.Pos.File != "" {
			properties = append([]string{"file=" + githubProperty(f.Pos.File)}, properties...)
		}
		text := saying(f)
		if f.Pos.IsZero() && f.At != "" {
			text = f.At + ": " + text
		}
		fmt.Fprintf(&b, "::%s %s::%s\n", command, strings.Join(properties, ","), githubData(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// githubData is a message in which nothing ends the command.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty is githubData that also ends no property.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubData(s))
}
