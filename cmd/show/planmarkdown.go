package show

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// Bounds of a comment. GitHub takes 65,536 characters, others less; what has no room for a heading and its numbers is
// no comment.
const (
	DefaultComment  = 60_000
	SmallestComment = 2_000
)

// Markdown is a plan as a comment for a pull request, of at most limit bytes: the summary and what is in the way,
// the risks, then the changes, folded. What finds no room is left out in whole blocks, and counted. Nothing that a
// device or a model says can be anything but text.
func Markdown(p *rollout.Plan, verb string, limit int) string {
	c := comment{limit: limit - 300} // for the words about what was left out
	c.add("### " + MdText("fabricctl "+verb+": "+p.Fabric) + "\n\n")
	for _, s := range summarise(p).sentences() {
		c.add("- " + MdText(s.text) + "\n")
	}
	c.add("\n")
	c.table("| risk | devices | ports | why |\n|---|---:|---:|---|\n", "risks", riskRows(rollout.Risks(p)))
	c.table("| device | what | why |\n|---|---|---|\n", "devices", troubleRows(p))
	c.blocks("findings", findingBlocks(p.Finds))
	c.blocks("changes", groupBlocks("", rollout.Groups(p)))
	c.blocks("changes left out", groupBlocks("held, left out: ", rollout.LeftGroups(p)))
	c.blocks("observed differences", groupBlocks("observed, never written: ", rollout.ObservedGroups(p)))
	c.table("| devices | note |\n|---|---|\n", "notes", noteRows(rollout.Notes(p, false)))
	return c.String()
}

// comment collects whole pieces of markdown while there is room.
type comment struct {
	strings.Builder
	limit int
	left  []string // what has found no room
}

func (c *comment) fits(s string) bool { return c.Len()+len(s) <= c.limit }

func (c *comment) add(s string) {
	if c.fits(s) {
		c.WriteString(s)
	}
}

// table adds a table with as many rows as find room, in a quarter of the whole, so that something is left for the rest.
func (c *comment) table(head, what string, rows []string) {
	if len(rows) == 0 {
		return
	}
	n, end := 0, c.Len()+c.limit/4
	for _, r := range rows {
		text := r
		if n == 0 {
			text = head + r
		}
		if !c.fits(text+"\n") || c.Len()+len(text) > end {
			break
		}
		c.WriteString(text)
		n++
	}
	if n > 0 {
		c.WriteString("\n")
	}
	c.leave(len(rows)-n, what)
}

// blocks adds as many blocks as find room.
func (c *comment) blocks(what string, blocks []string) {
	for i, b := range blocks {
		if !c.fits(b) {
			c.leave(len(blocks)-i, what)
			return
		}
		c.WriteString(b)
	}
}

func (c *comment) leave(n int, what string) {
	if n > 0 {
		c.left = append(c.left, fmt.Sprintf("%d more %s", n, what))
	}
}

// String is the whole comment.
func (c *comment) String() string {
	s := c.Builder.String()
	if len(c.left) > 0 {
		s += "**There was no room for " + strings.Join(c.left, ", ") + ": see the plan file, or -o json.**\n"
	}
	return s
}

func riskRows(rows []rollout.RiskRow) []string {
	var out []string
	for _, r := range rows {
		kills := ""
		if k := r.Kills(); k != "" {
			kills = "<br>**" + MdText(k) + "**"
		}
		out = append(out, fmt.Sprintf("| %s | %d | %d | %s%s<br>on %s |\n",
			r.Class, len(r.Devices()), r.Ports, MdText(r.Why), kills, mdLines(onLines(r.On))))
	}
	return out
}

