package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"unknown": func(text string) string { return cmp.Or(text, "unknown") },
	"version": func(of, version string) (string, error) {
		if version == "" { // for example of figures that were measured one by one and joined by hand
			return "", fmt.Errorf("the result lacks the version of %s: measure the whole plan in one run", of)
		}
		return version, nil
	},
	"bytes": func(n int64) string { return formatBytes(float64(n)) },
	"table": markdownTable,
	"line":  func(text string) string { first, _, _ := strings.Cut(text, "\n"); return first },
}).Parse(pageText))

// WriteMarkdown writes the page of a result to a file, and its charts to the folder that has the file's
// name without the extension.
func WriteMarkdown(path string, r *Result) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	text, charts, err := renderPage(r, filepath.Base(folder))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for _, c := range charts {
		if err := os.WriteFile(filepath.Join(folder, c.File), c.svg, 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(path, text, 0o666)
}

type pageSection struct {
	Title, Text string
	Objects     string
	Rows        [][]string
	Charts      []chart
}

// renderPage returns the text and the charts of a result. folder is the path from the page to its charts.
func renderPage(r *Result, folder string) ([]byte, []chart, error) {
	data := struct {
		*Result
		Folder   string
		Promises [][]string
		Sections []pageSection
	}{Result: r, Folder: folder}
	if rows := promiseRows(Judge(r)); len(rows) > 0 {
		header := []string{"measure", "against", "objects", "target", "measured", ""}
		data.Promises = slices.Insert(rows, 0, header)
	}
	var charts []chart
	for _, s := range pageSections() {
		rows := s.rows(r)
		if len(rows) == 0 {
			continue
		}
		shown := pageSection{Title: s.Title, Text: s.Text,
			Objects: formatThousands(int64(s.tableSize(r))) + " " + s.Unit, Rows: rows}
		for _, c := range s.Columns {
			if c.Chart == "" {
				continue
			}
			if drawn, ok := s.draw(r, c); ok {
				shown.Charts = append(shown.Charts, drawn)
			}
		}
		charts = append(charts, shown.Charts...)
		data.Sections = append(data.Sections, shown)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, data); err != nil {
		return nil, nil, err
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), charts, nil
}

// rows returns the table's header and its rows, without rows and columns that have no figure. It returns
// nil if nothing was measured.
func (s section) rows(r *Result) [][]string {
	columns := slices.DeleteFunc(slices.Clone(s.Columns), func(c column) bool {
		return !slices.ContainsFunc(s.Subjects,
			func(name string) bool { _, ok := s.cellFigure(r, name, c); return ok })
	})
	if len(columns) == 0 {
		return nil
	}
	header := []string{""}
	for _, c := range columns {
		header = append(header, c.Title)
	}
	rows := [][]string{header}
	for _, name := range s.Subjects {
		row := []string{subjectTitle(name)}
		for _, c := range columns {
			row = append(row, s.formatCell(r, name, c))
		}
		if slices.ContainsFunc(row[1:], func(cell string) bool { return cell != missingCell }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// markdownTable formats rows. The first row is the header.
func markdownTable(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "|%s|\n", strings.Join(row, "|"))
		if i == 0 {
			fmt.Fprintf(&b, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	return b.String()
}
