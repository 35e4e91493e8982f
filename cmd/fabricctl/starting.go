package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/fabricctl/fabricctl/profiles"
)

// startingJSON are the starting points, and what others have published.
type startingJSON struct {
	Schema    string        `json:"schema"`
	Points    []startJSON   `json:"points"`
	Published []settingJSON `json:"published"`
}

type startJSON struct {
	ID         string     `json:"id"`
	Speed      string     `json:"speed"`
	Buffer     string     `json:"buffer,omitempty"`
	Kmin       string     `json:"kmin"`
	Kmax       string     `json:"kmax"`
	RampFrom   behindJSON `json:"ramp_from"`
	Pmax       string     `json:"pmax"`
	PmaxFrom   behindJSON `json:"pmax_from"`
	Alpha      string     `json:"alpha"`
	AlphaFrom  behindJSON `json:"alpha_from"`
	AlphaLeast string     `json:"alpha_least"`
	AlphaMost  string     `json:"alpha_most"`
}

type behindJSON struct {
	Label  profiles.Label `json:"label"`
	Source string         `json:"source"`
}

type settingJSON struct {
	ID     string `json:"id"`
	From   string `json:"from,omitempty"` // speeds that it is for; both absent for any
	To     string `json:"to,omitempty"`
	Kmin   string `json:"kmin"`
	Kmax   string `json:"kmax"`
	Pmax   string `json:"pmax,omitempty"` // absent where it is not stated
	Source string `json:"source"`
	Note   string `json:"note,omitempty"`
}

// starting are all starting points, or those of a platform.
func starting(cat *profiles.Catalog, name []string) (startingJSON, error) {
	r := startingJSON{Schema: "fabricctl/starting-points/v1", Points: []startJSON{}, Published: []settingJSON{}}
	points := profiles.StartingPoints()
	if len(name) == 1 {
		p, ok := cat.Platform(name[0])
		if !ok {
			return r, fail(exitError, "fabricctl profiles --kind platform lists them", "no platform is called %q", name[0])
		}
		for i := range points {
			points[i] = p.Start(points[i].Speed)
		}
		points = slices.CompactFunc(points, func(a, b profiles.Start) bool { return a.Speed == b.Speed })
		points = slices.DeleteFunc(points, func(s profiles.Start) bool { return p.Speed > 0 && s.Speed > p.Speed })
	}
	for _, s := range points {
		j := startJSON{
			ID: s.ID, Speed: s.Speed.String(), Kmin: s.Kmin.String(), Kmax: s.Kmax.String(), RampFrom: behindJSON(s.Ramp),
			Pmax: s.Pmax.String(), PmaxFrom: behindJSON(s.PmaxFrom), Alpha: s.Alpha.String(), AlphaFrom: behindJSON(s.AlphaFrom),
			AlphaLeast: s.AlphaLo.String(), AlphaMost: s.AlphaHi.String(),
		}
		if s.Buffer > 0 {
			j.Buffer = s.Buffer.String()
		}
		r.Points = append(r.Points, j)
	}
	for _, s := range profiles.PublishedECN() {
		j := settingJSON{ID: s.ID, Kmin: s.Kmin.String(), Kmax: s.Kmax.String(), Source: s.Source, Note: s.Note}
		if s.From > 0 {
			j.From, j.To = s.From.String(), s.To.String()
		}
		if s.Pmax > 0 {
			j.Pmax = s.Pmax.String()
		}
		r.Published = append(r.Published, j)
	}
	return r, nil
}

// printStarting writes the points with who stands behind each value, and then what others have published.
func printStarting(w io.Writer, r startingJSON) {
	fmt.Fprintln(w, "where thresholds of a lossless class may start; these are starting points, not answers")
	for _, s := range r.Points {
		ports := "ports of " + s.Speed
		if s.Buffer != "" {
			ports += ", chips with about " + s.Buffer
		}
		fmt.Fprintf(w, "%s: %s\n", s.ID, ports)
		fmt.Fprintf(w, "  kmin %s, kmax %s  %s: %s\n", s.Kmin, s.Kmax, s.RampFrom.Label, s.RampFrom.Source)
		fmt.Fprintf(w, "  pmax %s  %s: %s\n", s.Pmax, s.PmaxFrom.Label, s.PmaxFrom.Source)
		fmt.Fprintf(w, "  alpha %s (%s to %s)  %s: %s\n", s.Alpha, s.AlphaLeast, s.AlphaMost, s.AlphaFrom.Label, s.AlphaFrom.Source)
	}
	fmt.Fprintln(w, "ECN settings that others have published")
	lines := [][]string{{"speed", "kmin", "kmax", "pmax", "source"}}
	for _, s := range r.Published {
		speed := cmp.Or(s.From, "any")
		if s.From != s.To {
			speed += " to " + s.To
		}
		source := s.Source
		if s.Note != "" {
			source += " (" + s.Note + ")"
		}
		lines = append(lines, []string{speed, s.Kmin, s.Kmax, cmp.Or(s.Pmax, "-"), source})
	}
	for _, l := range aligned(lines) {
		fmt.Fprintf(w, "  %s\n", l)
	}
}