// troubleRows are the devices that keep a plan from being carried out, and what else a reader must know about them.
func troubleRows(p *rollout.Plan) []string {
	var out []string
	for _, s := range sameDevices(p, false, func(d rollout.DevicePlan) string {
		told := Told(d, false)
		if d.Error == "" && !d.Blocked && len(told) == 0 && len(d.Adopted) == 0 && len(d.Held) == 0 {
			return ""
		}
		var why []string
		why = append(why, adoptLines(d, false)...)
		why = append(why, heldLines(d)...)
		for _, f := range told {
			why = append(why, f.String())
		}
		return fmt.Sprintf("%s | %s |", MdText(deviceWord(d)), mdLines(why))
	}) {
		if s.text != "" {
			out = append(out, "| "+mdCode(Spans(s.names))+" | "+s.text+"\n")
		}
	}
	return out
}

func noteRows(notes []rollout.Note) []string {
	var out []string
	for _, n := range notes {
		out = append(out, "| "+mdCode(Spans(n.Devices))+" | "+MdText(n.Text)+" |\n")
	}
	return out
}

func findingBlocks(l diag.List) []string {
	var out []string
	for _, f := range l {
		out = append(out, "- "+mdLines(strings.Split(f.String(), "\n"))+"\n\n")
	}
	return out
}

// groupBlocks are groups, folded, each whole in itself.
func groupBlocks(prefix string, gs []rollout.Group) []string {
	var out []string
	for i, g := range gs {
		title := fmt.Sprintf("%s%d. %s", prefix, i+1, places(g))
		if prefix == "" {
			title += ", " + riskWords(g)
		}
		if len(g.On) == 1 {
			title += ": " + onLines(g.On)[0]
		}
		var b strings.Builder
		fmt.Fprintf(&b, "<details><summary>%s</summary>\n\n", MdText(title))
		if len(g.On) > 1 {
			b.WriteString("on " + mdLines(onLines(g.On)) + "\n\n")
		}
		if len(g.Refused) > 0 && len(g.Refused) < len(g.Devices()) {
			b.WriteString("**not written:** " + mdCode(Spans(g.Refused)) + "\n\n")
		}
		values := g.Changes
		if g.Like > 0 {
			values = rollout.Compare(gs[g.Like-1].Changes, g.Changes)
			fmt.Fprintf(&b, "as %d, but\n\n", g.Like)
		}
		b.WriteString("| value | before | after | model |\n|---|---|---|---|\n")
		for _, v := range values {
			if v.Before == "" && v.After == "" {
				fmt.Fprintf(&b, "| %s | no change here | | |\n", MdText(v.Label))
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", MdText(v.Label), mdCode(v.Before), mdCode(v.After), mdCode(v.From.String()))
		}
		b.WriteString("\n</details>\n\n")
		out = append(out, b.String())
	}
	return out
}

// riskWords is what happens to the ports of a group: nothing at all where every device of it is refused.
func riskWords(g rollout.Group) string {
	if len(g.Refused) == len(g.Devices()) {
		return render.Refused.String()
	}
	if g.Risk > render.Hitless && g.AtRisk < g.Ports {
		return fmt.Sprintf("%s of %d", g.Risk, g.AtRisk)
	}
	return g.Risk.String()
}

// mdLines is lines of code below each other, inside a table cell too.
func mdLines(lines []string) string {
	var out []string
	for _, l := range lines {
		out = append(out, mdCode(l))
	}
	return strings.Join(out, "<br>")
}

// mdCode is text as code, which nothing in it can end or style, and in which nobody is mentioned.
func mdCode(s string) string {
	if s == "" {
		return ""
	}
	return "<code>" + MdText(s) + "</code>"
}

// MdText is text of one line that means itself in markdown, in a table and in HTML. What markdown or a forge gives a
// meaning becomes a character reference; a name after @ and a number after # are held apart, so that no user is called
// and no issue is linked. Control characters are written as a terminal would show them.
func MdText(s string) string {
	s = string((&Screen{}).Dyed(safe([]byte(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)))))
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '@' || r == '#':
			fmt.Fprintf(&b, "&#%d;&#8203;", r)
		case strings.ContainsRune("&<>\"'|*_`[]!~\\$", r), r == ':' && strings.HasPrefix(s[i:], "://"), r == '.' && strings.HasSuffix(strings.ToLower(s[:i]), "www"):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
