package follow

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// tableRows prints the rows of one type of one cluster.
type tableRows struct {
	*tablePrinter
	// rows returns the row formatter and the columns. They are known after the first object.
	rows func() (print.RowFormatter, []metav1.TableColumnDefinition)
}

// tablePrinter is the table of a type. It continues if the type is removed and installed again. The tab
// writer keeps the column widths from row to row.
type tablePrinter struct {
	screen   *stdout
	resource schema.GroupResource
	style    printers.PrintOptions
	table    printers.ResourcePrinter
	text     bytes.Buffer
	tabs     interface {
		Write([]byte) (int, error)
		Flush() error
	}
	options Options
	// leading is the number of columns of the cluster and the namespace before those of the type.
	leading int
	// currentColumns are the printed columns. They are nil before the first row.
	currentColumns []metav1.TableColumnDefinition
}

// newTable returns the printer of a type. With several the command can print other types as well.
func (o Options) newTable(s *stdout, r discovery.Resource, several bool) *tablePrinter {
	style := o.Style.TableOptions(r, o.Namespace, several)
	p := &tablePrinter{screen: s, resource: r.GVR.GroupResource(), options: o}
	if o.Cluster != "" {
		style.WithNamespace = false
		p.leading = 1
		if r.Scope == discovery.Namespaced {
			p.leading = 2
		}
	}
	p.style, p.table = style, print.NewTablePrinter(style)
	p.tabs = printers.GetNewTabWriter(&p.text)
	return p
}

func (p *tablePrinter) rowsOf(cluster string, columns func() print.RowFormatter) tableRows {
	return tableRows{p, sync.OnceValues(func() (print.RowFormatter, []metav1.TableColumnDefinition) {
		rows := p.options.Style.WithLabelColumns(columns())
		if cluster != "" {
			rows = print.WithCluster(rows, cluster, p.leading == 2)
		}
		heads := rows.Definitions()
		if p.options.Managers {
			heads = append(slices.Clone(heads), metav1.TableColumnDefinition{Name: "Manager", Type: "string"})
		}
		return rows, heads
	})}
}

func (p tableRows) print(e event) error {
	show, err := p.prepare(e)
	if err != nil {
		return err
	}
	return show()
}

// prepare implements printer. It retains only the cells.
func (p tableRows) prepare(e event) (func() error, error) {
	rows, heads := p.rows()
	row := print.TableRow(rows, e.Object)
	status, below := eventName(e), p.changedFields(e)
	if p.options.Timestamps {
		status = e.timestamp() + " " + status
	}
	if p.options.Managers {
		row.Cells = append(slices.Clone(row.Cells), make([]any, max(0, len(heads)-1-len(row.Cells)))...)
		row.Cells = append(row.Cells, print.Printable(e.manager))
	}
	return func() error {
		if err := p.printRow(status, heads, row); err != nil || below == "" {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.screen.writeRaw(below)
		return nil
	}, nil
}

// changedFields returns the changed fields for an object that exists before and after the event, including
// the reason why it entered or left the query.
func (p *tablePrinter) changedFields(e event) string {
	if !p.options.Diff || e.Old == nil || e.Gone {
		return ""
	}
	text := print.ChangesText(print.Compare(p.resource, e.Old.Object, e.Object.Object), p.options.Color)
	if stoppedMatching(e) {
		return "  still exists, but left the query:\n" + text
	}
	return text
}

// printRow prints a row, after its event type if events are requested.
func (p *tablePrinter) printRow(event string, heads []metav1.TableColumnDefinition,
	row metav1.TableRow) error {
	if p.currentColumns == nil || !slices.EqualFunc(p.currentColumns, heads, print.SameColumn) {
		if err := p.beginTable(heads); err != nil {
			return err
		}
	}
	table := &metav1.Table{ColumnDefinitions: heads, Rows: []metav1.TableRow{row}}
	if !p.options.Events {
		return p.table.PrintObj(table, p.tabs)
	}
	return p.table.PrintObj(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: table}},
		p.tabs)
}

// beginTable starts a new table, because the columns changed.
func (p *tablePrinter) beginTable(heads []metav1.TableColumnDefinition) error {
	if p.currentColumns != nil {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if (p.screen.wrote || p.currentColumns != nil) && !p.options.Style.NoHeaders {
		p.screen.writeRaw("\n") // separates it from the previous table
	}
	p.currentColumns, p.tabs = heads, printers.GetNewTabWriter(&p.text)
	if !p.options.Events {
		return nil
	}
	return p.setMinWidths()
}

// setMinWidths sets minimum column widths, because rows are printed one by one and should align with the
// header.
func (p *tablePrinter) setMinWidths() error {
	defer p.text.Reset()
	if _, err := p.tabs.Write([]byte(p.widthRow() + "\n")); err != nil {
		return err
	}
	return p.tabs.Flush()
}

// Minimum column widths.
const (
	nameWidth      = 20
	namespaceWidth = 12
	textWidth      = 8
	boolWidth      = 5
)

// widthRow returns a row of spaces with the minimum widths.
func (p *tablePrinter) widthRow() string {
	cells := []string{""} // the event type
	if p.options.Timestamps {
		cells[0] = strings.Repeat(" ", len(timestampLayout+" ADDED"))
	}
	cell := func(width int) { cells = append(cells, strings.Repeat(" ", width)) }
	if p.style.WithNamespace {
		cell(namespaceWidth)
	}
	for i, head := range p.currentColumns {
		i -= p.leading
		switch {
		case i < 0:
			cell(namespaceWidth)
		case head.Priority != 0 && !p.style.Wide:
		case i == 0 && p.style.WithKind:
			cell(len(p.style.Kind.String()+"/") + nameWidth)
		case i == 0:
			cell(nameWidth)
		case head.Type == "boolean":
			cell(boolWidth)
		case head.Type == "string" && head.Format == "":
			cell(textWidth)
		default:
			cell(0)
		}
	}
	return strings.Join(cells, "\t")
}

func (p *tablePrinter) flush() error {
	if err := p.tabs.Flush(); err != nil {
		return err
	}
	defer p.text.Reset()
	if !p.options.Color || !p.options.Events {
		_, err := p.screen.Write(p.text.Bytes())
		return err
	}
	for line := range strings.Lines(p.text.String()) {
		if p.options.Timestamps {
			stamp, rest, _ := strings.Cut(line, " ")
			p.screen.writeRaw(stamp + " ")
			line = rest
		}
		word, rest, _ := strings.Cut(line, " ")
		p.screen.writeRaw(print.Colorize(word, colors[word]))
		if _, err := p.screen.Write([]byte(" " + rest)); err != nil {
			return err
		}
	}
	return nil
}

var colors = map[string]print.Color{"ADDED": print.Green, "MODIFIED": print.Yellow, "DELETED": print.Red}
