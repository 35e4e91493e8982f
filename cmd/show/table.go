package show

import (
	"fmt"
	"io"
	"strings"
)

// columnWidths are the widths of the columns of a table: those of their widest cells. A row that is cut short ends in a
// remark, which is as long as it is.
func columnWidths(rows [][]string) map[int]int {
	width := map[int]int{}
	for _, r := range rows {
		for i, c := range r {
			if i+1 < len(r) || len(r) == len(rows[0]) {
				width[i] = max(width[i], Shown([]byte(c)))
			}
		}
	}
	return width
}

// TableWidth is how wide Table writes rows.
func TableWidth(rows [][]string) int {
	n := -2
	for _, w := range columnWidths(rows) {
		n += w + 2
	}
	return n
}

// Table writes rows in columns as wide as their widest cell.
func Table(w io.Writer, rows [][]string) {
	width := columnWidths(rows)
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i+1 < len(r) {
				b.WriteString(strings.Repeat(" ", width[i]-Shown([]byte(c))+2))
			}
		}
		fmt.Fprintln(w, b.String())
	}
}
